/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * findings.h: a list of causes of a session's waits, or of the code it ran: each with the time that
 * it explains and the lines that prove it. Pure.
 */
#ifndef TROCAR_CONSUMER_ANSWER_FINDINGS_H
#define TROCAR_CONSUMER_ANSWER_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jsonw;

#define FINDINGS_MAX	    5 /* written: those that explain most */
#define FINDINGS_SAYS_BYTES 960
#define FINDINGS_NAME_BYTES 256

enum finding_cause {
#define FINDING(id, word, of, resource, least, level, proof, helps) FINDING_##id,
#include "shared/findings/findings.def"
#undef FINDING
	FINDING_CAUSES_,
};

/* The time of the threads, or of the session, that a finding explains a part of. */
enum findings_time { FINDINGS_WAITING, FINDINGS_RUNNING, FINDINGS_SESSION, FINDINGS_TIMES };

/* The resource whose pressure a finding explains; FINDINGS_ANY: none in particular. */
enum findings_resource { FINDINGS_CPU, FINDINGS_MEMORY, FINDINGS_IO, FINDINGS_ANY };

enum findings_level { FINDINGS_CERTAIN, FINDINGS_LIKELY };

/* The reason for "likely" where the signal `runq` is missing. */
#define FINDINGS_BY_TICKS "the ticks show which cgroups ran, not which threads waited for them"

/* Selects the lines that prove a finding: the lines of its session with all these members. */
struct finding_evidence {
	const char *type, *signal; /* literals; signal NULL: the lines have no signal */
	const char *key;	   /* a literal; NULL: no further member */
	char value[FINDINGS_NAME_BYTES];
	uint32_t pid; /* 0: not among the members */
};

struct finding {
	enum finding_cause cause;
	enum findings_time of;		/* set by findings_add */
	uint64_t ns;			/* explained time */
	char says[FINDINGS_SAYS_BYTES]; /* a sentence for a person */
	struct finding_evidence evidence;
	uint32_t chain; /* number of the `chain` line with details; 0: none */
	/* The reason for `level`, a literal; NULL: level and reason are those of its row. */
	const char *proof;
	enum findings_level level;
	bool lasts;   /* it counts by the session's time, whatever its row has */
	bool is_root; /* it explains the symptom, so it comes first */
};

struct findings {
	struct finding items[FINDING_CAUSES_]; /* at most one of each cause */
	size_t count;
	uint64_t time_ns[FINDINGS_TIMES]; /* of all threads: findings explain parts of them */
};

/*
 * Adds `f` if it explains at least the share that its row of findings.def requires. Of two findings
 * of one cause, the one that explains less is dropped.
 */
void findings_add(struct findings *all, const struct finding *f);

/* Returns the finding of this cause, NULL if there is none. */
struct finding *findings_get(struct findings *all, enum finding_cause cause);

/* Returns the resource whose pressure the finding explains. */
enum findings_resource findings_resource_of(const struct finding *f);

/*
 * Sorts the findings: the root of the symptom first, then those that explain most, those without a
 * culprit last. The waits that they explain are cut to what is left, so that they add up to at most
 * all of the waits.
 */
void findings_sort(struct findings *all);

/*
 * Returns the percentage of the waits, and of the time that findings of other kinds lasted, that
 * the findings explain. 100 without such time.
 */
unsigned int findings_explained_pct(const struct findings *all);

/* Returns the level of a finding, and in *ret_proof the reason, a literal. */
enum findings_level findings_level_of(const struct finding *f, const char **ret_proof);

/* Returns "certain" or "likely". */
const char *findings_level_name(enum findings_level level);

/*
 * Writes `findings`, sorted ones, as many as fit into half of the line. Also writes `waited_ms` and
 * `unexplained`, which includes the findings that did not fit.
 */
void findings_write(const struct findings *all, struct jsonw *w);

#endif
