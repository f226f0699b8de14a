/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/facts/facts_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "consumer/facts/facts_text.h"
#include "shared/tools/cleanup.h"

#define PATH_BYTES 4096
#define TEXT_BYTES 8192

void facts_place_done(struct facts_place *p)
{
	for (int i = 0; i < FACTS_SOURCE_COUNT_; i++)
		free(p->source[i].path);
	*p = (struct facts_place){};
}

int facts_place_copy(const struct facts_place *p, struct facts_place *ret_place)
{
	struct facts_place copy = *p;
	int r = 0;

	for (int i = 0; i < FACTS_SOURCE_COUNT_; i++) {
		copy.source[i].path = p->source[i].path ? strdup(p->source[i].path) : NULL;
		if (p->source[i].path && !copy.source[i].path)
			r = -ENOMEM;
	}
	if (r < 0)
		facts_place_done(&copy);
	else
		*ret_place = copy;
	return r;
}

bool facts_place_same(const struct facts_place *a, const struct facts_place *b)
{
	for (int i = 0; i < FACTS_SOURCE_COUNT_; i++) {
		const char *x = a->source[i].path, *y = b->source[i].path;

		if (a->source[i].where != b->source[i].where || !x != !y ||
		    (x && strcmp(x, y) != 0))
			return false;
	}
	return true;
}

/* Whether the list of controllers, "cpu,cpuacct", contains `controller`. */
static bool has_controller(struct facts_text list, const char *controller)
{
	struct facts_text word;

	while (facts_text_word(&list, ',', &word))
		if (facts_text_is(word, controller))
			return true;
	return false;
}

/* Whether the path leads out of the mount: then the kernel begins it with "..". */
static bool leads_out(struct facts_text path)
{
	struct facts_text word;

	while (facts_text_word(&path, '/', &word))
		if (facts_text_is(word, ".."))
			return true;
	return false;
}

bool facts_place_parse(const char *text, size_t bytes, const char *controller, char *ret_path,
		       size_t space)
{
	struct facts_text rest = { text, bytes }, line;

	while (facts_text_line(&rest, &line)) {
		struct facts_text number, list;

		if (!facts_text_word(&line, ':', &number) || !line.bytes || line.at[0] == ':' ||
		    !facts_text_word(&line, ':', &list) || !has_controller(list, controller))
			continue;
		if (!line.bytes || line.at[0] != '/' || line.bytes >= space ||
		    memchr(line.at, '\0', line.bytes) || leads_out(line))
			return false;
		memcpy(ret_path, line.at, line.bytes);
		ret_path[line.bytes] = '\0';
		return true;
	}
	return false;
}

/* The v1 cgroups of one source's processes, and how many are in each. */
struct votes {
	struct {
		char *path; /* owned */
		uint32_t count;
	} of[FACTS_PLACE_PATHS];
	uint32_t asked;
};

static void count_vote(struct votes *v, const char *path)
{
	v->asked++;
	for (size_t i = 0; i < FACTS_PLACE_PATHS; i++) {
		if (!v->of[i].path)
			v->of[i].path = strdup(path);
		if (!v->of[i].path)
			return;
		if (!strcmp(v->of[i].path, path)) {
			v->of[i].count++;
			return;
		}
	}
}

/* Moves the cgroup with the most processes into *source; frees the others. */
static void take_winner(struct votes *v, struct facts_place_source *source)
{
	size_t best = 0;

	for (size_t i = 1; i < FACTS_PLACE_PATHS; i++)
		if (v->of[i].count > v->of[best].count)
			best = i;
	source->asked = v->asked;
	source->inside = v->of[best].count;
	source->path = TAKE_PTR(v->of[best].path);
	for (size_t i = 0; i < FACTS_PLACE_PATHS; i++)
		free(v->of[i].path);
}

static ssize_t read_groups(uint32_t pid, char *text, size_t space)
{
	char name[64];
	_cleanup_close_ int fd = -1;

	snprintf(name, sizeof(name), "/proc/%u/cgroup", pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -1 : read(fd, text, space);
}

static void ask_process(uint32_t pid, const enum facts_where where[FACTS_SOURCE_COUNT_],
			struct votes votes[FACTS_SOURCE_COUNT_])
{
	char text[TEXT_BYTES], path[PATH_BYTES];
	ssize_t n = read_groups(pid, text, sizeof(text));

	for (int i = 0; n > 0 && i < FACTS_SOURCE_COUNT_; i++)
		if (where[i] == FACTS_V1 &&
		    facts_place_parse(text, (size_t)n,
				      facts_source_controller((enum facts_source)i), path,
				      sizeof(path)))
			count_vote(&votes[i], path);
}

/* Writes the first processes of a cgroup; returns how many. */
static size_t list_processes(struct cgroups *cgroups, const char *path,
			     uint32_t pids[FACTS_PLACE_PIDS])
{
	char text[TEXT_BYTES];
	int bytes = cgroups_read(cgroups, path, "cgroup.procs", text, sizeof(text));
	struct facts_text rest = { text, bytes > 0 ? (size_t)bytes : 0 }, line;
	size_t n = 0;
	uint64_t pid;

	while (n < FACTS_PLACE_PIDS && facts_text_line(&rest, &line))
		if (facts_text_number(line, &pid) && pid <= UINT32_MAX)
			pids[n++] = (uint32_t)pid;
	return n;
}

int facts_place_find(struct cgroups *cgroups, const char *path,
		     const enum facts_where where[FACTS_SOURCE_COUNT_], facts_place_call of_root,
		     void *context, struct facts_place *ret_place)
{
	struct votes votes[FACTS_SOURCE_COUNT_] = {};
	uint32_t pids[FACTS_PLACE_PIDS];
	struct facts_place place = {};
	bool v1 = false;
	size_t n = 0;
	int r = 0;

	for (int i = 0; i < FACTS_SOURCE_COUNT_; i++)
		v1 = v1 || where[i] == FACTS_V1;
	if (v1 && strcmp(path, "/") != 0)
		n = list_processes(cgroups, path, pids);
	else if (v1 && of_root)
		n = of_root(context, pids);
	for (size_t i = 0; i < n; i++)
		ask_process(pids[i], where, votes);
	for (int i = 0; i < FACTS_SOURCE_COUNT_; i++) {
		place.source[i].where = where[i];
		if (where[i] == FACTS_V1)
			take_winner(&votes[i], &place.source[i]);
		else if (!(place.source[i].path = strdup(path)))
			r = -ENOMEM;
	}
	if (r < 0)
		facts_place_done(&place);
	else
		*ret_place = place;
	return r;
}
