/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reclaim.c: stretches of reclaim at the limit of a memory cgroup: the number, the time and the
 * freed pages of each cgroup.
 */
#include <stdlib.h>
#include <sys/wait.h>

#include "memory_fixture.h"
#include "shared/tools/macro.h"

HARNESS_LOADS("reclaim_*", "compaction_*", "dirty_*", "sampler");

#define SLOT	    7
#define LIMIT	    "16777216"
#define LIMIT_BYTES (16u << 20)
#define READS_BYTES (96u << 20)
#define ROOM	    64 /* of small tables: others of the machine take some of it */

struct fixture {
	struct harness *h;
	struct memory_group group, other;
	struct bpf_link *links[8];
	int file; /* a hole that is larger than the limit */
};

static void attach_all(struct fixture *f)
{
	struct trocar *s = f->h->skel;
	struct bpf_program *const programs[] = {
		s->progs.reclaim_begin,	    s->progs.reclaim_end,      s->progs.reclaim_limit_begin,
		s->progs.reclaim_limit_end, s->progs.compaction_begin, s->progs.compaction_end,
		s->progs.dirty_pause,	    s->progs.dirty_switch,
	};

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		f->links[i] = bpf_program__attach(programs[i]);
		assert_non_null(f->links[i]);
	}
}

static void detach_all(struct fixture *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(f->links); i++) {
		bpf_link__destroy(f->links[i]);
		f->links[i] = NULL;
	}
}

/* A watched group with a limit in which a session runs, and another one beside it. */
static struct fixture begin(const struct harness_options *options)
{
	struct fixture f = { .h = harness_new(options) };
	char file[] = "/var/tmp/trocar-hole-XXXXXX";

	if (!memory_make(f.h, "reclaim", LIMIT, &f.group) ||
	    !memory_make(f.h, "reclaim-other", LIMIT, &f.other)) {
		print_message("SKIP: the controller memory is in no cgroup hierarchy\n");
		harness_free(f.h);
		skip();
	}
	f.file = mkostemp(file, O_CLOEXEC);
	unlink(file);
	assert_true(f.file >= 0);
	assert_int_equal(ftruncate(f.file, READS_BYTES), 0);
	harness_watch(f.h, f.group.id, SLOT, SLOT_CAPTURE, 0);
	f.h->slots[SLOT].session = 1;
	f.h->control->heartbeat_ns = harness_now_ns();
	f.h->control->stale_ns = 60000000000u;
	attach_all(&f);
	return f;
}

static void end(struct fixture *f)
{
	detach_all(f);
	close(f->file);
	memory_remove(&f->group);
	memory_remove(&f->other);
	harness_free(f->h);
}

/* Reads the hole once in a process of the group, which it returns: what does not fit is thrown out
 * again. */
static pid_t read_hole(const struct fixture *f, const struct memory_group *group)
{
	static char page[1 << 16];
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		if (!memory_write(group->dir, "cgroup.procs", "0"))
			_exit(97);
		memory_join(group);
		posix_fadvise(f->file, 0, 0, POSIX_FADV_DONTNEED);
		for (off_t at = 0; at < READS_BYTES; at += (off_t)sizeof(page))
			if (pread(f->file, page, sizeof(page), at) != sizeof(page))
				_exit(99);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	return pid;
}

/* Sums up one kind of a cgroup's threads; false: nothing. */
static bool find_sums(const struct fixture *f, uint64_t cgroup_id, enum reclaim_kind kind,
		      struct reclaim_key *ret_key, struct reclaim_sums *ret_sums)
{
	int fd = bpf_map__fd(f->h->skel->maps.reclaim_sums);
	struct reclaim_key key, *last = NULL;

	for (; bpf_map_get_next_key(fd, last, &key) == 0; last = &key) {
		if (key.cgroup_id != cgroup_id || key.kind != kind)
			continue;
		*ret_key = key;
		assert_int_equal(bpf_map_lookup_elem(fd, &key, ret_sums), 0);
		return true;
	}
	return false;
}

