/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/output_testing.h"

static void test_file_order(void **state)
{
	struct output_queue_stats stats;
	struct output *o;
	struct stat st;

	umask(0);
	assert_int_equal(output_queue_new(path, 4096, &o), 0);
	assert_int_equal(output_queue_kind(o), OUTPUT_FILE);
	assert_string_equal(output_queue_path(o), path);
	assert_int_equal(output_queue_start(o), 0);
	for (unsigned int i = 0; i < 5000; i++)
		while (!put_number(o, "a", i, i % 100))
			usleep(100);
	output_queue_stop(o, 5000);
	output_queue_stats(o, &stats);
	output_queue_free(o);
	assert_int_equal(stats.lines, 5000);
	assert_int_equal(stats.queued_bytes, 0);
	assert_int_equal(check_file(path), 5000);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, stats.bytes);
	assert_int_equal(st.st_mode & 07777, 0640);
}

static void test_refusals(void **state)
{
	struct output_queue_stats stats;
	struct output *o;

	assert_int_equal(output_queue_new(path, 0, &o), -EINVAL);
	assert_int_equal(output_queue_new("/nonexistent/x", 100, &o), -ENOENT);
	assert_int_equal(output_queue_new("unix:/nonexistent/x", 100, &o), -ENOENT);
	assert_int_equal(output_queue_new(path, 8, &o), 0);
	assert_false(output_queue_put(o, "123456789\n", 10, 1));
	assert_false(output_queue_put(o, "half", 4, 1));
	assert_true(output_queue_put(o, "1234567\n", 8, 1));
	assert_false(output_queue_put(o, "\n", 1, 1));
	output_queue_stats(o, &stats);
	assert_int_equal(stats.dropped_lines, 3);
	assert_int_equal(stats.dropped_bytes, 15);
	output_queue_stop(o, 0); /* never started */
	output_queue_stats(o, &stats);
	assert_int_equal(stats.dropped_lines, 4);
	output_queue_free(o);
}

static void test_idle_sleeps(void **state)
{
	struct rusage before, after;
	struct output *o;

	assert_int_equal(output_queue_new(path, 4096, &o), 0);
	assert_int_equal(output_queue_start(o), 0);
	assert_true(put_number(o, "a", 0, 1));
	wait_lines(o, 1);
	usleep(20000);
	getrusage(RUSAGE_SELF, &before);
	sleep(1);
	getrusage(RUSAGE_SELF, &after);
	output_queue_stop(o, 100);
	output_queue_free(o);
	/* One switch for our own sleep, nothing for the thread; some for the sanitizers' threads.
	 */
	assert_true(after.ru_nvcsw - before.ru_nvcsw <= 5);
}

static void test_stopped_reader(void **state)
{
	struct output_queue_stats stats;
	struct output *o;
	char text[1 << 16];
	size_t bytes = 0;
	unsigned int kept = 0;
	int fd;

	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(output_queue_new(path, 8192, &o), 0); /* without a reader */
	assert_int_equal(output_queue_kind(o), OUTPUT_FIFO);
	assert_int_equal(output_queue_start(o), 0);
	fd = open(path, O_RDONLY | O_NONBLOCK);
	assert_true(fd >= 0);
	for (unsigned int i = 0; i < 3000; i++) {
		kept += put_number(o, "a", i, 100);
		usleep(10);
	}
	assert_true(kept < 3000);
	output_queue_stats(o, &stats);
	assert_int_equal(stats.dropped_lines, 3000 - kept);
	assert_int_equal(stats.write_errors, 0);
	_cleanup_free_ char *all = calloc(1, 1 << 20);
	for (int i = 0; i < 5000 && stats.lines < kept; i++) {
		ssize_t n = read(fd, text, sizeof(text));

		if (n > 0) {
			memcpy(all + bytes, text, (size_t)n);
			bytes += (size_t)n;
		}
		usleep(1000);
		output_queue_stats(o, &stats);
	}
	assert_int_equal(stats.lines, kept);
	for (ssize_t n; (n = read(fd, text, sizeof(text))) > 0; bytes += (size_t)n)
		memcpy(all + bytes, text, (size_t)n);
	assert_int_equal(check_text(all), kept);
	output_queue_stop(o, 100);
	output_queue_free(o);
	close(fd);
}

