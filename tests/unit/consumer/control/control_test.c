/* SPDX-License-Identifier: BSD-2-Clause */
/* Built with a CONTROL_IDLE_MS of 4000, for the sake of the tests of slow clients. */
#include "tests/unit/consumer/testing/control_testing.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

static int do_long(void *context, const struct control_peer *peer, const struct json_node *params,
		   struct jsonw *result, struct control_error *error)
{
	jsonw_array(result, NULL);
	for (int i = 0; i < 1000000; i++)
		jsonw_u64(result, NULL, 100000);
	jsonw_array_end(result);
	return 0;
}

static int do_stats(void *context, const struct control_peer *peer, const struct json_node *params,
		    struct jsonw *result, struct control_error *error)
{
	struct control_stats s;
	char text[200];

	control_stats(server, &s);
	snprintf(text, sizeof(text), "%lu accepted, %lu refused, %lu slow, %lu forbidden, %u now",
		 (unsigned long)s.accepted, (unsigned long)s.refused, (unsigned long)s.closed_slow,
		 (unsigned long)s.forbidden, s.clients);
	jsonw_string(result, NULL, text);
	return 0;
}

static uint64_t ended[8], n_ended;

static void note_end(void *context, uint64_t connection)
{
	ended[n_ended++ % ARRAY_SIZE(ended)] = connection;
}

static int do_connection(void *context, const struct control_peer *peer,
			 const struct json_node *params, struct jsonw *result,
			 struct control_error *error)
{
	control_on_close(server, note_end, NULL);
	jsonw_u64(result, NULL, peer->connection);
	return 0;
}

static const struct control_method methods[] = {
	{ "status", false, do_status },
	{ "stop", true, do_stop },
	{ "long", false, do_long },
	{ "stats", false, do_stats },
	{ "change", true, do_status },
	{ "connection", false, do_connection },
	{ 0 },
};

static int setup(void **state)
{
	return begin_server(state, methods);
}

/* Asks on a connection until so many clients are left: the server hears of a close by and by. */
static void await_clients(int fd, unsigned int n)
{
	char word[32];
	bool seen = false;

	snprintf(word, sizeof(word), ", %u now", n);
	for (int i = 0; i < 3000 && !seen; i++) {
		usleep(10000);
		say(fd, CALL "\"stats\",\"id\":1}\n");
		seen = strstr(hear(fd), word);
	}
	assert_true(seen);
}

static void test_answers(void **state)
{
	int fd = dial();

	say(fd, STATUS);
	assert_string_equal(hear(fd), IS_READY);
	say(fd, STATUS STATUS CALL "\"status\"}\n" STATUS "{\"a");
	for (int i = 0; i < 3; i++)
		assert_string_equal(hear(fd), IS_READY);
	say(fd, "\":1}\n" STATUS);
	assert_hears(fd, "-32600");
	assert_string_equal(hear(fd), IS_READY);
	close(fd);
}

static void test_half_closed(void **state)
{
	int fd = dial();

	say(fd, STATUS STATUS);
	shutdown(fd, SHUT_WR);
	assert_string_equal(hear(fd), IS_READY);
	assert_string_equal(hear(fd), IS_READY);
	assert_string_equal(hear(fd), "");
	close(fd);
	fd = dial();
	say(fd, "{\"half");
	shutdown(fd, SHUT_WR);
	assert_hears(fd, "no newline");
	assert_string_equal(hear(fd), "");
	close(fd);
}

static void test_malformed_is_answered_and_closed(void **state)
{
	int fd = dial();

	say(fd, "GET / HTTP/1.1\n" STATUS);
	assert_hears(fd, "-32700");
	assert_string_equal(hear(fd), "");
	close(fd);
}

static void test_too_long_is_answered_and_closed(void **state)
{
	size_t bytes = CONTROL_REQUEST_BYTES + 2;
	_cleanup_free_ char *line = malloc(bytes);
	int fd = dial();

	memset(line, ' ', bytes);
	(void)send(fd, line, bytes, MSG_NOSIGNAL);
	assert_hears(fd, "a request line is at most 2101248 bytes long");
	assert_string_equal(hear(fd), "");
	close(fd);
}

