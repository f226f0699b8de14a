/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/locks/session_locks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "consumer/evidence/locks/lock_waits.h"
#include "consumer/naming/frame_json.h"
#include "consumer/signals/time_histogram.h"
#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

#define LOCK_HISTOGRAMS 8 /* for the locks with the most time; one more covers all */

static void write_comm(struct jsonw *w, const char *key, const char *comm)
{
	jsonw_string_n(w, key, comm, strnlen(comm, COMM_BYTES));
}

static void write_address(uint64_t lock, struct jsonw *w)
{
	char address[32];

	if (!lock)
		return;
	snprintf(address, sizeof(address), "0x%" PRIx64, lock);
	jsonw_string(w, "address", address);
}

void session_locks_write_stack(const struct stack *stack, struct jsonw *w)
{
	if (!stack->lock_tgid)
		return;
	jsonw_object(w, "lock");
	jsonw_u64(w, "pid", stack->lock_tgid);
	write_address(stack->lock_address, w);
	jsonw_object_end(w);
}

static void write_which(const struct lock_waited *l, struct jsonw *w)
{
	if (!l->lock.tgid) {
		jsonw_u64(w, "others", l->locks);
		return;
	}
	jsonw_u64(w, "pid", l->lock.tgid);
	jsonw_u64(w, "start_ns", l->start_ns);
	write_comm(w, "comm", l->comm);
	jsonw_string(w, "kind", lock_waits_kind(l->lock.kind));
	write_address(l->lock.address, w);
}

/* Writes the memory of a lock that is not a variable of a module. */
static void write_memory(const struct lock_memory *m, struct jsonw *w)
{
	/* The inode of a machine's first System V segment is 0. */
	bool inode = m->kind == LOCK_MEMORY_SHARED || m->kind == LOCK_MEMORY_FILE;

	jsonw_object(w, "memory");
	jsonw_string(w, "kind", lock_waits_memory(m->kind));
	jsonw_u64_nonzero(w, "tid", m->tid);
	if (m->name[0])
		jsonw_string(w, "name", m->name);
	if (inode)
		jsonw_u64(w, "inode", m->inode);
	if (inode || m->kind == LOCK_MEMORY_HEAP)
		jsonw_u64(w, "offset", m->offset);
	jsonw_object_end(w);
}

/* Writes which variable of which module the lock is, or why that is not known, or its location. */
static void write_name(const struct lock_name *name, struct jsonw *w)
{
	if (name->module)
		frame_json_text(w, "module", name->module);
	if (name->symbol) {
		frame_json_text(w, "symbol", name->symbol);
		jsonw_u64(w, "symbol_offset", name->offset);
	} else if (name->reason) {
		jsonw_string(w, "symbol_reason", name->reason);
	}
	if (name->memory)
		write_memory(name->memory, w);
}

static void write_longest(const struct lock_waited *l, struct jsonw *w)
{
	jsonw_object(w, "longest");
	jsonw_u64(w, "wait_ns", l->longest_ns);
	if (l->longest_tid) {
		jsonw_u64(w, "tid", l->longest_tid);
		write_comm(w, "comm", l->longest_comm);
	}
	jsonw_object_end(w);
}

static void write_woken(const struct lock_woken *k, const struct lock_release *releases,
			struct jsonw *w)
{
	jsonw_object(w, NULL);
	jsonw_string(w, "by", lock_waits_waker(k->kind));
	if (k->tid) {
		jsonw_u64(w, "pid", k->tgid);
		jsonw_u64(w, "tid", k->tid);
		write_comm(w, "comm", k->comm);
	}
	jsonw_u64(w, "waits", k->waits);
	jsonw_u64(w, "held_ns", k->held_ns);
	if (releases && k->stack && releases[k->stack - 1].fn) {
		frame_json_text(w, "fn", releases[k->stack - 1].fn);
		frame_json_text(w, "module", releases[k->stack - 1].module);
	}
	jsonw_object_end(w);
}

static void write_wakers(const struct lock_waited *l, const struct lock_release *releases,
			 struct jsonw *w)
{
	jsonw_array(w, "wakers");
	for (uint32_t i = 0; i < l->n_wakers; i++)
		write_woken(&l->woken[i], releases, w);
	jsonw_array_end(w);
	if (l->wakers > l->n_wakers)
		jsonw_u64(w, "wakers_more", l->wakers - l->n_wakers);
}

