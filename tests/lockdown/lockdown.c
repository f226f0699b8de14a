/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lock-down of one process (LOCKDOWN_PROCESS), tried for real. Each case is a child with its
 * hands tied as the process ties them. Every row of policy/syscalls.def must have a case that works
 * with the row and is killed without it; every forbidden thing must fail as it is written.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <linux/landlock.h>
#include <linux/membarrier.h>
#include <linux/nsfs.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "policy/syscalls.h"
#include "shared/tools/macro.h"
#include "tests/lockdown/calls.h"
#include "tests/lockdown/capable.h"
#include "tests/lockdown/world.h"

#define SKIPPED	    77
#define CHILD_S	    10	/* a case that hangs is a failure */
#define LOCK_FAILED 200 /* exit statuses of a child beside 0 and errno */

#define C (1u << POLICY_CONSUMER)
#define L (1u << POLICY_LOADER)
#define T (1u << POLICY_CTL)
#define B (1u << POLICY_BROKER)
#define R (1u << POLICY_RESOLVER)

typedef long (*lockdown_call)(struct world *w);

#define NEEDED(key, error, expression)                           \
	static long JOIN(needed_at_, __LINE__)(struct world * w) \
	{                                                        \
		return (expression);                             \
	}
#define FORBIDDEN(processes, name, error, expression)                  \
	static long JOIN(FORBIDDEN_PREFIX, __LINE__)(struct world * w) \
	{                                                              \
		return (expression);                                   \
	}
#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)
#include "tests/lockdown/needed.def"
#undef CALL
#define FORBIDDEN_PREFIX forbidden_at_
#include "tests/lockdown/forbidden.def"
#undef FORBIDDEN_PREFIX
#define FORBIDDEN_PREFIX landlocked_at_
#include "tests/lockdown/landlocked.def"
#undef FORBIDDEN_PREFIX
#undef NEEDED
#undef FORBIDDEN
#undef CALL

static const struct needed {
	const char *key;
	int error;
	lockdown_call call;
} needed[] = {
#define NEEDED(key, error, expression) { key, error, JOIN(needed_at_, __LINE__) },
#include "tests/lockdown/needed.def"
#undef NEEDED
#undef CALL
};

static const struct forbidden {
	uint32_t processes;
	bool by_landlock;
	const char *name;
	int error;
	lockdown_call call;
} forbidden[] = {
#define FORBIDDEN(processes, name, error, expression) \
	{ processes, false, name, error, JOIN(forbidden_at_, __LINE__) },
#include "tests/lockdown/forbidden.def"
#undef FORBIDDEN
#define FORBIDDEN(processes, name, error, expression) \
	{ processes, true, name, error, JOIN(landlocked_at_, __LINE__) },
#include "tests/lockdown/landlocked.def"
#undef FORBIDDEN
};

static unsigned int failures, cases;

static void verdict(bool fine, const char *what, const char *name, const char *why)
{
	cases++;
	if (fine)
		return;
	failures++;
	printf("not ok: %s: %s: %s\n", what, name, why);
}

/* The child: opens, locks, calls; its exit status is the errno, or 0. */
static void child(struct world *w, uint32_t flags, const char *without, lockdown_call call)
{
	int r;

	alarm(CHILD_S);
	r = world_open(w);
	if (r == 0)
		r = world_lock(w, LOCKDOWN_PROCESS, flags, without);
	if (r < 0) {
		fprintf(stderr, "lock-down: %s\n", strerror(-r));
		syscall(SYS_exit_group, LOCK_FAILED);
	}
	errno = 0;
	syscall(SYS_exit_group, call(w) < 0 ? errno : 0);
}

/* Runs a case; the wait status. */
static int run(struct world *w, uint32_t flags, const char *without, lockdown_call call)
{
	char path[160];
	int status = 0;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/other", w->dir);
	unlink(path);
	rmdir(path);
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		child(w, flags, without, call);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return -1;
	return status;
}

static bool is_exit(int status, int code)
{
	return WIFEXITED(status) && WEXITSTATUS(status) == code;
}

static bool is_killed(int status)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
}

