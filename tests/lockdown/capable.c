/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/lockdown/capable.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "policy/policy.h"
#include "shared/files/cgroupfs.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"
#include "shared/tools/macro.h"
#include "tests/lockdown/calls.h"

#define KERNFS_HANDLE 0xfe
#define LOCK_FAILED   200
#define MAPS_BYTES    (1u << 20)

/*
 * A process of the user nobody that serves as a target: a fork of this one, so its mappings are
 * ours.
 */
static pid_t stranger;
static char mapping[96];

static struct {
	int mount_fd;
	uint64_t id;
} cgroup = { .mount_fd = -1 };

static long capable_cgroup(void)
{
	union {
		struct file_handle handle;
		uint8_t room[sizeof(struct file_handle) + sizeof(cgroup.id)];
	} h = { .handle = { .handle_bytes = sizeof(cgroup.id), .handle_type = KERNFS_HANDLE } };

	memcpy(h.room + offsetof(struct file_handle, f_handle), &cgroup.id, sizeof(cgroup.id));
	return open_by_handle_at(cgroup.mount_fd, &h.handle, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static long capable_mapping(void)
{
	return open(mapping, O_PATH | O_CLOEXEC);
}

/* A window below 2 s; the opener counts. */
static long capable_window(void)
{
	static const char trigger[] = "some 50000 500000";
	_cleanup_close_ int fd = open("/proc/pressure/cpu", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	return write(fd, trigger, sizeof(trigger));
}

static const struct capable {
	int capability;
	int error;
	const char *name;
} capables[] = {
#define CAPABLE(capability, error, expression) { capability, error, #capability },
#include "tests/lockdown/capable.def"
#undef CAPABLE
};

static long call(int capability)
{
	switch (capability) {
#define CAPABLE(capability, error, expression) \
	case capability:                       \
		return expression;
#include "tests/lockdown/capable.def"
#undef CAPABLE
	}
	return -1;
}

/* Hands tied as the broker's are, `drop` (-1: none) and perhaps CAP_SYS_ADMIN dropped beside. */
static int lock(int drop, bool admin)
{
	int r;

	r = policy_harden();
	if (r == 0)
		r = policy_capabilities_keep(POLICY_BROKER, STAGE_CHECK);
	if (r == 0 && !admin)
		r = policy_capabilities_drop(CAP_SYS_ADMIN);
	if (r == 0 && drop >= 0)
		r = policy_capabilities_drop(drop);
	return r < 0 ? r : policy_seccomp(POLICY_BROKER);
}

/* The errno of the call in a child that is tied so; 0 when it worked. */
static int try_call(const struct capable *c, int drop, bool admin)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		if (lock(drop, admin) < 0)
			_exit(LOCK_FAILED);
		errno = 0;
		_exit(call(c->capability) < 0 ? errno : 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
		return LOCK_FAILED;
	return WEXITSTATUS(status);
}

/* Is it in our hands at all? Containers and some hosts do not give root everything. */
static bool is_held(int capability)
{
	struct policy_self self = { 0 };

	return policy_self_read(&self) == 0 && (self.cap_prm & 1ULL << capability);
}

static void try_row(const struct capable *c,
		    void (*verdict)(bool fine, const char *what, const char *name, const char *why))
{
	bool admin = c->capability == CAP_SYS_ADMIN;
	int with, without;

	if (!is_held(c->capability)) {
		printf("skipped: %s: this root does not hold it\n", c->name);
		return;
	}
	with = try_call(c, -1, admin);
	without = try_call(c, c->capability, false);
	verdict(with == 0, "with the capability", c->name, strerror(with));
	if (admin && without == 0)
		printf("skipped: %s: CAP_PERFMON is enough for perf_event_open(2) here\n", c->name);
	else
		verdict(without == c->error, "without the capability", c->name, strerror(without));
}

static int make_stranger(void)
{
	_cleanup_free_ char *maps = NULL;
	size_t bytes;
	int r;

	r = io_read_file(AT_FDCWD, "/proc/self/maps", MAPS_BYTES, &maps, &bytes);
	if (r < 0)
		return r;
	stranger = fork();
	if (stranger == 0) {
		if (setresgid(WORLD_NOBODY, WORLD_NOBODY, WORLD_NOBODY) < 0 ||
		    setresuid(WORLD_NOBODY, WORLD_NOBODY, WORLD_NOBODY) < 0)
			_exit(1);
		for (;;)
			pause();
	}
	if (stranger < 0)
		return -errno;
	snprintf(mapping, sizeof(mapping), "/proc/%d/map_files/%.*s", stranger,
		 (int)strcspn(maps, " "), maps);
	return 0;
}

static int find_cgroup(void)
{
	enum cgroup_mode mode;
	char path[PATH_MAX];
	struct stat st;
	int r;

	r = cgroupfs_find_here(path, sizeof(path), &mode);
	if (r < 0)
		return r;
	cgroup.mount_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cgroup.mount_fd < 0 || fstat(cgroup.mount_fd, &st) < 0)
		return -errno;
	cgroup.id = st.st_ino;
	return 0;
}

void capable_try(void (*verdict)(bool fine, const char *what, const char *name, const char *why))
{
	uint64_t rows = policy_capabilities_rows(POLICY_BROKER, STAGE_CHECK);
	int r;

	r = find_cgroup();
	if (r == 0)
		r = make_stranger();
	if (r < 0) {
		verdict(false, "capabilities", "the surroundings", strerror(-r));
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(capables); i++) {
		rows &= ~(1ULL << capables[i].capability);
		try_row(&capables[i], verdict);
	}
	verdict(rows == 0, "capabilities", "a row", "it has no case in capable.def");
	kill(stranger, SIGKILL);
	waitpid(stranger, NULL, 0);
}
