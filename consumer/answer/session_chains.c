/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/answer/session_chains.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "consumer/answer/chain_links.h"
#include "consumer/evidence/time/thread_pools.h"
#include "consumer/facts/disk_text.h"
#include "consumer/naming/frame_json.h"
#include "consumer/sampling/wait_kind.h"
#include "consumer/sampling/wait_objects.h"
#include "consumer/signals/pool_name.h"
#include "consumer/signals/thresholds.h"
#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

#define NAME_MAX_BYTES 128 /* of a name in a line */
#define LINK_MIN_ROOM  512 /* bytes of a line for the keys that every link has */

/* ---- as a sentence */

/* A text that is being written. */
struct saying {
	char *text;
	size_t bytes, space;
	const struct facts_disks *disks;
};

__attribute__((format(printf, 2, 3))) static void say(struct saying *s, const char *format, ...)
{
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsnprintf(s->text + s->bytes, s->space - s->bytes, format, arguments);
	va_end(arguments);
	s->bytes = MIN(s->bytes + (size_t)MAX(n, 0), s->space - 1);
}

static double to_seconds(uint64_t ns)
{
	return (double)ns / (double)NSEC_PER_SEC;
}

static void say_who(struct saying *s, const struct chain_link *link)
{
	char name[COMM_BYTES];

	if (link->threads <= 1) {
		say(s, "%.*s", COMM_BYTES, link->comm);
		return;
	}
	pool_name_of(link->comm, name);
	say(s, "%" PRIu32 " threads", link->threads);
	if (name[0])
		say(s, " of %.*s", COMM_BYTES, name);
}

/* The object of a wait in each state, and the words that lead to the awaited thread. */
static const struct {
	const char *what, *leads;
} waits[] = {
	[WAIT_RUNS] = { "", "" },
	[WAIT_FOR_CPU] = { "for a CPU", " behind " },
	[WAIT_BLOCKED + WAIT_IO] = { "for disks and files", " for " },
	[WAIT_BLOCKED + WAIT_MEMORY] = { "for memory", " for " },
	[WAIT_BLOCKED + WAIT_LOCK] = { "for a lock", " held by " },
	[WAIT_BLOCKED + WAIT_SLEEP] = { "asleep for a timer", " until woken by " },
	[WAIT_BLOCKED + WAIT_IDLE] = { "for work", " from " },
	[WAIT_BLOCKED + WAIT_PIPE] = { "in a pipe", " for " },
	[WAIT_BLOCKED + WAIT_SOCKET] = { "on a socket", " for " },
	[WAIT_BLOCKED + WAIT_CHILD] = { "for a process", ", for " },
	[WAIT_BLOCKED + WAIT_FAULT] = { "for a page", " for " },
	[WAIT_BLOCKED + WAIT_OTHER] = { "for something else", " for " },
	[WAIT_BLOCKED + WAIT_STOPPED] = { "stopped by a signal", " until woken by " },
	[WAIT_BLOCKED + WAIT_TRACED] = { "stopped by a tracer", " until woken by " },
	[WAIT_BLOCKED + WAIT_FROZEN] = { "frozen", " until woken by " },
};
_Static_assert(ARRAY_SIZE(waits) == WAIT_BLOCKED + WAIT_KIND_COUNT_, "a row per state");

/* Writes " (vdb)" for a file on a disk. */
static void say_disk(struct saying *s, const struct look_on *on)
{
	char name[FACTS_DEVICES_BYTES];

	if (!on || on->kind != LOOK_ON_FILE || !(on->device >> 20))
		return;
	disk_text_name(s->disks, on->device >> 20, on->device & 0xfffff, name);
	say(s, " (%s)", name);
}

static void say_wait(struct saying *s, const struct chain_link *link, const struct lock_name *names)
{
	char lock[256];

	say(s, "waited %.1f s ", to_seconds(link->ns));
	if (link->condition) {
		say(s, "for work or another thread");
	} else if (link->lock) {
		lock_names_say(names ? &names[link->lock - 1] : NULL, lock, sizeof(lock));
		say(s, "for %s", lock);
	} else {
		say(s, "%s", waits[link->state].what);
	}
	if (!link->place || link->lock)
		return;
	s->bytes += (size_t)wait_place_say(link->place, s->text + s->bytes, s->space - s->bytes);
	if (link->state == WAIT_BLOCKED + WAIT_IO)
		say_disk(s, link->place->on);
}

