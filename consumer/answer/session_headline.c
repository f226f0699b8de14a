/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/answer/session_headline.h"

#include <stdio.h>
#include <string.h>

#include "consumer/evidence/waits/session_pools.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

static const char *base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

/* Writes how little CPU time the cgroup had. Returns the length. */
static int write_quiet(const struct session_result *s, char *text, size_t space)
{
	const struct trigger_reason *r = &s->reason;
	uint64_t tenths = (r->measured_ms + 50) / 100;
	char part[8] = "";

	if (tenths % 10)
		snprintf(part, sizeof(part), ".%u", (unsigned int)(tenths % 10));
	return snprintf(text, space, "%s used %llu %% of its usual CPU time in %llu%s s", s->cgroup,
			(unsigned long long)(r->cpu_us * 100 / MAX(r->usual_us, 1ULL)),
			(unsigned long long)tenths / 10, part);
}

/* Writes the beginning of the headline: the trigger. Returns the length. */
static int write_trigger(const struct session_result *s, char *text, size_t space)
{
	switch (s->reason.kind) {
	case TRIGGER_PRESSURE:
		return snprintf(text, space, "%s stalled on %s for %llu ms of %llu ms (%s)",
				s->cgroup, rules_resource_name(s->reason.when.resource),
				(unsigned long long)s->reason.stall_ms,
				(unsigned long long)s->reason.measured_ms,
				s->reason.when.full ? "all of it" : "some of it");
	case TRIGGER_QUIET:
		return write_quiet(s, text, space);
	case TRIGGER_STUCK:
		return snprintf(text, space,
				"%s has %llu of its %llu threads in one wait (%s) for %llu s",
				s->cgroup, (unsigned long long)s->reason.stuck_threads,
				(unsigned long long)s->reason.all_threads, s->reason.wait,
				(unsigned long long)(s->reason.measured_ms / 1000));
	case TRIGGER_EXEC:
		return snprintf(text, space, "%s started in %s (pid %u)", s->reason.comm, s->cgroup,
				s->reason.pid);
	case TRIGGER_OOM_KILL:
		return snprintf(text, space, "%s (pid %u) of %s was killed: memory ran out",
				s->reason.comm, s->reason.pid, s->cgroup);
	case TRIGGER_REQUEST:
		break;
	}
	return snprintf(text, space, "%s captured on request%s%s", s->cgroup,
			s->reason.text[0] ? ": " : "", s->reason.text);
}

static int write_grown(const struct function_grown *grown, char *text, size_t space)
{
	int n = snprintf(text, space, "; %u %% of its time on CPU was in %.200s (%s)",
			 grown->share_pct, grown->fn, grown->comm);

	if (n < 0 || (size_t)n >= space)
		return n;
	if (grown->by_rate)
		return n + snprintf(text + n, space - (size_t)n,
				    ": %u %% of a CPU, %u %% in the baseline", grown->stalled_pct,
				    grown->calm_pct);
	return n +
	       snprintf(text + n, space - (size_t)n, ", %u %% in the baseline", grown->calm_pct);
}

/* Writes where the CPU time went. Returns the length. */
static int write_functions(const struct session_digest *s, const struct session_result *session,
			   char *text, size_t space)
{
	const struct tally_row *top = session_digest_top(s);
	const char *whose = function_growth_comm(&s->growth, top->name, top->detail);
	struct function_grown grown;

	if (function_growth_find(&s->growth, session->pre_ms - session->onset_ms,
				 (session->stop_ns - session->start_ns) / NSEC_PER_MSEC, &grown))
		return write_grown(&grown, text, space);
	if (!whose)
		whose = top->detail ? base_name(top->detail) : "unknown module";
	return snprintf(text, space, "; %llu %% of its time on CPU was in %.200s (%.200s)",
			(unsigned long long)(top->weight * 100 / MAX(s->functions.total, 1ULL)),
			top->name ? top->name : "unnamed code", whose);
}

/* Whether tasks waited for something that no stack of CPU time shows. */
static bool is_wait(const struct session_result *s)
{
	return trigger_reason_is_stall(&s->reason) &&
	       (s->reason.kind != TRIGGER_PRESSURE || s->reason.when.resource != RESOURCE_CPU);
}

