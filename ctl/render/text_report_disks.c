/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the requests by disk and operation, and the other users of these disks. */
#include "ctl/cli/member_text.h"
#include "ctl/render/section.h"
#include "ctl/render/sections.h"
#include "shared/tools/idmap.h"
#include "shared/tools/macro.h"

static const struct column columns[] = {
	{ "DISK", "{device}", .rest = "{others:n} more" },
	{ "OP", "{op}", .rest = "" },
	{ "REQUESTS", "{requests:n}" },
	{ "BYTES", "{bytes:bytes}" },
	{ "IN QUEUE", "{queue_ns:ns}" },
	{ "AT DISK", "{service_ns:ns}" },
	{ "P50", "[service?{service.p50:bound}]", .flags = COLUMN_SPARE },
	{ "P99", "[service?{service.p99:bound}]" },
	{ "LONGEST", "{longest_ns:ns}" },
	{ "OPEN", "{open:n}", .flags = COLUMN_SPARE },
	{ "ERRORS", "{errors:n}", .flags = COLUMN_ZEROS },
};

static const struct section_table table = {
	.head = "disks",
	.title = "requests; P50 and P99 are of the time at the disk",
	.columns = columns,
	.n = ARRAY_SIZE(columns),
	.top = STORE_LINES,
};

/* "dm-0 (vg0-data) on vda3 at /srv" */
static const char device[] =
	"{device}[name? ({name})][level? ({level})][file? ({file})][over? on {over}]"
	"[over_more? and {over_more:n} more][mounts? at {mounts}][mounts_more? and {mounts_more:n} "
	"more][swap? for swap]";

/* "  also on vda: /batch.slice, 61 % of the disk's time, 3.0 GiB in 3000 requests" */
static const char neighbour[] =
	"[service_ms?[others?  and {others:n} more cgroup{others:s}: ]"
	"[!others?  also on {device}: " SECTIONS_NEIGHBOUR ", {share:share} of the disk's time, ]"
	"{bytes:bytes} in {requests:n} request{requests:s}\n]";

/*
 * Returns whether this is the first line of its disk, as is the line of its reads before that of
 * its writes, and adds the disk to `printed`.
 */
static bool is_first(struct idmap *printed, const struct json_node *line)
{
	const char *name = json_node_string(json_node_get(line, "device"));
	uint64_t key = name ? idmap_text_key(name) : 0;

	if (key && idmap_get(printed, key))
		return false;
	if (key)
		(void)idmap_put(printed, key, printed); /* without memory a disk is printed twice */
	return true;
}

/* Prints the devices on a disk, the devices below it, and their mount points. */
static void print_stack(const struct json_node *stack, FILE *out)
{
	bool any = false;

	for (const struct json_node *one = json_node_first(stack); one; one = json_node_next(one)) {
		if (!json_node_get(one, "over") && !json_node_get(one, "mounts") &&
		    !json_node_get(one, "swap"))
			continue; /* it only has a name */
		fputs(any ? "; " : "  ", out);
		member_text_put(device, one, out);
		any = true;
	}
	if (any)
		fputs("\n", out);
}

void text_report_disks(struct session_lines *s)
{
	const struct json_node *line;
	struct idmap printed;

	if (!section_table(s, &s->session->disks, &table))
		return;
	idmap_init(&printed, STORE_LINES);
	session_lines_for_each (line, s, &s->session->disks, STORE_LINES)
		if (is_first(&printed, line))
			print_stack(json_node_get(line, "stack"), s->out);
	idmap_done(&printed);
	session_lines_put(s, &s->session->neighbours, neighbour);
}
