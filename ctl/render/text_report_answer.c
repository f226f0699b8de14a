/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/text_report_answer.h"

#include "ctl/cli/member_text.h"
#include "ctl/cli/terminal.h"
#include "ctl/render/section.h"
#include "ctl/render/sections.h"
#include "shared/tools/macro.h"

static const struct {
	const char *word, *form; /* member_text.h */
	enum terminal_style style;
} levels[] = {
	{ "certain", "certain", STYLE_GOOD },
	{ "likely", "likely", STYLE_WARN },
	{ "not_known", "cause not known", STYLE_BAD },
	{ "nothing_unusual", "nothing unusual", STYLE_GOOD },
};

void text_report_answer_put(const struct json_node *end, const char *before, FILE *out)
{
	const struct json_node *answer = json_node_get(end, "answer");
	bool any = json_node_first(json_node_get(end, "findings"));

	if (!answer)
		return;
	fputs(before, out);
	for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
		if (!json_node_equals(json_node_get(answer, "level"), levels[i].word))
			continue;
		fputs(terminal_on(levels[i].style), out);
		member_text_put(levels[i].form, answer, out);
		fputs(terminal_off(), out);
	}
	if (any)
		member_text_put("; explains {explained_pct:n} % of the waits", answer, out);
	member_text_put("[baseline=before?; compared with the {baseline_ms} before]"
			"[baseline=none?; nothing to compare with]\n",
			answer, out);
}

void text_report_answer(struct session_lines *s)
{
	FILE *out = s->out;

	if (!json_node_get(s->end, "answer"))
		return;
	section_begin(out, "answer");
	text_report_answer_put(s->end, "", out);
}
