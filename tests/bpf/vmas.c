/* SPDX-License-Identifier: BSD-2-Clause */
/* vmas.c: the mappings that the iterators list, against /proc of the same processes. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "harness.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"
#include "vmas_fixture.h"

HARNESS_LOADS("vmas_*", "ranges*");

static void agrees_with_proc(bool tree)
{
	struct harness_options options = { .vmas_tree = tree };
	struct harness *h = harness_new(&options);
	pid_t pid = harness_spawn("t-maps", "sleep", NULL);
	struct list *list = mappings(h, pid);
	size_t exe = 0, vdso = 0;

	/* Neither matched nor watched: not a word. */
	assert_int_equal(list->count, 0);
	free(list);
	harness_target_set(h, pid, 0);
	list = mappings(h, pid);
	assert_true(compare(list, pid) > 2);
	for (size_t i = 0; i < list->count; i++) {
		assert_int_equal(list->items[i].record.tgid, pid);
		assert_int_equal(list->items[i].record.start_ns, harness_start_ns(h, pid));
		exe += !!(list->items[i].record.flags & MAPPING_IS_EXE);
		vdso += !!(list->items[i].record.flags & MAPPING_VDSO);
	}
	assert_true(exe > 0);
	assert_int_equal(vdso, 1);
	free(list);
	harness_kill(pid);
	harness_free(h);
}

static void vmas_open_agrees_with_proc(void **state)
{
	agrees_with_proc(false);
}

static void vmas_tree_agrees_with_proc(void **state)
{
	agrees_with_proc(true);
}

/* Its mappings are those of the threads that are left, each listed once. */
static void vmas_without_a_leader(void **state)
{
	for (int tree = 0; tree < 2; tree++) {
		struct harness_options options = { .vmas_tree = tree };
		struct harness *h = harness_new(&options);
		pid_t pid = harness_start(end_first_thread, NULL, h->group), tid = 0;
		struct list *list;

		for (int i = 0; i < 1000 && !tid; i++) {
			harness_sleep_ms(10);
			tid = thread_left(pid);
		}
		assert_true(tid > 0);
		harness_target_set(h, pid, 0);
		list = mappings(h, pid);
		assert_true(compare(list, tid) > 2);
		for (size_t i = 0; i < list->count; i++) {
			assert_int_equal(list->items[i].record.tgid, pid);
			assert_int_equal(list->items[i].record.start_ns, harness_start_ns(h, pid));
		}
		free(list);
		list = mappings(h, pid);
		assert_true(compare(list, tid) > 2);
		free(list);
		harness_kill(pid);
		harness_free(h);
	}
}

/* Maps a new file in the current folder. */
static void map_file(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0755);

	if (ftruncate(fd, 4096) ||
	    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		_exit(1);
	close(fd);
}

/* Maps files below mounts on mounts, without a name, and at the end of long paths. */
static void map_paths(void *context)
{
	char name[255 + 1];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/tmp", "tmpfs", 0, NULL) || chdir("/tmp") || mkdir("from", 0755) ||
	    mkdir("from/deep", 0755) || mkdir("to", 0755) ||
	    mount("from", "to", NULL, MS_BIND, NULL) || mount("none", "to/deep", "tmpfs", 0, NULL))
		_exit(1);
	map_file("to/bound");
	map_file("to/deep/mounted");
	map_file("from/removed");
	if (unlink("from/removed"))
		_exit(1);
	for (int i = 0; i < 5; i++) {
		map_file("short");
		map_file("removed");
		if (unlink("removed") || mkdir(name, 0755) || chdir(name))
			_exit(1);
		/* At the third name: 1,018 to 1,027 bytes. */
		for (size_t n = 1; n < 11; n++)
			map_file(&name[n]);
	}
	if (chroot("."))
		_exit(1);
	map_file("/in_chroot");
	sleep_for_ever(NULL);
}

/* A path is that of /proc, whatever it crosses; one that is too long is marked. */
static void vmas_paths_agree_with_proc(void **state)
{
	for (int tree = 0; tree < 2; tree++) {
		struct harness_options options = { .vmas_tree = tree };
		struct harness *h = harness_new(&options);
		pid_t pid = harness_start(map_paths, NULL, h->group);
		struct list *list;
		size_t cut = 0, removed = 0;

		harness_sleep_ms(500);
		harness_target_set(h, pid, 0);
		list = mappings(h, pid);
		assert_true(compare(list, pid) > 20);
		for (size_t i = 0; i < list->count; i++) {
			cut += !!(list->items[i].record.flags & MAPPING_PATH_CUT);
			removed += !!strstr(list->items[i].path, "/removed (deleted)");
		}
		assert_true(cut > 0);
		assert_true(removed > 3);
		free(list);
		harness_kill(pid);
		harness_free(h);
	}
}

