/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the TCP connections by peer, and the listening sockets. */
#include "ctl/render/section.h"
#include "ctl/render/sections.h"
#include "shared/tools/macro.h"

static const struct column columns[] = {
	{ "PEER", "{address:host}:{port:n}", .rest = "{others:n} more" },
	{ "WAY", "{way}", .rest = "" },
	{ "MOST", "{connections.most:n}" },
	{ "BEGUN", "{begun:n}" },
	{ "FAILED", "{refused+timed_out+failed+given_up:n}" },
	{ "IN", "{bytes_in:size}" },
	{ "OUT", "{bytes_out:size}" },
	{ "UNREAD", "{unread_bytes.most:size}" },
	{ "UNSENT", "{unsent_bytes.most:size}" },
	{ "UNACKED", "{unacked_bytes.most:size}" },
	{ "AGAIN", "{retransmits:n}" },
	{ "SRTT", "[srtt?{srtt.p50:bound}]" },
};

static const struct section_table table = {
	.title = "TCP connections; UNREAD, UNSENT, UNACKED: the most in one snapshot; SRTT: median",
	.columns = columns,
	.n = ARRAY_SIZE(columns),
	.top = STORE_LINES,
	.rows = "!way=listens",
};

/* "  listens at 0.0.0.0:80: at most 129 waited to be accepted (asked for 128), full in 6 of ..." */
static const char listener[] =
	"[way=listens?  listens at {address:host}:{port:n}: at most {queue.most:n} waited to be "
	"accepted (asked for {queue_limit:n})[full_looks?, full in {full_looks:n} of {looks:n} "
	"snapshot{looks:s}][syn_queue?, {syn_queue.most:n} on their way][drops?, {drops:n} "
	"time{drops:s} one was dropped]\n]";

void text_report_sockets(struct session_lines *s)
{
	if (section_table(s, &s->session->sockets, &table))
		session_lines_put(s, &s->session->sockets, listener);
}
