/* SPDX-License-Identifier: BSD-2-Clause */
/* watch_tree.c: a watch takes the descendants of its cgroup, on the real hierarchy. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sample_fixture.h"

HARNESS_LOADS("on_*", "sampler", "watch_tree");

#define OUTER 9 /* a slot */

/* A watched group that has nothing in it; ret_dir has room for 4096 bytes. */
static struct harness *begin(const struct harness_options *options, char *ret_dir, uint64_t *ret_id)
{
	struct harness *h = harness_new(options);

	harness_discover(h);
	*ret_id = harness_group(h, "parent", ret_dir);
	return h;
}

/* Makes the group `name` below `dir`. */
static uint64_t make_below(const char *dir, const char *name, char *ret_dir)
{
	assert_true(snprintf(ret_dir, 4096, "%.3000s/%.200s", dir, name) < 4096);
	assert_int_equal(mkdir(ret_dir, 0755), 0);
	return harness_group_id(ret_dir);
}

static void remove_group(const char *dir)
{
	int r = rmdir(dir);

	for (int i = 0; i < WAIT_MS / 10 && r < 0 && errno == EBUSY; i++) {
		harness_sleep_ms(10);
		r = rmdir(dir);
	}
	assert_int_equal(r, 0);
}

/* Every sample of slot `slot` is of cgroup `id`, and there is one. */
static void assert_samples_in(const struct harness *h, uint32_t slot, uint64_t id)
{
	size_t n = 0;

	for (size_t i = 0; i < h->samples.count; i++) {
		if (sample_at(h, i)->slot != slot)
			continue;
		assert_int_equal(sample_at(h, i)->cgroup_id, id);
		n++;
	}
	assert_true(n > 0);
}

static void assert_in_slot(const struct harness *h, uint64_t id, uint32_t slot)
{
	struct watch_entry entry;

	assert_true(harness_watched(h, id, &entry));
	assert_int_equal(entry.slot, slot);
	assert_int_equal(entry.flags, 0);
}

static void a_child_made_after_is_sampled(void **state)
{
	char dir[4096], child[4096], grandchild[4096];
	struct watch_entry entry;
	struct harness *h;
	uint64_t id, below;
	pid_t pid;

	h = begin(NULL, dir, &id);
	harness_watch(h, id, SLOT, SLOT_CAPTURE, 0);
	make_below(dir, "child", child);
	below = make_below(child, "grandchild", grandchild);
	assert_in_slot(h, below, SLOT);
	pid = harness_spawn("t-burn", "burn", grandchild);
	sample_for(h, 0, 10);
	assert_samples_in(h, SLOT, below);
	harness_kill(pid);
	remove_group(grandchild);
	assert_false(harness_watched(h, below, &entry));
	harness_free(h);
}

static void a_child_made_before_is_sampled(void **state)
{
	char dir[4096], child[4096], grandchild[4096];
	struct watch_entry entry;
	struct harness *h;
	uint64_t id, below;
	pid_t pid;

	h = begin(NULL, dir, &id);
	make_below(dir, "child", child);
	below = make_below(child, "grandchild", grandchild);
	pid = harness_spawn("t-burn", "burn", grandchild);
	harness_watch(h, id, SLOT, SLOT_CAPTURE, 0);
	assert_false(harness_watched(h, below, &entry));
	harness_watch_tree(h);
	assert_in_slot(h, below, SLOT);
	sample_for(h, 0, 10);
	assert_samples_in(h, SLOT, below);
	harness_kill(pid);
	harness_free(h);
}

/* When the watch is gone, so are the entries of its descendants. */
static void an_unwatched_tree_is_forgotten(void **state)
{
	const struct watch_entry left = { .slot = SLOT };
	char dir[4096], child[4096];
	struct watch_entry entry;
	struct harness *h;
	uint64_t id, below;

	h = begin(NULL, dir, &id);
	harness_watch(h, id, SLOT, SLOT_CAPTURE, 0);
	below = make_below(dir, "child", child);
	assert_int_equal(
		bpf_map_update_elem(bpf_map__fd(h->skel->maps.watches), &id, &left, BPF_EXIST), 0);
	harness_watch_tree(h);
	assert_false(harness_watched(h, id, &entry));
	assert_false(harness_watched(h, below, &entry));
	harness_free(h);
}

