/* SPDX-License-Identifier: BSD-2-Clause */
/* calls.h: the longer expressions of needed.def and forbidden.def; each is a system call's result.
 */
#ifndef TROCAR_TESTS_LOCKDOWN_CALLS_H
#define TROCAR_TESTS_LOCKDOWN_CALLS_H

#include <sys/syscall.h>

#include "tests/lockdown/world.h"

const char *needed_other(struct world *w);
long needed_epoll_ctl(struct world *w);
#ifdef SYS_poll
long needed_poll(struct world *w, unsigned long n); /* of up to two descriptors */
#endif
long needed_ppoll(struct world *w, unsigned long n);
long needed_timer(struct world *w);
long needed_getsockopt(struct world *w, int name);
long needed_recvmsg(struct world *w);
long needed_sendmsg(struct world *w);
long needed_connect(struct world *w);
long needed_mmap(int protection);
long needed_nanosleep(void);
long needed_exit(struct world *w); /* the helper thread ends */
long needed_element(struct world *w, int command);
long needed_batch(struct world *w, int command);
long needed_get(struct world *w);    /* a pin that is not there */
long needed_info(struct world *w);   /* of the map */
long needed_attach(struct world *w); /* a map, which is no program */
long needed_sampler_open(void);
long needed_landlock_version(void);
long needed_seccomp_action(void);
long needed_capget(struct world *w);
long needed_capset(struct world *w);
long needed_fork(void);		     /* a process that ends at once */
long needed_thread(struct world *w); /* a thread likewise */
long needed_create(struct world *w, const char *dir);
long needed_move_out(struct world *w);
long forbidden_in_thread(struct world *w);

#endif