/* Whether a stretch of this thread has not ended. Others of the machine may reclaim meanwhile. */
static bool is_open(const struct fixture *f, pid_t tid)
{
	int fd = bpf_map__fd(f->h->skel->maps.reclaim_open);
	struct reclaim_open_key key, *last = NULL;

	for (; bpf_map_get_next_key(fd, last, &key) == 0; last = &key)
		if (key.tid == (uint32_t)tid)
			return true;
	return false;
}

/* Of a slot, over all CPUs; NO_SLOT: of no watch. */
static struct slot_reclaim losses(const struct fixture *f, uint32_t slot)
{
	struct slot_reclaim cpus[HARNESS_CPUS] = {}, sum = {};
	uint32_t at = LOSSES_OF(slot);

	assert_int_equal(
		bpf_map_lookup_elem(bpf_map__fd(f->h->skel->maps.reclaim_losses), &at, cpus), 0);
	for (size_t i = 0; i < HARNESS_CPUS; i++) {
		sum.untracked += cpus[i].untracked;
		sum.unlisted += cpus[i].unlisted;
		sum.no_memory += cpus[i].no_memory;
		sum.awake += cpus[i].awake;
	}
	return sum;
}

/* As many pages as were read beyond the limit had to be found, in stretches that add up. */
static void counts_the_limit(void **state)
{
	struct fixture f = begin(NULL);
	struct reclaim_sums sums;
	struct reclaim_key key;
	uint64_t steps = 0, began_ns = harness_now_ns(), page = (uint64_t)sysconf(_SC_PAGESIZE);
	pid_t reader;

	reader = read_hole(&f, &f.group);
	assert_true(find_sums(&f, f.group.id, RECLAIM_LIMIT, &key, &sums));
	assert_int_equal(key.slot, SLOT);
	assert_int_equal(key.device, 0);
	assert_true(sums.count > 10);
	assert_in_range(sums.time_ns, sums.count, harness_now_ns() - began_ns);
	assert_in_range(sums.longest_ns, sums.time_ns / sums.count, sums.time_ns);
	/* What was read ahead may go before it is read, and comes again. */
	assert_in_range(sums.pages * page, READS_BYTES - LIMIT_BYTES - (4u << 20), 2 * READS_BYTES);
	for (int i = 0; i < QUEUE_BUCKETS; i++)
		steps += sums.steps[i];
	assert_int_equal(steps, sums.count);
	assert_int_equal(sums.orphans, 0);
	assert_false(is_open(&f, reader));
	assert_int_equal(losses(&f, SLOT).untracked + losses(&f, SLOT).unlisted, 0);
	end(&f);
}

/* Another cgroup has its own element, and no slot. */
static void tells_others_apart(void **state)
{
	struct fixture f = begin(NULL);
	struct reclaim_sums sums;
	struct reclaim_key key;

	read_hole(&f, &f.other);
	assert_false(find_sums(&f, f.group.id, RECLAIM_LIMIT, &key, &sums));
	assert_true(find_sums(&f, f.other.id, RECLAIM_LIMIT, &key, &sums));
	assert_int_equal(key.slot, NO_SLOT);
	assert_true(sums.count > 10);
	end(&f);
}

/* While the consumer is not there, nothing is counted; what is begun then is an orphan at its end.
 */
static void is_silent_without_a_consumer(void **state)
{
	struct fixture f = begin(NULL);
	struct reclaim_sums sums;
	struct reclaim_key key;
	pid_t reader;

	f.h->control->stale_ns = 1;
	reader = read_hole(&f, &f.group);
	assert_false(find_sums(&f, f.group.id, RECLAIM_LIMIT, &key, &sums));
	assert_false(is_open(&f, reader));
	end(&f);
}

