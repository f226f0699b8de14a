/* SPDX-License-Identifier: BSD-2-Clause */
/* vmas.c: the mappings that the iterators list, against what /proc says of the same processes. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "harness.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define MAPPINGS_SEEN 2048
#define MANY	      450

struct seen {
	char path[MAPPING_PATH_BYTES];
	struct mapping_record record; /* last: its path[] is not used */
};

struct list {
	struct seen items[MAPPINGS_SEEN];
	size_t count, more;
};

/* Takes the records of one read; returns where to go on, 0 when that was all. */
static uint64_t take(struct list *list, const char *bytes, size_t n)
{
	uint64_t from = 0;

	for (size_t at = 0; at < n;) {
		struct seen *seen = &list->items[list->count];

		assert_true(list->count < MAPPINGS_SEEN && n - at >= sizeof(seen->record));
		memcpy(&seen->record, bytes + at, sizeof(seen->record));
		at += sizeof(seen->record);
		assert_true(seen->record.path_bytes <= MAPPING_PATH_BYTES &&
			    seen->record.path_bytes <= n - at);
		assert_int_equal(seen->record.path_bytes % 8, 0);
		memcpy(seen->path, bytes + at, seen->record.path_bytes);
		at += seen->record.path_bytes;
		if (seen->record.flags & MAPPING_MORE) {
			from = seen->record.end;
			list->more++;
		} else {
			list->count++;
		}
	}
	return from;
}

/* All executable mappings of `pid`, in as many reads as it takes. */
static struct list *mappings(struct harness *h, pid_t pid)
{
	struct list *list = calloc(1, sizeof(*list));
	uint64_t from = 0;

	assert_non_null(list);
	h->control->vma_tgid = (uint32_t)pid;
	do {
		_cleanup_free_ char *bytes = NULL;
		size_t n;

		h->control->vma_from = from;
		n = harness_read(h->vmas, &bytes);
		from = take(list, bytes, n);
	} while (from);
	h->control->vma_from = 0;
	return list;
}

/* Compares with /proc/PID/maps, line by line; returns how many have a file. */
static size_t compare(const struct list *list, pid_t pid)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64], line[4096], perms[8], file[2048];
	uint64_t start, end, offset, inode;
	unsigned int major_, minor_;
	size_t at = 0, files = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		const struct seen *seen = &list->items[at];

		file[0] = 0;
		/* NOLINTNEXTLINE(cert-err34-c): the kernel's own text */
		assert_true(sscanf(line,
				   "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64
				   " %2047[^\n]",
				   &start, &end, perms, &offset, &major_, &minor_, &inode,
				   file) >= 7);
		if (perms[2] != 'x' || !strcmp(file, "[vsyscall]"))
			continue;
		assert_true(at++ < list->count);
		assert_int_equal(seen->record.start, start);
		assert_int_equal(seen->record.end, end);
		assert_int_equal(seen->record.inode, inode);
		assert_int_equal(seen->record.device, major_ << 20 | minor_);
		assert_int_equal(!!(seen->record.flags & MAPPING_VDSO), !strcmp(file, "[vdso]"));
		assert_int_equal(!!(seen->record.flags & MAPPING_ANON),
				 !inode && strcmp(file, "[vdso]") != 0);
		if (!inode)
			continue;
		assert_int_equal(seen->record.file_offset, offset);
		assert_string_equal(seen->path, file);
		files++;
	}
	assert_int_equal(at, list->count);
	return files;
}

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

static void *sleep_for_ever(void *context)
{
	for (;;)
		pause();
	return NULL;
}

/* The process lives on in two threads; the first one has ended and has no memory. */
static void end_first_thread(void *context)
{
	pthread_t thread;

	for (int i = 0; i < 2; i++)
		if (pthread_create(&thread, NULL, sleep_for_ever, NULL))
			return;
	syscall(SYS_exit, 0);
}

/* A thread that is left of a process whose first one has ended; 0: it has not ended yet. */
static pid_t thread_left(pid_t pid)
{
	char path[64], line[256];
	_cleanup_closedir_ DIR *tasks = NULL;
	_cleanup_fclose_ FILE *f = NULL;
	struct dirent *entry;
	pid_t tid = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	if (f && fgets(line, sizeof(line), f))
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	assert_non_null(tasks);
	while ((entry = readdir(tasks))) {
		pid_t other = (pid_t)strtol(entry->d_name, NULL, 10);

		if (other > 0 && other != pid)
			tid = other;
	}
	return tid;
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
 * One walk of the body for old kernels lists all who are asked for, each wholly, and nobody else;
 * also one whose main thread has ended, once. To be asked for does not make a process known.
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

	if (!has_programs_by_pid())
		skip();
	h = harness_new(NULL);
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
		pids[i] = harness_spawn("t-crowd", "sleep", NULL);
	harness_target_set(h, pids[0], 0);
	h->control->vma_tgid = (uint32_t)pids[0];
	/* The one element, and the end. */
	assert_in_range(count_runs(h->skel->progs.vmas_pid), 1, 4);
	assert_in_range(count_runs(h->skel->progs.ranges_pid), 1, 4);
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

/* Executable mappings that cannot merge: each begins at the file's first page; and one without a
 * file. */
static void map_many(int n)
{
	_cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	for (int i = 0; i < n; i++)
		assert_ptr_not_equal(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0),
				     MAP_FAILED);
	assert_ptr_not_equal(mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
			     MAP_FAILED);
}

/* Returns what is said of the mapping at `start`. */
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

/* A process whose mappings change all the time is "try again" or all it has, never less. */
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

/*
 * A process whose lock is hardly ever free holds up nobody who is asked for with it: after some
 * tries it is passed over.
 */
static void contended_holds_up_nobody(void **state)
{
	struct harness_options options = { .vmas_tree = true };
	struct harness *h = harness_new(&options);
	struct bpf_link *link = bpf_program__attach_iter(h->vmas, NULL);
	pid_t busy = harness_spawn("t-churn", "churn", NULL);
	pid_t calm = harness_spawn("t-calm", "sleep", NULL);
	size_t passed_over = 0;

	assert_non_null(link);
	harness_target_set(h, busy, 0);
	harness_target_set(h, calm, 0);
	h->control->vma_tgid = 0;
	for (int i = 0; i < 200; i++) {
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
	print_message("passed over in %zu of 200 walks\n", passed_over);
	assert_true(passed_over > 0);
	bpf_link__destroy(link);
	harness_kill(busy);
	harness_kill(calm);
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
		cmocka_unit_test(one_walk_lists_all_who_are_asked),
		cmocka_unit_test(vmas_pid_agrees_with_proc),
		cmocka_unit_test(programs_by_pid_visit_no_other_task),
		cmocka_unit_test(vmas_of_watched_cgroups_only),
		cmocka_unit_test(vmas_tell_memory_from_files),
		cmocka_unit_test(many_mappings_come_in_parts),
		cmocka_unit_test(parts_of_one_walk),
		cmocka_unit_test(contended_is_never_less),
		cmocka_unit_test(contended_holds_up_nobody),
	};

	harness_main(argc, argv);
	harness_load_mappings();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
