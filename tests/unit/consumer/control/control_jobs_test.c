/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests that take longer than a turn of the loop. */
#include "shared/json/jsonw.h"
#include "tests/unit/consumer/testing/control_testing.h"

static int jobs_begun, jobs_freed; /* atomic, as the next */
static int jobs_may_end;
static int held_fd;

static int step_job(struct control_job *job, struct jsonw *result, struct control_error *error)
{
	if (!__atomic_load_n(&jobs_may_end, __ATOMIC_ACQUIRE))
		return 1;
	jsonw_string(result, NULL, "done");
	return 0;
}

static void free_job(struct control_job *job)
{
	__atomic_add_fetch(&jobs_freed, 1, __ATOMIC_RELEASE);
	free(job);
}

static int begin_job(void *context, const struct control_peer *peer, const struct json_node *params,
		     struct control_job **ret_job, struct control_error *error)
{
	*ret_job = malloc(sizeof(**ret_job));
	assert_non_null(*ret_job);
	**ret_job = (struct control_job){ .step = step_job, .free = free_job };
	__atomic_add_fetch(&jobs_begun, 1, __ATOMIC_RELEASE);
	return 0;
}

static const struct control_method methods[] = {
	{ "status", false, do_status },
	{ "stop", true, do_stop },
	{ "job", false, .begin = begin_job },
	{ 0 },
};

static int setup(void **state)
{
	return begin_server(state, methods);
}

#define JOB(id) CALL "\"job\",\"id\":" id "}\n"

static void await_count(const int *count, int n)
{
	for (int i = 0; i < 3000 && __atomic_load_n(count, __ATOMIC_ACQUIRE) != n; i++)
		usleep(10000);
	assert_int_equal(__atomic_load_n(count, __ATOMIC_ACQUIRE), n);
}

static void let_jobs_end(bool may)
{
	__atomic_store_n(&jobs_may_end, may, __ATOMIC_RELEASE);
}

/* While one request is in progress others are answered; its own answers keep their order and ids.
 */
static void test_job(void **state)
{
	int fd = dial(), other = dial();

	jobs_begun = jobs_freed = 0;
	let_jobs_end(false);
	say(fd, JOB("\"a\\nb\"") STATUS JOB("-7"));
	await_count(&jobs_begun, 1);
	for (int i = 0; i < 3; i++) {
		say(other, STATUS);
		assert_string_equal(hear(other), IS_READY);
	}
	assert_int_equal(recv(fd, (char[1]){ 0 }, 1, MSG_DONTWAIT), -1);
	let_jobs_end(true);
	assert_string_equal(hear(fd),
			    "{\"jsonrpc\":\"2.0\",\"id\":\"a\\nb\",\"result\":\"done\"}\n");
	assert_string_equal(hear(fd), IS_READY);
	assert_string_equal(hear(fd), "{\"jsonrpc\":\"2.0\",\"id\":-7,\"result\":\"done\"}\n");
	assert_int_equal(__atomic_load_n(&jobs_freed, __ATOMIC_ACQUIRE), 2);
	close(fd);
	close(other);
}

/*
 * Who closes the connection withdraws the request; a client that only stops sending gets its
 * answer.
 */
static void test_job_closed(void **state)
{
	int fd = dial(), half = dial();

	jobs_begun = jobs_freed = 0;
	let_jobs_end(false);
	say(fd, JOB("1"));
	say(half, JOB("2"));
	assert_int_equal(shutdown(half, SHUT_WR), 0);
	await_count(&jobs_begun, 2);
	close(fd);
	await_count(&jobs_freed, 1);
	let_jobs_end(true);
	assert_hears(half, "\"id\":2,\"result\":\"done\"");
	assert_string_equal(hear(half), "");
	close(half);
	let_jobs_end(false);
}

/* One more than may be in progress is refused; another request is served. */
static void test_jobs_have_a_wall(void **state)
{
	const struct timeval patience = { .tv_sec = 3 };
	int fds[CONTROL_JOBS_MAX], more = dial();

	jobs_begun = jobs_freed = 0;
	let_jobs_end(false);
	for (int i = 0; i < CONTROL_JOBS_MAX; i++) {
		fds[i] = dial();
		say(fds[i], JOB("1"));
		await_count(&jobs_begun, i + 1);
	}
	setsockopt(more, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	say(more, JOB("9") STATUS);
	assert_hears(more, "-32005");
	assert_string_equal(hear(more), IS_READY);
	assert_int_equal(__atomic_load_n(&jobs_freed, __ATOMIC_ACQUIRE), 1);
	let_jobs_end(true);
	for (int i = 0; i < CONTROL_JOBS_MAX; i++) {
		assert_hears(fds[i], "done");
		close(fds[i]);
	}
	say(more, JOB("9"));
	assert_hears(more, "done");
	close(more);
}

/* Leaves a request in progress: it ends with the server, as teardown_job checks. */
static void test_job_at_the_end(void **state)
{
	jobs_begun = jobs_freed = 0;
	let_jobs_end(false);
	held_fd = dial();
	say(held_fd, JOB("1"));
	await_count(&jobs_begun, 1);
}

static int teardown_job(void **state)
{
	int r = teardown(state);

	close(held_fd);
	return r == 0 && jobs_freed == 1 ? 0 : -1;
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

UNIT_TESTS(control_jobs)
{
	const struct CMUnitTest tests[] = {
		TEST(job),
		TEST(job_closed),
		TEST(jobs_have_a_wall),
		cmocka_unit_test_setup_teardown(test_job_at_the_end, setup, teardown_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
