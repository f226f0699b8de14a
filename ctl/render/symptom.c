/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/symptom.h"

#include <stddef.h>

#include "ctl/cli/member_text.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

static void put_value(const struct json_node *object, const char *key, FILE *out)
{
	_cleanup_free_ char *text = member_text_value(key, json_node_get(object, key));

	fputs(text ? text : "-", out);
}

static void put_pressure(const struct json_node *reason, FILE *out)
{
	fputs("the kernel reports that its tasks stalled on ", out);
	put_value(reason, "resource", out);
	fputs(" (", out);
	put_value(reason, "kind", out);
	fputs(") for ", out);
	put_value(reason, "stall_ms", out);
	fputs(" in a window of ", out);
	put_value(reason, "window_ms", out);
}

static void put_quiet(const struct json_node *reason, FILE *out)
{
	fprintf(out, "its CPU time fell to %.0f %% of its usual value, over ",
		json_node_double(json_node_get(reason, "share_pct")));
	put_value(reason, "measured_ms", out);
}

static void put_stuck(const struct json_node *reason, FILE *out)
{
	put_value(reason, "threads", out);
	fputs(" of its ", out);
	put_value(reason, "of_threads", out);
	fputs(" threads were in one kind of wait (", out);
	put_value(reason, "wait", out);
	fputs(") for ", out);
	put_value(reason, "measured_ms", out);
}

static void put_request(const struct json_node *reason, FILE *out)
{
	fputs("nothing; uid ", out);
	put_value(reason, "uid", out);
	fputs(" asked for it", out);
	if (json_node_get(reason, "text")) {
		fputs(": ", out);
		put_value(reason, "text", out);
	}
}

static void put_exec(const struct json_node *reason, FILE *out)
{
	fputs("nothing; ", out);
	put_value(reason, "comm", out);
	fputs(" started, as process ", out);
	put_value(reason, "pid", out);
}

static void put_oom_kill(const struct json_node *reason, FILE *out)
{
	fputs("memory ran out, and the kernel killed ", out);
	put_value(reason, "comm", out);
	fputs(", process ", out);
	put_value(reason, "pid", out);
}

static const struct {
	const char *key;
	void (*put)(const struct json_node *reason, FILE *out);
} kinds[] = { { "pressure", put_pressure }, { "quiet", put_quiet }, { "stuck", put_stuck },
	      { "request", put_request },   { "exec", put_exec },   { "oom_kill", put_oom_kill } };

void symptom_put(const struct json_node *start, FILE *out)
{
	const struct json_node *reason = json_node_get(start, "reason");

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (json_node_get(reason, kinds[i].key))
			kinds[i].put(json_node_get(reason, kinds[i].key), out);
}
