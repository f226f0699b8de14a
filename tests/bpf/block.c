/* SPDX-License-Identifier: BSD-2-Clause */
/* block.c: known requests to a disk of the test's own, and their report. */
#include <errno.h>

#include "block_fixture.h"

HARNESS_LOADS("block_*");

#define TIMES 20

static const struct work nothing, twenty = { BLOCK_WRITE, TIMES, 4 * KIB, true };

/* As many as were asked for, each with both times, and nothing is left over. */
static void requests_are_told(void **state)
{
	static const struct {
		enum block_op op;
		uint32_t bytes;
	} cases[] = { { BLOCK_WRITE, 4 * KIB }, { BLOCK_READ, 64 * KIB }, { BLOCK_FLUSH, 0 } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct work work = { cases[i].op, TIMES, cases[i].bytes, true };
		uint64_t began_ns = harness_now_ns(), lasted_ns;
		struct fixture f = begin_worked(NULL, NULL, work, nothing);
		struct block_sums sums;

		lasted_ns = harness_now_ns() - began_ns;
		find_sums(&f, f.id, cases[i].op, &sums);
		assert_int_equal(sums.requests, TIMES);
		assert_int_equal(sums.bytes, (uint64_t)TIMES * cases[i].bytes);
		assert_int_equal(sums.errors, 0);
		assert_int_equal(sums.unissued, 0);
		assert_int_equal(count_steps(sums.queue), TIMES);
		assert_int_equal(count_steps(sums.service), TIMES);
		assert_in_range(sums.queue_ns + sums.service_ns, 1, lasted_ns);
		assert_in_range(sums.longest_ns, 1, sums.queue_ns + sums.service_ns);
		assert_int_equal(count_open(&f, f.id), 0);
		assert_int_equal(read_losses(&f, SLOT).untracked + read_losses(&f, SLOT).unlisted,
				 0);
		end(&f);
	}
}

/* Each size has its element. */
static void sizes_are_apart(void **state)
{
	static const struct {
		uint32_t bytes, size;
	} cases[] = { { 4 * KIB, 0 }, { 8 * KIB, 1 }, { 16 * KIB, 1 }, { 64 * KIB, 2 } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct work work = { BLOCK_WRITE, 3, cases[i].bytes, true };
		struct fixture f = begin_worked(NULL, NULL, work, nothing);
		struct block_key key = { .cgroup_id = f.id,
					 .slot = SLOT,
					 .device = f.device,
					 .op = BLOCK_WRITE,
					 .size = (uint8_t)cases[i].size };
		struct block_sums sums;

		assert_int_equal(
			bpf_map_lookup_elem(bpf_map__fd(f.h->skel->maps.block_sums), &key, &sums),
			0);
		assert_int_equal(sums.requests, 3);
		end(&f);
	}
}

/* Another user of the disk is reported by its cgroup. */
static void others_are_told(void **state)
{
	const struct work more = { BLOCK_WRITE, 2 * TIMES, 8 * KIB, true };
	struct fixture f = begin_worked(NULL, NULL, twenty, more);
	struct block_sums own, other;

	find_sums(&f, f.id, BLOCK_WRITE, &own);
	find_sums(&f, f.other_id, BLOCK_WRITE, &other);
	assert_int_equal(own.requests, TIMES);
	assert_int_equal(other.requests, 2 * TIMES);
	assert_int_equal(other.bytes, 2ull * TIMES * 8 * KIB);
	end(&f);
}

static void scope_own(struct fixture *f)
{
	harness_scope(f->h, strstr(f->dir, f->h->path));
}

static void scope_none(struct fixture *f)
{
	harness_scope(f->h, "/no.slice");
}

/* Nobody outside of the loader's --scope is named; the work of the disk is still reported. */
static void scope_hides_others(void **state)
{
	const struct harness_options scoped = { .scoped = true };
	struct fixture f = begin_worked(&scoped, scope_own, twenty, nothing);
	struct block_sums own, other, unnamed;

	find_sums(&f, f.id, BLOCK_WRITE, &own);
	assert_int_equal(own.requests, TIMES);
	end(&f);
	f = begin_worked(&scoped, scope_none, nothing, twenty);
	find_sums(&f, f.other_id, BLOCK_WRITE, &other);
	find_sums(&f, 0, BLOCK_WRITE, &unnamed);
	assert_int_equal(other.requests, 0);
	assert_int_equal(unnamed.requests, TIMES);
	end(&f);
}

/* A dead consumer gets no reports. */
static void dead_consumer_is_told_nothing(void **state)
{
	struct fixture f = begin(NULL);
	struct block_sums sums;

	f.h->control->stale_ns = 1;
	work_in(f.dir, (struct work){ BLOCK_WRITE, TIMES, 4 * KIB, true });
	find_sums(&f, f.id, BLOCK_WRITE, &sums);
	assert_int_equal(sums.requests, 0);
	assert_int_equal(count_open(&f, f.id), 0);
	end(&f);
}

