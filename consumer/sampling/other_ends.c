/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/sampling/other_ends.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "consumer/kernel/pinned_maps.h"
#include "consumer/sampling/wait_objects.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

void other_ends_init(struct other_ends *e, const struct pinned_maps *pins)
{
	*e = (struct other_ends){ .pins = pins, .fd = -1 };
}

void other_ends_done(struct other_ends *e)
{
	if (e->fd >= 0)
		close(e->fd);
	e->fd = -1;
}

static int open_iterator(const struct other_ends *e)
{
	return e->pins->other_ends_path ? open(e->pins->other_ends_path, O_RDONLY | O_CLOEXEC) : -1;
}

/* One read without sessions empties the table (bpf/waits/other_ends.bpf.c). */
static void forget_ends(const struct other_ends *e)
{
	_cleanup_close_ int fd = -1;
	char none[8];

	e->pins->control->seeks = 0;
	fd = open_iterator(e);
	if (fd >= 0 && read(fd, none, sizeof(none)) < 0)
		return; /* EAGAIN: the table is empty */
}

void other_ends_hold(struct other_ends *e)
{
	if (!e->seeks)
		forget_ends(e);
	e->seeks++;
	e->pins->control->seeks = e->seeks;
}

void other_ends_drop(struct other_ends *e)
{
	e->seeks--;
	e->pins->control->seeks = e->seeks;
	if (e->seeks)
		return;
	other_ends_done(e);
	forget_ends(e);
}

void other_ends_ask(struct other_ends *e, struct end_watcher *w)
{
	w->next = e->watchers;
	w->served = false;
	e->watchers = w;
}

void other_ends_forget(struct other_ends *e, struct end_watcher *w)
{
	struct end_watcher **at = &e->watchers;

	while (*at && *at != w)
		at = &(*at)->next;
	if (*at)
		*at = w->next;
}

/* Ends the pass, and calls the watchers that it was for. */
static void end_pass(struct other_ends *e, bool failed)
{
	struct end_watcher **at = &e->watchers, *w;

	other_ends_done(e);
	while ((w = *at)) {
		if (!w->served) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		w->passed(w, failed);
	}
}

static bool begin_pass(struct other_ends *e)
{
	for (struct end_watcher *w = e->watchers; w; w = w->next)
		w->served = true;
	if (!e->watchers)
		return false;
	e->fd = open_iterator(e);
	if (e->fd < 0)
		end_pass(e, true);
	return e->fd >= 0;
}

/*
 * Reads once. Returns 1 if there is more, 0 at the end, or -errno. A read returns EAGAIN when it
 * has done enough work.
 */
static int read_once(const struct other_ends *e)
{
	char none[8];
	int r = read(e->fd, none, sizeof(none)) < 0 ? -errno : 0;

	return r == -EAGAIN || r == -EINTR ? 1 : r;
}

void other_ends_step(struct other_ends *e, uint64_t until_ns)
{
	int r;

	if (e->fd < 0 && !begin_pass(e))
		return;
	do
		r = read_once(e);
	while (r > 0 && clock_mono_ns() < until_ns);
	if (r <= 0)
		end_pass(e, r < 0);
}

bool other_ends_has_rest(const struct other_ends *e)
{
	return e->fd >= 0 || e->watchers;
}

/*
 * Returns the process that is named for the element: `known`, which the kernel names, if it is one
 * of them; else one with a connection before listeners.
 */
static const struct end_process *choose_process(const struct end_value *value, uint32_t known)
{
	uint32_t count = MIN(value->count, (uint32_t)END_PROCESSES), chosen = 0;

	for (uint32_t i = 0; i < count; i++)
		if (value->processes[i].tgid == known)
			return &value->processes[i];
	while (chosen + 1 < count && value->processes[chosen].listens)
		chosen++;
	if (count && value->processes[chosen].listens)
		chosen = 0;
	return count ? &value->processes[chosen] : NULL;
}

/* Sets the process of the object with this number. Returns false if the key has none. */
static bool name_end(const struct other_ends *e, struct wait_objects *objects, uint32_t number,
		     const struct end_key *key)
{
	const struct end_process *process;
	struct end_value value;

	if (bpf_map_lookup_elem(e->pins->ends_fd, key, &value) < 0)
		return false;
	process = choose_process(&value, wait_objects_get(objects, number)->peer_pid);
	if (!process)
		return false;
	wait_objects_set_end(objects, number, process, value.count);
	return true;
}

uint32_t other_ends_count(const struct wait_objects *objects)
{
	struct end_key key;
	uint32_t count = 0;

	for (uint32_t i = 1; i <= objects->count; i++)
		count += wait_objects_end_key(wait_objects_get(objects, i), &key);
	return count;
}

void other_ends_name(const struct other_ends *e, struct wait_objects *objects,
		     struct end_search *search)
{
	struct end_key key;

	*search = (struct end_search){ .ended = true, .left_out = e->pins->control->ends_left_out };
	for (uint32_t i = 1; i <= objects->count; i++) {
		bool is_named;

		if (!wait_objects_end_key(wait_objects_get(objects, i), &key))
			continue;
		is_named = name_end(e, objects, i, &key);
		if (!is_named && key.kind == END_TCP && key.net) {
			key = (struct end_key){ .kind = END_TCP_ANY,
						.port = key.port,
						.net = key.net };
			is_named = name_end(e, objects, i, &key);
		}
		search->sought++;
		search->named += is_named;
	}
}
