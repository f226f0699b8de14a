/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mapping_records.h: what the `vmas` iterator writes, checked record by record. A pure function
 * over bytes; fuzzed (tests/fuzz/symbols/mappings.c).
 */
#ifndef TROCAR_CONSUMER_MAPPING_RECORDS_H
#define TROCAR_CONSUMER_MAPPING_RECORDS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "shared/abi/abi.h"

/* One sound record; `path` ends with a NUL and is "" when it has none. 0 or -errno to stop. */
typedef int (*mapping_records_call)(void *context, const struct mapping_record *record,
				    const char *path);

/*
 * Calls `call` for each whole record at the start of `data` and returns the bytes that they were.
 * -EBADMSG for a record that is not sound: a path longer than MAPPING_PATH_BYTES, not a multiple of
 * 8 or without a NUL, an empty range, unknown flags.
 */
ssize_t mapping_records_parse(const uint8_t *data, size_t bytes, mapping_records_call call,
			      void *context);

#endif
