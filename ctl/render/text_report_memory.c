/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/text_report_memory.h"

#include <errno.h>
#include <inttypes.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/text.h"
#include "ctl/render/text_report_lines.h"
#include "shared/json/json_tree.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

static uint64_t stalled_of(const struct json_node *phase)
{
	return json_node_u64(json_node_get(phase, "stalled"));
}

/* Prints the share of one phase, if it has samples. Returns whether it has. */
static bool put_phase(const struct json_node *phase, const char *name, const char *separator,
		      FILE *out)
{
	uint64_t samples = json_node_u64(json_node_get(phase, "samples"));

	if (!samples)
		return false;
	fprintf(out, "%s %.1f %% of %" PRIu64 " sample%s %s", separator,
		100.0 * (double)stalled_of(phase) / (double)samples, samples, text_s(samples),
		name);
	return true;
}

/* Prints the share of CPU time that was memory stall, next to the share before. */
static void put_stall(const struct json_node *end, FILE *out)
{
	static const char *const phases[] = { "during", "onset", "before" };
	const struct json_node *stall = json_node_get(end, "cpu_memory_stall");
	const char *separator = "\nmemory stall on the CPU:";
	uint64_t stalled = 0;

	for (size_t i = 0; i < ARRAY_SIZE(phases); i++)
		stalled += stalled_of(json_node_get(stall, phases[i]));
	if (!stalled)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(phases); i++)
		if (put_phase(json_node_get(stall, phases[i]), phases[i], separator, out))
			separator = ",";
	fputs("\n", out);
}

static void put_bytes(const struct json_node *bytes, FILE *out)
{
	char text[TEXT_UNIT_BYTES];

	fputs(text_bytes(json_node_u64(bytes), text), out);
}

static void put_text(const struct json_node *line, const char *key, FILE *out)
{
	_cleanup_free_ char *text = member_text_value(key, json_node_get(line, key));

	fputs(text ? text : "-", out);
}

/* "  because of the limit of 64.0 MiB of /system.slice/api.service" */
static void put_limit(const struct json_node *line, FILE *out)
{
	const struct json_node *bytes = json_node_get(line, "limit_bytes");
	const struct json_node *limit = json_node_get(line, "limit");

	if (json_node_equals(limit, "machine"))
		fputs("; the machine had no more", out);
	if (!json_node_equals(limit, "cgroup"))
		return;
	fputs("; the limit ", out);
	if (bytes) {
		fputs("of ", out);
		put_bytes(bytes, out);
		fputs(" ", out);
	}
	fputs("is that of ", out);
	put_text(line, json_node_get(line, "limit_cgroup") ? "limit_cgroup" : "limit_name", out);
}

static void put_kill(const struct json_node *line, FILE *out)
{
	const struct json_node *rss = json_node_get(line, "rss");

	fputs("  ", out);
	put_text(line, "comm", out);
	fputs(" (pid ", out);
	put_text(line, "pid", out);
	fputs(")", out);
	if (rss && !json_node_is(rss, JSON_NULL)) {
		fputs(", which had ", out);
		put_bytes(json_node_get(rss, "anon_bytes"), out);
		fputs(" of its own and ", out);
		put_bytes(json_node_get(rss, "file_bytes"), out);
		fputs(" of files", out);
	}
	put_limit(line, out);
	fputs("\n", out);
}

static int put_kills(const struct store *store, const struct store_session *session, FILE *out)
{
	if (session->kills.count)
		fputs("\nkilled because memory ran out\n", out);
	for (uint32_t i = 0; i < session->kills.count; i++) {
		_cleanup_(json_tree_done) struct json_tree tree = { 0 };
		const struct json_node *line =
			text_report_lines_read(store, session->kills.items[i], &tree);

		if (!line)
			return -ENOMEM;
		put_kill(line, out);
	}
	return 0;
}

int text_report_memory(const struct store *store, const struct store_session *session, FILE *out)
{
	_cleanup_(json_tree_done) struct json_tree tree = { 0 };
	const struct json_node *end = text_report_lines_read(store, session->end, &tree);
	int r = put_kills(store, session, out);

	if (r < 0)
		return r;
	if (!end)
		return session->end == STORE_NONE ? 0 : -ENOMEM;
	put_stall(end, out);
	return 0;
}