/* Exactly as long as allowed; sent in pieces. */
static void test_longest(void **state)
{
	size_t bytes = CONTROL_REQUEST_BYTES + 1, sent = 0;
	_cleanup_free_ char *line = malloc(bytes);
	int fd = dial();

	memset(line, ' ', bytes);
	memcpy(line, STATUS, strlen(STATUS) - 1);
	line[bytes - 1] = '\n';
	while (sent < bytes) {
		ssize_t n = send(fd, line + sent, MIN(bytes - sent, (size_t)10000), MSG_NOSIGNAL);

		assert_true(n > 0);
		sent += (size_t)n;
	}
	assert_string_equal(hear(fd), IS_READY);
	close(fd);
}

static void test_many_clients(void **state)
{
	int fds[CONTROL_CLIENTS_MAX], fd;

	for (int i = 0; i < CONTROL_CLIENTS_MAX; i++) {
		fds[i] = dial();
		say(fds[i], STATUS);
		assert_string_equal(hear(fds[i]), IS_READY);
	}
	fd = dial();
	assert_hears(fd, "too many clients");
	assert_string_equal(hear(fd), "");
	close(fd);
	close(fds[0]);
	await_clients(fds[1], 63);
	fd = dial();
	say(fd, CALL "\"stats\",\"id\":1}\n");
	assert_hears(fd, "65 accepted, 1 refused, 0 slow, 0 forbidden, 64 now");
	close(fd);
	for (int i = 2; i < CONTROL_CLIENTS_MAX; i++)
		close(fds[i]);
	await_clients(fds[1], 1);
	close(fds[1]);
}

/* More requests than one round takes, while another client is served in between. */
/* Each connection has a number of its own, and its end is reported. */
static void test_close_is_reported(void **state)
{
	static const char ask[] = CALL "\"connection\",\"id\":1}\n";
	int one = dial(), other = dial();
	unsigned long numbers[3];

	n_ended = 0;
	say(one, ask);
	assert_int_equal(
		sscanf(hear(one), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":%lu", &numbers[0]), 1);
	say(other, ask);
	assert_int_equal(
		sscanf(hear(other), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":%lu", &numbers[1]),
		1);
	assert_int_not_equal(numbers[0], numbers[1]);
	close(one);
	await_clients(other, 1);
	assert_int_equal(n_ended, 1);
	assert_int_equal(ended[0], numbers[0]);
	one = dial();
	say(one, ask);
	assert_int_equal(
		sscanf(hear(one), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":%lu", &numbers[2]), 1);
	assert_true(numbers[2] > numbers[0] && numbers[2] > numbers[1]);
	close(one);
	close(other);
}

static void test_pipeline(void **state)
{
	const int requests = 2000;
	_cleanup_free_ char *text = calloc(requests, sizeof(STATUS));
	int fd = dial(), other = dial();

	for (int i = 0; i < requests; i++)
		strcpy(text + (size_t)i * strlen(STATUS), STATUS);
	say(fd, text);
	say(other, STATUS);
	assert_string_equal(hear(other), IS_READY);
	for (int i = 0; i < requests; i++)
		assert_string_equal(hear(fd), IS_READY);
	close(fd);
	close(other);
}

static void test_long_answer(void **state)
{
	static char buffer[1 << 16];
	size_t bytes = 0;
	ssize_t n;
	int fd = dial();

	say(fd, CALL "\"long\",\"id\":1}\n" STATUS);
	usleep(50000); /* the socket is full: the rest waits, the server goes on */
	int other = dial();
	say(other, STATUS);
	assert_string_equal(hear(other), IS_READY);
	close(other);
	while ((n = recv(fd, buffer, sizeof(buffer), 0)) > 0) {
		bytes += (size_t)n;
		if (memmem(buffer, (size_t)n, "ready", 5))
			break;
	}
	assert_int_equal(bytes, 7000000 + strlen("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":]}\n") +
					strlen(IS_READY));
	close(fd);
}

