/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/client/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "ctl/cli/command_exit.h"

/* Prints whole messages of all boots, and only the messages. */
static _Noreturn void become_journalctl(int output_fd)
{
	static const char *const words[] = { "journalctl", "--no-pager",   "--quiet",
					     "--all",	   "--output=cat", "--unit=trocar-consumer",
					     NULL };

	if (dup2(output_fd, STDOUT_FILENO) >= 0)
		execvp(words[0], (char *const *)words);
	dprintf(STDERR_FILENO, "trocar: %s: %s\n", words[0], strerror(errno));
	_exit(COMMAND_FAILED);
}

/* 0 or -errno. Does not wait for the child: the reading ends when the child's output ends. */
static int read_from_child(void)
{
	int ends[2], e = 0;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		become_journalctl(ends[1]);
	if (pid < 0 || dup2(ends[0], STDIN_FILENO) < 0)
		e = -errno;
	close(ends[0]);
	close(ends[1]);
	return e;
}

int journal_read(const struct options *options)
{
	int e;

	fflush(options->out);
	fflush(options->err);
	e = read_from_child();
	if (e == 0)
		return COMMAND_FINE;
	fprintf(options->err, "trocar: the journal: %s\n", strerror(-e));
	return COMMAND_FAILED;
}
