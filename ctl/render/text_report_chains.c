/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/text_report_chains.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/text.h"
#include "ctl/render/section.h"
#include "ctl/render/text_report_lines.h"
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

static char *format_duration(uint64_t ns)
{
	char text[TEXT_UNIT_BYTES];

	return strdup(text_duration_us(ns / NSEC_PER_USEC, text));
}

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

/* Prints the object and the place of a thread's wait. */
static int print_waited(const struct json_node *link, FILE *out)
{
	const struct json_node *place = json_node_get(link, "fn");
	_cleanup_free_ char *wait = member_text_value("wait", json_node_get(link, "wait")),
			    *fn = place ? member_text_value("fn", place) : strdup(""),
			    *object = text_report_waits_object(json_node_get(link, "on"));
	bool condition = json_node_is_true(json_node_get(link, "condition"));

	if (!wait || !fn || !object)
		return -ENOMEM;
	fprintf(out, ": %s%s%s%s%s%s", condition ? "condition, " : "", wait, place ? ", in " : "",
		fn, *object ? ", on " : "", object);
	return 0;
}

/* "12 threads like api-7 waited 1.9 s: lock, in answer_requests". */
static int print_link(const struct json_node *link, unsigned int indent, FILE *out)
{
	uint64_t threads = json_node_u64(json_node_get(link, "threads"));
	_cleanup_free_ char *comm = member_text_value("comm", json_node_get(link, "comm")),
			    *time = format_duration(json_node_u64(json_node_get(link, "ns")));
	bool ran = json_node_equals(json_node_get(link, "did"), "ran");
	int e = 0;

	if (!comm || !time)
		return -ENOMEM;
	fprintf(out, "%*s", (int)indent, "");
	if (threads > 1)
		fprintf(out, "%" PRIu64 " threads like ", threads);
	fprintf(out, "%s %s %s", comm, ran ? "ran" : "waited", time);
	if (ran)
		print_ran(link, out);
	else
		e = print_waited(link, out);
	fputs("\n", out);
	return e;
}

/* Prints the end of the chain, if it is known. */
static int print_end(const struct json_node *chain, unsigned int indent, FILE *out)
{
	const struct json_node *named = json_node_get(chain, "end_comm");
	_cleanup_free_ char *comm = named ? member_text_value("end_comm", named) : strdup("");
	const char *mark, *says = "";

	if (!comm)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (json_node_equals(json_node_get(chain, "end"), ends[i].word))
			says = ends[i].says;
	says += strspn(says, ", ");
	mark = strstr(says, "%s");
	if (mark)
		fprintf(out, "%*s%.*s%s%s\n", (int)indent, "", (int)(mark - says), says, comm,
			mark + 2);
	else if (*says)
		fprintf(out, "%*s%s\n", (int)indent, "", says);
	return 0;
}

static int print_chain(const struct json_node *chain, unsigned int indent, FILE *out)
{
	const struct json_node *link = json_node_first(json_node_get(chain, "links"));
	int e = 0;

	for (; e == 0 && link; link = json_node_next(link)) {
		e = print_link(link, indent, out);
		indent += STEP;
	}
	if (e == 0)
		e = print_end(chain, indent, out);
	if (e == 0 && json_node_is_true(json_node_get(chain, "partial")))
		fprintf(out, "%*ssome waits are missing in it: see the ledger of lock\n",
			(int)indent, "");
	return e;
}

int text_report_chains(const struct store *store, const struct store_session *session, FILE *out)
{
	const struct store_lines *lines = &session->chains;

	if (lines->count)
		section_head(
			out, "wait chains",
			"the threads that threads waited for; each link waited for the one below "
			"it");
	for (uint32_t i = 0; i < lines->count; i++) {
		_cleanup_(json_tree_done) struct json_tree tree = { 0 };
		const struct json_node *chain =
			text_report_lines_read(store, lines->items[i], &tree);
		int e = chain ? print_chain(chain, 2, out) : -ENOMEM;

		if (e < 0)
			return e;
	}
	return 0;
}

int text_report_chains_one(const struct store *store, const struct store_session *session,
			   uint64_t number, const char *head, unsigned int indent, FILE *out)
{
	const struct store_lines *lines = &session->chains;

	for (uint32_t i = 0; i < lines->count; i++) {
		_cleanup_(json_tree_done) struct json_tree tree = { 0 };
		const struct json_node *chain =
			text_report_lines_read(store, lines->items[i], &tree);

		if (!chain)
			return -ENOMEM;
		if (json_node_u64(json_node_get(chain, "chain")) != number)
			continue;
		fputs(head, out);
		return print_chain(chain, indent, out);
	}
	return 0;
}
