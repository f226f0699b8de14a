/* SPDX-License-Identifier: BSD-2-Clause */
/* loop.h: one epoll loop; a source is a descriptor and a function. Main thread only. */
#ifndef TROCAR_CONSUMER_IO_LOOP_H
#define TROCAR_CONSUMER_IO_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct loop_source;

/* Called with the epoll events that are set. Removing sources (also this one) inside is allowed. */
typedef void (*loop_call)(void *context, uint32_t events);

int loop_new(struct loop **ret_loop);
void loop_free(struct loop *loop);

/* Watches `fd` (borrowed) for `events` (EPOLLIN, ...). 0 or -errno. */
int loop_add(struct loop *loop, int fd, uint32_t events, loop_call call, void *context,
	     struct loop_source **ret_source);

/* Changes the events waited for; 0 silences the source. */
int loop_change(struct loop_source *source, uint32_t events);

/* Ends the source; NULL is allowed. The descriptor stays open. */
void loop_remove(struct loop_source *source);

/* A CLOCK_MONOTONIC timer as a source; starts disarmed. Freed by loop_remove. */
int loop_timer(struct loop *loop, loop_call call, void *context, struct loop_source **ret_source);

/* First expiry in first_ns (0 disarms), then every `every_ns` (0: once). */
int loop_timer_set(struct loop_source *timer, uint64_t first_ns, uint64_t every_ns);

/* Runs until loop_stop. 0 or -errno. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

#endif
