/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * known_frames.h: a cache of frames as written in lines, so that a known frame is not parsed again.
 * It is only for speed: when its budget is full, all frames are forgotten.
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
		uint32_t rest;	/* a text + 1: the part after the first '}' */
	} * frames;		/* one per text; unused for a text that is a rest */
	uint32_t space;
};

/* Makes an empty cache. Release with known_frames_done. */
void known_frames_init(struct known_frames *k);
void known_frames_done(struct known_frames *k);

/* Consumes the frame at `json` if it is known. False: it is not known, and nothing was consumed. */
bool known_frames_take(const struct known_frames *k, struct json_reader *json, uint32_t *ret_frame);

/* Stores the text of a frame in lines. */
void known_frames_keep(struct known_frames *k, const char *text, size_t bytes, uint32_t frame);

#endif
