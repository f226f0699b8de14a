/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * command_testing.h: whole command lines, run in this process against an agent with the test's
 * answers, once.
 */
#ifndef TROCAR_TESTS_UNIT_CTL_COMMAND_TESTING_H
#define TROCAR_TESTS_UNIT_CTL_COMMAND_TESTING_H

#include "tests/unit/runner/unit.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "ctl/command.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"
#include "shared/tools/macro.h"

#define OK(result) "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":" result "}\n"
#define NO(error)  "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":" error "}\n"

static char dir[64], path[96], file[96];
static int listener;
static char *out, *err;

/* One connection: what was asked, and the answer to give. */
static struct exchange {
	pthread_t thread;
	const char *answer;
	size_t bytes;
	bool hang; /* send nothing more until the client goes */
	char *request;
} exchange;

static inline int setup(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(dir, sizeof(dir), "/tmp/trocar-ctl-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/control.sock", dir);
	snprintf(file, sizeof(file), "%s/rules.json", dir);
	setenv("TROCAR_SOCKET", path, 1);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%.90s", path);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -1;
	exchange = (struct exchange){ 0 };
	return listen(listener, 4);
}

static inline int teardown(void **state)
{
	close(listener);
	unlink(path);
	unlink(file);
	free(out);
	free(err);
	out = err = NULL;
	free(exchange.request);
	return rmdir(dir);
}

static inline void *serve(void *context)
{
	struct exchange *e = context;
	int fd = accept(listener, NULL, NULL);
	size_t bytes = 0, space = 3 << 20;

	e->request = calloc(1, space);
	while (!memchr(e->request, '\n', bytes)) {
		ssize_t n = read(fd, e->request + bytes, space - 1 - bytes);

		if (n <= 0)
			break;
		bytes += (size_t)n;
	}
	(void)send(fd, e->answer, e->bytes, MSG_NOSIGNAL);
	while (e->hang && read(fd, e->request + bytes, space - 1 - bytes) > 0)
		continue;
	close(fd);
	return NULL;
}

/* Runs a command line of words between spaces; its words go to `out` and `err`. */
static inline int run(const char *line)
{
	_cleanup_free_ char *copy = strdup(line);
	char *argv[16] = { "trocar" }, *save = NULL;
	size_t bytes;
	int argc = 1, status;
	FILE *o, *e;

	free(out);
	free(err);
	o = open_memstream(&out, &bytes);
	e = open_memstream(&err, &bytes);
	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	status = command_main(argc, argv, o, e);
	fclose(o);
	fclose(e);
	return status;
}

static inline int run_with(const char *line, const char *answer)
{
	int status;

	free(exchange.request);
	exchange.request = NULL;
	exchange.answer = answer;
	exchange.bytes = exchange.bytes ? exchange.bytes : strlen(answer);
	assert_int_equal(pthread_create(&exchange.thread, NULL, serve, &exchange), 0);
	status = run(line);
	pthread_join(exchange.thread, NULL);
	exchange.bytes = 0;
	return status;
}

static inline void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no \"%s\" in:\n%s", part, text);
}

static inline void write_file(const char *text, size_t bytes)
{
	FILE *f = fopen(file, "we");

	assert_int_equal(fwrite(text, 1, bytes, f), bytes);
	fclose(f);
}

#endif
