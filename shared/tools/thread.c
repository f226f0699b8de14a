/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/tools/thread.h"

#include <stdbool.h>
#include <sys/prctl.h>

int thread_start(pthread_t *ret_thread, const pthread_attr_t *attributes, const char *name,
		 void *(*run)(void *), void *context)
{
	char own[THREAD_NAME_BYTES];
	bool named = prctl(PR_GET_NAME, own) == 0 && prctl(PR_SET_NAME, name) == 0;
	int e = pthread_create(ret_thread, attributes, run, context);

	if (named)
		prctl(PR_SET_NAME, own);
	return -e;
}
