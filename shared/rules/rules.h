/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rules.h: rule sets: parses them, reports every fault by its JSON pointer, and matches processes.
 * docs/rules.md explains each key to an operator. The parser reads foreign text of bounded length;
 * it is fuzzed (tests/fuzz/shared/rules.c).
 */
#ifndef TROCAR_SHARED_RULES_RULES_H
#define TROCAR_SHARED_RULES_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jsonw;

#define RULES_MAX	 10000u
#define RULES_TEXT_BYTES (1u << 20)
#define RULES_REQUEST_BYTES \
	(RULES_TEXT_BYTES * 2 + 4096) /* holds a whole text with each byte escaped */
#define RULES_NESTING	       16
#define RULE_NAME_BYTES	       65 /* 64 and the NUL */
#define RULE_COMM_BYTES	       16 /* 15 and the NUL */
#define RULE_COMMS_MAX	       64 /* names of a rule */
#define RULE_WHEN_MAX	       8
#define RULE_LABELS_MAX	       16
#define RULE_LABEL_KEY_BYTES   64 /* 63 and the NUL */
#define RULE_LABEL_VALUE_BYTES 256
#define RULE_LABELS_BYTES      1024 /* of all keys and values of a rule: every line has them */
#define RULES_FAULTS_MAX       1000 /* faults listed; further ones are only counted */

enum resource { RESOURCE_CPU, RESOURCE_MEMORY, RESOURCE_IO, RESOURCE_COUNT_ };

/* Returns "cpu", "memory" or "io". */
const char *rules_resource_name(enum resource resource);

/* Bit numbers of the signals of docs/rules.md, in this order; rows are appended. */
enum signal_bit {
#define SIGNAL(id, json, help) SIGNAL_##id,
#include "shared/abi/signals.def"
#undef SIGNAL
	SIGNAL_COUNT_
};

/* Returns "oncpu", "offcpu", ... */
const char *rules_signal_name(enum signal_bit signal);

#define RULES_SIGNALS_AUTO (1u << SIGNAL_COUNT_)

/* Bits of the signals for which this version has no program; consumer/signals checks this. */
#define RULES_SIGNALS_WITHOUT_PROGRAM (1u << SIGNAL_FAULT | 1u << SIGNAL_RUNTIME)

/*
 * Returns 1 << the bit of the signal of that name of `bytes` bytes; RULES_SIGNALS_AUTO for "auto";
 * 0: there is no such signal.
 */
uint32_t rules_signal_bit(const char *name, size_t bytes);

/* The right form of an array of signals, as a sentence. */
extern const char rules_signals_right[];

/*
 * Limits of a threshold quiet_pct. The agent reads CPU time every 5 s. A share above one half
 * cannot be distinguished from the normal variation of a steady service.
 */
#define RULE_QUIET_WINDOW_MIN_MS 5000
#define RULE_QUIET_WINDOW_MAX_MS 10000
#define RULE_QUIET_MILLI_PCT_MAX 50000

/*
 * The longest delay until a threshold stuck_threads_pct detects a stall, with sampling passes every
 * 5 s.
 */
#define RULE_STUCK_MS 10000

/* One threshold of `when`: of pressure, of the cgroup's CPU time, or of its threads. */
struct rule_when {
	bool quiet;	    /* quiet_pct: only milli_pct and window_ms are used with it */
	bool stuck;	    /* stuck_threads_pct: only milli_pct is used with it */
	uint32_t milli_pct; /* of the usual CPU time, or of all threads, in 0.001 % */
	enum resource resource;
	bool full;	    /* PSI "full", else "some" */
	bool percent;	    /* written as *_pct in the file */
	uint32_t stall_ms;  /* threshold in the window; computed from pct */
	uint32_t window_ms; /* 500 to 10000 */
};

struct rule_label {
	char key[RULE_LABEL_KEY_BYTES];
	char value[RULE_LABEL_VALUE_BYTES];
};

/* How to walk the stacks of matching processes. */
enum rule_unwind {
	RULE_UNWIND_AUTO,  /* by call frame information; without it, by frame pointers */
	RULE_UNWIND_FP,	   /* by frame pointers alone */
	RULE_UNWIND_TABLE, /* by call frame information alone */
	RULE_UNWIND_COUNT_,
};

/* Returns "auto", "fp" or "table". */
const char *rule_unwind_name(enum rule_unwind unwind);

/*
 * The default pre_ms is the longest window plus this. A stall is measured from the last reading
 * that is at least a window old, which may be 5 s older than the window. The rest is baseline.
 */
#define RULES_PRE_CALM_MS 8000

