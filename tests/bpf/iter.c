/* SPDX-License-Identifier: BSD-2-Clause */
/* iter.c: the processes and the symbols that the iterators list, against /proc. */

#include <bpf/bpf.h>
#include <pthread.h>

#include "harness.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

HARNESS_LOADS("on_*", "ksyms", "bpf_code");

static const struct task_record *task_find(const char *bytes, size_t n, pid_t pid)
{
	const struct task_record *records = (const void *)bytes;

	assert_int_equal(n % sizeof(*records), 0);
	for (size_t i = 0; i < n / sizeof(*records); i++)
		if (records[i].tgid == (uint32_t)pid)
			return &records[i];
	return NULL;
}

/* Counts the records that are not empty. */
static size_t task_count(const char *bytes, size_t n)
{
	const struct task_record *records = (const void *)bytes;
	size_t count = 0;

	for (size_t i = 0; i < n / sizeof(*records); i++)
		count += records[i].tgid != 0;
	return count;
}

static void tasks_match_in_the_kernel(void **state)
{
	struct harness *h = harness_new(NULL);
	pid_t exact = harness_spawn("abcdefghijklmno", "sleep", NULL);
	pid_t other = harness_spawn("abcdefghijklmn", "sleep", NULL);
	const struct task_record *record;
	_cleanup_free_ char *a = NULL, *b = NULL;
	struct target target;
	size_t n;

	harness_rule(h, 0, "abcdefghijklmno", true, 3, 8);
	harness_rule(h, 1, "abc", false, 4, 9);
	n = harness_read(h->skel->progs.tasks, &a);
	record = task_find(a, n, exact);
	assert_non_null(record);
	assert_string_equal(record->comm, "abcdefghijklmno");
	assert_int_equal(record->rule, 3);
	assert_int_equal(record->generation, 8);
	assert_int_equal(record->ppid, getpid());
	assert_int_equal(record->start_ns, harness_start_ns(h, exact));
	assert_null(task_find(a, n, other));
	assert_null(task_find(a, n, getpid()));

	h->control->scan_trie = 1; /* not in force: a question only */
	n = harness_read(h->skel->progs.tasks, &b);
	record = task_find(b, n, other);
	assert_non_null(record);
	assert_int_equal(record->rule, 4);
	assert_false(harness_target(h, other, &target));
	harness_kill(exact);
	harness_kill(other);
	harness_free(h);
}

static void tasks_list_watched_cgroups(void **state)
{
	struct harness *h = harness_new(NULL);
	const struct task_record *record;
	_cleanup_free_ char *bytes = NULL;
	char dir[4096];
	uint64_t id = harness_group(h, "watched", dir);
	pid_t pid = harness_spawn("t-any", "sleep", dir);
	size_t n;

	harness_watch(h, id, 0, SLOT_IDLE, 0);
	n = harness_read(h->skel->progs.tasks, &bytes);
	record = task_find(bytes, n, pid);
	assert_non_null(record);
	assert_int_equal(task_count(bytes, n), 1);
	assert_int_equal(record->rule, NO_SLOT);
	assert_int_equal(record->cgroup_id, id);
	harness_kill(pid);
	harness_free(h);
}

/* Who was known is listed as long as it lives, whatever its name and cgroup are by then. */
static void tasks_list_the_marked(void **state)
{
	struct harness *h = harness_new(NULL);
	_cleanup_free_ char *known = NULL, *gone = NULL;
	const struct task_record *record;
	pid_t pid;
	size_t n;

	harness_discover(h);
	harness_rule(h, 0, "t-known", true, 1, 1);
	pid = harness_spawn("t-known", "sleep", NULL);
	h->control->scan_trie = 1; /* where no rule is */
	n = harness_read(h->skel->progs.tasks, &known);
	record = task_find(known, n, pid);
	assert_non_null(record);
	assert_int_equal(record->rule, NO_SLOT);
	assert_null(task_find(known, n, getpid()));
	harness_kill(pid);
	n = harness_read(h->skel->progs.tasks, &gone);
	assert_null(task_find(gone, n, pid));
	harness_free(h);
}

