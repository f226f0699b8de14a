/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/client/loader_check.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/cli/command_exit.h"
#include "ctl/client/programs.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/environment.h"

/* Exit statuses of trocar-loader(8). */
#define LOADER_FINE  0
#define LOADER_NEEDS 4 /* something required is missing */

#define COPY_BYTES 4096

/* Starts the verb with its stdout to a pipe; *ret_fd is the reading end. 0 or -errno. */
static int start_check(const char *path, bool json, pid_t *ret_pid, int *ret_fd)
{
	char *argv[] = { "trocar-loader", "check", json ? "--json" : NULL, NULL };
	_cleanup_close_ int read_fd = -1, write_fd = -1;
	posix_spawn_file_actions_t actions;
	char *small[ENVIRONMENT_ROOM];
	int pipe_fds[2], r;

	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return -errno;
	read_fd = pipe_fds[0];
	write_fd = pipe_fds[1];
	r = -posix_spawn_file_actions_init(&actions);
	if (r < 0)
		return r;
	r = -posix_spawn_file_actions_adddup2(&actions, write_fd, STDOUT_FILENO);
	if (r == 0)
		r = -posix_spawn(ret_pid, path, &actions, NULL, argv,
				 environment_small(environ, small));
	posix_spawn_file_actions_destroy(&actions);
	if (r == 0)
		*ret_fd = TAKE_FD(read_fd);
	return r;
}

/* Copies until the other end is closed. */
static void copy_output(int fd, FILE *out)
{
	char text[COPY_BYTES];
	ssize_t n;

	while ((n = read(fd, text, sizeof(text))) > 0 || (n < 0 && errno == EINTR))
		if (n > 0)
			fwrite(text, 1, (size_t)n, out);
}

/* Maps the wait(2) status of the loader to our exit status. */
static int judge_end(const struct options *options, const char *path, int status)
{
	if (WIFSIGNALED(status)) {
		fprintf(options->err, "trocar: %s was ended by signal %d\n", path,
			WTERMSIG(status));
		return COMMAND_FAILED;
	}
	if (WEXITSTATUS(status) != LOADER_FINE && WEXITSTATUS(status) != LOADER_NEEDS)
		fprintf(options->err,
			"trocar: %s check ended with status %d: is it of another version?\n", path,
			WEXITSTATUS(status));
	return WEXITSTATUS(status) == LOADER_FINE ? COMMAND_FINE : COMMAND_FAILED;
}

int loader_check_call(const struct options *options, const char *const *arguments)
{
	char found[PATH_MAX];
	const char *path = program_path(PROGRAM_LOADER, found);
	_cleanup_close_ int fd = -1;
	int r, status = 0;
	pid_t pid = 0;

	r = start_check(path, options->json, &pid, &fd);
	if (r < 0) {
		fprintf(options->err,
			"trocar: cannot run %s (%s): check is a verb of trocar-loader; where it is "
			"installed elsewhere, name it in $TROCAR_LOADER\n",
			path, strerror(-r));
		return COMMAND_FAILED;
	}
	copy_output(fd, options->out);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return COMMAND_FAILED;
	return judge_end(options, path, status);
}
