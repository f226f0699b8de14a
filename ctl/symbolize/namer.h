/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * namer.h: names and source lines of frames, by build-id and offset in the file. Each place is
 * asked for once, and what is known is forgotten when it fills its budget; files are read by
 * resolvers, of which few live at a time.
 */
#ifndef TROCAR_CTL_SYMBOLIZE_NAMER_H
#define TROCAR_CTL_SYMBOLIZE_NAMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/events/pool.h"
#include "ctl/symbolize/debug_files.h"
#include "ctl/symbolize/resolver.h"
#include "ctl/symbolize/unnamed.h"
#include "shared/json/json_reader.h"

#define NAMER_RESOLVERS 8
#define NAMER_MAX_BYTES (256ULL << 20)
#define NAMER_SOURCE_BYTES \
	2048 /* of a frame's source and inlined functions; what is beyond is counted */

struct namer {
	struct debug_files files;
	bool lines; /* source lines are wanted */
	struct pool_budget budget;
	struct pool builds; /* hex digits */
	struct namer_build *known;
	struct pool modules, places, texts;
	struct namer_place *answers; /* one per place */
	uint32_t known_space, answers_space;
	uint32_t running; /* resolvers */
	uint64_t asked;	  /* places, for the order of use too */
	char *data;	  /* ANSWER_BYTES */
	uint64_t gave_up; /* builds whose resolver failed */
};

/* What a frame gets: members of a JSON object with commas between, or NULL. Until the next call. */
struct namer_frame {
	const char *name, *source;
	size_t name_bytes, source_bytes;
	enum unnamed unnamed;
};

/* 0 or -ENOMEM. Release with namer_done. */
int namer_init(struct namer *n, bool lines);
void namer_done(struct namer *n);

/* Looks up the place `offset` of a build; `module` is where its file may be. 0 or -ENOMEM. */
int namer_find(struct namer *n, const struct json_text *build_id, const struct json_text *module,
	       uint64_t offset, struct namer_frame *ret_frame);

/* The word of event lines for it, and a sentence. */
const char *namer_word(enum unnamed unnamed);
const char *namer_help(enum unnamed unnamed);

#endif
