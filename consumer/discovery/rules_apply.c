/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/discovery/rules_apply.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "consumer/discovery/discovery.h"
#include "consumer/discovery/process_scan.h"
#include "consumer/watch/binding.h"
#include "shared/files/regular.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/io.h"
#include "shared/tools/log.h"
#include "shared/tools/macro.h"

/* Time between scans while nothing is watched and events report everything. */
#define IDLE_SCAN_NS (600 * NSEC_PER_SEC)

static void write_peer(const struct control_peer *peer, struct jsonw *w)
{
	if (!peer)
		return;
	jsonw_object(w, "peer");
	jsonw_u64(w, "pid", (uint64_t)peer->pid);
	jsonw_u64(w, "uid", peer->uid);
	jsonw_object_end(w);
}

/* Writes as many faults as fit into the line; counts the rest. */
static void write_faults(const struct discovery *d, const struct rules_faults *faults,
			 const char *key, const char *omitted, struct jsonw *w)
{
	size_t room = d->log->lines->max_bytes - 128, kept = MIN(faults->kept, faults->count), i;

	jsonw_array(w, key);
	for (i = 0; i < kept; i++) {
		struct jsonw_mark mark = jsonw_mark(w);

		rules_fault_write(&faults->items[i], w);
		if (jsonw_end(w) < 0 || w->bytes > room) {
			jsonw_rewind(w, mark);
			break;
		}
	}
	jsonw_array_end(w);
	if (i < faults->count)
		jsonw_u64(w, omitted, faults->count - i);
}

void rules_apply_say_rejected(struct discovery *d, const char *source,
			      const struct control_peer *peer, const struct rules_faults *faults)
{
	struct jsonw w;

	event_line_begin(d->log->lines, &w, "rules.rejected", NULL);
	jsonw_string(&w, "source", source);
	write_peer(peer, &w);
	jsonw_u64(&w, "fault_count", faults->count);
	write_faults(d, faults, "faults", "faults_omitted", &w);
	event_line_end(d->log->lines, &w);
}

static void say_applied(struct discovery *d, const struct applied *applied, const char *source,
			const struct control_peer *peer, const struct rules_faults *warnings)
{
	struct jsonw w;

	event_line_begin(d->log->lines, &w, "rules.applied", NULL);
	jsonw_u64(&w, "generation", applied->generation);
	jsonw_u64(&w, "count", applied->count);
	jsonw_string(&w, "source", source);
	write_peer(peer, &w);
	jsonw_u64(&w, "unchanged_watches", applied->unchanged_watches);
	write_faults(d, warnings, "warnings", "warnings_omitted", &w);
	event_line_end(d->log->lines, &w);
}

/* Copies the spent budget to rules with the same name. */
static void carry_budgets(const struct ruleset *from, struct ruleset *to)
{
	for (size_t i = 0; from && i < from->rules->count; i++) {
		const struct rule *same = rules_find(to->rules, from->rules->rules[i].name);

		if (same)
			to->budgets[same - to->rules->rules] = from->budgets[i];
	}
}

/*
 * Gives each process its rule of the new set: the rule with the same name and content, else none
 * until the scan.
 */
static void carry_processes(struct discovery *d, const struct rules *fresh)
{
	struct process *p;
	uint64_t id;

	idmap_for_each (&d->processes->by_id, i, id, p) {
		const struct rule *same = p->rule ? rules_find(fresh, p->rule->name) : NULL;
		struct binding *b;

		p->rule = same && rule_equal(same, p->rule) ? same : NULL;
		if (!p->rule)
			p->watch = NULL;
		b = p->watch ? binding_find(p->watch, p->rule) : NULL;
		if (b)
			b->processes++;
	}
}

/*
 * Switches the kernel side to the filled tries. Between the two stores an event may carry the new
 * generation and a rule of the old tries: the consumer matches it again.
 */
static void switch_tries(struct discovery *d, const struct ruleset *set)
{
	struct control *c = d->pins->control;

	c->generation = set->generation;
	__atomic_store_n(&c->active, !c->active, __ATOMIC_SEQ_CST);
	c->scan_trie = c->active;
	__atomic_store_n(&c->events_on, set->rules->count ? 1 : 0, __ATOMIC_RELEASE);
}

/*
 * Returns the time between scans while nothing is watched. Events report every start, every name,
 * and the first process of a cgroup; a scan is then only insurance, and is rare to leave the
 * machine idle. No event reports that a process moves into a cgroup that already has processes: for
 * rules with a name and a cgroup the scan continues at SCHEDULE_SCAN_NS.
 */
static uint64_t idle_scan_ns(const struct rules *rules)
{
	for (size_t i = 0; i < rules->count; i++)
		if (rules->rules[i].n_comms && rules->rules[i].cgroup_prefix)
			return SCHEDULE_SCAN_NS;
	return rules->count ? IDLE_SCAN_NS : 0;
}

static void say_no_room(struct discovery *d, const struct rules *rules, int error)
{
	event_line_error(
		d->log->lines, NULL, "rules_file", "load with a larger --rules", NULL, NULL,
		"%zu rules do not fit the kernel's tables of %u: %s; the running set stays",
		rules->count, d->pins->abi.rules, strerror(-error));
}