static void say_ran(struct saying *s, const struct chain_link *link)
{
	if (link->queue_ns >= link->running_ns && link->queue_ns >= link->short_ns)
		say(s, "waited %.1f s for a CPU", to_seconds(link->ns));
	else if (link->running_ns >= link->short_ns)
		say(s, "ran %.1f s", to_seconds(link->ns));
	else
		say(s, "waited many times, each shorter than 1 ms, %.1f s in all",
		    to_seconds(link->ns));
}

static void say_end(struct saying *s, const struct chain *c)
{
	static const char *const ends[CHAIN_ENDS_] = {
#define CHAIN_END(id, json, says) [CHAIN_END_##id] = (says),
#include "shared/findings/chain_ends.def"
#undef CHAIN_END
	};
	const char *mark = strstr(ends[c->end], "%s");

	if (!mark) {
		say(s, "%s", ends[c->end]);
		return;
	}
	say(s, "%.*s%.*s%s", (int)(mark - ends[c->end]), ends[c->end], COMM_BYTES, c->end_comm,
	    mark + 2);
}

int session_chains_say(const struct chain *c, uint32_t from, const struct lock_name *names,
		       const struct facts_disks *disks, char *text, size_t space)
{
	struct saying s = { text, 0, space, disks };

	for (uint32_t i = from; i < c->count; i++) {
		const struct chain_link *link = &c->links[i];

		if (i > from)
			say(&s, "%s",
			    c->links[i - 1].condition ? " for "
						      : waits[c->links[i - 1].state].leads);
		say_who(&s, link);
		say(&s, i > from ? ", which " : " ");
		if (link->state == WAIT_RUNS)
			say_ran(&s, link);
		else
			say_wait(&s, link, names);
	}
	if (s.bytes)
		say_end(&s, c);
	return (int)s.bytes;
}

/* ---- as a line */

/* Members that the lines of a session share. */
struct chain_lines {
	const struct session_result *session;
	const struct lock_name *names;
	const struct event_lines *lines;
	const struct event_subject *subject;
	bool partial;
};

/* Returns the pool with the line that covers the thread of a link; NULL: none. */
static const struct thread_pool *find_pool(const struct chain_lines *l,
					   const struct chain_link *link)
{
	const struct thread_pools *pools = thread_pools_of(l->session->signals);
	size_t i;

	if (!pools || !thread_pools_find(pools, link->tgid, 0, link->comm, &i) ||
	    !pools->items[i].tgid)
		return NULL;
	return &pools->items[i];
}

/* Writes which lines support the link. */
static void write_evidence(const struct chain_lines *l, const struct chain_link *link,
			   struct jsonw *w)
{
	const struct lock_waits *locks = lock_waits_of(l->session->signals);
	const struct thread_pool *pool = find_pool(l, link);
	char text[32];

	if (!link->lock && !link->place && !pool)
		return;
	jsonw_object(w, "evidence");
	if (link->lock) {
		const struct lock_key *key = &locks->items[link->lock - 1].lock;

		snprintf(text, sizeof(text), "0x%" PRIx64, (uint64_t)key->address);
		jsonw_string(w, "type", "lock");
		jsonw_u64(w, "pid", key->tgid);
		jsonw_string(w, "address", text);
	} else if (link->place) {
		jsonw_string(w, "type", "stack");
		jsonw_string(w, "signal", "offcpu");
		jsonw_u64(w, "pid", link->place->tgid);
		jsonw_string_n(w, "comm", link->place->comm,
			       strnlen(link->place->comm, COMM_BYTES));
		jsonw_string(w, "wait", wait_kind_name(link->place->state));
	} else {
		jsonw_string(w, "type", "pool");
		jsonw_u64(w, "pid", pool->tgid);
		jsonw_string_n(w, "pool", pool->name, strnlen(pool->name, COMM_BYTES));
	}
	jsonw_object_end(w);
}

