/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/events/choose.h"

#include <errno.h>
#include <string.h>

#include "ctl/events/offers.h"
#include "shared/tools/cleanup.h"

/*
 * Returns the number of selected sessions with an id that begins with the wanted one; *ret_whole:
 * the session with exactly this id.
 */
static uint32_t count_selected(const struct store *store, const struct select *select,
			       uint32_t *ret_whole)
{
	uint32_t n = 0;

	*ret_whole = STORE_NONE;
	for (uint32_t i = 0; i < store->ids.count; i++) {
		if (!store->sessions[i].files)
			continue;
		n++;
		if (select->session &&
		    !strcmp(pool_text(&store->texts, store->sessions[i].id), select->session))
			*ret_whole = i;
	}
	return n;
}

/* Prints the sessions with an id that begins so. */
static int refuse_beginning(const struct options *options, const struct select *select,
			    const struct store *store)
{
	uint32_t n = 0;

	fprintf(options->err,
		"trocar: --session %.80s is the beginning of several:", select->session);
	for (uint32_t i = 0; i < store->ids.count; i++) {
		_cleanup_free_ char *id = NULL;

		if (!store->sessions[i].files)
			continue;
		if (n++ == OFFERS_SHOWN) {
			fputs(" and more", options->err);
			break;
		}
		id = store_tame(store, store->sessions[i].id);
		fprintf(options->err, " %s", id ? id : "-");
	}
	fputc('\n', options->err);
	return -EINVAL;
}

static int refuse_nothing(const struct options *options, const struct store *store)
{
	if (!store->ids.count) {
		fputs("trocar: there is no session in the lines that were read\n", options->err);
		return -EINVAL;
	}
	if (store->ids.count == 1)
		fputs("trocar: no session is selected; one was read:\n", options->err);
	else
		fprintf(options->err,
			"trocar: no session is selected; the newest of the %u that were read:\n",
			store->ids.count);
	offers_print_sessions(store, options->err);
	return -EINVAL;
}

static bool is_better(const struct store_session *a, const struct store_session *b)
{
	bool a_ended = a->end != STORE_NONE, b_ended = b->end != STORE_NONE;

	return a_ended != b_ended ? a_ended : a->time_ns > b->time_ns;
}

/* Returns the session of a file to show; STORE_NONE: none is selected. */
static uint32_t find_newest(const struct store *store, unsigned int file)
{
	uint32_t best = STORE_NONE;

	for (uint32_t i = 0; i < store->ids.count; i++)
		if (store->sessions[i].files & 1u << file &&
		    (best == STORE_NONE || is_better(&store->sessions[i], &store->sessions[best])))
			best = i;
	return best;
}

/* Keeps one session of each file; returns the number of sessions that are no longer shown. */
static uint32_t leave_newest(struct store *store, unsigned int n_files)
{
	uint32_t kept[sizeof(store->sessions->files) * 8], left = 0;

	for (unsigned int file = 0; file < n_files; file++)
		kept[file] = find_newest(store, file);
	for (uint32_t i = 0; i < store->ids.count; i++) {
		uint32_t files = store->sessions[i].files;

		for (unsigned int file = 0; file < n_files; file++)
			if (kept[file] != i)
				store->sessions[i].files &= ~(1u << file);
		left += files && !store->sessions[i].files;
	}
	return left;
}

int choose_sessions(const struct options *options, const struct select *select, struct store *store,
		    unsigned int n_files, uint32_t *ret_left)
{
	uint32_t whole, n = count_selected(store, select, &whole);

	*ret_left = 0;
	for (uint32_t i = 0; i < store->ids.count; i++)
		store->sessions[i].selected = store->sessions[i].files;
	if (!n)
		return refuse_nothing(options, store);
	if (whole != STORE_NONE) {
		for (uint32_t i = 0; i < store->ids.count; i++)
			if (i != whole)
				store->sessions[i].files = store->sessions[i].selected = 0;
		return store_drop(store);
	}
	if (select->session && n > 1)
		return refuse_beginning(options, select, store);
	if (options->all || n == 1)
		return 0;
	*ret_left = leave_newest(store, n_files);
	return store_drop(store);
}