static void put_lock(const struct lock_waited *l, const struct event_lines *lines,
		     const struct event_subject *subject, const struct lock_release *releases,
		     const struct lock_name *name)
{
	struct jsonw w;

	event_line_begin(lines, &w, "lock", subject);
	jsonw_string(&w, "signal", rules_signal_name(SIGNAL_LOCK));
	write_which(l, &w);
	if (name)
		write_name(name, &w);
	jsonw_u64(&w, "waits", l->waits);
	jsonw_u64(&w, "wait_ns", l->total_ns);
	jsonw_u64(&w, "open", l->open);
	jsonw_u64(&w, "open_ns", l->open_ns);
	write_longest(l, &w);
	if (l->lock.tgid) {
		jsonw_u64(&w, "p50_ns", l->p50_ns);
		jsonw_u64(&w, "p90_ns", l->p90_ns);
		jsonw_u64(&w, "p99_ns", l->p99_ns);
		jsonw_u64(&w, "threads", l->threads);
		jsonw_u64_nonzero(&w, "again", l->woken_in_vain);
		if (l->pattern)
			jsonw_string(&w, "pattern", lock_waits_pattern(l->pattern));
		if (l->condition)
			jsonw_bool(&w, "condition", true);
		write_wakers(l, releases, &w);
	}
	event_line_end(lines, &w);
}

/* The members that identify a lock across sessions of a process: its place or its name. */
static void write_key(const struct lock_waited *l, const struct lock_name *name, struct jsonw *w)
{
	jsonw_object(w, "key");
	jsonw_string(w, "of", l ? "lock" : "all");
	if (l) {
		jsonw_u64(w, "pid", l->lock.tgid);
		jsonw_u64(w, "start_ns", l->start_ns);
		jsonw_string(w, "kind", lock_waits_kind(l->lock.kind));
		write_address(l->lock.address, w);
	}
	if (name && name->symbol) {
		frame_json_text(w, "module", name->module);
		frame_json_text(w, "symbol", name->symbol);
	}
	jsonw_object_end(w);
}

/* Writes how long the waits for a lock were, or the waits for all locks if it is NULL. */
static void put_histogram(const struct lock_waits *locks, const struct lock_waited *l,
			  const struct event_lines *lines, const struct event_subject *subject,
			  const struct lock_name *name)
{
	const struct lock_waited *waited = l ? l : &locks->all;
	struct jsonw w;

	event_line_begin(lines, &w, "histogram", subject);
	jsonw_string(&w, "signal", rules_signal_name(SIGNAL_LOCK));
	write_key(l, name, &w);
	time_histogram_write_of(waited->buckets, LOCK_BUCKETS, waited->total_ns, &w);
	event_line_end(lines, &w);
}

static void put_histograms(const struct lock_waits *locks, const struct event_lines *lines,
			   const struct event_subject *subject, const struct lock_name *names)
{
	if (!locks->all.waits)
		return;
	put_histogram(locks, NULL, lines, subject, NULL);
	for (size_t i = 0; i < MIN(locks->count, (size_t)LOCK_HISTOGRAMS); i++)
		if (locks->items[i].lock.tgid)
			put_histogram(locks, &locks->items[i], lines, subject,
				      names ? &names[i] : NULL);
}

void session_locks_release(const struct stack *stack, const struct named_frame *frames, size_t n,
			   struct lock_release *ret_release)
{
	*ret_release = (struct lock_release){};
	for (size_t i = stack->kernel_frames; i < n; i++) {
		if (!frames[i].fn || frame_name_is_library(frames[i].module))
			continue;
		*ret_release = (struct lock_release){ frames[i].fn, frames[i].module };
		return;
	}
}

void session_locks_put(const struct session_result *s, const struct event_lines *lines,
		       const struct event_subject *subject, const struct lock_release *releases,
		       const struct lock_name *names)
{
	const struct lock_waits *locks = lock_waits_of(s->signals);

	if (!locks)
		return;
	for (size_t i = 0; i < locks->count; i++)
		put_lock(&locks->items[i], lines, subject, releases, names ? &names[i] : NULL);
	put_histograms(locks, lines, subject, names);
}
