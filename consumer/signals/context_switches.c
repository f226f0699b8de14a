/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The signal `switch`: counts how often the watched tasks gave their CPU away (voluntary), and how
 * often the scheduler took it from them (involuntary). A program that the broker attaches for the
 * session counts.
 */
#include <stdlib.h>

#include "consumer/kernel/pinned_maps.h"
#include "consumer/signals/signal_programs.h"
#include "consumer/signals/signals.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

struct context_switches {
	struct signal signal;
	bool counted;		    /* counts are valid, from begin + late_ms to end */
	bool tried;		    /* attach was called */
	bool shared;		    /* the counts are of others too */
	uint64_t late_ms;	    /* the program was attached so long after begin */
	struct slot_switches count; /* at begin the first, at end the difference */
};

static const char not_yet[] = "it has not been attached yet";
static const char unreadable[] = "the counters cannot be read";
static const char others[] =
	"the kernel side counts by cgroup, and more of the cgroup was sampled than this "
	"session's processes";

static struct context_switches *switches_of(struct signal *s)
{
	return (struct context_switches *)s;
}

/*
 * Returns true for pressure, and for CPU time that fell: whether tasks lost the CPU or gave it up
 * to wait, and how often, tells what delays the service.
 */
static bool is_auto(const struct trigger_reason *reason)
{
	return trigger_reason_is_stall(reason);
}

static struct signal *create_switches(const struct signal_host *host,
				      const struct signal_target *target)
{
	struct context_switches *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->signal.why = not_yet;
	return &s->signal;
}

static void destroy_switches(struct signal *s)
{
	free(s);
}

/* Sums the counts of the session's slot so far. Returns 0 or -errno. */
static int read_switches(const struct signal_host *host, const struct signal_target *target,
			 struct slot_switches *ret_count)
{
	return pinned_maps_signal(host->pins, PINNED_MAP_switches, target->slot,
				  sizeof(*ret_count) / sizeof(uint64_t), (uint64_t *)ret_count);
}

static void attach_switches(struct signal *signal, const struct signal_host *host,
			    const struct signal_target *target)
{
	struct context_switches *s = switches_of(signal);
	bool late = s->tried;

	s->tried = true;
	if (s->counted || target->stop_ns ||
	    signal_programs_hold(host->programs, SIGNAL_SWITCH, &signal->why) < 0)
		return;
	if (read_switches(host, target, &s->count) < 0) {
		signal_programs_drop(host->programs, SIGNAL_SWITCH);
		signal->why = unreadable;
		return;
	}
	s->counted = true;
	signal->why = NULL;
	if (late)
		s->late_ms = (clock_mono_ns() - target->start_ns) / NSEC_PER_MSEC;
}

static void end_switches(struct signal *signal, const struct signal_host *host,
			 const struct signal_target *target)
{
	struct context_switches *s = switches_of(signal);
	struct slot_switches last;

	if (!s->counted)
		return;
	s->shared = target->shared;
	if (read_switches(host, target, &last) == 0) {
		s->count.voluntary = last.voluntary - s->count.voluntary;
		s->count.involuntary = last.involuntary - s->count.involuntary;
	} else {
		s->counted = false;
		signal->why = unreadable;
	}
	signal_programs_drop(host->programs, SIGNAL_SWITCH);
}

static void write_switches(const struct signal *signal, struct jsonw *w)
{
	const struct context_switches *s = (const struct context_switches *)signal;

	if (!s->counted || s->shared) {
		jsonw_null(w, "switches");
		jsonw_string(w, "switches_reason", s->counted ? others : signal->why);
		return;
	}
	jsonw_object(w, "switches");
	jsonw_u64(w, "voluntary", s->count.voluntary);
	jsonw_u64(w, "involuntary", s->count.involuntary);
	if (s->late_ms)
		jsonw_u64(w, "late_ms", s->late_ms);
	jsonw_object_end(w);
}

const struct signal_kind context_switches_kind = {
	.id = SIGNAL_SWITCH,
	.auto_why = "auto: at pressure, what runs on the CPUs and who gives them up",
	.is_auto = is_auto,
	.create = create_switches,
	.destroy = destroy_switches,
	.attach = attach_switches,
	.end = end_switches,
	.write = write_switches,
};
