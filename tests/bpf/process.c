/* SPDX-License-Identifier: BSD-2-Clause */
/* process.c: the harness's processes, cgroups, ticks and iterators. */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "harness.h"
#include "shared/tools/cleanup.h"

#define READY_FD     200
#define READ_CHUNK   65536
#define CHURN_BYTES  (64u << 20)
#define CHILDREN_MAX 64

uint64_t harness_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* What a thread of process 1 has run, in ns. */
static uint64_t ran_ns(const char *tid)
{
	_cleanup_fclose_ FILE *file = NULL;
	unsigned long long ns = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/1/task/%.16s/schedstat", tid);
	file = fopen(path, "re");
	return file && fscanf(file, "%llu", &ns) == 1 ? ns : 0; /* NOLINT(cert-err34-c) */
}

uint64_t harness_process_1_ns(void)
{
	_cleanup_closedir_ DIR *tasks = opendir("/proc/1/task");
	const struct dirent *entry;
	uint64_t sum_ns = 0;

	while (tasks && (entry = readdir(tasks)))
		sum_ns += entry->d_name[0] == '.' ? 0 : ran_ns(entry->d_name);
	return sum_ns;
}

void harness_sleep_ms(unsigned int ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

static int tick_open(int cpu, uint32_t hz)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.freq = 1,
					.sample_freq = hz };

	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

void harness_tick(struct harness *h, uint32_t hz)
{
	int cpus = libbpf_num_possible_cpus(), online = 0;

	h->control->heartbeat_ns = harness_now_ns();
	h->control->stale_ns = 60000000000u;
	for (int i = 0; i < cpus && i < HARNESS_CPUS; i++) {
		int fd = tick_open(i, hz);

		if (fd < 0) /* a possible CPU that is not online */
			continue;
		h->ticks[i] = bpf_program__attach_perf_event(h->skel->progs.sampler, fd);
		assert_non_null(h->ticks[i]);
		online++;
	}
	assert_true(online > 0);
}

uint64_t harness_group_id(const char *dir)
{
	struct stat st;

	assert_int_equal(stat(dir, &st), 0);
	return st.st_ino;
}

uint64_t harness_group(struct harness *h, const char *name, char *ret_dir)
{
	snprintf(ret_dir, 4096, "%.3000s/%.1000s", h->group, name);
	assert_int_equal(mkdir(ret_dir, 0755), 0);
	return harness_group_id(ret_dir);
}

static int join(const char *dir)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[4200];

	snprintf(path, sizeof(path), "%.4000s/cgroup.procs", dir);
	f = fopen(path, "we");
	if (!f)
		return -errno;
	return fprintf(f, "0\n") < 0 || fflush(f) ? -EIO : 0;
}

static _Noreturn void become(const char *name, const char *mode, const char *dir, int ready)
{
	char self[4096], link[256];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0 || (dir && join(dir) < 0) || dup2(ready, READY_FD) < 0)
		_exit(90);
	self[n] = 0;
	/* The kernel names a process after the last part of the path: a symbolic link will do. */
	snprintf(link, sizeof(link), "/tmp/trocar-test-%d", getpid());
	/* One that was killed under this pid may have left its own. */
	if (mkdir(link, 0700) < 0 && errno != EEXIST)
		_exit(91);
	snprintf(link, sizeof(link), "/tmp/trocar-test-%d/%.100s", getpid(), name);
	unlink(link);
	if (symlink(self, link) < 0)
		_exit(92);
	execl(link, name, "--child", mode, (char *)NULL);
	_exit(93);
}

/* Children that no test has ended yet; 0 is a free place. */
static pid_t children[CHILDREN_MAX];

static void remember(pid_t pid)
{
	for (size_t i = 0; i < CHILDREN_MAX; i++) {
		if (children[i])
			continue;
		children[i] = pid;
		return;
	}
	fail_msg("more than %d children", CHILDREN_MAX);
}

pid_t harness_spawn(const char *name, const char *mode, const char *dir)
{
	int ends[2];
	char byte, link[256];
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		become(name, mode, dir, ends[1]);
	close(ends[1]);
	remember(pid);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	close(ends[0]);
	snprintf(link, sizeof(link), "/tmp/trocar-test-%d/%.100s", pid, name);
	unlink(link);
	snprintf(link, sizeof(link), "/tmp/trocar-test-%d", pid);
	rmdir(link);
	return pid;
}

pid_t harness_start(void (*call)(void *context), void *context, const char *dir)
{
	pid_t parent = getpid(), pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(97);
		if (join(dir) == 0)
			call(context);
		_exit(97);
	}
	remember(pid);
	return pid;
}