int rules_apply_set(struct discovery *d, struct rules *rules, const char *source,
		    const struct control_peer *peer, const struct rules_faults *warnings,
		    struct applied *ret_applied)
{
	struct ruleset *set, *old = d->active->set;
	struct applied applied = { .count = rules->count };
	int r;

	r = ruleset_new(rules, d->active->generation + 1, source, &set);
	if (r < 0) {
		rules_free(rules);
		return r;
	}
	d->fills++;
	r = ruleset_fill(d->pins, !d->pins->control->active, set);
	if (r < 0) {
		say_no_room(d, rules, r);
		ruleset_unref(set);
		return r;
	}
	d->active->generation++;
	carry_budgets(old, set);
	ruleset_number(set, old, &d->active->last_id);
	switch_tries(d, set);
	cooldowns_rebind(&d->triggers->cooldowns, set->rules);
	d->active->set = set;
	d->scope->logged = false;
	bindings_rebind(d->watches, set->rules, &applied.unchanged_watches);
	sessions_rebind(d->watches->sessions, set->rules);
	carry_processes(d, set->rules);
	applied.generation = set->generation;
	say_applied(d, &applied, source, peer, warnings);
	process_scan_rules(d);
	r = process_scan_step(d);
	if (r < 0)
		log_warning("scan of the processes: %s, continuing with events alone",
			    strerror(-r));
	ruleset_unref(old);
	schedule_idle_scan(d->schedule, idle_scan_ns(set->rules));
	*ret_applied = applied;
	return 0;
}

static void note_refused(struct discovery *d, const struct rules_faults *faults)
{
	const struct rules_fault *first = faults->kept ? &faults->items[0] : NULL;
	char line[32] = "";

	d->refused = (struct rules_refused){ .since_ns = clock_mono_ns(),
					     .faults = MAX(faults->count, (size_t)1) };
	if (first && first->line)
		snprintf(line, sizeof(line), ":%u:%u", first->line, first->column);
	snprintf(d->refused.first, sizeof(d->refused.first), "%s%s: %s%s%s", d->rules_path, line,
		 first ? first->pointer : "", first && *first->pointer ? ": " : "",
		 first ? first->message : "it does not fit the kernel's tables");
}

void rules_apply_write_refused(const struct discovery *d, struct jsonw *w)
{
	if (!d->refused.since_ns)
		return;
	jsonw_object(w, "rules_refused");
	jsonw_u64(w, "age_ms", (clock_mono_ns() - d->refused.since_ns) / NSEC_PER_MSEC);
	jsonw_u64(w, "faults", d->refused.faults);
	jsonw_string(w, "first", d->refused.first);
	jsonw_object_end(w);
}

/* Reports in lines and in the log that the file is refused. */
static void refuse_file(struct discovery *d, const char *source, const struct rules_faults *faults)
{
	for (size_t i = 0; i < MIN(faults->kept, faults->count); i++)
		log_error("%s:%u:%u: %s: %s", d->rules_path, faults->items[i].line,
			  faults->items[i].column, faults->items[i].pointer,
			  faults->items[i].message);
	note_refused(d, faults);
	rules_apply_say_rejected(d, source, NULL, faults);
}

/* The file itself is the fault: it cannot be read, or is too long. */
static void say_unread(struct discovery *d, const char *source, int error)
{
	char message[128];
	struct rules_fault fault = { .pointer = (char *)"", .message = message };
	const struct rules_faults faults = { .items = &fault, .count = 1, .kept = 1 };

	snprintf(message, sizeof(message), "cannot be read: %s",
		 error == -EFBIG    ? "longer than 1 MiB"
		 : error == -EINVAL ? "no regular file"
				    : strerror(-error));
	log_error("%s: %s", d->rules_path, message);
	note_refused(d, &faults);
	rules_apply_say_rejected(d, source, NULL, &faults);
}

/*
 * Refuses a path to anything but a regular file before it opens it: an open of a FIFO waits for a
 * writer.
 */
static int read_rules(const char *path, char **ret_text, size_t *ret_bytes)
{
	_cleanup_close_ int held = -1, fd = -1;
	struct stat st;

	held = regular_hold(AT_FDCWD, path, true, &st);
	if (held < 0)
		return held;
	fd = regular_open(held);
	return fd < 0 ? fd : io_read_fd(fd, RULES_TEXT_BYTES, ret_text, ret_bytes);
}

int rules_apply_file(struct discovery *d)
{
	_cleanup_(rules_faults_done) struct rules_faults faults, warnings;
	_cleanup_free_ char *text = NULL, *source = NULL;
	struct rules *rules;
	struct applied applied;
	size_t bytes;
	int r;

	rules_faults_init(&faults);
	rules_faults_init(&warnings);
	if (asprintf(&source, "file:%s", d->rules_path) < 0)
		return -ENOMEM;
	r = read_rules(d->rules_path, &text, &bytes);
	if (r < 0) {
		say_unread(d, source, r);
		return r;
	}
	r = rules_parse(text, bytes, &rules, &faults, &warnings);
	if (r < 0) {
		refuse_file(d, source, &faults);
		return r;
	}
	r = rules_apply_set(d, rules, source, NULL, &warnings, &applied);
	if (r < 0)
		note_refused(d, &faults);
	else
		d->refused = (struct rules_refused){ 0 };
	return r;
}
