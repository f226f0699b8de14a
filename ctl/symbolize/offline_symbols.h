/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * offline_symbols.h: names and source lines of frames, by build-id and offset in the file. Each
 * place is asked for once, and the known places are forgotten when they fill their budget; files
 * are read by resolvers, of which few live at a time.
 */
#ifndef TROCAR_CTL_SYMBOLIZE_OFFLINE_SYMBOLS_H
#define TROCAR_CTL_SYMBOLIZE_OFFLINE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/events/pool.h"
#include "ctl/symbolize/debug_files.h"
#include "ctl/symbolize/resolver.h"
#include "ctl/symbolize/unnamed.h"
#include "shared/json/json_reader.h"

#define OFFLINE_SYMBOLS_RESOLVERS 8
#define OFFLINE_SYMBOLS_MAX_BYTES (256ULL << 20)
#define OFFLINE_SYMBOLS_SOURCE_BYTES \
	2048 /* of a frame's source and inlined functions; what is beyond is counted */

struct offline_symbols {
	struct debug_files files;
	bool lines; /* source lines are wanted */
	struct pool_budget budget;
	struct pool builds; /* hex digits, and the shape of the module's file or its path */
	struct offline_build *known;
	struct pool modules;	 /* hex digits, and the path as the line has it */
	uint32_t *module_builds; /* one per module: its build + 1 */
	struct pool places, texts;
	struct offline_place *answers; /* one per place */
	uint32_t known_space, modules_space, answers_space;
	uint32_t running; /* resolvers */
	uint64_t asked;	  /* places, for the order of use too */
	char *data;	  /* ANSWER_BYTES */
};

/* What a frame gets: members of a JSON object with commas between, or NULL. Until the next call. */
struct offline_frame {
	const char *name, *source;
	size_t name_bytes, source_bytes;
	enum unnamed unnamed;
};

/* 0 or -ENOMEM. Release with offline_symbols_done. */
int offline_symbols_init(struct offline_symbols *s, bool lines);
void offline_symbols_done(struct offline_symbols *s);

/* Looks up a place of a build; `module` is where its file may be. 0 or -ENOMEM. */
int offline_symbols_find(struct offline_symbols *s, const struct json_text *build_id,
			 const struct json_text *module, const struct answer_question *place,
			 struct offline_frame *ret_frame);

#endif
