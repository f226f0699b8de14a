/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/client/profile_command.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/cli/command_exit.h"
#include "ctl/client/process_names.h"
#include "shared/files/cgroupfs.h"
#include "shared/tools/cleanup.h"

#define NAME_BYTES 64
#define NOT_RUN	   127 /* exit status of sh(1) for a command that it cannot run */
#define SIGNALLED  128 /* plus the signal: exit status of sh(1) for a killed command */

struct running {
	const struct options *options;
	char name[NAME_BYTES]; /* of the cgroup, below the mount */
	char folder[PATH_MAX], program[PATH_MAX];
	pid_t command, capture;
	int failed[2]; /* a pipe: a byte arrives if the command did not start */
};

/* Returns whether the words of a command are after "--". Without "--" a name is not run. */
static bool is_behind_dashes(const struct options *options, const char *const *arguments)
{
	unsigned int n = 0;

	while (arguments[n])
		n++;
	return options->words.count - n >= options->words.before;
}

static void refuse_name(const struct options *options, const char *name)
{
	unsigned int count;
	uint64_t pid = process_names_number(name, &count);

	if (!count)
		fprintf(options->err,
			"trocar: profile: \"%s\" is no PID, and no process has this name: trocar "
			"profile -- %s runs it\n",
			name, name);
	else if (count == 1)
		fprintf(options->err,
			"trocar: profile: \"%s\" runs as PID %" PRIu64 ": trocar profile %" PRIu64
			", or trocar profile -- %s to run it\n",
			name, pid, pid, name);
	else
		fprintf(options->err,
			"trocar: profile: \"%s\" runs as %u processes, PID %" PRIu64
			" and others: trocar profile %" PRIu64
			", or trocar profile -- %s to run it\n",
			name, count, pid, pid, name);
}

bool profile_command_given(const struct options *options, const char *const *arguments)
{
	if (is_behind_dashes(options, arguments))
		return true;
	refuse_name(options, arguments[0]);
	return false;
}

static bool is_program(const char *file)
{
	struct stat st;

	return access(file, X_OK) == 0 && stat(file, &st) == 0 && S_ISREG(st.st_mode);
}

/*
 * Returns whether execvp(3) would find the program, and where, so that a wrong name costs no
 * capture.
 */
static bool find_program(const char *name, char file[PATH_MAX])
{
	const char *path = getenv("PATH");

	snprintf(file, PATH_MAX, "%s", name);
	if (strchr(name, '/'))
		return is_program(file);
	for (size_t bytes; path && *path; path += bytes + (path[bytes] == ':')) {
		bytes = strcspn(path, ":");
		snprintf(file, PATH_MAX, "%.*s/%s", (int)bytes, path, name);
		if (is_program(file))
			return true;
	}
	return false;
}

static int make_cgroup(struct running *r)
{
	char mount[PATH_MAX - NAME_BYTES];
	enum cgroup_mode mode;
	int e = cgroupfs_find_here(mount, sizeof(mount), &mode);

	snprintf(r->name, sizeof(r->name), "/trocar-profile-%d", getpid());
	if (e == 0) {
		snprintf(r->folder, sizeof(r->folder), "%s%s", mount, r->name);
		e = mkdir(r->folder, 0755) < 0 ? -errno : 0;
	}
	if (e < 0)
		fprintf(r->options->err,
			"trocar: profile: a command runs in a cgroup of its own, and none can be "
			"made: %s: run it as root, or give a PID\n",
			strerror(-e));
	return e;
}

static void remove_cgroup(const struct running *r)
{
	if (rmdir(r->folder) < 0)
		fprintf(r->options->err,
			"trocar: profile: processes of the command still run in the cgroup %s, "
			"which stays: %s\n",
			r->name, strerror(errno));
}

static bool enter_cgroup(const struct running *r)
{
	char file[PATH_MAX + 16];
	int fd;

	snprintf(file, sizeof(file), "%s/cgroup.procs", r->folder);
	fd = open(file, O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, "0", 1) == 1 && close(fd) == 0;
}

static _Noreturn void fail_command(const struct running *r, const char *what)
{
	fprintf(r->options->err, "trocar: profile: %s: %s\n", what, strerror(errno));
	fflush(r->options->err);
	(void)!write(r->failed[1], "", 1);
	_exit(NOT_RUN);
}

/* Executes the command once the session runs; this process's own printing is not captured. */
static _Noreturn void become_command(const struct running *r, const char *const *command,
				     int started_fd)
{
	char byte;

	if (read(started_fd, &byte, 1) != 1)
		_exit(NOT_RUN); /* there is no session; this was reported */
	/* Enters the cgroup only now: the wait above would be in the capture. */
	if (!enter_cgroup(r))
		fail_command(r, r->name);
	dup2(STDERR_FILENO, STDOUT_FILENO);
	signal(SIGINT, SIG_DFL); /* a background job of a shell inherits it ignored */
	execvp(command[0], (char *const *)command);
	fail_command(r, command[0]);
}

static _Noreturn void become_capture(const struct running *r, profile_command_capture capture,
				     int started_fd)
{
	int status = capture(r->options, r->name, r->program, started_fd);

	fflush(NULL);
	_exit(status);
}

static int start_both(struct running *r, const char *const *command,
		      profile_command_capture capture)
{
	int started[2];

	fflush(NULL);
	if (pipe2(started, O_CLOEXEC) < 0 || pipe2(r->failed, O_CLOEXEC) < 0)
		return -errno;
	r->command = fork();
	if (r->command == 0) {
		close(started[1]);
		become_command(r, command, started[0]);
	}
	if (r->command > 0)
		r->capture = fork();
	if (r->capture == 0 && r->command > 0) {
		close(started[0]);
		become_capture(r, capture, started[1]);
	}
	close(started[0]);
	close(r->failed[1]);
	close(started[1]); /* if there is no session, the command reads the end of file */
	return r->command < 0 || r->capture < 0 ? -errno : 0;
}

/* Returns the exit status as a shell does; an end by Ctrl-C is no failure. */
static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return COMMAND_FAILED;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	return WTERMSIG(status) == SIGINT ? COMMAND_FINE : SIGNALLED + WTERMSIG(status);
}

/*
 * The end of the command ends the capture, and its status is the result, as with time(1). Ctrl-C
 * reaches both processes, and this process waits for them.
 */
static int wait_for_both(const struct running *r)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	int captured, ended;
	char byte;

	sigaction(SIGINT, &ignore, NULL);
	ended = wait_for(r->command);
	kill(r->capture, SIGTERM);
	captured = wait_for(r->capture);
	remove_cgroup(r);
	if (read(r->failed[0], &byte, 1) == 1)
		return COMMAND_FAILED;
	return captured == COMMAND_FINE ? ended : captured;
}

int profile_command_run(const struct options *options, const char *const *command,
			profile_command_capture capture)
{
	struct running r = { .options = options, .command = -1, .capture = -1 };
	int e;

	if (!find_program(command[0], r.program)) {
		fprintf(options->err, "trocar: profile: %s: %s\n", command[0],
			strchr(command[0], '/') && access(command[0], F_OK) == 0
				? "is no program"
				: "there is no such command");
		return COMMAND_FAILED;
	}
	if (make_cgroup(&r) < 0)
		return COMMAND_FAILED;
	e = start_both(&r, command, capture);
	if (e == 0)
		return wait_for_both(&r);
	fprintf(options->err, "trocar: profile: %s\n", strerror(-e));
	if (r.command > 0)
		wait_for(r.command);
	remove_cgroup(&r);
	return COMMAND_FAILED;
}
