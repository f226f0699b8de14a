/* SPDX-License-Identifier: BSD-2-Clause */
/* records_testing.h: builds the iterators' records, for the tests of their readers. */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_SYMBOLS_RECORDS_TESTING_H
#define TROCAR_TESTS_UNIT_CONSUMER_SYMBOLS_RECORDS_TESTING_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "shared/abi/abi.h"
#include "shared/tools/macro.h"

static inline void records_file_ksym(FILE *f, uint64_t address, const char *name,
				     const char *module)
{
	static const char zeros[8];
	struct ksym_record record = {
		.address = address,
		.name_bytes = (uint16_t)(strlen(name) + 1),
		.module_bytes = (uint16_t)(strlen(module) + 1),
	};
	size_t bytes = sizeof(record) + record.name_bytes + record.module_bytes;

	record.record_bytes = (uint32_t)ALIGN_UP(bytes, 8);
	fwrite(&record, sizeof(record), 1, f);
	fwrite(name, record.name_bytes, 1, f);
	fwrite(module, record.module_bytes, 1, f);
	fwrite(zeros, record.record_bytes - bytes, 1, f);
}

/* record.path_bytes is set here; a NULL path has none. */
static inline void records_file_mapping(FILE *f, struct mapping_record record, const char *path)
{
	static const char zeros[8];
	size_t bytes = path ? strlen(path) + 1 : 0;

	record.path_bytes = (uint32_t)ALIGN_UP(bytes, 8);
	fwrite(&record, sizeof(record), 1, f);
	if (path)
		fwrite(path, bytes, 1, f);
	fwrite(zeros, record.path_bytes - bytes, 1, f);
}

#endif
