/* SPDX-License-Identifier: BSD-2-Clause */
/* The section of the dummy: how many samples it has seen. */
#include <errno.h>
#include <inttypes.h>

#include "ctl/events/store.h"
#include "ctl/render/section.h"
#include "ctl/render/text_report_lines.h"
#include "shared/json/json_tree.h"
#include "shared/tools/cleanup.h"

int text_report_dummy(const struct store *store, const struct store_session *session, FILE *out);

int text_report_dummy(const struct store *store, const struct store_session *session, FILE *out)
{
	for (uint32_t i = 0; i < session->dummies.count; i++) {
		_cleanup_(json_tree_done) struct json_tree tree = { 0 };
		const struct json_node *line =
			text_report_lines_read(store, session->dummies.items[i], &tree);

		if (!line)
			return -ENOMEM;
		section_head(out, "dummy", "what a signal that no version has counted");
		fprintf(out, "  %" PRIu64 " samples\n", json_node_u64(json_node_get(line, "seen")));
	}
	return 0;
}
