/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/lockdown/world.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "policy/syscalls.h"
#include "shared/tools/macro.h"
#include "tests/lockdown/calls.h"

static int make_file(const char *path, mode_t mode)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, mode);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, "trocar", 6);
	close(fd);
	return n == 6 && chmod(path, mode) == 0 ? 0 : -EIO;
}

static int make_dir(const char *path)
{
	return mkdir(path, 0777) < 0 || chmod(path, 0777) < 0 ? -errno : 0;
}

int world_make(struct world *w)
{
	snprintf(w->top, sizeof(w->top), "/var/tmp/trocar-lockdown-XXXXXX");
	if (!mkdtemp(w->top) || chmod(w->top, 0755) < 0)
		return -errno;
	snprintf(w->dir, sizeof(w->dir), "%s/ours", w->top);
	snprintf(w->readonly, sizeof(w->readonly), "%s/readonly", w->top);
	snprintf(w->outside, sizeof(w->outside), "%s/outside", w->top);
	snprintf(w->file, sizeof(w->file), "%s/file", w->dir);
	snprintf(w->secret, sizeof(w->secret), "%s/secret", w->outside);
	snprintf(w->socket_path, sizeof(w->socket_path), "%s/socket", w->dir);
	if (make_dir(w->dir) < 0 || make_dir(w->readonly) < 0 || make_dir(w->outside) < 0)
		return -EIO;
	w->parent = getpid();
	return make_file(w->secret, 0644);
}

void world_remove(struct world *w)
{
	char path[160];

	unlink(w->secret);
	unlink(w->file);
	unlink(w->socket_path);
	snprintf(path, sizeof(path), "%s/other", w->dir);
	unlink(path);
	rmdir(path);
	rmdir(w->dir);
	rmdir(w->readonly);
	rmdir(w->outside);
	rmdir(w->top);
}

static void on_signal(int number)
{
}

static int open_sockets(struct world *w)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	memcpy(address.sun_path, w->socket_path,
	       MIN(strlen(w->socket_path) + 1, sizeof(address.sun_path)));
	unlink(w->socket_path);
	w->listener_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	w->client_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (w->listener_fd < 0 || w->client_fd < 0)
		return -errno;
	if (bind(w->listener_fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(w->listener_fd, 8) < 0 || chmod(w->socket_path, 0777) < 0)
		return -errno;
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, w->pair) < 0 ? -errno : 0;
}

static int open_map(struct world *w)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_HASH,
		.key_size = 4,
		.value_size = 4,
		.max_entries = 8,
	};
	union bpf_attr element = { 0 };
	uint32_t one = 1;

	w->map_fd = (int)syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
	if (w->map_fd < 0)
		return -errno;
	element.map_fd = (uint32_t)w->map_fd;
	element.key = (uint64_t)(uintptr_t)&one;
	element.value = (uint64_t)(uintptr_t)&one;
	return (int)syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, &element, sizeof(element));
}

int world_open(struct world *w)
{
	int r;

	r = make_file(w->file, 0666);
	if (r == 0)
		r = open_sockets(w);
	if (r == 0)
		r = open_map(w);
	if (r < 0)
		return r;
	w->dir_fd = open(w->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	w->file_fd = open(w->file, O_RDWR | O_CLOEXEC);
	w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	w->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	w->event_fd = eventfd(0, EFD_CLOEXEC);
	w->inotify_fd = inotify_init1(IN_CLOEXEC);
	w->inotify_wd = inotify_add_watch(w->inotify_fd, w->dir, IN_MOVED_TO);
	w->sampler_fd = (int)needed_sampler_open();
	w->page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (w->dir_fd < 0 || w->file_fd < 0 || w->epoll_fd < 0 || w->timer_fd < 0 ||
	    w->event_fd < 0 || w->inotify_wd < 0 || w->sampler_fd < 0 || w->page == MAP_FAILED)
		return -errno;
	signal(SIGUSR1, on_signal);
	return 0;
}

/* Raw system calls only: the thread's end must be exit(2) and nothing that a sanitizer adds. */
static void *helper(void *context)
{
	struct world *w = context;
	uint64_t count;

	sem_post(&w->helper_ready);

	if (syscall(SYS_read, w->event_fd, &count, sizeof(count)) == sizeof(count) &&
	    w->helper_call)
		w->helper_call(w);
	syscall(SYS_exit, 0);
	return NULL;
}

int world_helper(struct world *w)
{
	int r;

	sem_init(&w->helper_ready, 0, 0);
	r = pthread_create(&w->helper, NULL, helper, w);
	if (r > 0)
		return -r;
	sem_wait(&w->helper_ready); /* past glibc's work at a thread's start */
	return 0;
}

static int landlock(struct world *w)
{
	struct policy_path paths[32];
	size_t n;
	const struct policy_path *rows = policy_landlock_paths(POLICY_CONSUMER, &n);

	if (n + 2 > ARRAY_SIZE(paths))
		return -E2BIG;
	memcpy(paths, rows, n * sizeof(*rows));
	paths[n++] = (struct policy_path){ .path = w->dir, .write = true, .create = true };
	paths[n++] = (struct policy_path){ .path = w->readonly };
	return policy_landlock(paths, n, &w->landlock_abi);
}

/* As consumer/ does it: user, capabilities, hardening, Landlock, threads, filter. */
static int lock_consumer(struct world *w)
{
	int r;

	r = policy_capabilities_become(WORLD_NOBODY, WORLD_NOBODY, NULL, 0);
	if (r == 0)
		r = policy_capabilities_none();
	if (r == 0)
		r = policy_harden();
	if (r == 0)
		r = landlock(w);
	return r;
}

/* As loader/main.c does it, for its broker too. */
static int lock_loader(enum policy_process process)
{
	int r;

	r = policy_harden();
	return r < 0 ? r : policy_capabilities_keep(process, STAGE_CHECK);
}

int world_lock(struct world *w, enum policy_process process, uint32_t flags, const char *without)
{
	int r;

	if (process == POLICY_CONSUMER)
		r = lock_consumer(w);
	else if (process == POLICY_LOADER || process == POLICY_BROKER)
		r = lock_loader(process);
	else
		r = policy_harden();
	if (r == 0 &&
	    (process == POLICY_CONSUMER || process == POLICY_LOADER)) /* others have one thread */
		r = world_helper(w);
	if (r < 0)
		return r;
	return policy_seccomp_without(process, flags, without);
}
