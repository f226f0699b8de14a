/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loop.h: one epoll loop. A source is a descriptor and the function that the loop calls for it.
 * Main thread only.
 */
#ifndef TROCAR_CONSUMER_IO_LOOP_H
#define TROCAR_CONSUMER_IO_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct loop_source;

/*
 * The loop calls this with the epoll events that are set. The function may remove sources, even its
 * own.
 */
typedef void (*loop_call)(void *context, uint32_t events);

int loop_new(struct loop **ret_loop);
void loop_free(struct loop *loop);

/* Watches `fd` (borrowed) for `events` (EPOLLIN, ...). 0 or -errno. */
int loop_add(struct loop *loop, int fd, uint32_t events, loop_call call, void *context,
	     struct loop_source **ret_source);

/* Changes the events that the loop waits for; 0 silences the source. */
int loop_change(struct loop_source *source, uint32_t events);

/* Removes and frees the source; NULL is allowed. The descriptor of loop_add stays open. */
void loop_remove(struct loop_source *source);

/*
 * Adds a CLOCK_MONOTONIC timer as a source. It starts disarmed; loop_remove frees it. 0 or -errno.
 */
int loop_timer(struct loop *loop, loop_call call, void *context, struct loop_source **ret_source);

/* Sets the first expiry to first_ns from now (0 disarms), then every `every_ns` (0: once). */
int loop_timer_set(struct loop_source *timer, uint64_t first_ns, uint64_t every_ns);

/* Returns the number of the current iteration; 0 before the first. */
uint64_t loop_turn(const struct loop *loop);

/* The longest of several iterations; the two maxima may be of different iterations. */
struct loop_longest {
	uint64_t turn_ns; /* from the return of epoll_wait(2) until all its sources were served */
	uint64_t own_ns;  /* without the main thread's waits for a CPU (cpu_wait.h) */
	bool own_known;	  /* false: the kernel does not count its waits */
};

/*
 * Returns the longest iterations of the loop since the last call. The iteration that calls counts
 * for the next call.
 */
struct loop_longest loop_longest_turn(struct loop *loop);

/* Does the same for all iterations that have ended since the loop was made. */
struct loop_longest loop_longest_ever(const struct loop *loop);

/* Runs the loop until loop_stop is called. 0 or -errno. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

#endif
