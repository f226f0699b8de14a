/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * store.h: holds the sessions and stacks of event lines in memory, each name, frame and stack once.
 * Texts, frames, stacks, keys and sessions are numbered from 0; STORE_NONE stands for a value that
 * the line does not have.
 */
#ifndef TROCAR_CTL_EVENTS_STORE_H
#define TROCAR_CTL_EVENTS_STORE_H

#include <stdbool.h>

#include "ctl/events/event.h"
#include "ctl/events/pool.h"

#define STORE_NONE	 UINT32_MAX
#define STORE_FRAMES_MAX 4096 /* of one stack; the agent records up to 254 */
#define STORE_LINES	 4096 /* lines of one type kept per session; others are only counted */

enum store_kind {
	STORE_USER,
	STORE_KERNEL,
	STORE_RUNTIME,
	STORE_JIT,
	STORE_KIND_COUNT_,
};

enum store_phase {
	STORE_BEFORE,
	STORE_DURING,
	STORE_ONSET, /* between the two: the stall was measured here */
	STORE_PHASE_COUNT_,
};

/* The state of the threads of a stack: running, or the kind of wait. */
enum store_state {
	STORE_RUNS,
	STORE_RUNNABLE,
#define WAIT_KIND(id, json, idle, help) STORE_WAITS_##id,
#include "shared/abi/waits.def"
#undef WAIT_KIND
	STORE_WAITS_CONDITION, /* a lock wait on a condition variable, mostly for work */
	STORE_STATE_COUNT_,
};

/* Has no padding, as all keys of pools. Texts are numbers of `texts`. */
struct store_frame {
	uint32_t fn, raw, module, build_id, file;
	uint32_t line;	      /* in `file`; 0: not known */
	uint32_t kind;	      /* enum store_kind */
	uint16_t has_offset;  /* 0 or 1 */
	uint16_t interpreter; /* code of a language runtime itself: 0 or 1 */
	uint64_t offset;
};

/* The key under which a stack line counts; lines with equal keys are added up. */
struct store_key {
	uint32_t stack, session, signal;
	uint16_t phase; /* enum store_phase */
	uint16_t state; /* enum store_state; an idle thread counts as waiting for work */
	uint32_t comm, exe, quality, file;
	uint64_t pid;
};

struct store_value {
	uint64_t count, weight_ns, threads;
};

/* The keys of one session, as a list in the order of their arrival. */
struct store_list {
	uint32_t first, last; /* numbers of keys + 1; 0: none */
};

/* Resources, in the order of their names below. STORE_NO_PRESSURE is the last one. */
enum store_cause { STORE_CPU, STORE_MEMORY, STORE_IO, STORE_NO_PRESSURE, STORE_CAUSE_COUNT_ };

/* Triggers that were held back. */
struct store_held {
	uint64_t triggers, largest_ms, sum_ms;
};

/* Whole lines of one type, as texts. */
struct store_lines {
	uint32_t *items; /* owned */
	uint32_t count, space;
	uint32_t left_out; /* beyond STORE_LINES */
};

/* The types of lines that are kept whole. */
enum store_type {
#define TYPE(id, json)
#define KEPT(id, json, member) STORE_TYPE_##id,
#include "ctl/events/event_types.def"
#undef TYPE
#undef KEPT
	STORE_TYPES,
};

struct store_session {
	uint32_t id, rule, cgroup, host; /* texts */
	uint32_t start, end, pressure;	 /* whole lines, as texts */
	union {
		struct {
#define TYPE(id, json)
#define KEPT(id, json, member) struct store_lines member;
#include "ctl/events/event_types.def"
#undef TYPE
#undef KEPT
		};
		struct store_lines lines[STORE_TYPES]; /* by enum store_type */
	};
	uint32_t headline, verdict;
	uint32_t files;	   /* bit n: file n has selected lines of it; 0: not shown */
	uint32_t selected; /* `files` before choose_sessions (choose.h) */
	uint64_t time_ns;  /* of its earliest line */
	uint64_t hz;	   /* 0: not known */
	uint64_t length_ms[STORE_PHASE_COUNT_];	    /* 0: not known */
	struct store_held held[STORE_CAUSE_COUNT_]; /* by its cooldown */
	struct store_list keys;
};