static const char *describe(int status)
{
	static char text[96];

	if (WIFSIGNALED(status))
		snprintf(text, sizeof(text), "killed by %s", strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status) == LOCK_FAILED)
		snprintf(text, sizeof(text), "the lock-down itself failed");
	else
		snprintf(text, sizeof(text), "ended with %d (%s)", WEXITSTATUS(status),
			 strerror(WEXITSTATUS(status)));
	return text;
}

static const struct needed *find(const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (strcmp(needed[i].key, key) == 0)
			return &needed[i];
	return NULL;
}

/* With its row the thing works; without it the process is killed, whatever the row is. */
static void try_row(struct world *w, const struct syscalls_row *row)
{
	const struct needed *n = find(row->key);
	int status;

	if (!n) {
		verdict(false, "needed", row->key, "the row has no case in needed.def");
		return;
	}
	status = run(w, row->flag, NULL, n->call);
	verdict(is_exit(status, n->error), "needed", row->key, describe(status));
	status = run(w, row->flag, row->key, n->call);
	verdict(is_killed(status), "without its row", row->key, describe(status));
}

static void try_rows(struct world *w)
{
	const struct syscalls_row *rows;
	size_t n;

	rows = syscalls_rows(&n);
	for (size_t i = 0; i < n; i++) {
		if (rows[i].process != LOCKDOWN_PROCESS || rows[i].number < 0)
			continue;
		for (size_t j = 0; j < i; j++)
			if (rows[j].process == LOCKDOWN_PROCESS &&
			    strcmp(rows[j].key, rows[i].key) == 0)
				verdict(false, "row", rows[i].key, "it is there twice");
		try_row(w, &rows[i]);
	}
}

/* With the broker's rows or without them, forbidden calls stay so. */
static void try_forbidden(struct world *w, uint32_t flags, bool landlock)
{
	int status;

	for (size_t i = 0; i < ARRAY_SIZE(forbidden); i++) {
		const struct forbidden *f = &forbidden[i];

		if (!(f->processes & (1u << LOCKDOWN_PROCESS)))
			continue;
		/* to Unix sockets, by then */
		if (flags & POLICY_USES_BROKER && strcmp(f->name, "connect") == 0)
			continue;
		if (f->by_landlock && !landlock) {
			printf("skipped: %s: the kernel has no Landlock\n", f->name);
			continue;
		}
		status = run(w, flags, NULL, f->call);
		verdict(f->error ? is_exit(status, f->error) : is_killed(status), "forbidden",
			f->name, describe(status));
	}
}

/* ---- the state read back */

static long bare(struct world *w)
{
	struct policy_self self = { .landlock_abi = w->landlock_abi };
	const char *what = "the state cannot be read";
	int r;

	r = policy_self_read(&self);
	if (r == 0 && policy_self_is_bare(&self, &what))
		return 0;
	dprintf(STDERR_FILENO, "not bare: %s\n", what);
	errno = r < 0 ? -r : EPERM;
	return -1;
}

/* The one row of paths.def that sampling through the broker rests on. */
static long reads_cpus(struct world *w)
{
	return syscall(SYS_openat, AT_FDCWD, "/sys/devices/system/cpu/online", O_RDONLY);
}

/* The row that names of disks rest on: what one without a place of its own stands on. */
static long reads_disks(struct world *w)
{
	return syscall(SYS_openat, AT_FDCWD, "/sys/devices/virtual/block", O_RDONLY | O_DIRECTORY);
}

/* The mount points of disks are in the table of process 1, readable by every user. */
static long reads_mounts(struct world *w)
{
	return syscall(SYS_openat, AT_FDCWD, "/proc/1/mountinfo", O_RDONLY);
}

/* The row that perf maps rest on. */
static long reads_tmp(struct world *w)
{
	return syscall(SYS_openat, AT_FDCWD, "/tmp", O_RDONLY | O_DIRECTORY);
}

static bool makes_map(void)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1
	};

	return syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr)) >= 0;
}

static bool mounts(struct world *w)
{
	return syscall(SYS_fsopen, "bpf", FSOPEN_CLOEXEC) >= 0;
}