/* Outside of the scope there is no cgroup's name in the tables. */
static void keeps_to_the_scope(void **state)
{
	const struct harness_options scoped = { .scoped = true };
	struct fixture f = begin(&scoped);
	struct reclaim_sums sums;
	struct reclaim_key key;

	harness_scope(f.h, "/elsewhere");
	read_hole(&f, &f.group);
	assert_false(find_sums(&f, f.group.id, RECLAIM_LIMIT, &key, &sums));
	assert_true(find_sums(&f, 0, RECLAIM_LIMIT, &key, &sums));
	assert_int_equal(key.slot, NO_SLOT);
	end(&f);
}

/*
 * Takes all the room that others of the machine leave, and again until they have released theirs.
 * *number is a word of the key, which distinguishes the elements.
 */
static void fill(int fd, const void *key, uint32_t *number, const void *value)
{
	for (int i = 0; i < 20; i++, usleep(5000))
		while (bpf_map_update_elem(fd, key, value, BPF_NOEXIST) == 0)
			(*number)++;
}

/* What finds no room is counted, in each table; the ends of entries without room are orphans. */
static void counts_what_finds_no_room(void **state)
{
	const struct harness_options small = { .reclaim_open = ROOM, .reclaim_sums = ROOM };
	struct fixture f = begin(&small);
	int open_fd = bpf_map__fd(f.h->skel->maps.reclaim_open);
	int sums_fd = bpf_map__fd(f.h->skel->maps.reclaim_sums);
	struct reclaim_open_key taken = {
		.tid = UINT32_MAX
	}; /* no thread, because its end would free it */
	struct reclaim_key full = { .cgroup_id = 1 };
	struct reclaim_open open = {};
	struct reclaim_sums sums = {};
	struct reclaim_key key;
	uint64_t before;

	fill(sums_fd, &full, &full.pad, &sums);
	read_hole(&f, &f.group);
	assert_true(losses(&f, SLOT).unlisted > 10);
	assert_int_equal(losses(&f, SLOT).untracked, 0);
	/* Of a cgroup that no watch has: what it did is not lost without a word. */
	before = losses(&f, SLOT).unlisted;
	read_hole(&f, &f.other);
	assert_true(losses(&f, NO_SLOT).unlisted > 10);
	assert_int_equal(losses(&f, SLOT).unlisted, before);
	while (full.pad--)
		assert_int_equal(bpf_map_delete_elem(sums_fd, &full), 0);
	fill(open_fd, &taken, &taken.kind, &open);
	read_hole(&f, &f.group);
	assert_true(losses(&f, SLOT).untracked > 10);
	assert_true(find_sums(&f, f.group.id, RECLAIM_LIMIT, &key, &sums));
	assert_int_equal(sums.count, 0);
	assert_int_equal(sums.orphans, losses(&f, SLOT).untracked);
	assert_int_equal(losses(&f, SLOT).no_memory, 0);
	end(&f);
}

/* A tick in a memory stall is marked, and one outside of it is not. */
static void ticks_know_the_stall(void **state)
{
	struct fixture f = begin(NULL);
	size_t stalled = 0, others = 0;

	harness_tick(f.h, 997);
	for (int i = 0; i < 200 && (!stalled || !others); i++) {
		read_hole(&f, &f.group);
		harness_drain(f.h);
		stalled = others = 0;
		for (size_t k = 0; k < f.h->samples.count; k++) {
			const struct sample *s = f.h->samples.records[k];

			if (s->flags & SAMPLE_MEMORY_STALL)
				stalled++;
			else
				others++;
			/* Nobody reclaims in user mode. */
			assert_false(s->flags & SAMPLE_MEMORY_STALL && s->flags & SAMPLE_IN_USER);
		}
	}
	assert_true(stalled && others);
	end(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_the_limit),
		cmocka_unit_test(tells_others_apart),
		cmocka_unit_test(is_silent_without_a_consumer),
		cmocka_unit_test(keeps_to_the_scope),
		cmocka_unit_test(counts_what_finds_no_room),
		cmocka_unit_test(ticks_know_the_stall),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
