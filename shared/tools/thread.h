/* SPDX-License-Identifier: BSD-2-Clause */
/* thread.h: starts threads that have a name. */
#ifndef TROCAR_SHARED_TOOLS_THREAD_H
#define TROCAR_SHARED_TOOLS_THREAD_H

#include <pthread.h>

#define THREAD_NAME_BYTES 16 /* with NUL (prctl(2)) */

/*
 * Starts a thread with this name, shorter than THREAD_NAME_BYTES; a longer one is cut.
 * `attributes`: NULL for the defaults. The caller joins or detaches *ret_thread. Returns 0, or
 * -errno of pthread_create(3).
 *
 * The thread inherits the name from the caller, which has it meanwhile. pthread_setname_np(3) would
 * write a file below /proc, which Landlock refuses to the consumer.
 */
int thread_start(pthread_t *ret_thread, const pthread_attr_t *attributes, const char *name,
		 void *(*run)(void *), void *context);

#endif
