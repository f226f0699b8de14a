/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control_testing.h: a control server in a thread of its own, and clients that talk to it. Each
 * test program has one.
 */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_TESTING_CONTROL_TESTING_H
#define TROCAR_TESTS_UNIT_CONSUMER_TESTING_CONTROL_TESTING_H

#include "shared/json/jsonw.h"
#include "tests/unit/consumer/testing/unit_testing.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "consumer/control/control.h"

#define CALL	 "{\"jsonrpc\":\"2.0\",\"method\":"
#define STATUS	 CALL "\"status\",\"id\":1}\n"
#define IS_READY "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"ready\"}\n"
#define GID	 12345

static char dir[64], path[96];
static struct loop *loop;
static struct control_server *server;
static pthread_t thread;

static inline int do_status(void *context, const struct control_peer *peer,
			    const struct json_node *params, struct jsonw *result,
			    struct control_error *error)
{
	jsonw_string(result, NULL, "ready");
	return 0;
}

static inline int do_stop(void *context, const struct control_peer *peer,
			  const struct json_node *params, struct jsonw *result,
			  struct control_error *error)
{
	loop_stop(loop);
	jsonw_bool(result, NULL, true);
	return 0;
}

static inline void *run(void *context)
{
	assert_int_equal(loop_run(loop), 0);
	return NULL;
}

static inline int make_dir(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/trocar-control-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	chmod(dir, 0755);
	snprintf(path, sizeof(path), "%s/control.sock", dir);
	return loop_new(&loop);
}

static inline int remove_dir(void **state)
{
	loop_free(loop);
	unlink(path);
	return rmdir(dir);
}

/* Starts the server with these methods, `status` and `stop` among them. */
static inline int begin_server(void **state, const struct control_method *methods)
{
	if (make_dir(state) < 0 ||
	    control_new(loop, path, (gid_t)-1, GID, methods, NULL, &server) < 0)
		return -1;
	return pthread_create(&thread, NULL, run, NULL);
}

static inline int dial(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = 30 };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%.90s", path);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		close(fd);
		return -1;
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return fd;
}

static inline void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Reads one line with its '\n'; "" at the end of the connection. */
static inline const char *hear(int fd)
{
	static char line[4096];
	size_t n = 0;

	while (n < sizeof(line) - 1 && recv(fd, line + n, 1, 0) == 1)
		if (line[n++] == '\n')
			break;
	line[n] = 0;
	return line;
}

static inline void assert_hears(int fd, const char *word)
{
	const char *line = hear(fd);

	if (!strstr(line, word))
		fail_msg("heard %s for %s", line, word);
}

static inline int teardown(void **state)
{
	int fd = dial();

	/* The method is for root alone; others set the flag, once the loop surely runs. */
	if (geteuid() != 0) {
		say(fd, CALL "\"status\",\"id\":1}\n");
		hear(fd);
		loop_stop(loop);
	}
	say(fd, CALL "\"stop\",\"id\":1}\n");
	close(fd);
	pthread_join(thread, NULL);
	control_free(server);
	assert_int_equal(access(path, F_OK), -1);
	return remove_dir(state);
}

#endif
