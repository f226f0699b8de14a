/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * findings.h: a list of causes of a session's waits, or of the code it ran: each with the time that
 * it explains and the lines that it rests on. Pure.
 */
#ifndef TROCAR_CONSUMER_REPORT_FINDINGS_H
#define TROCAR_CONSUMER_REPORT_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jsonw;

#define FINDINGS_MAX	    5 /* that are written: those that explain most */
#define FINDINGS_SAYS_BYTES 960
#define FINDINGS_NAME_BYTES 256

enum finding_cause {
#define FINDING(id, word, of, least, helps) FINDING_##id,
#include "shared/findings/findings.def"
#undef FINDING
	FINDING_CAUSES_,
};

/* Which time of the threads a finding explains, or for how much of the session it lasted. */
enum findings_time { FINDINGS_WAITING, FINDINGS_RUNNING, FINDINGS_SESSION, FINDINGS_TIMES };

/* Selects the lines that a finding rests on: those of its session with all these members. */
struct finding_evidence {
	const char *type, *signal; /* literals; signal NULL: such lines have none */
	const char *key;	   /* a literal; NULL: no further member */
	char value[FINDINGS_NAME_BYTES];
	uint32_t pid; /* 0: not among the members */
};

struct finding {
	enum finding_cause cause;
	uint64_t ns;			/* that it explains */
	char says[FINDINGS_SAYS_BYTES]; /* a sentence for a person */
	struct finding_evidence evidence;
	uint32_t chain; /* number of the line `chain` with more; 0: none */
};

struct findings {
	struct finding items[FINDING_CAUSES_]; /* one of each cause at most */
	size_t count;
	uint64_t time_ns[FINDINGS_TIMES]; /* of all threads: what findings explain parts of */
	bool certain; /* false: the session is partial, which weakens all of them */
};

/*
 * Adds `f` where it explains at least the part that its row of findings.def asks for. A second one
 * of the same cause is dropped when it explains less.
 */
void findings_add(struct findings *all, const struct finding *f);

/*
 * Writes `findings`, those that explain most first and those without a culprit last, as many as fit
 * into half of the line; and `waited_ms` and `unexplained`, which counts those that did not fit.
 * Sorts them.
 */
void findings_write(struct findings *all, struct jsonw *w);

#endif
