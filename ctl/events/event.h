/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event.h: reads one event line (docs/events.md) into a struct. Texts point into the line. Keys
 * that a later version adds are skipped.
 */
#ifndef TROCAR_CTL_EVENTS_EVENT_H
#define TROCAR_CTL_EVENTS_EVENT_H

#include "shared/json/json_reader.h"

#define EVENT_VERSION	 1
#define EVENT_NUMBER_MAX (1ULL << 53)
#define EVENT_PARTS_MAX	 65536

enum event_type {
	EVENT_OTHER,
#define TYPE(id, json)	       EVENT_##id,
#define KEPT(id, json, member) EVENT_##id,
#include "ctl/events/event_types.def"
#undef TYPE
#undef KEPT
	EVENT_TYPES_,
};

struct event {
	enum event_type type;
	uint64_t v;
	struct json_text type_text, ts, session, rule, cgroup, host, boot_id;
	uint64_t mono_ns; /* 0: the line does not have it */
	/* of stack lines */
	struct json_text signal, phase, comm, exe, quality, stack_id, state, wait;
	uint64_t pid, start_ns, threads, count, weight_ns, part, parts;
	bool frames;	/* the line has frames */
	bool idle;	/* the waiting thread has nothing to do */
	bool condition; /* the thread waits on a condition variable */
	/* of session lines */
	uint64_t duration_ms, pre_ms, onset_ms, hz;
	struct json_text headline, verdict;
	/* of held triggers */
	struct json_text reason, resource, trigger;
	uint64_t stall_ms, repeats, largest_ms, sum_ms;
	struct json_text code; /* of errors */
};

/* Why a line is not an event line. */
struct event_fault {
	const char *fault;    /* static: the right form */
	size_t at;	      /* byte of the line, from 0 */
	struct json_text key; /* the key of the value; data NULL: none */
};

/*
 * Called for the frames of a stack line: reads the array, or skips it. `event` has the members that
 * precede it in the line.
 */
typedef bool (*event_frames_call)(void *context, struct json_reader *json,
				  const struct event *event);

/* Reads a line (without its '\n'). False: *ret_fault has the reason. */
bool event_read(const char *line, size_t bytes, event_frames_call frames, void *context,
		struct event *ret_event, struct event_fault *ret_fault);

/* One frame of a stack line. */
struct event_frame {
	struct json_text fn, raw, module, build_id, kind, why;
	struct json_text file; /* its source file */
	uint64_t offset, line; /* line: in the source file, 0: not known */
	bool has_offset;
	bool interpreter; /* code of a language runtime itself */
	bool exact;	  /* offset is that of the next instruction, also after the leaf */
};

/* Reads one frame at `json`. False: fault. */
bool event_frame(struct json_reader *json, struct event_frame *ret_frame);

/*
 * Parses RFC 3339 in UTC ("2026-11-21T15:59:03.098Z") to ns since the epoch; also a beginning of
 * such a text, down to the date. 0 or -EINVAL.
 */
int event_time(const char *text, size_t bytes, uint64_t *ret_ns);

/* Returns whether a text is exactly `word`; false for a text with escapes. */
bool event_is(const struct json_text *text, const char *word);

#endif
