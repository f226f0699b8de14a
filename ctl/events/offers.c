/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/events/offers.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "ctl/cli/text.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

static int note_text(struct offer *offer, struct store *store, const struct json_text *text)
{
	uint32_t number;
	int r;

	if (!text->data)
		return 0;
	r = store_text(store, text, &number);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < offer->n; i++)
		if (offer->texts[i] == number)
			return 0;
	if (offer->n < OFFERS_SHOWN)
		offer->texts[offer->n++] = number;
	else
		offer->more = true;
	return 0;
}

static void note_pid(struct offer *offer, uint64_t pid)
{
	for (uint32_t i = 0; i < offer->n; i++)
		if (offer->pids[i] == pid)
			return;
	if (offer->n < OFFERS_SHOWN)
		offer->pids[offer->n++] = pid;
	else
		offer->more = true;
}

int offers_note(struct offers *o, struct store *store, const struct event *event)
{
	int r = note_text(&o->signals, store, &event->signal);

	if (r == 0)
		r = note_text(&o->phases, store, &event->phase);
	if (r == 0)
		r = note_text(&o->comms, store, &event->comm);
	note_pid(&o->pids, event->pid);
	return r;
}

static void print_offer(const struct offer *offer, const struct store *store, const char *name,
			FILE *out)
{
	if (!offer->n)
		return;
	fprintf(out, "  %s:", name);
	for (uint32_t i = 0; i < offer->n; i++) {
		_cleanup_free_ char *text = store ? store_tame(store, offer->texts[i]) : NULL;

		if (store)
			fprintf(out, "%s %s", i ? "," : "", text ? text : "-");
		else
			fprintf(out, "%s %" PRIu64, i ? "," : "", offer->pids[i]);
	}
	fputs(offer->more ? ", and more\n" : "\n", out);
}

void offers_print_stacks(const struct offers *o, const struct store *store, FILE *out)
{
	print_offer(&o->signals, store, "--signal", out);
	print_offer(&o->phases, store, "--phase", out);
	print_offer(&o->comms, store, "--comm", out);
	print_offer(&o->pids, NULL, "--pid", out);
}

/* Finds the newest sessions, the newest first; returns their number. */
static uint32_t find_newest(const struct store *store, uint32_t newest[OFFERS_SHOWN])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < store->ids.count; i++) {
		uint32_t at = n;

		while (at && store->sessions[newest[at - 1]].time_ns < store->sessions[i].time_ns)
			at--;
		if (at == OFFERS_SHOWN)
			continue;
		n = MIN(n + 1, (uint32_t)OFFERS_SHOWN);
		memmove(newest + at + 1, newest + at, (n - 1 - at) * sizeof(*newest));
		newest[at] = i;
	}
	return n;
}

void offers_print_sessions(const struct store *store, FILE *out)
{
	static const char *const heads[] = { "SESSION", "TIME (UTC)", "HOST", "RULE", "CGROUP" };
	_cleanup_(text_table_done) struct text_table table;
	uint32_t newest[OFFERS_SHOWN], n = find_newest(store, newest);

	text_table_init(&table, ARRAY_SIZE(heads));
	text_table_words(&table, heads, ARRAY_SIZE(heads));
	for (uint32_t i = 0; i < n; i++) {
		const struct store_session *session = &store->sessions[newest[i]];
		char when[CLOCK_TEXT_BYTES];

		clock_text(session->time_ns, when);
		text_table_add(&table, store_tame(store, session->id));
		text_table_printf(&table, "%.19s", when);
		text_table_add(&table, store_tame(store, session->host));
		text_table_add(&table, store_tame(store, session->rule));
		text_table_add(&table, store_tame(store, session->cgroup));
	}
	(void)text_table_print(&table, 2, out);
	if (store->ids.count > n)
		fprintf(out, "  and %u older\n", store->ids.count - n);
}
