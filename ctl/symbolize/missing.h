/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * missing.h: collects the builds without a file with names, and prints how to get one. Foreign
 * texts are kept up to their limits, and printed tame (text.h).
 */
#ifndef TROCAR_CTL_SYMBOLIZE_MISSING_H
#define TROCAR_CTL_SYMBOLIZE_MISSING_H

#include <stdint.h>
#include <stdio.h>

#include "ctl/symbolize/unnamed.h"
#include "shared/json/json_reader.h"

#define MISSING_BUILDS	     64 /* recorded builds; further ones are only counted */
#define MISSING_TOLD	     5	/* printed builds: those with the most frames */
#define MISSING_DIGITS	     40 /* of a kept build-id; debuginfod has no longer ones */
#define MISSING_MODULE_BYTES 256

struct missing {
	struct missing_build {
		char hex[MISSING_DIGITS + 1];
		char module[MISSING_MODULE_BYTES];
		uint64_t frames;
	} builds[MISSING_BUILDS];
	uint32_t count;
	uint64_t others; /* frames of builds that are not recorded */
};

/*
 * Records a frame without a name, if a file that can be fetched would name it. Ignores a build-id
 * with characters other than hex digits, for which there is no file.
 */
void missing_add(struct missing *m, enum unnamed why, const struct json_text *build_id,
		 const struct json_text *module);

/*
 * Writes a command for each of the MISSING_TOLD builds with the most frames; nothing if there are
 * no builds. Sorts the builds.
 */
void missing_tell(struct missing *m, FILE *err);

#endif