#define THREADS (2 * TASKS_PAUSE + 100)

static void *wait_for_end(void *context)
{
	pthread_barrier_wait(context);
	return NULL;
}

/* Without a match, empty records end a read after this many tasks. */
static void reads_of_tasks_end(void **state)
{
	struct harness *h = harness_new(NULL);
	_cleanup_free_ char *bytes = NULL;
	pthread_t threads[THREADS];
	pthread_barrier_t end;
	pthread_attr_t small;
	size_t n;

	assert_int_equal(pthread_barrier_init(&end, NULL, THREADS + 1), 0);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64u << 10);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], &small, wait_for_end, &end), 0);
	n = harness_read(h->skel->progs.tasks, &bytes);
	pthread_barrier_wait(&end);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&end);
	pthread_attr_destroy(&small);
	assert_int_equal(task_count(bytes, n), 0);
	assert_int_equal(n % (TASKS_AT_ONCE * sizeof(struct task_record)), 0);
	assert_true(n >= 2 * TASKS_AT_ONCE * sizeof(struct task_record));
	harness_free(h);
}

static void ksyms_have_addresses(void **state)
{
	struct harness *h = harness_new(NULL);
	_cleanup_free_ char *bytes = NULL;
	size_t n = harness_read(h->skel->progs.ksyms, &bytes), count = 0, modules = 0;
	uint64_t address = 0;

	for (size_t at = 0; at < n; count++) {
		const struct ksym_record *record = (const void *)(bytes + at);

		assert_true(n - at >= sizeof(*record) && record->record_bytes <= n - at);
		assert_int_equal(record->record_bytes % 8, 0);
		assert_int_equal(strlen(record->names) + 1, record->name_bytes);
		assert_int_equal(strlen(record->names + record->name_bytes) + 1,
				 record->module_bytes);
		modules += record->module_bytes > 1;
		if (!strcmp(record->names, "schedule") && record->module_bytes == 1)
			address = record->address;
		at += record->record_bytes;
	}
	print_message("%zu text symbols, %zu of modules, %zu bytes\n", count, modules, n);
	assert_true(count > 10000);
	assert_true(address >> 63);
	harness_free(h);
}

/* Whether `ksyms` has a symbol of module "bpf" at the address. */
static bool has_program(const char *bytes, size_t n, uint64_t address)
{
	for (size_t at = 0; at < n;) {
		const struct ksym_record *record = (const void *)(bytes + at);

		if (record->address == address &&
		    strcmp(record->names + record->name_bytes, "bpf") == 0)
			return true;
		at += record->record_bytes;
	}
	return false;
}

/* Each piece of code has an end, the time of its load, and its symbol: ours are there. */
static void bpf_code_has_ends(void **state)
{
	uint64_t before = clock_boot_ns();
	struct harness *h = harness_new(NULL);
	_cleanup_free_ char *symbols = NULL, *bytes = NULL;
	size_t n = harness_read(h->skel->progs.bpf_code, &bytes), own = 0, named = 0;
	size_t n_symbols = harness_read(h->skel->progs.ksyms, &symbols), count;
	const struct bpf_code_record *records = (const void *)bytes;

	assert_int_equal(n % sizeof(*records), 0);
	count = n / sizeof(*records);
	for (size_t i = 0; i < count; i++) {
		assert_true(records[i].end > records[i].start);
		assert_true(records[i].load_ns <= clock_boot_ns());
		if (records[i].load_ns < before)
			continue;
		own++;
		named += has_program(symbols, n_symbols, records[i].start);
	}
	print_message("%zu pieces of code, %zu ours, %zu of these with a symbol\n", count, own,
		      named);
	assert_true(own >= 2);
	assert_true(named >= 2); /* programs of others may come and go meanwhile */
	harness_free(h);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tasks_match_in_the_kernel),
		cmocka_unit_test(tasks_list_watched_cgroups),
		cmocka_unit_test(tasks_list_the_marked),
		cmocka_unit_test(reads_of_tasks_end),
		cmocka_unit_test(ksyms_have_addresses),
		cmocka_unit_test(bpf_code_has_ends),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
