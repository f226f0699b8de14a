/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * missing.h: builds of which no file with names was found, and how to get one. Foreign texts are
 * kept up to their limits, and printed tamed.
 */
#ifndef TROCAR_CTL_SYMBOLIZE_MISSING_H
#define TROCAR_CTL_SYMBOLIZE_MISSING_H

#include <stdint.h>
#include <stdio.h>

#include "ctl/symbolize/unnamed.h"
#include "shared/json/json_reader.h"

#define MISSING_BUILDS	     64 /* that are distinguished; further ones are counted */
#define MISSING_TOLD	     5	/* those with most frames */
#define MISSING_DIGITS	     40 /* of a build-id that is kept; debuginfod has no longer ones */
#define MISSING_MODULE_BYTES 256

struct missing {
	struct missing_build {
		char hex[MISSING_DIGITS + 1];
		char module[MISSING_MODULE_BYTES];
		uint64_t frames;
	} builds[MISSING_BUILDS];
	uint32_t count;
	uint64_t others; /* frames of builds beyond these */
};

/*
 * Notes a frame without a name, where a file that can be fetched would name it; a build-id of other
 * characters than hex digits has no file.
 */
void missing_add(struct missing *m, enum unnamed why, const struct json_text *build_id,
		 const struct json_text *module);

/* Writes a command for each of those with most frames; nothing where there are none. Sorts them. */
void missing_tell(struct missing *m, FILE *err);

#endif
