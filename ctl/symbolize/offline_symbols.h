/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * offline_symbols.h: names and source lines of frames, by build-id and offset in the file. Each
 * place is resolved once. The known places are forgotten when they fill their budget. Resolver
 * processes read the files; at most OFFLINE_SYMBOLS_RESOLVERS run at a time.
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
	2048 /* of a frame's source and inlined functions; further functions are counted */

struct offline_symbols {
	struct debug_files files;
	bool lines; /* source lines are requested */
	struct pool_budget budget;
	struct pool builds; /* hex digits, and the shape of the module's file or its path */
	struct offline_build *known;
	struct pool modules;	 /* hex digits, and the path in the line */
	uint32_t *module_builds; /* one per module: its build + 1 */
	struct pool places, texts;
	struct offline_place *answers; /* one per place */
	uint32_t known_space, modules_space, answers_space;
	uint32_t running; /* resolvers */
	uint64_t asked;	  /* requested places; also the order of use of resolvers */
	char *data;	  /* ANSWER_BYTES */
};

/*
 * New members of a frame: JSON members with commas between them, or NULL. Valid until the next
 * call.
 */
struct offline_frame {
	const char *name, *source;
	size_t name_bytes, source_bytes;
	enum unnamed unnamed;
};

/* 0 or -ENOMEM. Release with offline_symbols_done. */
int offline_symbols_init(struct offline_symbols *s, bool lines);
void offline_symbols_done(struct offline_symbols *s);

/* Looks up a place of a build; `module` is the possible path of its file. 0 or -ENOMEM. */
int offline_symbols_find(struct offline_symbols *s, const struct json_text *build_id,
			 const struct json_text *module, const struct answer_question *place,
			 struct offline_frame *ret_frame);

#endif
