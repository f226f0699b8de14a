/* SPDX-License-Identifier: BSD-2-Clause */
/* world.h: what a child of the lock-down tests has in its hands when its hands are tied. */
#ifndef TROCAR_TESTS_LOCKDOWN_WORLD_H
#define TROCAR_TESTS_LOCKDOWN_WORLD_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "policy/policy.h"

#define WORLD_NOBODY 65534

struct world {
	char top[64];	   /* temporary directory, mode 0755 */
	char dir[96];	   /* below it, ours: may be written */
	char file[128];	   /* in dir */
	char readonly[96]; /* below top, mode 0777: Landlock lets it be read only */
	char outside[96];  /* below top, mode 0777: Landlock does not name it */
	char secret[128];  /* in outside, mode 0644 */
	char socket_path[128];
	int dir_fd, file_fd, epoll_fd, timer_fd, event_fd, inotify_fd, listener_fd;
	int pair[2];	/* connected Unix stream sockets */
	int client_fd;	/* unconnected Unix stream socket */
	int map_fd;	/* BPF hash of u32 to u32, -1 without */
	int sampler_fd; /* a disabled sampling event on CPU 0 */
	int proc_fd;	/* O_PATH of /proc/self/exe */
	int inotify_wd;
	pid_t parent; /* the test itself, root */
	sem_t helper_ready;
	pthread_t helper; /* waits for event_fd, then runs `helper_call` */
	int (*helper_call)(struct world *w);
	uint32_t landlock_abi;
	char buffer[8192];
	void *page; /* 2 pages, mapped */
};

/* Makes the directories; the parent calls it once, world_remove at its end. */
int world_make(struct world *w);
void world_remove(struct world *w);

/* Opens the descriptors; each child calls it before its lock-down. */
int world_open(struct world *w);

/* Starts the helper thread; after the capabilities went and before the filter. */
int world_helper(struct world *w);

/* Ties the hands of the calling child in the order in which the process does it. 0 or -errno. */
int world_lock(struct world *w, enum policy_process process, uint32_t flags, const char *without);

#endif
