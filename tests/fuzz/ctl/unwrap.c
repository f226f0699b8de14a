/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwrap.c: a hostile line of a log: the result is an object within the line, or within its escaped
 * text, and is found again in itself.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/events/lines.h"
#include "ctl/events/unwrap.h"
#include "shared/tools/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	_cleanup_free_ char *copy = NULL;
	_cleanup_(unwrap_done) struct unwrap unwrap;
	const char *line = (const char *)data;
	struct unwrapped found, inner;
	bool inside;

	if (bytes > LINES_MAX_BYTES || unwrap_init(&unwrap) < 0)
		return 0;
	if (unwrap_line(&unwrap, line, bytes, &found) != UNWRAP_EVENT)
		return 0;
	inside = found.text >= line && found.text < line + bytes;
	if (!found.bytes || *found.text != '{' || found.bytes > bytes)
		abort();
	if (inside && found.text + found.bytes != line + bytes)
		abort();
	if (inside ? found.column != (size_t)(found.text - line) : found.column != 0)
		abort();
	copy = malloc(found.bytes);
	memcpy(copy, found.text, found.bytes);
	if (unwrap_line(&unwrap, copy, found.bytes, &inner) != UNWRAP_EVENT || inner.column ||
	    inner.bytes != found.bytes)
		abort();
	return 0;
}