static bool has_programs_by_pid(void)
{
	struct harness *h = harness_new(NULL);
	bool open_coded = h->open_coded;

	harness_free(h);
	if (!open_coded)
		print_message("no open-coded iterator: this kernel walks over all tasks\n");
	return open_coded;
}

static void vmas_pid_agrees_with_proc(void **state)
{
	struct harness *h;
	pid_t pid;
	struct list *list;

	if (!has_programs_by_pid())
		skip();
	h = harness_new(NULL);
	h->vmas = h->skel->progs.vmas_pid;
	pid = harness_spawn("t-maps", "sleep", NULL);
	list = mappings(h, pid);
	/* Neither matched nor watched: not a word. */
	assert_int_equal(list->count, 0);
	free(list);
	harness_target_set(h, pid, 0);
	list = mappings(h, pid);
	assert_true(compare(list, pid) > 2);
	free(list);
	harness_kill(pid);
	/* Gone, and one that never was: nothing, and no error. */
	list = mappings(h, pid);
	assert_int_equal(list->count, 0);
	free(list);
	list = mappings(h, 0);
	assert_int_equal(list->count, 0);
	free(list);
	harness_free(h);
}

/* How often the program ran while it was read once. */
static uint64_t count_runs(struct bpf_program *program)
{
	_cleanup_close_ int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	struct bpf_prog_info before = { 0 }, after = { 0 };
	uint32_t bytes = sizeof(before);
	_cleanup_free_ char *read = NULL;
	int fd = bpf_program__fd(program);

	assert_true(stats >= 0);
	assert_int_equal(bpf_obj_get_info_by_fd(fd, &before, &bytes), 0);
	harness_read(program, &read);
	bytes = sizeof(after);
	assert_int_equal(bpf_obj_get_info_by_fd(fd, &after, &bytes), 0);
	return after.run_cnt - before.run_cnt;
}

/* A host of many tasks makes the reading of one process no dearer. */
static void programs_by_pid_visit_no_other_task(void **state)
{
	struct harness *h;
	pid_t pids[50];
	uint64_t alone;

	if (!has_programs_by_pid())
		skip();
	h = harness_new(NULL);
	alone = count_runs(h->skel->progs.vmas_pid);
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
		pids[i] = harness_spawn("t-crowd", "sleep", NULL);
	harness_target_set(h, pids[0], 0);
	h->control->vma_tgid = (uint32_t)pids[0];
	/* Links of the machine and the end, which others may add to meanwhile. */
	assert_in_range(count_runs(h->skel->progs.vmas_pid), 1, alone + ARRAY_SIZE(pids) / 2);
	assert_in_range(count_runs(h->skel->progs.ranges_pid), 1, alone + ARRAY_SIZE(pids) / 2);
	assert_true(count_runs(h->skel->progs.vmas_open) >= ARRAY_SIZE(pids));
	harness_free(h);
}

static void vmas_of_watched_cgroups_only(void **state)
{
	struct harness *h = harness_new(NULL);
	char dir[4096];
	uint64_t id = harness_group(h, "watched", dir);
	pid_t in = harness_spawn("t-in", "sleep", dir);
	pid_t out = harness_spawn("t-out", "sleep", NULL);
	struct list *list;

	harness_watch(h, id, 0, SLOT_IDLE, 0);
	list = mappings(h, 0);
	assert_true(list->count > 0);
	for (size_t i = 0; i < list->count; i++)
		assert_int_equal(list->items[i].record.tgid, in);
	free(list);
	list = mappings(h, out);
	assert_int_equal(list->count, 0);
	free(list);
	harness_kill(in);
	harness_kill(out);
	harness_free(h);
}

/* Returns the record of the mapping at `start`. */
static const struct seen *seen_at(const struct list *list, const void *start)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].record.start == (uintptr_t)start)
			return &list->items[i];
	fail_msg("no mapping at %p", start);
	return NULL;
}

