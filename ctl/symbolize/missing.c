/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/symbolize/missing.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/text.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

static bool is_fetched(enum unnamed why)
{
	return why == UNNAMED_NO_FILE || why == UNNAMED_OTHER_BUILD ||
	       why == UNNAMED_NO_PERMISSION || why == UNNAMED_NO_LAYOUT || why == UNNAMED_STRIPPED;
}

static bool is_hex(const struct json_text *text)
{
	if (!text->data || text->bytes < 4 || text->bytes > MISSING_DIGITS)
		return false;
	for (size_t i = 0; i < text->bytes; i++)
		if (!text->data[i] || !strchr("0123456789abcdef", text->data[i]))
			return false;
	return true;
}

/*
 * Keeps the module as in the line, except an escaped one, which must not become part of a command.
 */
static void keep_module(struct missing_build *b, const struct json_text *module)
{
	if (module->data && !module->escaped && module->bytes < sizeof(b->module))
		memcpy(b->module, module->data, module->bytes);
}

void missing_add(struct missing *m, enum unnamed why, const struct json_text *build_id,
		 const struct json_text *module)
{
	struct missing_build *b = m->builds;

	if (!is_fetched(why) || !is_hex(build_id))
		return;
	while (b < m->builds + m->count &&
	       (b->hex[build_id->bytes] || memcmp(b->hex, build_id->data, build_id->bytes) != 0))
		b++;
	if (b == m->builds + MISSING_BUILDS) {
		m->others++;
		return;
	}
	if (b == m->builds + m->count) {
		m->count++;
		memcpy(b->hex, build_id->data, build_id->bytes);
		keep_module(b, module);
	}
	b->frames++;
}

static int compare_builds(const void *a, const void *b)
{
	const struct missing_build *x = a, *y = b;

	if (x->frames != y->frames)
		return x->frames < y->frames ? 1 : -1;
	return strcmp(x->hex, y->hex);
}

void missing_tell(struct missing *m, FILE *err)
{
	uint64_t more = m->others;

	if (!m->count)
		return;
	qsort(m->builds, m->count, sizeof(*m->builds), compare_builds);
	fprintf(err, "trocar: where a debuginfod server has these builds, fetch them, and name "
		     "their frames with --debuginfod-cache ~/.cache/debuginfod_client:\n");
	for (uint32_t i = 0; i < m->count; i++) {
		const struct missing_build *b = &m->builds[i];
		_cleanup_free_ char *module = text_tame(b->module, strlen(b->module));

		if (i >= MISSING_TOLD) {
			more += b->frames;
			continue;
		}
		fprintf(err, "  debuginfod-find debuginfo %s    # %" PRIu64 " frame%s of %s\n",
			b->hex, b->frames, text_s(b->frames),
			module && *module ? module : "a file without a path");
	}
	if (more)
		fprintf(err, "  and %" PRIu64 " frame%s of other builds\n", more, text_s(more));
}