/* The end does not wait longer than its limit for a reader that stopped, and counts the rest. */
static void test_stop_times_out(void **state)
{
	struct output_queue_stats stats;
	struct output *o;
	unsigned int kept = 0;
	uint64_t start_ns;

	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(output_queue_new(path, 1 << 20, &o), 0);
	assert_int_equal(output_queue_start(o), 0);
	for (unsigned int i = 0; i < 2000; i++)
		kept += put_number(o, "a", i, 100);
	assert_int_equal(kept, 2000);
	start_ns = clock_mono_ns();
	output_queue_stop(o, 100);
	assert_in_range((clock_mono_ns() - start_ns) / NSEC_PER_MSEC, 90, 3000);
	output_queue_stats(o, &stats);
	assert_int_equal(stats.lines + stats.dropped_lines, 2000);
	assert_true(stats.dropped_lines > 0);
	output_queue_free(o);
}

struct producer {
	struct output *o;
	const char *who;
	uint64_t kept;
};

static void *produce(void *context)
{
	struct producer *p = context;

	for (unsigned int i = 0; i < 20000; i++)
		p->kept += put_number(p->o, p->who, i, 100);
	return NULL;
}

static void test_two_producers(void **state)
{
	struct producer p[2] = { { .who = "a" }, { .who = "b" } };
	struct output_queue_stats stats;
	pthread_t threads[2];
	struct output *o;

	assert_int_equal(output_queue_new(path, 32768, &o), 0);
	assert_int_equal(output_queue_start(o), 0);
	for (int i = 0; i < 2; i++) {
		p[i].o = o;
		assert_int_equal(pthread_create(&threads[i], NULL, produce, &p[i]), 0);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	output_queue_stop(o, 5000);
	output_queue_stats(o, &stats);
	output_queue_free(o);
	assert_int_equal(stats.lines, p[0].kept + p[1].kept);
	assert_int_equal(stats.lines + stats.dropped_lines, 40000);
	assert_int_equal(check_file(path), stats.lines);
}

static void test_stdout_pipe(void **state)
{
	int saved = dup(STDOUT_FILENO), p[2];
	struct output_queue_stats stats;
	struct output *o;
	char text[64] = "";

	fflush(stdout);
	assert_int_equal(pipe(p), 0);
	dup2(p[1], STDOUT_FILENO);
	assert_int_equal(output_queue_new("-", 4096, &o), 0);
	assert_null(output_queue_path(o));
	assert_int_equal(output_queue_start(o), 0);
	output_queue_reopen(o); /* means nothing here */
	assert_true(put_number(o, "a", 0, 1));
	wait_lines(o, 1);
	assert_int_equal(read(p[0], text, sizeof(text)), 6);
	assert_int_equal(fcntl(STDOUT_FILENO, F_GETFL) & O_NONBLOCK, 0);
	close(p[0]); /* SIGPIPE would end the test */
	assert_true(put_number(o, "a", 1, 1));
	wait_error(o, EPIPE, 1);
	output_queue_stop(o, 0);
	output_queue_stats(o, &stats);
	output_queue_free(o);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	close(p[1]);
	assert_int_equal(stats.dropped_lines, 1);
}

static bool has_ended(const struct output *o, int timeout_ms)
{
	struct pollfd p = { .fd = output_queue_ended_fd(o), .events = POLLIN };

	return poll(&p, 1, timeout_ms) == 1;
}

/*
 * The reader of a pipe without a name ends: no other thread can take its place. One with a name
 * may.
 */
static void test_ended_for_good(void **state)
{
	int saved = dup(STDOUT_FILENO), p[2], fifo, reader;
	struct output_queue_left left;
	struct output *o;

	fflush(stdout);
	assert_int_equal(pipe(p), 0);
	dup2(p[1], STDOUT_FILENO);
	assert_int_equal(output_queue_new("-", 4096, &o), 0);
	assert_int_equal(output_queue_start(o), 0);
	assert_false(has_ended(o, 0));
	close(p[0]);
	assert_true(put_number(o, "a", 0, 1));
	assert_true(has_ended(o, 5000));
	assert_true(put_number(o, "a", 1, 1));
	left = output_queue_stop(o, 60000); /* at once */
	output_queue_free(o);
	close(p[1]);
	assert_int_equal(left.lines, 2);
	assert_int_equal(mkfifo(path, 0600), 0);
	reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	fifo = open(path, O_WRONLY | O_CLOEXEC);
	dup2(fifo, STDOUT_FILENO);
	assert_int_equal(output_queue_new("-", 4096, &o), 0);
	assert_int_equal(output_queue_start(o), 0);
	close(reader);
	assert_true(put_number(o, "a", 0, 1));
	wait_error(o, EPIPE, 1);
	assert_false(has_ended(o, 50));
	reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	wait_lines(o, 1);
	output_queue_stop(o, 100);
	output_queue_free(o);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	close(fifo);
	close(reader);
}

/* What is left at the end is counted, also across the ring's end, and sessions by their last lines.
 */
static void test_left_at_the_end(void **state)
{
	static const char end[] = "{\"v\":1,\"type\":\"session.end\",\"x\":0}\n",
			  other[] = "{\"v\":1,\"type\":\"stack\",\"fn\":\"session.end\"}\n";
	struct output_queue_left left;
	struct output_queue_stats stats;
	struct output *o;
	int reader;

	assert_int_equal(mkfifo(path, 0600), 0);
	reader = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	fcntl(reader, F_SETPIPE_SZ, 4096);
	assert_int_equal(output_queue_new(path, 8192, &o), 0);
	assert_int_equal(output_queue_start(o), 0);
	for (uint64_t written = 0; written < 6000; written += 2 * sizeof(end)) {
		char text[8192];

		assert_true(output_queue_put(o, end, strlen(end), 1));
		usleep(1000);
		(void)!read(reader, text, sizeof(text));
	}
	while (output_queue_put(o, end, strlen(end), 1) &&
	       output_queue_put(o, other, strlen(other), 1))
		;
	usleep(100000); /* the pipe is full too */
	output_queue_stats(o, &stats);
	left = output_queue_stop(o, 10);
	assert_int_equal(left.bytes, stats.queued_bytes);
	assert_in_range(left.lines, stats.queued_bytes / sizeof(other),
			stats.queued_bytes / sizeof(end) + 1);
	assert_in_range(left.sessions, left.lines / 2, left.lines / 2 + 1);
	assert_int_equal(output_queue_stop(o, 10).lines, 0);
	output_queue_stats(o, &stats);
	assert_true(stats.dropped_lines >= left.lines);
	output_queue_free(o);
	close(reader);
}

static void test_throughput(void **state)
{
	char line[512];
	struct output *o;
	const unsigned int lines = 200000;
	uint64_t start_ns, ns;

	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 1] = '\n';
	assert_int_equal(output_queue_new("/dev/null", 4 << 20, &o), 0);
	assert_int_equal(output_queue_start(o), 0);
	start_ns = clock_mono_ns();
	for (unsigned int i = 0; i < lines; i++)
		while (!output_queue_put(o, line, sizeof(line), 1))
			usleep(50);
	wait_lines(o, lines);
	ns = clock_mono_ns() - start_ns;
	output_queue_stop(o, 100);
	output_queue_free(o);
	print_message("%.2f M lines/s of 512 bytes\n", (double)lines * 1000.0 / (double)ns);
	assert_true(ns < 10 * NSEC_PER_SEC);
}