/* The root of a hybrid host is watched alone. */
static void a_watch_alone_takes_no_descendants(void **state)
{
	struct watch_entry entry = { .slot = SLOT, .flags = WATCH_OWN | WATCH_ALONE };
	char dir[4096], before[4096], after[4096];
	struct harness *h;
	uint64_t id, made_before, made_after;

	h = begin(NULL, dir, &id);
	made_before = make_below(dir, "before", before);
	harness_watch(h, id, SLOT, SLOT_CAPTURE, 0);
	assert_int_equal(
		bpf_map_update_elem(bpf_map__fd(h->skel->maps.watches), &id, &entry, BPF_EXIST), 0);
	made_after = make_below(dir, "after", after);
	harness_watch_tree(h);
	assert_false(harness_watched(h, made_before, &entry));
	assert_false(harness_watched(h, made_after, &entry));
	harness_free(h);
}

/* Of a cgroup that is watched itself, below another watch, both get each sample. */
static void nested_watches_both_sample(void **state)
{
	struct slot_counters outer, inner;
	char dir[4096], child[4096];
	struct harness *h;
	uint64_t id, below;
	pid_t pid;

	h = begin(NULL, dir, &id);
	below = make_below(dir, "child", child);
	harness_watch(h, below, SLOT, SLOT_CAPTURE, 0);
	harness_watch(h, id, OUTER, SLOT_CAPTURE, 0);
	harness_watch_tree(h);
	assert_int_equal(h->slots[SLOT].outer, OUTER + 1);
	assert_int_equal(h->slots[OUTER].outer, 0);
	pid = harness_spawn("t-burn", "burn", child);
	inner = sample_for(h, 0, 10);
	outer = harness_counters(h, OUTER);
	assert_int_equal(outer.attempted, inner.attempted);
	assert_int_equal(outer.emitted, inner.emitted);
	assert_int_equal(harness_totals(h).ticks_watched, inner.attempted);
	assert_samples_in(h, SLOT, below);
	assert_samples_in(h, OUTER, below);
	for (size_t i = 0; i < h->samples.count; i++) {
		const struct sample *s = sample_at(h, i);

		assert_int_equal(s->epoch, s->slot + 100);
		assert_true(s->user_frames > 0);
	}
	/* The inner watch takes nothing of this process: the outer one still does. */
	h->slots[SLOT].flags = SLOT_BY_PROCESS;
	sample_stop(h);
	harness_tick(h, HZ);
	for (int i = 0; i < WAIT_MS / 10 && harness_counters(h, OUTER).attempted < 30; i++)
		harness_sleep_ms(10);
	sample_stop(h);
	assert_true(harness_counters(h, OUTER).attempted >= 30);
	/* A tick that had begun when the word changed is the last. */
	assert_in_range(harness_counters(h, SLOT).attempted, inner.attempted, inner.attempted + 1);
	harness_kill(pid);
	harness_free(h);
}

/* Where one watch ends that lies within another, its descendants become the other's. */
static void the_outer_watch_takes_over(void **state)
{
	const struct watch_entry left = { .slot = SLOT };
	char dir[4096], child[4096], grandchild[4096];
	struct harness *h;
	uint64_t id, below, lowest;

	h = begin(NULL, dir, &id);
	below = make_below(dir, "child", child);
	lowest = make_below(child, "grandchild", grandchild);
	harness_watch(h, id, OUTER, SLOT_CAPTURE, 0);
	harness_watch(h, below, SLOT, SLOT_CAPTURE, 0);
	harness_watch_tree(h);
	assert_in_slot(h, lowest, SLOT);
	assert_int_equal(
		bpf_map_update_elem(bpf_map__fd(h->skel->maps.watches), &below, &left, BPF_EXIST),
		0);
	harness_watch_tree(h);
	assert_in_slot(h, below, OUTER);
	assert_in_slot(h, lowest, OUTER);
	harness_free(h);
}

/* Burns in a thread that has entered the threaded cgroup of the cgroup.threads in `context`. */
static void *burn_in(void *context)
{
	const int *fd = context;
	char tid[32];
	int n = snprintf(tid, sizeof(tid), "%ld", syscall(SYS_gettid));

	if (write(*fd, tid, (size_t)n) == n)
		harness_burn();
	return NULL;
}

static void burn_threaded(void *context)
{
	char path[8192];
	pthread_t thread;
	int fd;

	snprintf(path, sizeof(path), "%s/cgroup.threads", (const char *)context);
	fd = open(path, O_WRONLY);
	if (fd >= 0 && pthread_create(&thread, NULL, burn_in, &fd) == 0)
		pthread_join(thread, NULL);
	_exit(1);
}

