/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * known_frames.h: frames as written in lines, so that a known frame is not read again. It is for
 * speed alone: when there is no room more, all are forgotten.
 */
#ifndef TROCAR_CTL_EVENTS_KNOWN_FRAMES_H
#define TROCAR_CTL_EVENTS_KNOWN_FRAMES_H

#include "ctl/events/pool.h"
#include "shared/json/json_reader.h"

struct known_frames {
	struct pool_budget budget;
	struct pool texts;
	struct known_frame {
		uint32_t frame; /* its number in the store */
		uint32_t rest;	/* a text + 1: what stands behind the first '}' */
	} * frames;		/* one per text; those that are a rest have none */
	uint32_t space;
};

/* None is known yet. Release with known_frames_done. */
void known_frames_init(struct known_frames *k);
void known_frames_done(struct known_frames *k);

/* Takes the frame at `json` when it is known. False: it is not, and nothing was read. */
bool known_frames_take(const struct known_frames *k, struct json_reader *json, uint32_t *ret_frame);

/* Remembers how a frame stands in lines. */
void known_frames_keep(struct known_frames *k, const char *text, size_t bytes, uint32_t frame);

#endif
