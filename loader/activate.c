/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trocar-activate: replaces trocar-broker.socket on a system without systemd (a container). It
 * listens, and starts the broker when a client connects, with the variables of sd_listen_fds(3). It
 * never reads from the socket. It has no effective capability: it keeps them permitted only for the
 * broker.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "policy/policy.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/environment.h"
#include "shared/tools/log.h"
#include "shared/tools/macro.h"

#define LISTEN_FIRST 3 /* SD_LISTEN_FDS_START */
#define BACKLOG	     4 /* as Backlog= of trocar-broker.socket */
#define SOCKET_UMASK 0117
#define PAUSE_S	     1 /* pause after a failed broker: waiting clients are still in the backlog */

enum {
	EXIT_FINE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
};

static volatile sig_atomic_t ended;

static void note_signal(int number)
{
	if (number != SIGCHLD)
		ended = 1;
}

/* Blocks the signals except during ppoll(2), so that none arrives between a check and the wait. */
static void catch_signals(sigset_t *ret_open)
{
	static const int caught[] = { SIGTERM, SIGINT, SIGCHLD };
	struct sigaction action = { .sa_handler = note_signal };
	sigset_t blocked;

	sigemptyset(&blocked);
	for (size_t i = 0; i < ARRAY_SIZE(caught); i++) {
		sigaddset(&blocked, caught[i]);
		sigaction(caught[i], &action, NULL);
	}
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &blocked, ret_open);
	for (size_t i = 0; i < ARRAY_SIZE(caught); i++)
		sigdelset(ret_open, caught[i]);
}

/*
 * Clears the effective capabilities. exec(2) by root makes the permitted ones effective again, also
 * with no_new_privs, because they are not new.
 */
static int rest_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	data[0].effective = data[1].effective = 0;
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

/* Removes the socket of an earlier instance that was killed, and no other file at this path. */
static int remove_stale(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	return unlink(path) < 0 ? -errno : 0;
}

static int listen_at(const char *path, int *ret_fd)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = -1;
	mode_t mask;
	int r;

	if (path[0] != '/' || strlen(path) >= sizeof(address.sun_path))
		return -EINVAL;
	memcpy(address.sun_path, path, strlen(path) + 1);
	r = remove_stale(path);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	mask = umask(SOCKET_UMASK);
	r = bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
	umask(mask);
	if (r == 0 && listen(fd, BACKLOG) < 0)
		r = -errno;
	if (r < 0)
		return r;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/*
 * Runs in the child: executes the command, with the socket as descriptor 3. Returns only if that
 * fails.
 */
static void run_command(int fd, char *const argv[])
{
	char pid[16], *small[ENVIRONMENT_ROOM];

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	/* dup2 of a descriptor to itself would leave close-on-exec set. */
	if (fd == LISTEN_FIRST)
		fd = fcntl(fd, F_DUPFD_CLOEXEC, LISTEN_FIRST + 1);
	if (fd < 0 || dup2(fd, LISTEN_FIRST) < 0 || setenv("LISTEN_PID", pid, 1) < 0 ||
	    setenv("LISTEN_FDS", "1", 1) < 0)
		return;
	if (fd != LISTEN_FIRST)
		close(fd);
	execve(argv[0], argv, environment_small(environ, small));
	log_error("%s: %s", argv[0], strerror(errno));
}

/* Reaps all children that have ended. Returns whether the command is one of them, and failed. */
static bool reap_children(pid_t *pid)
{
	bool failed = false;
	pid_t who;
	int status;

	while ((who = waitpid(-1, &status, WNOHANG)) > 0) {
		if (who != *pid)
			continue; /* a worker of the broker, if we are process 1 */
		*pid = 0;
		failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
	}
	return failed;
}

static pid_t start_command(int fd, char *const argv[], const sigset_t *open)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid < 0 ? -errno : pid;
	sigprocmask(SIG_SETMASK, open, NULL);
	run_command(fd, argv);
	_exit(EXIT_FAILED);
}

/* While the command runs, only the command uses the socket: it is not polled here. */
static int serve_socket(int fd, char *const argv[], const sigset_t *open)
{
	struct pollfd asked = { .fd = fd, .events = POLLIN };
	pid_t pid = 0;

	while (!ended) {
		int n = ppoll(&asked, pid ? 0 : 1, NULL, open);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			pid = start_command(fd, argv, open);
			if (pid < 0)
				return (int)pid;
		}
		if (reap_children(&pid))
			sleep(PAUSE_S);
	}
	if (pid)
		kill(pid, SIGTERM);
	return 0;
}

int main(int argc, char *argv[])
{
	_cleanup_close_ int fd = -1;
	sigset_t open;
	int r;

	log_open("trocar-activate");
	if (argc < 3 || argv[1][0] != '/' || argv[2][0] != '/') {
		fprintf(stderr,
			"usage: trocar-activate SOCKET COMMAND [ARGUMENT]...\n\n"
			"Listens at the Unix socket and starts the command at the first "
			"connection, as systemd\n"
			"does for a socket unit: for trocar-loader broker in a container. Both are "
			"absolute paths.\n");
		return EXIT_USAGE;
	}
	catch_signals(&open);
	r = policy_harden();
	if (r == 0)
		r = listen_at(argv[1], &fd);
	if (r == 0)
		r = rest_capabilities();
	if (r == 0)
		r = serve_socket(fd, argv + 2, &open);
	if (fd >= 0)
		unlink(argv[1]);
	if (r < 0)
		log_error("%s: %s", argv[1], strerror(-r));
	return r < 0 ? EXIT_FAILED : EXIT_FINE;
}
