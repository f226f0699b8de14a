/* SPDX-License-Identifier: BSD-2-Clause */
/* vmas_walk.c: one walk over all tasks lists the mappings of the processes in `asked`. */
#include <errno.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "harness.h"
#include "vmas_fixture.h"

HARNESS_LOADS("vmas_*", "ranges*");

#define ASKED 12

static void ask(struct harness *h, pid_t pid, uint64_t from)
{
	const struct asked_process asked = { .from = from };
	uint32_t tgid = (uint32_t)pid;

	assert_int_equal(
		bpf_map_update_elem(bpf_map__fd(h->skel->maps.asked), &tgid, &asked, BPF_ANY), 0);
}

/* The records of one process among those of a walk. */
static struct list *pick(const struct list *all, pid_t pid)
{
	struct list *list = calloc(1, sizeof(*list));

	assert_non_null(list);
	for (size_t i = 0; i < all->count; i++)
		if (all->items[i].record.tgid == (uint32_t)pid)
			list->items[list->count++] = all->items[i];
	return list;
}

static struct list *walk(struct harness *h)
{
	struct list *list = calloc(1, sizeof(*list));
	_cleanup_free_ char *bytes = NULL;
	size_t n;

	assert_non_null(list);
	h->control->vma_tgid = 0;
	n = harness_read(h->vmas, &bytes);
	take(list, bytes, n);
	return list;
}

/*
 * One walk of the body for old kernels lists all requested processes, each wholly, and no other;
 * also one without its main thread, once. To be asked for does not make a process known.
 */
static void one_walk_lists_all_who_are_asked(void **state)
{
	struct harness_options options = { .vmas_tree = true };
	struct harness *h = harness_new(&options);
	pid_t pids[ASKED], unasked = harness_spawn("t-unasked", "sleep", NULL);
	pid_t stranger = harness_spawn("t-stranger", "sleep", NULL), tid = 0;
	struct list *all = walk(h);

	assert_int_equal(all->count, 0);
	free(all);
	harness_target_set(h, unasked, 0);
	ask(h, stranger, 0);
	for (size_t i = 0; i < ASKED; i++) {
		pids[i] = i ? harness_spawn("t-asked", "sleep", NULL)
			    : harness_start(end_first_thread, NULL, h->group);
		harness_target_set(h, pids[i], 0);
		ask(h, pids[i], 0);
	}
	for (int i = 0; i < 1000 && !tid; i++) {
		harness_sleep_ms(10);
		tid = thread_left(pids[0]);
	}
	assert_true(tid > 0);
	for (int again = 0; again < 2; again++) {
		size_t of_asked = 0;

		all = walk(h);
		for (size_t i = 0; i < ASKED; i++) {
			struct list *one = pick(all, pids[i]);

			assert_true(compare(one, i ? pids[i] : tid) > 2);
			of_asked += one->count;
			free(one);
		}
		assert_int_equal(of_asked, all->count);
		free(all);
	}
	for (size_t i = 0; i < ASKED; i++)
		harness_kill(pids[i]);
	harness_kill(unasked);
	harness_kill(stranger);
	harness_free(h);
}

/* In a walk for many each goes on from its own address. */
static void parts_of_one_walk(void **state)
{
	struct harness_options options = { .vmas_tree = true };
	struct harness *h = harness_new(&options);
	pid_t other = harness_spawn("t-other", "sleep", NULL);
	struct list *whole, *part, *one;
	uint64_t from;

	map_many(MANY);
	harness_target_set(h, getpid(), 0);
	harness_target_set(h, other, 0);
	whole = mappings(h, getpid());
	from = whole->items[whole->count - 3].record.start;
	ask(h, getpid(), from);
	ask(h, other, 0);
	part = walk(h);
	one = pick(part, getpid());
	assert_int_equal(one->count, 3);
	assert_int_equal(one->items[0].record.start, from);
	free(one);
	one = pick(part, other);
	assert_true(compare(one, other) > 2);
	free(one);
	free(part);
	/* From the beginning it does not fit. */
	ask(h, getpid(), 0);
	part = walk(h);
	assert_int_equal(part->more, 1);
	free(part);
	free(whole);
	harness_kill(other);
	harness_free(h);
}

/*
 * A process with a lock that is hardly ever free does not delay other requested ones: after some
 * tries it is passed over.
 */
static void contended_holds_up_nobody(void **state)
{
	struct harness_options options = { .vmas_tree = true };
	struct harness *h = harness_new(&options);
	struct bpf_link *link = bpf_program__attach_iter(h->vmas, NULL);
	pid_t busy = harness_spawn("t-churn", "churn", NULL);
	pid_t calm = harness_spawn("t-calm", "sleep", NULL);
	size_t passed_over = 0, walks = 0;

	assert_non_null(link);
	harness_target_set(h, busy, 0);
	harness_target_set(h, calm, 0);
	h->control->vma_tgid = 0;
	for (; walks < 200 || (passed_over == 0 && walks < 20000); walks++) {
		_cleanup_close_ int fd = bpf_iter_create(bpf_link__fd(link));
		struct list *list = calloc(1, sizeof(*list)), *of_calm;
		static char bytes[65536];
		size_t again = 0;
		ssize_t n;

		assert_non_null(list);
		ask(h, busy, 0);
		ask(h, calm, 0);
		while ((n = read(fd, bytes, sizeof(bytes)))) {
			assert_true(n > 0 || errno == EAGAIN);
			again += n < 0;
			assert_in_range(again, 0, ASKED_TRIES);
			if (n > 0)
				take(list, bytes, (size_t)n);
		}
		of_calm = pick(list, calm);
		assert_true(compare(of_calm, calm) > 2);
		passed_over += of_calm->count == list->count;
		free(of_calm);
		free(list);
	}
	print_message("passed over in %zu of %zu walks\n", passed_over, walks);
	assert_true(passed_over > 0);
	bpf_link__destroy(link);
	harness_kill(busy);
	harness_kill(calm);
	harness_free(h);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_walk_lists_all_who_are_asked),
		cmocka_unit_test(parts_of_one_walk),
		cmocka_unit_test(contended_holds_up_nobody),
	};

	harness_main(argc, argv);
	harness_load_mappings();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