static void test_slow_is_answered_and_closed(void **state)
{
	int half = dial(), unread = dial(), idle = dial(), dripping = dial(), i;

	say(half, "{\"jsonrpc\"");
	say(unread, CALL "\"long\",\"id\":1}\n");
	for (i = 0; i < 3000; i++) {
		usleep(10000);
		if (send(dripping, " ", 1, MSG_NOSIGNAL) != 1)
			break;
	}
	assert_in_range(i, 5, 2999);
	assert_hears(half, "not complete in time");
	assert_string_equal(hear(half), "");
	say(idle, CALL "\"stats\",\"id\":1}\n");
	assert_hears(idle, "3 slow, 0 forbidden, 1 now");
	close(half);
	close(unread);
	close(dripping);
	close(idle);
}

static nfds_t hung_up(struct pollfd *fds, nfds_t n)
{
	nfds_t count = 0;

	assert_true(poll(fds, n, 0) >= 0);
	for (nfds_t i = 0; i < n; i++)
		count += (fds[i].revents & POLLHUP) != 0;
	return count;
}

/*
 * How many of six clients that do not read their answers are closed; counted before any of them can
 * be slow. 0: this thread was blocked for too long to know.
 */
static nfds_t sent_away(void)
{
	uint64_t slow_ns = clock_mono_ns() + CONTROL_IDLE_MS * NSEC_PER_MSEC;
	struct pollfd fds[6] = {};
	nfds_t closed = 0;

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i].fd = dial();
		say(fds[i].fd, CALL "\"long\",\"id\":1}\n");
	}
	while (closed < 4 && clock_mono_ns() < slow_ns) {
		usleep(1000);
		closed = hung_up(fds, ARRAY_SIZE(fds));
	}
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i].fd);
	return clock_mono_ns() < slow_ns ? closed : 0;
}

/* Unread answers hold memory: there is a wall for all of them together. */
static void test_unread_answers_have_a_wall(void **state)
{
	nfds_t closed = 0;
	int fd;

	for (int i = 0; i < 40 && !closed; i++)
		closed = sent_away();
	assert_in_range(closed, 4, 5);
	fd = dial();
	say(fd, CALL "\"stats\",\"id\":1}\n");
	assert_null(strstr(hear(fd), " 0 slow"));
	close(fd);
}

/* As another user, with and without the admin group: 0 when the answer has the word. */
static int as_user(gid_t group, const char *word)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		int fd;

		if (setgroups(group ? 1 : 0, &group) < 0 || setgid(65534) < 0 || setuid(65534) < 0)
			_exit(3);
		fd = dial();
		if (fd < 0)
			_exit(2);
		(void)!write(fd, CALL "\"change\",\"id\":1}\n",
			     strlen(CALL "\"change\",\"id\":1}\n"));
		_exit(!strstr(hear(fd), word));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

static void test_permission(void **state)
{
	if (geteuid() != 0)
		skip();
	assert_int_equal(as_user(0, ""), 2); /* 0660: not even connected */
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(as_user(0, "-32001"), 0);
	assert_int_equal(as_user(GID + 1, "-32001"), 0);
	assert_int_equal(as_user(GID, "ready"), 0);
	control_set_user(server, 65534);
	assert_int_equal(as_user(0, "ready"), 0);
	control_set_user(server, 65533);
	assert_int_equal(as_user(0, "-32001"), 0);
}

/* A process of a user with so many idle connections, until it is ended; *ret_served of them had an
 * answer. */
