/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * resolver.h: a process for each file of symbols. It holds that file and a socket, may do nothing
 * but read the one and answer on the other, and ends by itself: with us, and when it has taken too
 * much time or memory. So a hostile file can lie about its own names, and that is all.
 */
#ifndef TROCAR_CTL_SYMBOLIZE_RESOLVER_H
#define TROCAR_CTL_SYMBOLIZE_RESOLVER_H

#include <stdbool.h>
#include <sys/types.h>

#include "ctl/symbolize/answer.h"
#include "ctl/symbolize/debug_files.h"

#define RESOLVER_CPU_S	      60	    /* of the process, in all */
#define RESOLVER_WAIT_MS      120000	    /* for one answer */
#define RESOLVER_MEMORY_BYTES (2ULL << 30)  /* that it writes to */
#define RESOLVER_MAPPED_BYTES (64ULL << 30) /* its files included */

struct resolver {
	pid_t pid; /* 0: none runs */
	int fd;
};

/*
 * Starts one for the files of `pair`, which stay the caller's; with `lines` it knows source lines.
 * 0 or -errno of fork(2) and socketpair(2).
 */
int resolver_start(const struct debug_files_pair *pair, bool lines, struct resolver *ret_resolver);

/*
 * Asks for the function at a place of the file; the texts of *ret_answer stand in `data`. 0;
 * -EPIPE: the process has ended; -ETIMEDOUT; -EBADMSG: no answer. Behind a failure it is of no use.
 */
int resolver_ask(const struct resolver *r, const struct answer_question *place,
		 char data[ANSWER_BYTES], struct answer *ret_answer);

/* Ends it. A stuck one goes by itself, when its time is over or ours. */
void resolver_stop(struct resolver *r, bool stuck);

#endif
