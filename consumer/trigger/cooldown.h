/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cooldown.h: keeps, for each rule, cgroup and cause (a resource, exec, request), the last session
 * that such a trigger began, while its cooldown lasts, and the triggers held back since. It
 * outlives the watch, which exists only while processes are in the cgroup, and follows the rule
 * into a new set by its name. Writes the trigger.held lines. Main thread only.
 */
#ifndef TROCAR_CONSUMER_TRIGGER_COOLDOWN_H
#define TROCAR_CONSUMER_TRIGGER_COOLDOWN_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/io/loop.h"
#include "consumer/output/event_log.h"
#include "consumer/session/held_triggers.h"
#include "consumer/session/session_result.h"
#include "shared/tools/idmap.h"

/*
 * Maximum of entries. When all are in use, the entry that expires first is evicted: its sums are
 * written, and its cooldown ends early.
 */
#define COOLDOWNS_MAX 16384

/*
 * A stall breaks the cooldown if it is COOLDOWN_BREAK times as long as the stall that the session
 * saw, and COOLDOWN_DENSER times as much per second. Steady pressure, however long, never breaks
 * it.
 */
#define COOLDOWN_BREAK	3
#define COOLDOWN_DENSER 2

/* The subject of a cooldown. */
struct cooldown_key {
	const struct rule *rule; /* of the active set; NULL: a request without a rule */
	uint64_t cgroup_id;
	const char *cgroup; /* its path, copied */
	enum trigger_cause cause;
};

/* Why a trigger was held back, and when to try again. */
struct trigger_held {
	const char *reason; /* "cooldown", ...; a literal */
	uint64_t retry_ms;
	uint64_t session; /* the running session, or the one that set the cooldown; 0: neither */
};

struct cooldown {
	const struct rule *rule; /* of the active set, or NULL */
	bool rule_gone;		 /* the new set has no rule of that name */
	uint64_t cgroup_id;
	enum trigger_cause cause;
	char *cgroup; /* owned */
	/* The session that such a trigger last began. */
	uint64_t session, stop_ns; /* 0: none */
	uint64_t span_ms;	   /* from the first reading that measured its trigger to its end */
	uint64_t stall_us[2];	   /* of the cgroup in that time: some, full */
	/* The start of the time for which the stall is compared. */
	struct psi from;
	uint64_t from_ns; /* 0: no trigger compared yet */
	/* The triggers held back since the last line, the last of them, and the reason. */
	struct held_triggers held;
	struct trigger_reason last;
	struct trigger_held held_by;
	uint64_t held_by_ns; /* the time that retry_ms of `held_by` counts from */
	uint64_t logged_ns;  /* when trigger.held was last written; 0: never */
};

struct cooldowns {
	const struct event_log *log; /* borrowed */
	struct idmap by_key;	     /* struct cooldown *, owned */
	struct loop_source
		*timer;	   /* owned; fires when sums are due; NULL before cooldowns_listen */
	uint64_t due_ns;   /* expiry of the timer; 0: not set */
	uint64_t swept_ns; /* last run of cooldowns_expire */
};

void cooldowns_init(struct cooldowns *all, const struct event_log *log);

/* Creates the timer. Returns 0 or -errno. */
int cooldowns_listen(struct cooldowns *all, struct loop *loop);

/* Writes all sums and frees everything. */
void cooldowns_done(struct cooldowns *all);

/*
 * Returns whether the cooldown holds this trigger back at `now_ns`; *ret_held then has the reason.
 * Otherwise *ret_broken is the session with the cooldown that the trigger breaks, or 0.
 */
bool cooldown_holds(struct cooldowns *all, const struct cooldown_key *key,
		    const struct trigger_reason *reason, uint64_t now_ns,
		    struct trigger_held *ret_held, uint64_t *ret_broken);

/*
 * Counts a trigger that was held back. Writes trigger.held, unless the last line about this key is
 * too recent: then a line with the sums follows later.
 */
void cooldown_hold(struct cooldowns *all, const struct cooldown_key *key,
		   const struct trigger_reason *reason, const struct trigger_held *held,
		   uint64_t now_ns);

/* Writes the sums of the key, if it has any, because a session of it begins. */
void cooldown_flush(struct cooldowns *all, const struct cooldown_key *key, uint64_t now_ns);

/*
 * Begins the cooldown of an ended session; `key` has its rule of the active set. A session on
 * request without a text has no cooldown (trigger_reason_cools).
 */
void cooldown_begin(struct cooldowns *all, const struct cooldown_key *key,
		    const struct session_result *r);

/*
 * Writes the sums that are due and frees the entries that have expired; runs at most once a second.
 */
void cooldowns_expire(struct cooldowns *all, uint64_t now_ns);

/*
 * Call before a new rule set becomes active: points the entries to its rules of the same names.
 * Writes the sums of entries that have lost their rule, and frees these entries.
 */
void cooldowns_rebind(struct cooldowns *all, const struct rules *fresh);

#endif