/* Whether CPU time was less than a tenth of the session. */
static bool ran_little(const struct session_digest *s, const struct session_result *session)
{
	return s->weight_ns[PHASE_DURING] * 10 < session->stop_ns - session->start_ns;
}

/* Writes the waits. Returns the length. */
static int write_wait(const struct session_digest *s, const struct session_result *session,
		      char *text, size_t space)
{
	const struct signal *waiting = signals_of_stacks(session->signals, STACKS_WAITING);
	bool any = session->reason.kind != TRIGGER_PRESSURE;
	int n = session_waits_clause(&s->waits,
				     any ? RESOURCE_COUNT_ : session->reason.when.resource,
				     session_pools_part_ns(session), text, space);

	if (!n && any && ran_little(s, session))
		n = session_waits_idle_clause(&s->waits, text, space);
	if (n || !is_wait(session))
		return n;
	if (!any && waiting && waiting->taken)
		return snprintf(text, space, "; sampled waits for %s: under 1 ms",
				rules_resource_name(session->reason.when.resource));
	return snprintf(text, space, "; the waits are not in these stacks, which are of CPU time");
}

/* Whether the finding names the place where threads waited: no other wait stands beside it. */
static bool has_place(const struct finding *f)
{
	return f && (strstr(f->says, " waited ") || strstr(f->says, " slept ") ||
		     strstr(f->says, " waits in "));
}

/* Writes whether the cause is not known, where a stall or a request asks why. Returns the length.
 */
static int write_answer(const struct session_result *s, const struct answer *answer, char *text,
			size_t space)
{
	static const char *const words[] = {
		[ANSWER_CERTAIN] = "",
		[ANSWER_LIKELY] = "",
		[ANSWER_NOT_KNOWN] = "cause not known; ",
		[ANSWER_NOTHING] = "nothing unusual; ",
	};

	return snprintf(text, space, "%s",
			trigger_reason_asks_why(&s->reason) ? words[answer->level] : "");
}

void session_headline_write(const struct session_digest *s, const struct session_result *session,
			    const struct finding *first, const struct answer *answer, char *text,
			    size_t space)
{
	const struct signal *running = signals_of_stacks(session->signals, STACKS_RUNNING);
	const char *begin = first ? first->says : NULL;
	int n = write_answer(session, answer, text, space), waited = 0;

	if (begin && (size_t)n < space)
		n += snprintf(text + n, space - (size_t)n, "%s; ", begin);
	if ((size_t)n >= space)
		return;
	n += write_trigger(session, text + n, space - (size_t)n);
	if ((size_t)n < space)
		n += session_pools_headline(session, s->waits.condition_ns, text + n,
					    space - (size_t)n);
	if ((size_t)n >= space)
		return;
	if (!has_place(first) && (is_wait(session) || session->reason.kind == TRIGGER_REQUEST))
		waited = write_wait(s, session, text + n, space - (size_t)n);
	n += waited;
	if ((size_t)n >= space)
		return;
	if (!s->functions.count && running->off_reason)
		snprintf(text + n, space - (size_t)n, "; no CPU was sampled: %s",
			 running->off_reason);
	else if (!s->functions.count)
		snprintf(text + n, space - (size_t)n,
			 "; none of its threads ran on a CPU in this time");
	else if ((waited || trigger_reason_is_stall(&session->reason)) && session_digest_is_few(s))
		n += snprintf(text + n, space - (size_t)n,
			      "; it was on a CPU for %llu ms of %llu ms",
			      (unsigned long long)(s->weight_ns[PHASE_DURING] / NSEC_PER_MSEC),
			      (unsigned long long)((session->stop_ns - session->start_ns) /
						   NSEC_PER_MSEC));
	else
		n += write_functions(s, session, text + n, space - (size_t)n);
	if (session_digest_is_few(s) && (size_t)n < space)
		snprintf(text + n, space - (size_t)n, ", by %llu sample%s only",
			 (unsigned long long)s->count[PHASE_DURING],
			 s->count[PHASE_DURING] == 1 ? "" : "s");
}
