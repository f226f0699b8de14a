/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * causes.h: writes the cause of a cgroup's stall in one sentence, if the facts of its session prove
 * it. causes.def has the causes, their thresholds and their ranks. Any thread.
 */
#ifndef TROCAR_CONSUMER_FACTS_CAUSES_H
#define TROCAR_CONSUMER_FACTS_CAUSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/facts/facts_disks.h"
#include "consumer/facts/facts_phases.h"

#define CAUSES_TEXT_BYTES 448

/* The trigger of the session: pressure of a resource, or something else. */
enum causes_trigger { CAUSES_CPU, CAUSES_MEMORY, CAUSES_IO, CAUSES_OTHER, CAUSES_TRIGGER_COUNT_ };

/* CPU use while the session ran. */
struct causes_cpus {
	const char *most;    /* path or name of the other cgroup with most CPU time; NULL: none */
	uint64_t most_ms;    /* its CPU time on the CPUs that the session's cgroup ran on */
	uint64_t others_ms;  /* of all other cgroups on these CPUs, including that one */
	uint64_t own_ms;     /* of the session's own cgroup */
	uint64_t ms;	     /* length of the session */
	size_t own_cpus;     /* that the session's cgroup ran on; 0: none, the times are of all */
	size_t cpus;	     /* of the host */
	size_t most_cgroups; /* above 1: so many cgroups in the directory `most` */
};

/* All borrowed; NULL: unknown. */
struct causes_case {
	const struct facts_phases *facts;
	const struct facts_disks *disks;
	const struct causes_cpus *cpus;
	enum causes_trigger trigger;
	uint64_t stalled_ms; /* by the trigger's pressure, from the onset to the end; 0: unknown */
};

enum cause_id {
#define CAUSE(name, least, cpu, memory, io, other) CAUSE_ID_##name,
#include "consumer/facts/causes.def"
#undef CAUSE
};

/*
 * Sets *ret_id to the highest-ranked cause, and writes its sentence. Returns false if the facts
 * prove none.
 */
bool causes_find(const struct causes_case *c, enum cause_id *ret_id, char text[CAUSES_TEXT_BYTES]);

/*
 * Returns whether the waits for devices were for pages that a larger memory limit would have kept
 * in memory: at least half of the reads were refaults.
 */
bool causes_reads_back(const struct facts_phases *facts);

/*
 * Writes the sentence of cause `id`, whatever its rank. Returns false if the facts do not prove it.
 */
bool causes_say(const struct causes_case *c, enum cause_id id, char text[CAUSES_TEXT_BYTES]);

#endif
