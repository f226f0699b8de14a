/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sample_build_ids.h: learns the build-ids of modules from a record that carries both the addresses
 * and the kernel's resolution of them.
 */
#ifndef TROCAR_CONSUMER_SAMPLING_SAMPLE_BUILD_IDS_H
#define TROCAR_CONSUMER_SAMPLING_SAMPLE_BUILD_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/mappings/mappings.h"
#include "shared/abi/abi.h"

struct sample_build_id {
	struct module *module;
	const uint8_t *build_id; /* BUILD_ID_BYTES, in the record; NULL: unknown to the kernel */
	bool other;		 /* the kernel reported a different one for the module before */
	bool confirmed;		 /* the module was mapped there before and after the sample */
};

struct sample_build_ids {
	size_t count;
	struct sample_build_id items[STACK_FRAMES];
};

/*
 * Finds the frames in a module with a build-id that is unknown (symbols_lacks_build_id) or differs
 * from the one that the kernel reports now. A module may be listed several times. `maps` are the
 * mappings of the record's process as last read; finds nothing if they belong to another image
 * (before an execve).
 */
void sample_build_ids_find(struct symbols *symbols, const struct sample *record,
			   const struct mappings *maps, struct sample_build_ids *ret_ids);

#endif
