/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/symbolize/resolver.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/cli/confine.h"
#include "ctl/symbolize/resolve.h"

#define DESCRIPTORS 1024 /* that may be open in this process */

#if defined(__SANITIZE_ADDRESS__)
#define UNLIMITED 1 /* the sanitizer maps terabytes */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNLIMITED 1
#endif
#endif

static int set_limit(int resource, rlim_t most)
{
	struct rlimit now;

	if (getrlimit((__rlimit_resource_t)resource, &now) < 0)
		return -errno;
	now.rlim_cur = now.rlim_max = now.rlim_max < most ? now.rlim_max : most;
	return setrlimit((__rlimit_resource_t)resource, &now) < 0 ? -errno : 0;
}

/*
 * Closes all other descriptors, so that the resolver cannot reach other resolvers or the parent's
 * files.
 */
static void close_all_but(int a, int b, int c)
{
	for (int fd = 0; fd < DESCRIPTORS; fd++)
		if (fd != a && fd != b && fd != c)
			close(fd);
}

static int tie_hands(pid_t parent)
{
	int r = set_limit(RLIMIT_CPU, RESOLVER_CPU_S);

#ifndef UNLIMITED
	if (r == 0)
		r = set_limit(RLIMIT_DATA, RESOLVER_MEMORY_BYTES);
	if (r == 0)
		r = set_limit(RLIMIT_AS, RESOLVER_MAPPED_BYTES);
#endif
	if (r == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		r = -errno;
	if (r < 0)
		return r;
	/* Checks whether the parent ended before PR_SET_PDEATHSIG was set. */
	return getppid() != parent ? -ESRCH : confine_now(CONFINE_RESOLVER);
}

static _Noreturn void serve_questions(int fd, const struct debug_files_pair *pair, bool lines,
				      pid_t parent)
{
	static char data[ANSWER_BYTES];
	static struct resolve resolve;
	struct answer_question question;

	close_all_but(fd, pair->code, pair->debug);
	if (tie_hands(parent) < 0)
		_exit(EXIT_FAILURE);
	resolve_open(&resolve, pair->code, pair->debug, lines);
	while (recv(fd, &question, sizeof(question), 0) == (ssize_t)sizeof(question)) {
		struct answer answer;
		size_t bytes;

		resolve_find(&resolve, question, &answer);
		bytes = answer_write(&answer, data);
		if (send(fd, data, bytes, MSG_NOSIGNAL) != (ssize_t)bytes)
			break;
	}
	_exit(EXIT_SUCCESS);
}

int resolver_start(const struct debug_files_pair *pair, bool lines, struct resolver *ret_resolver)
{
	pid_t pid, parent = getpid();
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		serve_questions(fds[1], pair, lines, parent);
	close(fds[1]);
	if (pid < 0) {
		int r = -errno;

		close(fds[0]);
		return r;
	}
	*ret_resolver = (struct resolver){ .pid = pid, .fd = fds[0] };
	return 0;
}

int resolver_ask(const struct resolver *r, const struct answer_question *place,
		 char data[ANSWER_BYTES], struct answer *ret_answer)
{
	struct pollfd ready = { .fd = r->fd, .events = POLLIN };
	ssize_t n;
	int e;

	if (send(r->fd, place, sizeof(*place), MSG_NOSIGNAL) != (ssize_t)sizeof(*place))
		return -EPIPE;
	do
		e = poll(&ready, 1, RESOLVER_WAIT_MS);
	while (e < 0 && errno == EINTR);
	if (e <= 0)
		return e < 0 ? -errno : -ETIMEDOUT;
	n = recv(r->fd, data, ANSWER_BYTES, MSG_DONTWAIT | MSG_TRUNC);
	if (n <= 0)
		return -EPIPE;
	return n > (ssize_t)ANSWER_BYTES ? -EBADMSG : answer_read(data, (size_t)n, ret_answer);
}

void resolver_stop(struct resolver *r, bool stuck)
{
	if (!r->pid)
		return;
	close(r->fd);
	while (waitpid(r->pid, NULL, stuck ? WNOHANG : 0) < 0 && errno == EINTR)
		;
	*r = (struct resolver){ .fd = -1 };
}
