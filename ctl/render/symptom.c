/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/symptom.h"

#include <stddef.h>

#include "ctl/cli/member_text.h"
#include "shared/tools/macro.h"

/* A form (member_text.h) for each kind of reason. */
static const struct {
	const char *key, *form;
} kinds[] = {
	{ "pressure", "the kernel reports that its tasks stalled on {resource} ({kind}) for "
		      "{stall_ms} in a window of {window_ms}" },
	{ "quiet", "its CPU time fell to {share_pct:percent} of its usual value, over "
		   "{measured_ms}" },
	{ "stuck", "{threads} of its {of_threads} threads were in one kind of wait ({wait}) for "
		   "{measured_ms}" },
	{ "request", "nothing; uid {uid} asked for it[text?: {text}]" },
	{ "exec", "nothing; {comm} started, as process {pid}" },
	{ "oom_kill", "memory ran out, and the kernel killed {comm}, process {pid}" },
};

void symptom_put(const struct json_node *start, FILE *out)
{
	const struct json_node *reason = json_node_get(start, "reason");

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (json_node_get(reason, kinds[i].key))
			member_text_put(kinds[i].form, json_node_get(reason, kinds[i].key), out);
}
