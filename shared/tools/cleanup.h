/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cleanup.h: makes the owner of a resource visible. An owned local starts as NULL or -1 and has its
 * cleanup attribute; TAKE_PTR or TAKE_FD marks where the ownership leaves the function.
 */
#ifndef TROCAR_SHARED_TOOLS_CLEANUP_H
#define TROCAR_SHARED_TOOLS_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_fclose(FILE **f)
{
	if (*f)
		fclose(*f);
}

static inline void cleanup_closedir(DIR **d)
{
	if (*d)
		closedir(*d);
}

#define _cleanup_free_	   _cleanup_(cleanup_free)
#define _cleanup_close_	   _cleanup_(cleanup_close)
#define _cleanup_fclose_   _cleanup_(cleanup_fclose)
#define _cleanup_closedir_ _cleanup_(cleanup_closedir)

/* Evaluates to the pointer and sets the variable to NULL. */
#define TAKE_PTR(p)                            \
	({                                     \
		__typeof__(p) take_ptr_ = (p); \
		(p) = NULL;                    \
		take_ptr_;                     \
	})

/* Evaluates to the descriptor and sets the variable to -1. */
#define TAKE_FD(fd)                  \
	({                           \
		int take_fd_ = (fd); \
		(fd) = -1;           \
		take_fd_;            \
	})

#endif
