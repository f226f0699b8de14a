/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * resolver.h: runs one process per file of symbols. The process holds that file and a socket. It
 * may only read the file and answer on the socket. It ends by itself: with its parent, and when it
 * has used too much time or memory. So a hostile file can only forge its own names.
 */
#ifndef TROCAR_CTL_SYMBOLIZE_RESOLVER_H
#define TROCAR_CTL_SYMBOLIZE_RESOLVER_H

#include <stdbool.h>
#include <sys/types.h>

#include "ctl/symbolize/answer.h"
#include "ctl/symbolize/debug_files.h"

#define RESOLVER_CPU_S	      60	    /* CPU time of the process in all */
#define RESOLVER_WAIT_MS      120000	    /* time for one answer */
#define RESOLVER_MEMORY_BYTES (2ULL << 30)  /* memory that it writes to */
#define RESOLVER_MAPPED_BYTES (64ULL << 30) /* all its mappings, with its files */

struct resolver {
	pid_t pid; /* 0: no process runs */
	int fd;
};

/*
 * Starts a process for the files of `pair`, which stay the caller's; with `lines` it also reads
 * source lines. 0 or -errno of fork(2) and socketpair(2).
 */
int resolver_start(const struct debug_files_pair *pair, bool lines, struct resolver *ret_resolver);

/*
 * Requests the function at a place of the file; the texts of *ret_answer point into `data`. 0;
 * -EPIPE: the process has ended; -ETIMEDOUT; -EBADMSG: the reply is not an answer. After a failure
 * the process is of no use any more.
 */
int resolver_ask(const struct resolver *r, const struct answer_question *place,
		 char data[ANSWER_BYTES], struct answer *ret_answer);

/*
 * Stops the process. A stuck process is not waited for: it ends when its CPU time is used up, or
 * with its parent.
 */
void resolver_stop(struct resolver *r, bool stuck);

#endif