/* True when the process holds nothing beside `rows`, the bounding set included. */
static bool holds_only(uint64_t rows)
{
	struct policy_self self = { 0 };
	char status[8192];
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, status, sizeof(status) - 1);

	close(fd);
	if (n <= 0)
		return false;
	status[n] = '\0';
	return policy_self_parse(status, &self) == 0 && !(self.cap_prm & ~rows) &&
	       self.cap_eff == self.cap_prm && !(self.cap_bnd & ~rows) && self.cap_amb == 0;
}

/* Each stage holds its rows and no more, and at the end nothing works any longer. */
static long stages(struct world *w)
{
	for (int stage = STAGE_CHECK; stage <= STAGE_DONE; stage++) {
		uint64_t rows = policy_capabilities_rows(LOCKDOWN_PROCESS, stage);
		bool may = stage <= STAGE_PIN;

		errno = -policy_capabilities_keep(LOCKDOWN_PROCESS, stage);
		if (errno)
			return -1;
		errno = EDOM;
		if (!holds_only(rows) || mounts(w) != may || makes_map() != may)
			return -1;
	}
	return 0;
}

/* CAP_SYS_ADMIN stands for CAP_BPF too: where the mount is not ours to undo it goes early. */
static long without_mount(struct world *w)
{
	errno = -policy_capabilities_drop(CAP_SYS_ADMIN);
	if (errno)
		return -1;
	errno = EDOM;
	if (mounts(w) || !makes_map())
		return -1;
	errno = -policy_capabilities_keep(LOCKDOWN_PROCESS, STAGE_PIN);
	if (errno)
		return -1;
	errno = EDOM;
	return makes_map() ? -1 : 0;
}

/* The broker at its first connection: what it needed to get there is gone. */
static long serves(struct world *w)
{
	errno = -policy_capabilities_keep(LOCKDOWN_PROCESS, STAGE_SERVE);
	if (errno)
		return -1;
	errno = EDOM;
	return holds_only(policy_capabilities_rows(LOCKDOWN_PROCESS, STAGE_SERVE)) ? 0 : -1;
}

static void try_state(struct world *w)
{
	int status;

	if (LOCKDOWN_PROCESS == POLICY_CONSUMER) {
		status = run(w, 0, NULL, bare);
		verdict(is_exit(status, 0), "state", "nothing is left", describe(status));
		status = run(w, 0, NULL, reads_cpus);
		verdict(is_exit(status, 0), "state", "the list of CPUs is readable",
			describe(status));
		status = run(w, 0, NULL, reads_tmp);
		verdict(is_exit(status, 0), "state", "the folder of perf maps is readable",
			describe(status));
		status = run(w, 0, NULL, reads_disks);
		verdict(is_exit(status, 0), "state", "what disks stand on is readable",
			describe(status));
		status = run(w, 0, NULL, reads_mounts);
		verdict(is_exit(status, 0), "state", "the mount table of process 1 is readable",
			describe(status));
	} else if (LOCKDOWN_PROCESS == POLICY_LOADER) {
		status = run(w, 0, NULL, stages);
		verdict(is_exit(status, 0), "state", "capabilities go stage by stage",
			describe(status));
		status = run(w, 0, NULL, without_mount);
		verdict(is_exit(status, 0), "state",
			"without the mount nothing can be loaded later", describe(status));
	} else if (LOCKDOWN_PROCESS == POLICY_BROKER) {
		status = run(w, 0, NULL, serves);
		verdict(is_exit(status, 0), "state", "it serves with its rows alone",
			describe(status));
		capable_try(verdict);
	}
}

static bool has_landlock(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) > 0;
}

int main(void)
{
	struct world w = { 0 };
	int r;

	if (geteuid() != 0) {
		printf("skipped: it takes root to give root up\n");
		return SKIPPED;
	}
	r = world_make(&w);
	if (r < 0) {
		printf("not ok: cannot make the world: %s\n", strerror(-r));
		return 1;
	}
	try_state(&w);
	try_rows(&w);
	try_forbidden(&w, 0, has_landlock());
	if (LOCKDOWN_PROCESS == POLICY_CONSUMER)
		try_forbidden(&w, POLICY_USES_BROKER, has_landlock());
	if (LOCKDOWN_PROCESS == POLICY_CTL)
		try_forbidden(&w, POLICY_OPENS_FILES, has_landlock());
	world_remove(&w);
	printf("%u cases, %u failed\n", cases, failures);
	return failures ? 1 : 0;
}
