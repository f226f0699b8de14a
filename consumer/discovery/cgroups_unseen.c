/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/discovery/cgroups_unseen.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "consumer/cgroup/cgroups.h"
#include "consumer/output/event_line.h"
#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* The currently unseen items of one kind: how many, why, and an example. */
struct unseen {
	uint64_t count;
	int error; /* -errno or 0 */
	const char *example;
};

static const struct {
	const char *code;
	const char *what; /* text between the count and the reason */
	const char *so;	  /* the consequence */
	const char *hint;
} kinds[] = {
	[UNSEEN_DIRECTORIES] = { "cgroups_unreadable", "cgroups cannot be read",
				 "processes below them are found only when they start",
				 "give the user of the consumer the right to read and search these "
				 "directories" },
	[UNSEEN_REST] = { "cgroups_cut", "part of the cgroup hierarchy was left out",
			  "it has more than 65536 cgroups, or more than 64 levels: the rest is "
			  "found only when it starts",
			  "remove unused cgroups" },
	[UNSEEN_OCCUPANCY] = { "cgroups_unknown",
			       "watched cgroups do not show whether they have processes",
			       "they are watched until the kernel reports that they are empty",
			       "give the user of the consumer the right to read cgroup.procs and "
			       "cgroup.threads" },
	[UNSEEN_ROOT] = { "cgroups_unreadable", "cgroup hierarchy cannot be read",
			  "cgroups are found only when a process starts in them",
			  "see the mount of cgroup2 and its permissions" },
};

/* For -EBUSY, if no permission is missing (cgroup_lookup.h). */
static const char held_up[] =
	"the directory's owner makes and removes cgroups in it without pause, or the agent gets no "
	"CPU time: the next scan tries again";

_Static_assert(CGROUPS_MAX == 65536, "the words above name the limit");
_Static_assert(sizeof(kinds) / sizeof(kinds[0]) == UNSEEN_COUNT_, "a kind has no words");

static struct unseen of_unread(const struct cgroupfs_unread *u)
{
	return (struct unseen){ u->count, u->error, u->example };
}

static struct unseen unseen_now(const struct cgroups *c, enum unseen_kind kind)
{
	switch (kind) {
	case UNSEEN_DIRECTORIES:
		return of_unread(&c->left.unread);
	case UNSEEN_REST:
		return (struct unseen){ c->left.cut, 0, "" };
	case UNSEEN_OCCUPANCY:
		return of_unread(&c->unknown);
	default:
		return (struct unseen){ c->walk_error < 0, c->walk_error, c->mount };
	}
}

static void fill_line(void *context, struct jsonw *w)
{
	const struct unseen *u = context;

	jsonw_u64(w, "count", u->count);
	if (u->error)
		jsonw_string(w, "error", strerrorname_np(-u->error));
}

static void say_unseen(const struct event_lines *lines, enum unseen_kind kind, struct unseen *u)
{
	char where[CGROUPFS_EXAMPLE_BYTES + 32] = "";

	if (u->error)
		snprintf(where, sizeof(where), " (%s: %s)", strerrorname_np(-u->error), u->example);
	event_line_error(lines, NULL, kinds[kind].code,
			 u->error == -EBUSY ? held_up : kinds[kind].hint, fill_line, u,
			 "%llu %s%s: %s", (unsigned long long)u->count, kinds[kind].what, where,
			 kinds[kind].so);
}

void cgroups_unseen_check(struct cgroups_unseen *all, uint64_t now_ns)
{
	for (enum unseen_kind kind = 0; kind < UNSEEN_COUNT_; kind++) {
		struct unseen u = unseen_now(all->cgroups, kind);
		uint64_t *said = &all->said[kind].count;
		uint64_t *said_ns = &all->said[kind].time_ns;

		if (u.count <= *said) {
			*said = u.count;
			continue;
		}
		if (*said_ns && now_ns - *said_ns < CGROUPS_UNSEEN_EVERY_S * NSEC_PER_SEC)
			continue;
		say_unseen(all->lines, kind, &u);
		*said = u.count;
		*said_ns = now_ns;
	}
}

static void write_unread(struct jsonw *w, const char *key, const struct unseen *u)
{
	jsonw_object(w, key);
	jsonw_u64(w, "count", u->count);
	if (u->error) {
		jsonw_string(w, "error", strerrorname_np(-u->error));
		jsonw_string(w, "example", u->example);
	}
	jsonw_object_end(w);
}

void cgroups_unseen_write(const struct cgroups_unseen *all, struct jsonw *w)
{
	const struct cgroups *c = all->cgroups;
	struct unseen directories = unseen_now(c, UNSEEN_DIRECTORIES);
	struct unseen occupancy = unseen_now(c, UNSEEN_OCCUPANCY);

	jsonw_object(w, "cgroups");
	jsonw_u64(w, "known", c->known.count);
	jsonw_u64(w, "emptied", c->emptied);
	write_unread(w, "unreadable", &directories);
	write_unread(w, "unknown", &occupancy);
	jsonw_bool(w, "cut", c->left.cut);
	jsonw_string(w, "error", c->walk_error < 0 ? strerrorname_np(-c->walk_error) : NULL);
	jsonw_object_end(w);
}
