/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/report/session_calls.h"

#include <string.h>

#include "consumer/signals/call_names.h"
#include "consumer/signals/call_times.h"
#include "shared/tools/macro.h"

#define CALLS_PUT 20

/* Writes `call`, and its number or what there is instead of one. */
static void write_call(uint32_t call, struct jsonw *w)
{
	const char *name = call_names_get(call);

	jsonw_string(w, "call", name);
	if (call == ACCOUNT_CALL_NONE)
		jsonw_string(w, "call_reason", "outside of system calls: page faults, stops");
	else if (call == ACCOUNT_CALL_KERNEL)
		jsonw_string(w, "call_reason", "kernel threads, and workers in the kernel");
	else if (call == ACCOUNT_CALL_COMPAT)
		jsonw_string(w, "call_reason", "processes of 32 bits have other numbers");
	else if (!name)
		jsonw_string(w, "call_reason", "a newer system call than this version knows");
	if (call < ACCOUNT_CALL_COMPAT)
		jsonw_u64(w, "number", call);
}

static void write_longest(const struct call_time *t, struct jsonw *w)
{
	if (!t->longest_ns)
		return;
	jsonw_object(w, "longest");
	jsonw_u64(w, "wait_ns", t->longest_ns);
	jsonw_bool(w, "open", !t->longest_end_ns);
	jsonw_u64(w, "pid", t->longest_tgid);
	jsonw_u64(w, "tid", t->longest_tid);
	jsonw_string_n(w, "comm", t->longest_comm, strnlen(t->longest_comm, COMM_BYTES));
	jsonw_object_end(w);
}

/* Writes the line of `t`; with `others` it is the sum of so many calls. */
static void put_call(const struct call_time *t, uint64_t others, const struct lines *lines,
		     const struct event_subject *subject)
{
	struct jsonw w;

	event_line_begin(lines, &w, "syscall", subject);
	jsonw_string(&w, "signal", rules_signal_name(SIGNAL_SYSCALL));
	if (others)
		jsonw_u64(&w, "others", others);
	else
		write_call(t->call, &w);
	jsonw_u64(&w, "waits", t->waits);
	jsonw_u64(&w, "open", t->open);
	jsonw_u64(&w, "wait_ns", t->wait_ns);
	if (!others)
		write_longest(t, &w);
	event_line_end(lines, &w);
}

void session_calls_put(const struct session_result *s, const struct lines *lines,
		       const struct event_subject *subject)
{
	const struct signal *signal = s->signals[SIGNAL_SYSCALL];
	const struct call_times *times = signal ? signal->calls : NULL;
	struct call_time rest = {};

	for (size_t i = 0; times && i < times->count; i++) {
		const struct call_time *t = &times->items[i];

		if (i < CALLS_PUT) {
			put_call(t, 0, lines, subject);
			continue;
		}
		rest.waits += t->waits;
		rest.open += t->open;
		rest.wait_ns += t->wait_ns;
	}
	if (times && times->count > CALLS_PUT)
		put_call(&rest, times->count - CALLS_PUT, lines, subject);
}
