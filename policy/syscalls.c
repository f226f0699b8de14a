/* SPDX-License-Identifier: BSD-2-Clause */
#include "policy/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/landlock.h>
#include <linux/membarrier.h>
#include <linux/nsfs.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shared/tools/macro.h"

/*
 * prctl.h defines PR_CAPBSET_* and PR_CAP_AMBIENT. These headers must not define the name of a call
 * as a macro, because ROW pastes that name: fcntl, for example, is a function here.
 */
#define INT_BITS 0xffffffffULL

#define THREADS_SIGNAL (__SIGRTMIN + 1) /* of glibc: all threads change their ids */

/* The clone flags with which glibc creates a thread. */
#define THREAD_FLAGS                                                                        \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | \
	 CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)

#define SET_LOADER	    .process = POLICY_LOADER, .flag = 0
#define SET_CONSUMER	    .process = POLICY_CONSUMER, .flag = 0
#define SET_CONSUMER_UNIX   .process = POLICY_CONSUMER, .flag = POLICY_UNIX_OUTPUT
#define SET_CONSUMER_BROKER .process = POLICY_CONSUMER, .flag = POLICY_USES_BROKER
#define SET_CONSUMER_CONNECT \
	.process = POLICY_CONSUMER, .flag = POLICY_UNIX_OUTPUT | POLICY_USES_BROKER
#define SET_BROKER    .process = POLICY_BROKER, .flag = 0
#define SET_CTL	      .process = POLICY_CTL, .flag = 0
#define SET_CTL_FILES .process = POLICY_CTL, .flag = POLICY_OPENS_FILES
#define SET_RESOLVER  .process = POLICY_RESOLVER, .flag = 0

#define ROW(set, name_, key_, reason_, ...) \
	{ SET_##set, .key = key_, .reason = reason_, .number = __SNR_##name_, __VA_ARGS__ },

#define SYSCALL(set, name, reason) ROW(set, name, #name, reason, .error = 0)
#define SYSCALL_IF(set, name, arg, mask, value, reason)              \
	ROW(set, name, #name "(" #value ")", reason, .n_filters = 1, \
	    .filters = { { (arg), (mask), (uint64_t)(value) } })
#define SYSCALL_IF2(set, name, arg, mask, value, arg2, mask2, value2, reason)     \
	ROW(set, name, #name "(" #value ", " #value2 ")", reason, .n_filters = 2, \
	    .filters = { { (arg), (mask), (uint64_t)(value) },                    \
			 { (arg2), (mask2), (uint64_t)(value2) } })
#define SYSCALL_UNLESS(set, name, arg, value, reason)                 \
	ROW(set, name, #name, reason, .unless = true, .n_filters = 1, \
	    .filters = { { (arg), 0, (uint64_t)(value) } })
#define SYSCALL_SELF(set, name, arg, reason)                                 \
	ROW(set, name, #name "(self)", reason, .self = true, .n_filters = 1, \
	    .filters = { { (arg), INT_BITS, 0 } })
#define SYSCALL_DENY(set, name, error_, reason) \
	ROW(set, name, #name "(" #error_ ")", reason, .error = (error_))
#define SYSCALL_DENY_IF(set, name, arg, mask, value, error_, reason)                    \
	ROW(set, name, #name "(" #value ")", reason, .error = (error_), .n_filters = 1, \
	    .filters = { { (arg), (mask), (uint64_t)(value) } })

static const struct syscalls_row rows[] = {
#include "policy/syscalls.def"
};

const struct syscalls_row *syscalls_rows(size_t *ret_n)
{
	*ret_n = ARRAY_SIZE(rows);
	return rows;
}
