/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/cgroup/cgroups_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/cgroup/cgroup_lookup.h"
#include "consumer/cgroup/cgroups.h"
#include "shared/tools/clock.h"

/* A user's directory that the walk has found and not looked into yet. */
struct foreign {
	struct foreign *next;
	uint64_t owner;
	char path[];
};

struct cgroups_walk {
	struct cgroups *cgroups;
	struct cgroupfs_walk *walk;
	int (*found)(void *context, const char *path, uint64_t id);
	void *context;
	struct cgroupfs_left left;	/* directories of users that it omitted */
	struct foreign *first, **last;	/* owned: in the order in which they were found */
	struct cgroup_listing *listing; /* of the first directory; NULL: not begun */
	int error;			/* of the walk over root's directories */
};

static int tell_cgroup(void *context, const char *path, uint64_t id)
{
	const struct cgroups_walk *w = context;

	return w->found(w->context, path, id);
}

static int add_foreign(struct cgroups_walk *w, const char *path, const struct stat *st)
{
	size_t bytes = strlen(path) + 1;
	struct foreign *f = malloc(sizeof(*f) + bytes);

	if (!f)
		return -ENOMEM;
	f->next = NULL;
	f->owner = cgroup_lookup_owner(st);
	memcpy(f->path, path, bytes);
	*w->last = f;
	w->last = &f->next;
	return 0;
}

static int enter_cgroup(void *context, const char *path, const struct stat *st, bool *ret_enters)
{
	*ret_enters = !cgroup_lookup_is_foreign(st);
	return *ret_enters ? 0 : add_foreign(context, path, st);
}

int cgroups_walk_new(struct cgroups *c, int (*found)(void *context, const char *path, uint64_t id),
		     void *context, struct cgroups_walk **ret_walk)
{
	struct cgroups_walk *w = calloc(1, sizeof(*w));
	struct cgroupfs_visitor visitor = { .found = tell_cgroup,
					    .enters = enter_cgroup,
					    .context = w };

	if (!w)
		return -ENOMEM;
	*w = (struct cgroups_walk){ .cgroups = c, .found = found, .context = context };
	w->last = &w->first;
	c->walk_error = cgroupfs_walk_new(AT_FDCWD, c->mount, CGROUPS_MAX, visitor, &w->walk);
	if (c->walk_error) {
		free(w);
		return c->walk_error;
	}
	*ret_walk = w;
	return 0;
}

void cgroups_walk_free(struct cgroups_walk *w)
{
	if (!w)
		return;
	while (w->first) {
		struct foreign *f = w->first;

		w->first = f->next;
		free(f);
	}
	cgroup_lookup_unlist(w->listing);
	cgroupfs_walk_free(w->walk);
	free(w);
}

/* Keeps the directories that a finished walk could not see. */
static void note_left(struct cgroups *c, const struct cgroups_walk *w)
{
	struct cgroupfs_left left = cgroupfs_walk_left(w->walk);

	if (w->left.unread.count) {
		cgroupfs_unread_add(&left.unread, w->left.unread.example, w->left.unread.error);
		left.unread.count += w->left.unread.count - 1;
	}
	left.cut |= w->left.cut;
	c->left = left;
}

/* Continues the listing, and frees it at its end. Returns like cgroups_walk_step. */
static int tell_listing(struct cgroups_walk *w, uint64_t until_ns)
{
	int r = cgroup_lookup_tell(w->listing, until_ns, w->found, w->context, &w->left);

	if (r > 0)
		return r;
	cgroup_lookup_unlist(w->listing);
	w->listing = NULL;
	return r;
}

/* Starts the listing of the first directory in the queue. */
static void begin_listing(struct cgroups_walk *w)
{
	struct foreign *f = w->first;
	int r = cgroup_lookup_list(w->cgroups, f->path, f->owner, &w->listing);

	if (r < 0)
		cgroupfs_unread_add(&w->left.unread, f->path, r);
	w->first = f->next;
	if (!w->first)
		w->last = &w->first;
	free(f);
}

/* Does the part of cgroups_walk_step for users' directories. */
static int walk_foreign(struct cgroups_walk *w, uint64_t until_ns)
{
	int r = 0;

	while (r == 0 && (w->listing || w->first)) {
		if (!w->listing)
			begin_listing(w);
		if (w->listing)
			r = tell_listing(w, until_ns);
		if (r == 0 && clock_mono_ns() >= until_ns)
			return 1;
	}
	return r;
}

int cgroups_walk_step(struct cgroups_walk *w, uint64_t until_ns)
{
	struct cgroups *c = w->cgroups;
	int r;

	while (!w->error && cgroupfs_walk_more(w->walk)) {
		w->error = cgroupfs_walk_step(w->walk);
		if (clock_mono_ns() >= until_ns)
			break;
	}
	c->walk_error = w->error;
	if (w->error)
		return w->error;
	if (cgroupfs_walk_more(w->walk))
		return 1;
	r = walk_foreign(w, until_ns);
	if (r == 0)
		note_left(c, w);
	return r;
}
