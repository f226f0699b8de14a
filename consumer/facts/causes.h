/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * causes.h: writes the cause of a cgroup's stall in one sentence, where the facts of its session
 * prove it. causes.def has the causes, their thresholds and their ranks. Any thread.
 */
#ifndef TROCAR_CONSUMER_FACTS_CAUSES_H
#define TROCAR_CONSUMER_FACTS_CAUSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/facts/facts_disks.h"
#include "consumer/facts/facts_phases.h"

#define CAUSES_TEXT_BYTES 448

/* What began the session: pressure of a resource, or something else. */
enum causes_trigger { CAUSES_CPU, CAUSES_MEMORY, CAUSES_IO, CAUSES_OTHER, CAUSES_TRIGGER_COUNT_ };

/* The users of the CPUs while the session ran. */
struct causes_cpus {
	const char *most; /* path or name of the other cgroup that had most; NULL: there is none */
	uint64_t most_ms; /* CPU time that it had, on the CPUs that the session's cgroup ran on */
	uint64_t others_ms; /* that all other cgroups had on these, it among them */
	uint64_t own_ms;    /* that the session's own had */
	uint64_t ms;	    /* how long the session was */
	size_t own_cpus;    /* that the session's cgroup ran on; 0: none, and all are meant */
	size_t cpus;	    /* of the host */
};

/* All borrowed; NULL: not known. */
struct causes_case {
	const struct facts_phases *facts;
	const struct facts_disks *disks;
	const struct causes_cpus *cpus;
	enum causes_trigger trigger;
	uint64_t
		stalled_ms; /* by the trigger's pressure, from the onset to the end; 0: not known */
};

enum cause_id {
#define CAUSE(name, least, cpu, memory, io, other) CAUSE_ID_##name,
#include "consumer/facts/causes.def"
#undef CAUSE
};

/* Writes the sentence of the cause that speaks first. False when no fact speaks. */
bool causes_find(const struct causes_case *c, char text[CAUSES_TEXT_BYTES]);

/*
 * Whether the waits for devices were for pages that a larger memory limit had kept in memory: at
 * least half of the reads were refaults.
 */
bool causes_reads_back(const struct facts_phases *facts);

/* Writes the sentence of this cause, whatever its rank. False when the facts do not prove it. */
bool causes_say(const struct causes_case *c, enum cause_id id, char text[CAUSES_TEXT_BYTES]);

#endif