/* Only a program with AddressSanitizer has it. */
extern void __asan_init(void) __attribute__((weak));

static size_t resident_pages(void)
{
	unsigned long whole, resident;
	FILE *f = fopen("/proc/self/statm", "re");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu %lu", &whole, &resident), 2);
	fclose(f);
	return resident;
}

/* Lines that wait stay; when all are written, their memory is given back, and others follow. */
static void test_give_back(void **state)
{
	_cleanup_free_ char *text = NULL;
	struct output *o;
	char line[512];
	const unsigned int lines = 4000;
	size_t before, bytes, at = 0;

	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 1] = '\n';
	assert_int_equal(output_queue_new(path, 4 << 20, &o), 0);
	for (unsigned int i = 0; i < lines; i++)
		assert_true(output_queue_put(o, line, sizeof(line), 1));
	output_queue_give_back(o);
	assert_int_equal(output_queue_start(o), 0);
	wait_lines(o, lines);
	before = resident_pages();
	output_queue_give_back(o);
	/* A sanitizer's own memory grows meanwhile. */
	if (!__asan_init)
		assert_true(resident_pages() + (1u << 20) / (size_t)sysconf(_SC_PAGESIZE) < before);
	assert_true(output_queue_put(o, line, sizeof(line), 1));
	wait_lines(o, lines + 1);
	output_queue_stop(o, 100);
	output_queue_free(o);
	assert_int_equal(io_read_file(AT_FDCWD, path, 4u << 20, &text, &bytes), 0);
	assert_int_equal(bytes, (lines + 1) * sizeof(line));
	for (unsigned int i = 0; i <= lines; i++, at += sizeof(line))
		assert_memory_equal(text + at, line, sizeof(line));
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

UNIT_TESTS(output_queue)
{
	const struct CMUnitTest tests[] = {
		TEST(file_order),     TEST(refusals),	     TEST(idle_sleeps),
		TEST(stopped_reader), TEST(stop_times_out),  TEST(two_producers),
		TEST(stdout_pipe),    TEST(throughput),	     TEST(give_back),
		TEST(ended_for_good), TEST(left_at_the_end),
	};

	return cmocka_run_group_tests_name("output", tests, NULL, NULL);
}
