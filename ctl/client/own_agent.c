/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/client/own_agent.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/cli/command_exit.h"
#include "shared/tools/cleanup.h"

bool own_agent_fits(const struct options *options, int error)
{
	const char *named = getenv("TROCAR_SOCKET");

	return (error == -ENOENT || error == -ECONNREFUSED) && !options->socket &&
	       !(named && *named) && geteuid() == 0;
}

/* Reads until the supervisor sends a message. Returns whether it did. */
static bool hear_keeper(int fd)
{
	char byte;
	ssize_t n;

	do
		n = read(fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

/* Runs in the child: closes all descriptors of the command except these two and stderr. */
static _Noreturn void become_keeper(const char *folder, const char *symbols, int life_fd,
				    int news_fd)
{
	if (setsid() < 0 || dup2(life_fd, STDIN_FILENO) < 0 || dup2(news_fd, STDOUT_FILENO) < 0 ||
	    close_range(STDERR_FILENO + 1, ~0U, 0) < 0)
		_exit(COMMAND_FAILED);
	keeper_run(folder, symbols, STDIN_FILENO, STDOUT_FILENO);
}

static int fork_keeper(struct own_agent *agent, const char *folder, const char *symbols)
{
	int life[2], news[2];
	pid_t pid;

	if (pipe2(life, O_CLOEXEC) < 0)
		return -errno;
	agent->life_fd = life[1];
	if (pipe2(news, O_CLOEXEC) < 0) {
		close(life[0]);
		return -errno;
	}
	agent->news_fd = news[0];
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		become_keeper(folder, symbols, life[0], news[1]);
	close(life[0]);
	close(news[1]);
	return pid < 0 ? -errno : 0;
}

/*
 * Returns the folder of the file, links resolved; NULL: it has none, or its path cannot be an
 * element of a list with colons.
 */
static const char *find_folder(const char *program, char folder[PATH_MAX])
{
	if (!realpath(program, folder) || strchr(folder, ':'))
		return NULL;
	*strrchr(folder, '/') = '\0';
	return *folder ? folder : NULL;
}

int own_agent_start(const struct options *options, const char *program, struct own_agent *ret_agent)
{
	char symbols[PATH_MAX], folder[KEEPER_FOLDER_BYTES];
	int r;

	*ret_agent = (struct own_agent)OWN_AGENT_NONE;
	snprintf(folder, sizeof(folder), KEEPER_FOLDER, (int)getpid());
	snprintf(ret_agent->socket, sizeof(ret_agent->socket), "%s/" KEEPER_CONTROL, folder);
	fprintf(options->err, "no agent runs: starting one for this capture alone\n");
	r = fork_keeper(ret_agent, folder, find_folder(program, symbols));
	if (r < 0)
		fprintf(options->err, "trocar: cannot start an agent: %s\n", strerror(-r));
	else if (hear_keeper(ret_agent->news_fd))
		return COMMAND_FINE;
	return COMMAND_FAILED;
}

void own_agent_done(struct own_agent *agent)
{
	cleanup_close(&agent->life_fd);
	if (agent->news_fd >= 0)
		(void)hear_keeper(agent->news_fd);
	cleanup_close(&agent->news_fd);
	agent->life_fd = agent->news_fd = -1;
}