void harness_kill(pid_t pid)
{
	for (size_t i = 0; i < CHILDREN_MAX; i++)
		if (children[i] == pid)
			children[i] = 0;
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

void harness_kill_all(void)
{
	for (size_t i = 0; i < CHILDREN_MAX; i++)
		if (children[i])
			harness_kill(children[i]);
}

pid_t harness_fork(int (*call)(void *context), void *context)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(call(context) ? 1 : 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	return pid;
}

struct bpf_link *harness_iterator(struct bpf_program *program)
{
	return bpf_program__attach_iter(program, NULL);
}

/*
 * With a second link: an iterator over links that meets one alone takes another one, which a test
 * beside makes between two calls of read(2), for the first again (bpf/discovery/iter.bpf.c).
 */
size_t harness_read(struct bpf_program *program, char **ret_bytes)
{
	struct bpf_link *link = harness_iterator(program), *second = harness_iterator(program);
	_cleanup_close_ int fd = -1;
	size_t used = 0, space = 0;
	char *bytes = NULL;
	ssize_t n;

	assert_true(link && second);
	fd = bpf_iter_create(bpf_link__fd(link));
	assert_true(fd >= 0);
	do {
		if (space - used < READ_CHUNK) {
			space = space ? space * 2 : 4 * READ_CHUNK;
			bytes = realloc(bytes, space);
			assert_non_null(bytes);
		}
		n = read(fd, bytes + used, READ_CHUNK);
		assert_true(n >= 0);
		used += (size_t)n;
	} while (n > 0);
	bpf_link__destroy(link);
	bpf_link__destroy(second);
	*ret_bytes = bytes;
	return used;
}

/* Walks the tasks iterator with a rule that matches everything. */
uint64_t harness_start_ns(const struct harness *h, pid_t pid)
{
	struct comm_key all = { .prefix_bits = 0 };
	struct rule_value value = { .rule = 9999 };
	int trie = bpf_map__fd(h->skel->maps.rules_b);
	_cleanup_free_ char *bytes = NULL;
	uint32_t scan = h->control->scan_trie;
	uint64_t start_ns = 0;
	size_t n;

	assert_int_equal(bpf_map_update_elem(trie, &all, &value, BPF_ANY), 0);
	h->control->scan_trie = 1;
	n = harness_read(h->skel->progs.tasks, &bytes);
	h->control->scan_trie = scan;
	assert_int_equal(bpf_map_delete_elem(trie, &all), 0);
	for (size_t at = 0; at + sizeof(struct task_record) <= n;
	     at += sizeof(struct task_record)) {
		struct task_record record;

		memcpy(&record, bytes + at, sizeof(record));
		if (record.tgid == (uint32_t)pid)
			start_ns = record.start_ns;
	}
	assert_true(start_ns > 0);
	return start_ns;
}

bool harness_target(const struct harness *h, pid_t pid, struct target *ret_target)
{
	struct process_key key = { .tgid = (uint32_t)pid, .start_ns = harness_start_ns(h, pid) };

	return !bpf_map_lookup_elem(bpf_map__fd(h->skel->maps.targets), &key, ret_target);
}

void harness_target_set(const struct harness *h, pid_t pid, uint32_t flags)
{
	struct process_key key = { .tgid = (uint32_t)pid, .start_ns = harness_start_ns(h, pid) };
	struct target target = { .flags = flags, .rule = NO_SLOT };
	int fd = bpf_map__fd(h->skel->maps.targets);

	assert_int_equal(bpf_map_update_elem(fd, &key, &target, BPF_ANY), 0);
}

/* Work that no compiler leaves out and that calls nothing. */
__attribute__((noinline)) void harness_burn(void)
{
	volatile unsigned int x = 1;

	for (unsigned int i = 0; i < 50000000u; i++)
		x = x * 1664525u + 1013904223u;
}

/* mprotect(2) of populated memory holds the mmap_lock for as long as it walks the page tables. */
static void churn(void)
{
	static void *p;

	if (!p) {
		p = mmap(NULL, CHURN_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0);
		if (p == MAP_FAILED)
			_exit(95);
		madvise(p, CHURN_BYTES, MADV_NOHUGEPAGE);
		memset(p, 1, CHURN_BYTES);
	}
	mprotect(p, CHURN_BYTES, PROT_READ);
	mprotect(p, CHURN_BYTES, PROT_READ | PROT_WRITE);
}

/* Holds the lock of its mappings for a moment, then lets it go for a while. */
static void remap(void)
{
	void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(p, 4096);
	for (volatile int i = 0; i < 20000; i++)
		;
}

static void nothing(int signal)
{
}

static void wait_for_signal(void)
{
	pause();
}

static void burn_again(void)
{
	if (pause() < 0)
		execl("/proc/self/exe", "t-again", "--child", "again", (char *)NULL);
}

/* One image after the other, each with much memory to give back. */
static void next_image(void)
{
	churn();
	execl("/proc/self/exe", "t-become", "--child", "become", (char *)NULL);
}

/* What a child does over and over; "exec" becomes "again". */
static const struct {
	const char *mode;
	void (*work)(void);
} works[] = { { "burn", harness_burn },	   { "again", harness_burn }, { "churn", churn },
	      { "remap", remap },	   { "become", next_image },  { "exec", burn_again },
	      { "sleep", wait_for_signal } };

/* Who burns calls nothing else from here on: a tick in libc is another stack, and a rare one. */
static _Noreturn void child(const char *mode)
{
	void (*work)(void) = NULL;

	for (size_t i = 0; i < sizeof(works) / sizeof(*works); i++)
		if (!strcmp(mode, works[i].mode))
			work = works[i].work;
	if (!work)
		_exit(96);
	if (work == churn)
		churn();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGUSR1, nothing);
	/* A later image has none: it was ready before. */
	if (fcntl(READY_FD, F_GETFD) >= 0 && write(READY_FD, "r", 1) != 1)
		_exit(94);
	close(READY_FD);
	for (;;)
		work();
}

void harness_main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "--child"))
		child(argv[2]);
	if (geteuid()) {
		puts("skipped: loading BPF programs needs root");
		exit(HARNESS_SKIP);
	}
	if (access("/sys/kernel/btf/vmlinux", R_OK)) {
		puts("skipped: this kernel has no BTF");
		exit(HARNESS_SKIP);
	}
}
