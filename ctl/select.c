/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/select.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "shared/macro.h"
#include "shared/parse.h"

#define TEXT_BYTES 4096 /* no name that is asked for is longer */

static int take_time(const struct options *options, enum option option, uint64_t *ret_ns)
{
	const char *text = options->values[option];

	if (!text || event_time(text, strlen(text), ret_ns) == 0)
		return 0;
	fprintf(options->err,
		"trocar: --%s: want UTC as 2026-11-21T15:59:03Z, or the beginning of it\n",
		options_name(option));
	return -EINVAL;
}

int select_options(const struct options *options, struct select *ret_select)
{
	struct select s = {
		.session = options->values[OPTION_SESSION],
		.rule = options->values[OPTION_RULE],
		.cgroup = options->values[OPTION_CGROUP],
		.signal = options->values[OPTION_SIGNAL],
		.phase = options->values[OPTION_PHASE],
		.comm = options->values[OPTION_COMM],
		.until_ns = UINT64_MAX,
	};
	const char *pid = options->values[OPTION_PID];

	if (s.phase && strcmp(s.phase, "before") != 0 && strcmp(s.phase, "during") != 0) {
		fprintf(options->err, "trocar: --phase: want before or during\n");
		return -EINVAL;
	}
	if (pid && parse_u64(pid, 0, EVENT_NUMBER_MAX, &s.pid) < 0) {
		fprintf(options->err, "trocar: --pid: want a number\n");
		return -EINVAL;
	}
	s.has_pid = pid;
	if (take_time(options, OPTION_SINCE, &s.since_ns) < 0 ||
	    take_time(options, OPTION_UNTIL, &s.until_ns) < 0)
		return -EINVAL;
	*ret_select = s;
	return 0;
}

/* How text and word compare: as a whole, as a beginning, or as a path and what is below. */
enum how { WHOLE, BEGINNING, BELOW };

static bool fits(const struct json_text *text, const char *word, enum how how, bool all)
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

bool select_stack(const struct select *s, const struct event *event, bool all)
{
	/* The writer puts pid before comm: the one tells that the other has been read. */
	if (s->has_pid && event->pid != s->pid && (all || event->comm.data))
		return false;
	return fits(&event->session, s->session, BEGINNING, all) &&
	       fits(&event->rule, s->rule, WHOLE, all) &&
	       fits(&event->cgroup, s->cgroup, BELOW, all) &&
	       fits(&event->signal, s->signal, WHOLE, all) &&
	       fits(&event->phase, s->phase, WHOLE, all) && fits(&event->comm, s->comm, WHOLE, all);
}

bool select_session(const struct select *s, const struct event *event, uint64_t time_ns)
{
	return time_ns >= s->since_ns && time_ns <= s->until_ns &&
	       fits(&event->session, s->session, BEGINNING, true) &&
	       fits(&event->rule, s->rule, WHOLE, true) &&
	       fits(&event->cgroup, s->cgroup, BELOW, true);
}
