/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/lockdown/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "shared/tools/macro.h"

const char *needed_other(struct world *w)
{
	snprintf(w->buffer, sizeof(w->buffer), "%s/other", w->dir);
	return w->buffer;
}

long needed_epoll_ctl(struct world *w)
{
	struct epoll_event event = { .events = EPOLLIN };

	return syscall(SYS_epoll_ctl, w->epoll_fd, EPOLL_CTL_ADD, w->event_fd, &event);
}

#ifdef SYS_poll
long needed_poll(struct world *w, unsigned long n)
{
	struct pollfd polls[2] = { { .fd = w->pair[0] }, { .fd = w->pair[1] } };

	return syscall(SYS_poll, polls, n, 0);
}
#endif

long needed_ppoll(struct world *w, unsigned long n)
{
	struct pollfd polls[2] = { { .fd = w->pair[0] }, { .fd = w->pair[1] } };
	struct timespec now = { 0 };

	return syscall(SYS_ppoll, polls, n, &now, NULL, 8);
}

long needed_timer(struct world *w)
{
	struct itimerspec soon = { .it_value = { .tv_sec = 1 } };

	return syscall(SYS_timerfd_settime, w->timer_fd, 0, &soon, NULL);
}

long needed_getsockopt(struct world *w, int name)
{
	socklen_t bytes = sizeof(w->buffer);

	return syscall(SYS_getsockopt, w->pair[0], SOL_SOCKET, name, w->buffer, &bytes);
}

long needed_recvmsg(struct world *w)
{
	struct msghdr message = { 0 };

	return syscall(SYS_recvmsg, w->pair[0], &message, MSG_DONTWAIT);
}

long needed_sendmsg(struct world *w)
{
	struct msghdr message = { 0 };

	return syscall(SYS_sendmsg, w->pair[0], &message, MSG_NOSIGNAL);
}

long needed_connect(struct world *w)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	memcpy(address.sun_path, w->socket_path,
	       MIN(strlen(w->socket_path) + 1, sizeof(address.sun_path)));
	return syscall(SYS_connect, w->client_fd, &address, sizeof(address));
}

long needed_mmap(int protection)
{
	return syscall(SYS_mmap, NULL, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

long needed_nanosleep(void)
{
	struct timespec moment = { .tv_nsec = 1000 };

	return syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &moment, NULL);
}

static void wake_helper(struct world *w)
{
	uint64_t one = 1;

	syscall(SYS_write, w->event_fd, &one, sizeof(one));
}

long needed_exit(struct world *w)
{
	wake_helper(w);
	return -pthread_join(w->helper, NULL);
}

static int open_socket(struct world *w)
{
	return (int)syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);
}

long forbidden_in_thread(struct world *w)
{
	struct timespec while_ = { .tv_sec = 5 };

	w->helper_call = open_socket;
	wake_helper(w);
	return syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &while_, NULL);
}

long needed_element(struct world *w, int command)
{
	uint32_t key = 1, value = 1;
	union bpf_attr attr = {
		.map_fd = (uint32_t)w->map_fd,
		.key = (uint64_t)(uintptr_t)&key,
	};

	if (command !=
	    BPF_MAP_DELETE_ELEM) /* which wants it zero; next_key in the other spelling */
		attr.value = (uint64_t)(uintptr_t)&value;

	return syscall(SYS_bpf, command, &attr, sizeof(attr));
}

/*
 * The map has one element, so that a look-up of eight ends with ENOENT, which means "all returned".
 */
long needed_batch(struct world *w, int command)
{
	uint32_t keys[8] = { 1 }, values[8] = { 1 }, token = 0;
	union bpf_attr attr = { 0 };

	attr.batch.map_fd = (uint32_t)w->map_fd;
	attr.batch.keys = (uint64_t)(uintptr_t)keys;
	attr.batch.values = (uint64_t)(uintptr_t)values;
	attr.batch.count = 1;
	if (command == BPF_MAP_LOOKUP_BATCH) {
		attr.batch.count = 8;
		attr.batch.out_batch = (uint64_t)(uintptr_t)&token;
	}
	return syscall(SYS_bpf, command, &attr, sizeof(attr));
}

long needed_get(struct world *w)
{
	union bpf_attr attr = { .pathname = (uint64_t)(uintptr_t)needed_other(w) };

	return syscall(SYS_bpf, BPF_OBJ_GET, &attr, sizeof(attr));
}

long needed_info(struct world *w)
{
	struct bpf_map_info info = { 0 };
	union bpf_attr attr = { 0 };

	attr.info.bpf_fd = (uint32_t)w->map_fd;
	attr.info.info_len = sizeof(info);
	attr.info.info = (uint64_t)(uintptr_t)&info;
	return syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr));
}

long needed_attach(struct world *w)
{
	union bpf_attr attr = { 0 };

	attr.raw_tracepoint.prog_fd = (uint32_t)w->map_fd;
	return syscall(SYS_bpf, BPF_RAW_TRACEPOINT_OPEN, &attr, sizeof(attr));
}

long needed_sampler_open(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_freq = 97,
		.freq = 1,
		.disabled = 1,
	};

	return syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
}

/* A machine without Landlock answers, too; it counts that the call came through. */
long needed_landlock_version(void)
{
	long r = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return r < 0 && (errno == ENOSYS || errno == EOPNOTSUPP) ? 0 : r;
}

long needed_seccomp_action(void)
{
	uint32_t action = SECCOMP_RET_KILL_PROCESS;

	return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action);
}

static struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
static struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

long needed_capget(struct world *w)
{
	return syscall(SYS_capget, &header, data);
}

long needed_capset(struct world *w)
{
	memset(data, 0, sizeof(data));
	return syscall(SYS_capset, &header, data);
}

long needed_fork(void)
{
	long pid =
		syscall(SYS_clone, CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		syscall(SYS_exit_group, 0);
	return pid;
}

#define THREAD_FLAGS                                                                        \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | \
	 CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)

static int end_thread(void *argument)
{
	return (int)syscall(SYS_exit, 0);
}

/* By the C library, with the system call and a jump to the thread's own stack as its wrapper. */
long needed_thread(struct world *w)
{
	static char stack[16384] __attribute__((aligned(16)));
	static pid_t parent, child;

	return clone(end_thread, stack + sizeof(stack), THREAD_FLAGS, NULL, &parent,
		     __builtin_thread_pointer(), &child);
}

long needed_create(struct world *w, const char *dir)
{
	snprintf(w->buffer, sizeof(w->buffer), "%s/trocar-lockdown-made", dir);
	return syscall(SYS_openat, AT_FDCWD, w->buffer, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}

long needed_move_out(struct world *w)
{
	snprintf(w->buffer, sizeof(w->buffer), "%s/moved", w->outside);
	return syscall(SYS_renameat2, AT_FDCWD, w->file, AT_FDCWD, w->buffer, 0);
}