/* Whoever writes to the table of open requests makes false sums, and nothing else. */
static void false_words(void **state)
{
	struct fixture f = begin(NULL);
	int fd = bpf_map__fd(f.h->skel->maps.block_open);
	struct block_request r;
	uint64_t key, *last = NULL;
	struct block_sums sums;
	bool ok = false;
	pid_t pid;

	/* While dozens of requests begin and end, each that is open gets words that are none. */
	assert_int_equal(pipe(done_pipe), 0);
	pid = harness_start(do_work, &(struct work){ BLOCK_WRITE, 2000, 4 * KIB, true }, f.dir);
	for (int i = 0; i < 2000; i++) {
		for (last = NULL; bpf_map_get_next_key(fd, last, &key) == 0; last = &key) {
			memset(&r, 0xff, sizeof(r));
			bpf_map_update_elem(fd, &key, &r, BPF_EXIST);
		}
	}
	assert_int_equal(read(done_pipe[0], &ok, sizeof(ok)), sizeof(ok));
	assert_true(ok);
	harness_kill(pid);
	close(done_pipe[0]);
	close(done_pipe[1]);
	find_sums(&f, f.id, BLOCK_WRITE, &sums);
	assert_in_range(sums.requests, 0, 2000);
	end(&f);
}

/*
 * Whether the word lies where the kernel has its heap, its stacks and its code. Halves that are
 * NO_SLOT make words above its code.
 */
static bool is_kernel_address(uint64_t word)
{
	return word >= 0xffff800000000000 &&
	       (word < 0xffffffff00000000 || (word & 0xffffffff80000000) == 0xffffffff80000000) &&
	       word < 0xfffffffffffff000;
}

/* Counts the elements of a map, of which no word of key and value may be an address. */
static size_t check_words(const struct bpf_map *map)
{
	size_t n = 0, key_bytes = bpf_map__key_size(map), bytes = bpf_map__value_size(map);
	uint64_t *key = calloc(1, key_bytes), *value = calloc(1, bytes);

	for (void *last = NULL; !bpf_map_get_next_key(bpf_map__fd(map), last, key); last = key) {
		for (size_t i = 0; i < key_bytes / sizeof(*key); i++)
			assert_false(is_kernel_address(key[i]));
		if (bpf_map_lookup_elem(bpf_map__fd(map), key, value) < 0)
			break;
		for (size_t i = 0; i < bytes / sizeof(*value); i++)
			assert_false(is_kernel_address(value[i]));
		n++;
	}
	free(key);
	free(value);
	return n;
}

/* The consumer reads the tables of requests: where the kernel has its objects is not in them. */
static void addresses_are_hidden(void **state)
{
	struct fixture f = begin(NULL);
	size_t open = 0;
	pid_t pid;

	assert_int_equal(pipe(done_pipe), 0);
	pid = harness_start(do_work, &(struct work){ BLOCK_WRITE, 2000, 4 * KIB, true }, f.dir);
	for (int i = 0; i < 5000 || (open == 0 && i < 5000000);
	     i++) { /* the writer may begin late */
		open += check_words(f.h->skel->maps.block_open);
		if (i % 100 == 0)
			check_words(f.h->skel->maps.block_sums);
	}
	assert_true(open > 0);
	harness_kill(pid);
	close(done_pipe[0]);
	close(done_pipe[1]);
	end(&f);
}

/*
 * Takes the only place of a map. A request on another disk may have it, also one that
 * began before its end was traced.
 */
static void take_the_place(int fd, const void *key, const void *value)
{
	uint64_t other[4];
	int r = -E2BIG;

	for (int i = 0; i < 100000 && r == -E2BIG; i++) {
		r = bpf_map_update_elem(fd, key, value, BPF_ANY);
		if (r && !bpf_map_get_next_key(fd, NULL, other))
			bpf_map_delete_elem(fd, other);
	}
	assert_int_equal(r, 0);
}

static void fill_open(struct fixture *f)
{
	uint64_t bio = 1;

	take_the_place(bpf_map__fd(f->h->skel->maps.block_open), &bio, &(struct block_request){});
}

static void fill_sums(struct fixture *f)
{
	take_the_place(bpf_map__fd(f->h->skel->maps.block_sums), &(struct block_key){ .device = 1 },
		       &(struct block_sums){});
}

/* Requests without room in one of the tables are counted, each once. */
static void losses_are_counted(void **state)
{
	const struct harness_options full[] = { { .block_open = 1 }, { .block_sums = 1 } };

	for (size_t i = 0; i < ARRAY_SIZE(full); i++) {
		struct fixture f =
			begin_worked(&full[i], i ? fill_sums : fill_open, twenty, twenty);
		struct slot_block losses = read_losses(&f, NO_SLOT);

		/* Of a cgroup that no watch has: what it asked for is not lost without a word. */
		assert_in_range(losses.untracked, i ? 0 : TIMES, i ? 0 : UINT64_MAX);
		assert_in_range(losses.unlisted, i ? TIMES : 0, i ? UINT64_MAX : 0);
		assert_int_equal(losses.no_memory, 0);
		losses = read_losses(&f, SLOT);
		assert_int_equal(losses.untracked, i ? 0 : TIMES);
		assert_int_equal(losses.unlisted, i ? TIMES : 0);
		assert_int_equal(losses.no_memory, 0);
		end(&f);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_are_told),
		cmocka_unit_test(sizes_are_apart),
		cmocka_unit_test(others_are_told),
		cmocka_unit_test(scope_hides_others),
		cmocka_unit_test(dead_consumer_is_told_nothing),
		cmocka_unit_test(false_words),
		cmocka_unit_test(losses_are_counted),
		cmocka_unit_test(addresses_are_hidden),
	};

	harness_main(argc, argv);
	if (!make_disk()) {
		fprintf(stderr, "skipped: no loop device: %s\n", strerror(errno));
		return HARNESS_SKIP;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