static void a_threaded_child_is_sampled(void **state)
{
	char dir[4096], child[4096], type[8192];
	struct harness *h;
	uint64_t id, below;
	pid_t pid;
	int fd;

	h = begin(NULL, dir, &id);
	harness_watch(h, id, SLOT, SLOT_CAPTURE, 0);
	below = make_below(dir, "vcpu0", child);
	snprintf(type, sizeof(type), "%s/cgroup.type", child);
	fd = open(type, O_WRONLY);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "threaded", 8), 8);
	close(fd);
	pid = harness_start(burn_threaded, child, dir);
	for (int i = 0; i < 3; i++) {
		sample_for(h, 0, 10);
		if (sample_at(h, h->samples.count - 1)->cgroup_id == below)
			break;
	}
	assert_int_equal(sample_at(h, h->samples.count - 1)->cgroup_id, below);
	assert_int_equal(sample_at(h, h->samples.count - 1)->tgid, pid);
	harness_kill(pid);
	harness_free(h);
}

/* What finds no room is counted, for the watch and those around it, and reported. */
static void a_full_table_is_counted(void **state)
{
	const struct harness_options options = { .watch_room = 1 };
	char dir[4096], child[4096];
	struct watch_entry entry;
	struct harness *h;
	uint64_t id, second;

	h = begin(&options, dir, &id);
	harness_watch(h, id, SLOT, SLOT_CAPTURE, 0);
	assert_in_slot(h, make_below(dir, "first", child), SLOT);
	second = make_below(dir, "second", child);
	assert_false(harness_watched(h, second, &entry));
	assert_int_equal(h->slots[SLOT].left_out, 1);
	assert_int_equal(harness_totals(h).watches_full, 1);
	harness_drain(h);
	assert_int_equal(harness_errors(h, ERROR_WATCHES_FULL), 1);
	/* A walk finds the same anew, and room when there is some again. */
	harness_watch_tree(h);
	assert_int_equal(h->slots[SLOT].left_out, 1);
	snprintf(child, sizeof(child), "%.3000s/first", dir);
	remove_group(child);
	harness_watch_tree(h);
	assert_in_slot(h, second, SLOT);
	assert_int_equal(h->slots[SLOT].left_out, 0);
	harness_free(h);
}

/*
 * A walk that enters cgroups before it meets those that are in the table already takes no more room
 * for all of them than there is: entries of watched cgroups are not for descendants.
 */
static void a_walk_keeps_to_the_room(void **state)
{
	const struct harness_options options = { .watch_room = 3 };
	char dir[4096], early[4096], late[4096], child[4096], name[8];
	struct watch_entry entry;
	uint64_t id, ids[6];
	struct harness *h;
	size_t n = 0;

	h = begin(&options, dir, &id);
	make_below(dir, "early", early);
	harness_watch(h, make_below(dir, "late", late), OUTER, SLOT_CAPTURE, 0);
	for (int i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "c%d", i);
		ids[i] = make_below(i < 3 ? late : early, name, child);
		assert_int_equal(harness_watched(h, ids[i], &entry), i < 3);
	}
	harness_watch(h, id, SLOT, SLOT_CAPTURE, 0);
	harness_watch_tree(h);
	for (int i = 0; i < 6; i++)
		n += harness_watched(h, ids[i], &entry);
	n += harness_watched(h, harness_group_id(early), &entry);
	assert_int_equal(n, 3);
	/* early and its children are 4, and late has 3. */
	assert_int_equal(h->slots[SLOT].left_out, 4);
	assert_true(harness_watched(h, id, &entry) && entry.flags & WATCH_OWN);
	harness_free(h);
}

/* The watch that is too far out to share a sample reports it. */
static void too_many_nested_watches_are_counted(void **state)
{
	char dir[4096], child[4096];
	struct harness *h;
	uint64_t id;

	h = begin(NULL, dir, &id);
	for (uint32_t i = 0; i <= WATCHES_NESTED; i++) {
		harness_watch(h, id, i, SLOT_CAPTURE, 0);
		id = make_below(dir, "c", child);
		memcpy(dir, child, sizeof(dir));
	}
	harness_watch_tree(h);
	assert_int_equal(h->slots[WATCHES_NESTED].outer, WATCHES_NESTED);
	assert_int_equal(h->slots[0].left_out, 1);
	assert_int_equal(h->slots[1].left_out, 0);
	harness_free(h);
}

#define T(name) cmocka_unit_test(name)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(a_child_made_after_is_sampled),  T(a_child_made_before_is_sampled),
		T(an_unwatched_tree_is_forgotten), T(a_watch_alone_takes_no_descendants),
		T(nested_watches_both_sample),	   T(the_outer_watch_takes_over),
		T(a_threaded_child_is_sampled),	   T(a_full_table_is_counted),
		T(a_walk_keeps_to_the_room),	   T(too_many_nested_watches_are_counted),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