static void put_text(struct jsonw *w, const char *key, const char *text)
{
	if (text)
		jsonw_string_n(w, key, text, strnlen(text, NAME_MAX_BYTES));
}

/* Writes the members that are omitted if a line has no space. */
static void write_details(const struct chain_lines *l, const struct chain_link *link,
			  struct jsonw *w)
{
	struct jsonw_mark mark = jsonw_mark(w);

	if (link->place) {
		put_text(w, "fn", link->place->fn);
		put_text(w, "module", link->place->module);
		if (link->place->on)
			wait_objects_write(link->place->on, w);
	}
	write_evidence(l, link, w);
	if (jsonw_end(w) < 0 || w->bytes + LINK_MIN_ROOM * CHAINS_LINKS > w->max_bytes)
		jsonw_rewind(w, mark);
}

static void write_link(const struct chain_lines *l, const struct chain_link *link, struct jsonw *w)
{
	jsonw_object(w, NULL);
	jsonw_u64(w, "threads", link->threads);
	if (link->tgid) {
		jsonw_u64(w, "pid", link->tgid);
		jsonw_u64(w, "tid", link->tid);
	}
	jsonw_string_n(w, "comm", link->comm, strnlen(link->comm, COMM_BYTES));
	if (link->state == WAIT_RUNS) {
		jsonw_string(w, "did", "ran");
		jsonw_u64(w, "running_ns", link->running_ns);
		jsonw_u64(w, "queue_ns", link->queue_ns);
		jsonw_u64(w, "short_ns", link->short_ns);
	} else {
		jsonw_string(w, "did", "waited");
		jsonw_string(w, "wait", wait_kind_name(link->state));
		if (link->condition)
			jsonw_bool(w, "condition", true);
	}
	jsonw_u64(w, "ns", link->ns);
	jsonw_u64(w, "count", link->waits);
	write_details(l, link, w);
	jsonw_object_end(w);
}

static void put_chain(const struct chain_lines *l, const struct chain *c)
{
	char says[SESSION_CHAINS_BYTES];
	struct jsonw w;

	session_chains_say(c, 0, l->names, l->session->disks, says, sizeof(says));
	event_line_begin(l->lines, &w, "chain", l->subject);
	jsonw_string(&w, "signal", rules_signal_name(SIGNAL_LOCK));
	jsonw_u64(&w, "chain", c->number);
	jsonw_string(&w, "says", says);
	jsonw_string(&w, "end", chain_links_end(c->end));
	if (c->end_comm[0])
		jsonw_string_n(&w, "end_comm", c->end_comm, strnlen(c->end_comm, COMM_BYTES));
	if (l->partial)
		jsonw_bool(&w, "partial", true);
	jsonw_array(&w, "links");
	for (uint32_t i = 0; i < c->count; i++)
		write_link(l, &c->links[i], &w);
	jsonw_array_end(&w);
	event_line_end(l->lines, &w);
}

/* Whether the chain has more than the fact of a wait. */
static bool tells_more(const struct session_result *s, const struct chain *c)
{
	return !c->idle &&
	       c->links[0].ns * 100 >= (s->stop_ns - s->start_ns) * THRESHOLD_WAITED_PCT &&
	       (c->count > 1 || c->end == CHAIN_END_KERNEL || c->end == CHAIN_END_OUTSIDE ||
		c->end == CHAIN_END_CYCLE);
}

void session_chains_put(const struct session_result *s, struct session_digest *summary,
			const struct lock_name *names, const struct event_lines *lines,
			const struct event_subject *subject)
{
	const struct lock_waits *locks = lock_waits_of(s->signals);
	struct chain_lines l = { s, names, lines, subject, false };
	uint32_t number = 0;

	if (!locks || !locks->long_waits ||
	    chains_make(locks->long_waits, locks, names, &summary->waits.places, &summary->chains) <
		    0)
		return;
	l.partial = summary->chains.partial;
	for (size_t i = 0; i < summary->chains.count && number < SESSION_CHAINS_MAX; i++) {
		struct chain *c = &summary->chains.items[i];

		if (!tells_more(s, c))
			continue;
		c->number = ++number;
		put_chain(&l, c);
	}
}
