/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/events/select.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "ctl/events/when.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

#define TEXT_BYTES 4096 /* longest name in a selection */

/* Parses `text`, the value of the option `name`; NULL: not given, and *ret_ns is unchanged. */
static int parse_time(const struct options *options, const char *name, const char *text,
		      uint64_t now_ns, uint64_t *ret_ns)
{
	if (!text || when_parse(text, now_ns, ret_ns) == 0)
		return 0;
	fprintf(options->err, "trocar: --%s %.80s: want " WHEN_RIGHT "\n", name, text);
	return -EINVAL;
}

int select_options(const struct options *options, struct select *ret_select)
{
	struct select s = {
		.session = options->session,
		.rule = options->rule,
		.host = options->host,
		.cgroup = options->cgroup,
		.signal = options->signal,
		.wall = options->signal && !strcmp(options->signal, SELECT_WALL),
		.phase = options->phase,
		.comm = options->comm,
		.has_pid = options->pid,
		.pid = options->pid,
		.until_ns = UINT64_MAX,
	};
	uint64_t now_ns = clock_real_ns();

	if (parse_time(options, "since", options->since, now_ns, &s.since_ns) < 0 ||
	    parse_time(options, "until", options->until, now_ns, &s.until_ns) < 0)
		return -EINVAL;
	*ret_select = s;
	return 0;
}

/* How a text matches a word: equal, beginning with it, or a path at or below it. */
enum how { WHOLE, BEGINNING, BELOW };

static bool fits_text(const struct json_text *text, const char *word, enum how how, bool all)
{
	char plain[TEXT_BYTES];
	const char *data = text->data;
	size_t bytes = text->bytes, wanted;

	if (!word)
		return true;
	if (!data)
		return !all;
	if (text->escaped) {
		if (bytes > sizeof(plain))
			return false;
		bytes = json_reader_decode(text, plain);
		data = plain;
	}
	wanted = strlen(word);
	if (bytes < wanted || memcmp(data, word, wanted) != 0)
		return false;
	if (how == BELOW && wanted && word[wanted - 1] != '/')
		return bytes == wanted || data[wanted] == '/';
	return how != WHOLE || bytes == wanted;
}

static bool fits_signal(const struct json_text *signal, const struct select *s, bool all)
{
	if (!s->wall)
		return fits_text(signal, s->signal, WHOLE, all);
	return fits_text(signal, "oncpu", WHOLE, all) || fits_text(signal, "offcpu", WHOLE, all);
}

static bool fits_place(const struct select *s, const struct event *event, bool all)
{
	return fits_text(&event->rule, s->rule, WHOLE, all) &&
	       fits_text(&event->host, s->host, WHOLE, all) &&
	       fits_text(&event->cgroup, s->cgroup, BELOW, all);
}

/* Returns whether everything except the signal matches. */
static bool fits_rest(const struct select *s, const struct event *event, bool all)
{
	/* The writer puts pid before comm, so a known comm means that pid has been read. */
	if (s->has_pid && event->pid != s->pid && (all || event->comm.data))
		return false;
	return fits_text(&event->session, s->session, BEGINNING, all) &&
	       fits_place(s, event, all) && fits_text(&event->phase, s->phase, WHOLE, all) &&
	       fits_text(&event->comm, s->comm, WHOLE, all);
}

bool select_stack(const struct select *s, const struct event *event, bool all)
{
	return fits_rest(s, event, all) && fits_signal(&event->signal, s, all);
}

bool select_lacks_signal(const struct select *s, const struct event *event)
{
	return s->by_default && !fits_signal(&event->signal, s, true) && fits_rest(s, event, true);
}

bool select_session(const struct select *s, const struct event *event, uint64_t time_ns)
{
	return time_ns >= s->since_ns && time_ns <= s->until_ns &&
	       fits_text(&event->session, s->session, BEGINNING, true) &&
	       fits_place(s, event, true);
}

bool select_other(const struct select *s, const struct event *event, uint64_t time_ns)
{
	return !s->session && time_ns >= s->since_ns && time_ns <= s->until_ns &&
	       fits_place(s, event, true);
}
