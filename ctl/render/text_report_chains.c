/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/text_report_chains.h"

#include <string.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/text.h"
#include "ctl/render/section.h"
#include "ctl/render/sections.h"
#include "ctl/render/text_report_waits.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

#define STEP 2 /* indentation of a link relative to the previous one */

/* The text after the last link; %s is the name of a thread. */
static const struct {
	const char *word, *says;
} ends[] = {
#define CHAIN_END(id, word, says) { word, says },
#include "shared/findings/chain_ends.def"
#undef CHAIN_END
};

/* Prints the time of a thread that ran, by use. */
static void print_ran(const struct json_node *link, FILE *out)
{
	static const struct {
		const char *key, *says;
	} parts[] = { { "running_ns", "on a CPU" },
		      { "queue_ns", "without one" },
		      { "short_ns", "in waits shorter than 1 ms" } };
	const char *between = ": ";

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		uint64_t ns = json_node_u64(json_node_get(link, parts[i].key));
		char time[TEXT_UNIT_BYTES];

		if (ns < NSEC_PER_MSEC)
			continue;
		fprintf(out, "%s%s %s", between, text_duration_us(ns / NSEC_PER_USEC, time),
			parts[i].says);
		between = ", ";
	}
}

/* "12 threads like api-7 waited 1.9 s: lock, in answer_requests". */
static void print_link(const struct json_node *link, unsigned int indent, FILE *out)
{
	fprintf(out, "%*s", (int)indent, "");
	if (member_text_number(link, "threads") > 1)
		member_text_put("{threads:n} threads like ", link, out);
	if (member_text_holds("did=ran", link)) {
		member_text_put("{comm} ran {ns:ns}", link, out);
		print_ran(link, out);
	} else {
		member_text_put("{comm} waited {ns:ns}: [condition=true?condition, ]{wait}[fn?, in "
				"{fn}]",
				link, out);
		text_report_waits_object(json_node_get(link, "on"), ", on ", out);
	}
	fputs("\n", out);
}

/* Prints the end of the chain, if it is known. */
static void print_end(const struct json_node *chain, unsigned int indent, FILE *out)
{
	_cleanup_free_ char *comm = member_text_value("", json_node_get(chain, "end_comm"));
	const char *mark, *says = "";

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (json_node_equals(json_node_get(chain, "end"), ends[i].word))
			says = ends[i].says;
	says += strspn(says, ", ");
	mark = strstr(says, "%s");
	if (mark)
		fprintf(out, "%*s%.*s%s%s\n", (int)indent, "", (int)(mark - says), says,
			comm ? comm : "", mark + 2);
	else if (*says)
		fprintf(out, "%*s%s\n", (int)indent, "", says);
}

static void print_chain(const struct json_node *chain, unsigned int indent, FILE *out)
{
	const struct json_node *link = json_node_first(json_node_get(chain, "links"));

	for (; link; link = json_node_next(link), indent += STEP)
		print_link(link, indent, out);
	print_end(chain, indent, out);
	if (json_node_is_true(json_node_get(chain, "partial")))
		fprintf(out, "%*ssome waits are missing in it: see the ledger of lock\n",
			(int)indent, "");
}

void text_report_chains(struct session_lines *s)
{
	const struct json_node *chain;

	if (s->session->chains.count)
		section_head(
			s->out, "wait chains",
			"the threads that threads waited for; each link waited for the one below "
			"it");
	session_lines_for_each (chain, s, &s->session->chains, STORE_LINES)
		print_chain(chain, STEP, s->out);
}

void text_report_chains_one(struct session_lines *s, uint64_t number, const char *head,
			    unsigned int indent)
{
	const struct json_node *chain;

	session_lines_for_each (chain, s, &s->session->chains, STORE_LINES) {
		if (json_node_u64(json_node_get(chain, "chain")) != number)
			continue;
		fputs(head, s->out);
		print_chain(chain, indent, s->out);
		break;
	}
}