struct store {
	struct pool_budget budget;
	struct pool texts, frames, stacks, keys, ids;
	struct store_value *values;	/* one per key */
	uint32_t *next;			/* one per key: the session's next key + 1; 0: none */
	struct store_session *sessions; /* one per id */
	uint32_t values_space, next_space, sessions_space;
	uint32_t file; /* number of the file being read, from 0, when two are compared */
	bool native;   /* frames of a language runtime itself are kept */
	char *plain;   /* buffer for texts without escapes */
};

/* Makes an empty store of at most `max_bytes`. 0 or -ENOMEM. Release with store_done. */
int store_init(struct store *s, uint64_t max_bytes);
void store_done(struct store *s);

/* Return the phase of a word, STORE_PHASE_COUNT_ for an unknown word; and the word of a phase. */
enum store_phase store_phase(const struct json_text *word);
const char *store_phase_word(enum store_phase phase);

/* Returns the word of a state, for a person: "on CPU", "waits for a CPU", "lock", ... */
const char *store_state_word(enum store_state state);

/*
 * Finds the number of a text; STORE_NONE for no text. This and the functions below return 0,
 * -ENOMEM or -ENOSPC.
 */
int store_text(struct store *s, const struct json_text *text, uint32_t *ret_text);

/*
 * Returns a new copy of a text for a terminal (text_tame); "-" for STORE_NONE. NULL: no memory. The
 * caller frees it.
 */
char *store_tame(const struct store *s, uint32_t text);

int store_frame(struct store *s, const struct event_frame *frame, uint32_t *ret_frame);

/* Finds or adds the session of an event that has one; `time_ns` is the time of the event. */
int store_session(struct store *s, const struct event *event, uint64_t time_ns,
		  uint32_t *ret_session);

/*
 * Keeps a line of `bytes` bytes: a session's start or end, or of a type with a struct store_lines
 * in the session. Keeps STORE_LINES lines of a type, and counts the others.
 */
int store_session_line(struct store *s, uint32_t session, const struct event *event,
		       const char *line, size_t bytes);

/*
 * Adds the triggers of a line trigger.held to the session with the cooldown that held them back.
 * False: it was not a cooldown, or that session is not known.
 */
bool store_held(struct store *s, const struct event *event);

/* Fills in the key except its stack, and the weight of the line. */
int store_key(struct store *s, uint32_t session, const struct event *event,
	      struct store_key *ret_key, struct store_value *ret_value);

/* Counts a stack of `n` frames, leaf first, under the key, and fills in the key's stack. */
int store_count(struct store *s, struct store_key *key, const uint32_t *frames, uint32_t n,
		const struct store_value *value);

/* Forgets the stacks of sessions that are not selected. 0, -ENOMEM, -ENOSPC. */
int store_drop(struct store *s);

/* Returns the frames of a stack, leaf first; valid until the next store_count. */
const uint32_t *store_frames(const struct store *s, uint32_t stack, uint32_t *ret_n);

const struct store_frame *store_frame_get(const struct store *s, uint32_t frame);
const struct store_key *store_key_get(const struct store *s, uint32_t key);

/*
 * Iterate over the keys of a session, or over all keys if `session` is STORE_NONE. Both return
 * STORE_NONE at the end.
 */
uint32_t store_first(const struct store *s, uint32_t session);
uint32_t store_next(const struct store *s, uint32_t session, uint32_t key);

/* Adds, and saturates at UINT64_MAX instead of wrapping around. */
static inline uint64_t store_sum(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

#endif