struct rule {
	char name[RULE_NAME_BYTES];
	char (*comms)[RULE_COMM_BYTES]; /* owned, n_comms: the names of comm, or the comm_prefix */
	uint32_t n_comms;		/* 0: the rule has neither */
	bool comm_exact;
	char *cgroup_prefix; /* owned; NULL when absent */
	bool on_exec;
	bool on_oom_kill; /* begins when the OOM killer kills a process of its cgroup; with
			     scope_process, a matching process */
	bool scope_process;
	bool signals_auto;
	enum rule_unwind unwind;
	uint32_t signals; /* 1u << enum signal_bit; 0 when auto */
	uint32_t n_when;
	uint32_t n_labels;
	uint32_t pre_ms;      /* 0 to 30000, default RULES_PRE_CALM_MS and the longest window */
	uint32_t during_ms;   /* 100 to 60000, default 3000 */
	uint32_t cooldown_ms; /* 0 to 3600000, default 30000 */
	uint32_t budget_s;    /* captured seconds per hour, 1 to 3600, default 600 */
	struct rule_when when[RULE_WHEN_MAX];
	struct rule_label *labels;	   /* owned, n_labels */
	uint32_t match_line, match_column; /* place of its match in the text, from 1 */
};

/*
 * An entry that the kernel side matches: a name with its rule, or a rule that has only a
 * cgroup_prefix.
 */
struct rules_entry {
	uint32_t rule; /* index in the set */
	uint32_t comm; /* index in its comms */
};

struct rules {
	uint32_t version;
	uint32_t budget_s; /* of all rules, per hour; 1 to 3600, default 600 */
	size_t count;
	struct rule *rules; /* owned; index = place in the file */
	/* Owned: one for each name of each rule, and one for each rule without a name. */
	struct rules_entry *entries;
	size_t n_entries;
	uint32_t *by_comm; /* owned; indices of entries with a name, sorted for rules_match */
	size_t n_by_comm;
	uint32_t *by_cgroup; /* owned; indices of entries with a cgroup_prefix only */
	size_t n_by_cgroup;
	uint32_t *by_name; /* owned; indices of all rules, sorted for rules_find */
	size_t n_by_name;
};

/* One fault or warning: its place and its text. */
struct rules_fault {
	/*
	 * JSON pointer, RFC 6901, e.g. "/rules/3/match/comm"; "" for the whole text. A missing key
	 * is a fault of the object that lacks it. A key above 128 bytes is cut and ends in "...".
	 */
	char *pointer;
	char *message; /* the fault and the right form, one line */
	/* The place in the text, both from 1; 0 when not known. Columns count characters. */
	uint32_t line, column;
};

struct rules_faults {
	struct rules_fault *items;
	size_t count; /* all faults found; items hold the first RULES_FAULTS_MAX */
	size_t kept;
};

void rules_faults_init(struct rules_faults *faults);
void rules_faults_done(struct rules_faults *faults);

/*
 * Parses and validates `bytes` bytes of JSON, with or without a byte order mark. Returns 0:
 * *ret_rules is new, the caller frees it, and `warnings` lists rules that can never match, rules
 * that never begin a session by themselves, and prefixes that shadow each other. -EINVAL: `faults`
 * holds every fault of the text, and nothing else changes. -ENOMEM. Both lists are in the order of
 * the text. Initialise both lists before the call; their old content is released when they are
 * filled.
 */
int rules_parse(const char *text, size_t bytes, struct rules **ret_rules,
		struct rules_faults *faults, struct rules_faults *warnings);

void rules_free(struct rules *rules);

/* Writes the set as JSON in the form of the file, with all defaults. */
void rules_write(const struct rules *rules, struct jsonw *w, const char *key);

/* Writes one fault, or its list as an array: {"pointer","message","line","column"}. */
void rules_fault_write(const struct rules_fault *fault, struct jsonw *w);
void rules_faults_write(const struct rules_faults *faults, struct jsonw *w, const char *key);

/*
 * Returns the rule for a process of this name in this cgroup: among the rules with only matching
 * criteria, the one with the exact comm, else the longest comm prefix, then the longest cgroup
 * prefix, then the first in the file. NULL: no rule matches. cgroup_path NULL (not known): no
 * cgroup criterion matches.
 */
const struct rule *rules_match(const struct rules *rules, const char *comm,
			       const char *cgroup_path);

/*
 * As rules_match, for a process with an unknown name, except that the comm of `named` is the best
 * match for it among all comms of the set (exact names before longer prefixes).
 */
const struct rule *rules_match_named(const struct rules *rules, const struct rules_entry *named,
				     const char *cgroup_path);

/* Returns the comm of an entry, "" for an entry without one. */
static inline const char *rules_entry_comm(const struct rules *rules,
					   const struct rules_entry *entry)
{
	const struct rule *r = &rules->rules[entry->rule];

	return r->n_comms ? r->comms[entry->comm] : "";
}

/* Returns whether `comm` is one of the rule's comms, or, with `exact` false, its comm_prefix. */
bool rule_has_comm(const struct rule *rule, const char *comm, bool exact);

/* Returns the rule without comm that matches this cgroup path with the longest prefix, or NULL. */
const struct rule *rules_match_cgroup(const struct rules *rules, const char *cgroup_path);

/* Returns the rule of that name, or NULL. */
const struct rule *rules_find(const struct rules *rules, const char *name);

/* Returns whether both rules have the same match, when, capture and labels. */
bool rule_equal(const struct rule *a, const struct rule *b);

#endif