static pid_t idle_clients(uid_t uid, int count, int *ret_served)
{
	int fds[2], served = 0;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		if (setgroups(0, NULL) < 0 || setgid(uid) < 0 || setuid(uid) < 0)
			_exit(3);
		for (int i = 0; i < count; i++) {
			int fd = dial();

			(void)send(fd, STATUS, strlen(STATUS), MSG_NOSIGNAL);
			served += !strcmp(hear(fd), IS_READY);
		}
		(void)!write(fds[1], &served, sizeof(served));
		pause();
		_exit(0);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], ret_served, sizeof(*ret_served)), sizeof(*ret_served));
	close(fds[0]);
	return pid;
}

static void end_process(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/*
 * One user's idle connections lock out no other user: others have their share of places, root any
 * of them.
 */
static void test_places_are_shared(void **state)
{
	pid_t first, second, third;
	int served, fds[4];

	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(path, 0666), 0);
	first = idle_clients(65533, CONTROL_CLIENTS_MAX + 6, &served);
	assert_int_equal(served, CONTROL_CLIENTS_MAX);
	/* Half of them, less the one that would only be passed to and fro. */
	second = idle_clients(65532, CONTROL_CLIENTS_MAX, &served);
	assert_in_range(served, CONTROL_CLIENTS_MAX / 2 - 1, CONTROL_CLIENTS_MAX / 2);
	third = idle_clients(65531, 8, &served);
	assert_int_equal(served, 8);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = dial();
		say(fds[i], STATUS);
		assert_string_equal(hear(fds[i]), IS_READY);
	}
	/* And root's are not taken by them. */
	end_process(second);
	second = idle_clients(65530, CONTROL_CLIENTS_MAX, &served);
	assert_true(served > 0);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		say(fds[i], STATUS);
		assert_string_equal(hear(fds[i]), IS_READY);
		close(fds[i]);
	}
	end_process(first);
	end_process(second);
	end_process(third);
}

static void test_path(void **state)
{
	struct control_server *first = NULL, *second = NULL;
	struct stat st;
	char long_path[200];
	int fd;

	assert_int_equal(control_new(loop, path, geteuid() ? (gid_t)-1 : GID, (gid_t)-1, methods,
				     NULL, &first),
			 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	if (!geteuid())
		assert_int_equal(st.st_gid, GID);
	assert_int_equal(control_new(loop, path, (gid_t)-1, (gid_t)-1, methods, NULL, &second),
			 -EADDRINUSE);
	assert_int_equal(access(path, F_OK), 0);
	/* Somebody else's socket in our place stays. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(control_new(loop, path, (gid_t)-1, (gid_t)-1, methods, NULL, &second), 0);
	control_free(first);
	assert_int_equal(access(path, F_OK), 0);
	control_free(second);
	assert_int_equal(access(path, F_OK), -1);
	/* A stale one goes. */
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	snprintf(address.sun_path, sizeof(address.sun_path), "%.90s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	assert_int_equal(control_new(loop, path, (gid_t)-1, (gid_t)-1, methods, NULL, &first), 0);
	control_free(first);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	close(fd);
	assert_int_equal(control_new(loop, path, (gid_t)-1, (gid_t)-1, methods, NULL, &first),
			 -EEXIST);
	memset(long_path, 'x', sizeof(long_path));
	long_path[sizeof(long_path) - 1] = 0;
	assert_int_equal(control_new(loop, long_path, (gid_t)-1, (gid_t)-1, methods, NULL, &first),
			 -ENAMETOOLONG);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

UNIT_TESTS(control)
{
	const struct CMUnitTest tests[] = {
		TEST(answers),
		TEST(half_closed),
		TEST(malformed_is_answered_and_closed),
		TEST(too_long_is_answered_and_closed),
		TEST(longest),
		TEST(many_clients),
		TEST(close_is_reported),
		TEST(pipeline),
		TEST(long_answer),
		TEST(slow_is_answered_and_closed),
		TEST(unread_answers_have_a_wall),
		TEST(permission),
		TEST(places_are_shared),
		cmocka_unit_test_setup_teardown(test_path, make_dir, remove_dir),
	};

	return cmocka_run_group_tests_name("control", tests, NULL, NULL);
}