/* Memory that the kernel keeps as a file is memory: code in it was made at run time. */
static void memory_is_no_file(bool tree)
{
	const int code = PROT_READ | PROT_WRITE | PROT_EXEC;
	struct harness_options options = { .vmas_tree = tree };
	struct harness *h = harness_new(&options);
	_cleanup_close_ int zero = open("/dev/zero", O_RDWR | O_CLOEXEC);
	_cleanup_close_ int memory = memfd_create("doublemapper", MFD_CLOEXEC);
	int segment = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0700);
	void *at[] = {
		mmap(NULL, 4096, code, MAP_SHARED | MAP_ANONYMOUS, -1, 0),
		mmap(NULL, 4096, code, MAP_PRIVATE, zero, 0),
		mmap(NULL, 4096, code, MAP_SHARED, memory, 0),
		shmat(segment, NULL, SHM_EXEC),
		/* A program or a library in a memory file is a file. */
		mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, memory, 0),
	};
	const size_t count = sizeof(at) / sizeof(*at), file = count - 1;
	struct list *list;

	assert_int_equal(shmctl(segment, IPC_RMID, NULL), 0);
	assert_int_equal(ftruncate(memory, 4096), 0);
	harness_target_set(h, getpid(), 0);
	for (size_t i = 0; i < count; i++)
		assert_ptr_not_equal(at[i], MAP_FAILED);
	list = mappings(h, getpid());
	for (size_t i = 0; i < count; i++) {
		const struct seen *seen = seen_at(list, at[i]);

		assert_int_equal(!!(seen->record.flags & MAPPING_ANON), i != file);
		assert_int_equal(seen->record.inode != 0, i == file);
		assert_int_equal(seen->record.path_bytes != 0, i == file);
	}
	assert_string_equal(seen_at(list, at[file])->path, "/memfd:doublemapper (deleted)");
	free(list);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(munmap(at[i], 4096), 0);
	harness_free(h);
}

static void vmas_tell_memory_from_files(void **state)
{
	memory_is_no_file(false);
	memory_is_no_file(true);
}

static void many_mappings_come_in_parts(void **state)
{
	map_many(MANY);
	for (int tree = 0; tree < 2; tree++) {
		struct harness_options options = { .vmas_tree = tree };
		struct harness *h = harness_new(&options);
		struct list *list;

		harness_target_set(h, getpid(), 0);
		list = mappings(h, getpid());
		assert_true(list->count > MANY);
		assert_true(list->more > 0);
		assert_true(compare(list, getpid()) > MANY);
		free(list);
		harness_free(h);
	}
}

/* A process with mappings that change all the time is "try again" or complete, never less. */
static void contended(bool tree)
{
	struct harness_options options = { .vmas_tree = tree };
	struct harness *h = harness_new(&options);
	struct bpf_link *link = bpf_program__attach_iter(h->vmas, NULL);
	/* The body for old kernels tries the lock for each mapping: where another hardly ever lets
	 * go of it, it never gets through. */
	pid_t pid = harness_spawn("t-churn", tree ? "remap" : "churn", NULL);
	size_t again = 0, good = 0;
	ssize_t all = 0;

	assert_non_null(link);
	harness_target_set(h, pid, 0);
	h->control->vma_tgid = (uint32_t)pid;
	for (int i = 0; i < 2000; i++) {
		_cleanup_close_ int fd = bpf_iter_create(bpf_link__fd(link));
		static char bytes[65536];
		ssize_t n = read(fd, bytes, sizeof(bytes));

		assert_true(n > 0 || (n < 0 && errno == EAGAIN));
		again += n < 0;
		if (n < 0)
			continue;
		if (!good++)
			all = n;
		assert_int_equal(n, all);
	}
	print_message("%zu reads answered, %zu to try again\n", good, again);
	assert_true(good > 0);
	bpf_link__destroy(link);
	harness_kill(pid);
	harness_free(h);
}

static void contended_is_never_less(void **state)
{
	contended(false);
	contended(true);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vmas_open_agrees_with_proc),
		cmocka_unit_test(vmas_tree_agrees_with_proc),
		cmocka_unit_test(vmas_without_a_leader),
		cmocka_unit_test(vmas_paths_agree_with_proc),
		cmocka_unit_test(vmas_pid_agrees_with_proc),
		cmocka_unit_test(programs_by_pid_visit_no_other_task),
		cmocka_unit_test(vmas_of_watched_cgroups_only),
		cmocka_unit_test(vmas_tell_memory_from_files),
		cmocka_unit_test(many_mappings_come_in_parts),
		cmocka_unit_test(contended_is_never_less),
	};

	harness_main(argc, argv);
	harness_load_mappings();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
