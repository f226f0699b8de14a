/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/mappings/mapping_records.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define FLAGS_KNOWN (MAPPING_IS_EXE | MAPPING_VDSO | MAPPING_ANON | MAPPING_MORE | MAPPING_PATH_CUT)

static bool is_sound(const struct mapping_record *r)
{
	if (r->path_bytes > MAPPING_PATH_BYTES || r->path_bytes % 8 != 0 ||
	    (r->flags & ~(uint32_t)FLAGS_KNOWN))
		return false;
	return (r->flags & MAPPING_MORE) || r->start < r->end;
}

ssize_t mapping_records_parse(const uint8_t *data, size_t bytes, mapping_records_call call,
			      void *context)
{
	size_t at = 0;

	while (bytes - at >= sizeof(struct mapping_record)) {
		const char *path = (const char *)data + at + sizeof(struct mapping_record);
		struct mapping_record record;
		int r;

		memcpy(&record, data + at, sizeof(record));
		if (!is_sound(&record))
			return -EBADMSG;
		if (sizeof(record) + record.path_bytes > bytes - at)
			break;
		if (record.path_bytes > 0 && !memchr(path, '\0', record.path_bytes))
			return -EBADMSG;
		r = call(context, &record, record.path_bytes > 0 ? path : "");
		if (r < 0)
			return r;
		at += sizeof(record) + record.path_bytes;
	}
	return (ssize_t)at;
}
