/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mapping_records.h: parses the records of the `vmas` iterator and checks each. A pure function
 * over bytes; fuzzed (tests/fuzz/symbols/mappings.c).
 */
#ifndef TROCAR_CONSUMER_MAPPINGS_MAPPING_RECORDS_H
#define TROCAR_CONSUMER_MAPPINGS_MAPPING_RECORDS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "shared/abi/abi.h"

/*
 * Called for one valid record; `path` ends with a NUL and is "" if the mapping has none. Returns 0,
 * or -errno to stop.
 */
typedef int (*mapping_records_call)(void *context, const struct mapping_record *record,
				    const char *path);

/*
 * Calls `call` for each whole record at the start of `data` and returns the number of bytes parsed.
 * Returns -EBADMSG for an invalid record: a path longer than MAPPING_PATH_BYTES, not a multiple of
 * 8 or without a NUL, an empty range, unknown flags.
 */
ssize_t mapping_records_parse(const uint8_t *data, size_t bytes, mapping_records_call call,
			      void *context);

#endif
