/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "consumer/output.h"
#include "shared/cleanup.h"
#include "shared/clock.h"
#include "shared/io.h"
#include "shared/macro.h"

#define FILE_MAX (256u << 20)

static char dir[64], path[96], path2[96];

static int setup(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/trocar-output-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/out", dir);
	snprintf(path2, sizeof(path2), "%s/out.1", dir);
	return 0;
}

static int teardown(void **state)
{
	unlink(path);
	unlink(path2);
	return rmdir(dir);
}

static bool put_number(struct output *o, const char *who, unsigned int n, size_t pad)
{
	char line[4096];
	int bytes = snprintf(line, sizeof(line), "%s %u %0*d\n", who, n, (int)pad, 0);

	return output_put(o, line, (size_t)bytes, 1);
}

/* Waits until `lines` are written; fails after 5 s. */
static void wait_lines(struct output *o, uint64_t lines)
{
	struct output_stats stats;

	for (int i = 0; i < 5000; i++) {
		output_stats(o, &stats);
		if (stats.lines >= lines)
			return;
		usleep(1000);
	}
	fail_msg("%lu of %lu lines", (unsigned long)stats.lines, (unsigned long)lines);
}

static void wait_error(struct output *o, int error, uint64_t at_least)
{
	struct output_stats stats;

	for (int i = 0; i < 5000; i++) {
		output_stats(o, &stats);
		if (stats.last_error == error && stats.write_errors >= at_least)
			return;
		usleep(1000);
	}
	fail_msg("error %d (%lu times)", stats.last_error, (unsigned long)stats.write_errors);
}

/* Every line is "who number 000", whole, the numbers of each who growing. Returns the lines. */
static unsigned int check_text(char *text)
{
	unsigned int lines = 0;
	long last[2] = { -1, -1 };

	for (char *save = NULL, *line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		char who[8];
		unsigned int n;
		int end = 0;

		assert_int_equal(sscanf(line, "%7s %u 0%n", who, &n, &end), 2);
		assert_true(end > 0);
		assert_int_equal(strspn(line + end, "0"), strlen(line + end));
		assert_true((long)n > last[who[0] == 'b']);
		last[who[0] == 'b'] = n;
		lines++;
	}
	return lines;
}

static unsigned int check_file(const char *name)
{
	_cleanup_free_ char *text = NULL;
	size_t bytes;

	assert_int_equal(io_read_file(AT_FDCWD, name, FILE_MAX, &text, &bytes), 0);
	if (bytes)
		assert_int_equal(text[bytes - 1], '\n');
	return check_text(text);
}

static void test_file_order(void **state)
{
	struct output_stats stats;
	struct output *o;
	struct stat st;

	umask(0);
	assert_int_equal(output_new(path, 4096, &o), 0);
	assert_int_equal(output_kind(o), OUTPUT_FILE);
	assert_string_equal(output_path(o), path);
	assert_int_equal(output_start(o), 0);
	for (unsigned int i = 0; i < 5000; i++)
		while (!put_number(o, "a", i, i % 100))
			usleep(100);
	output_stop(o, 5000);
	output_stats(o, &stats);
	output_free(o);
	assert_int_equal(stats.lines, 5000);
	assert_int_equal(stats.queued_bytes, 0);
	assert_int_equal(check_file(path), 5000);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, stats.bytes);
	assert_int_equal(st.st_mode & 07777, 0640);
}

static void test_refusals(void **state)
{
	struct output_stats stats;
	struct output *o;

	assert_int_equal(output_new(path, 0, &o), -EINVAL);
	assert_int_equal(output_new("/nonexistent/x", 100, &o), -ENOENT);
	assert_int_equal(output_new("unix:/nonexistent/x", 100, &o), -ENOENT);
	assert_int_equal(output_new(path, 8, &o), 0);
	assert_false(output_put(o, "123456789\n", 10, 1));
	assert_false(output_put(o, "half", 4, 1));
	assert_true(output_put(o, "1234567\n", 8, 1));
	assert_false(output_put(o, "\n", 1, 1));
	output_stats(o, &stats);
	assert_int_equal(stats.dropped_lines, 3);
	assert_int_equal(stats.dropped_bytes, 15);
	output_stop(o, 0); /* never started */
	output_stats(o, &stats);
	assert_int_equal(stats.dropped_lines, 4);
	output_free(o);
}

static void test_idle_sleeps(void **state)
{
	struct rusage before, after;
	struct output *o;

	assert_int_equal(output_new(path, 4096, &o), 0);
	assert_int_equal(output_start(o), 0);
	assert_true(put_number(o, "a", 0, 1));
	wait_lines(o, 1);
	usleep(20000);
	getrusage(RUSAGE_SELF, &before);
	sleep(1);
	getrusage(RUSAGE_SELF, &after);
	output_stop(o, 100);
	output_free(o);
	/* One switch for our own sleep, nothing for the thread; some for the sanitizers' threads.
	 */
	assert_true(after.ru_nvcsw - before.ru_nvcsw <= 5);
}

static void test_stopped_reader(void **state)
{
	struct output_stats stats;
	struct output *o;
	char text[1 << 16];
	size_t bytes = 0;
	unsigned int kept = 0;
	int fd;

	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(output_new(path, 8192, &o), 0); /* without a reader */
	assert_int_equal(output_kind(o), OUTPUT_FIFO);
	assert_int_equal(output_start(o), 0);
	fd = open(path, O_RDONLY | O_NONBLOCK);
	assert_true(fd >= 0);
	for (unsigned int i = 0; i < 3000; i++) {
		kept += put_number(o, "a", i, 100);
		usleep(10);
	}
	assert_true(kept < 3000);
	output_stats(o, &stats);
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
		output_stats(o, &stats);
	}
	assert_int_equal(stats.lines, kept);
	for (ssize_t n; (n = read(fd, text, sizeof(text))) > 0; bytes += (size_t)n)
		memcpy(all + bytes, text, (size_t)n);
	assert_int_equal(check_text(all), kept);
	output_stop(o, 100);
	output_free(o);
	close(fd);
}

/* The end does not wait longer than told for a reader that stopped, and counts what is left. */
static void test_stop_times_out(void **state)
{
	struct output_stats stats;
	struct output *o;
	unsigned int kept = 0;
	uint64_t start_ns;

	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(output_new(path, 1 << 20, &o), 0);
	assert_int_equal(output_start(o), 0);
	for (unsigned int i = 0; i < 2000; i++)
		kept += put_number(o, "a", i, 100);
	assert_int_equal(kept, 2000);
	start_ns = clock_mono_ns();
	output_stop(o, 100);
	assert_in_range((clock_mono_ns() - start_ns) / NSEC_PER_MSEC, 90, 3000);
	output_stats(o, &stats);
	assert_int_equal(stats.lines + stats.dropped_lines, 2000);
	assert_true(stats.dropped_lines > 0);
	output_free(o);
}

static void test_dev_full(void **state)
{
	struct output_stats stats;
	struct output *o;

	assert_int_equal(output_new("/dev/full", 4096, &o), 0);
	assert_int_equal(output_start(o), 0);
	assert_true(put_number(o, "a", 0, 1));
	wait_error(o, ENOSPC, 3); /* at once, after 100 and after 300 ms */
	output_stats(o, &stats);
	assert_int_equal(stats.lines, 0);
	assert_in_range(stats.write_errors, 3, 6);
	output_stop(o, 10);
	output_stats(o, &stats);
	assert_int_equal(stats.dropped_lines, 1);
	output_free(o);
}

/* A disk that fills in the middle of a line, and is freed: the line is completed, none is cut. */
static void test_full_disk_freed(void **state)
{
	struct output_stats stats;
	struct output *o;
	unsigned int kept = 0;
	_cleanup_close_ int fd = -1;
	char filler[96], page[4096] = "";

	if (geteuid() != 0 || mount("tmpfs", dir, "tmpfs", 0, "size=64k") < 0)
		skip();
	snprintf(filler, sizeof(filler), "%s/filler", dir);
	fd = open(filler, O_WRONLY | O_CREAT, 0600);
	for (int i = 0; i < 12; i++)
		assert_int_equal(write(fd, page, sizeof(page)), sizeof(page));
	assert_int_equal(output_new(path, 1 << 20, &o), 0);
	assert_int_equal(output_start(o), 0);
	for (unsigned int i = 0; i < 300; i++)
		kept += put_number(o, "a", i, 100);
	wait_error(o, ENOSPC, 1);
	output_stats(o, &stats);
	assert_true(stats.lines > 0 && stats.lines < 300);
	assert_int_equal(unlink(filler), 0);
	close(TAKE_FD(fd));
	wait_lines(o, kept);
	output_stats(o, &stats);
	assert_int_equal(stats.last_error, 0);
	output_stop(o, 100);
	output_free(o);
	assert_int_equal(check_file(path), 300);
	assert_int_equal(umount(dir), 0);
}

/* The old file is full in the middle of a line when it is rotated: the new one has it whole. */
static void test_reopen_from_full(void **state)
{
	struct output *o;
	char sub[96], file[128];

	snprintf(sub, sizeof(sub), "%s/small", dir);
	snprintf(file, sizeof(file), "%s/out", sub);
	assert_int_equal(mkdir(sub, 0700), 0);
	if (geteuid() != 0 || mount("tmpfs", sub, "tmpfs", 0, "size=8k") < 0) {
		rmdir(sub);
		skip();
	}
	assert_int_equal(symlink(file, path), 0);
	assert_int_equal(output_new(path, 1 << 20, &o), 0);
	assert_int_equal(output_start(o), 0);
	for (unsigned int i = 0; i < 200; i++)
		assert_true(put_number(o, "a", i, 100));
	wait_error(o, ENOSPC, 1);
	assert_int_equal(unlink(path), 0);
	output_reopen(o);
	wait_lines(o, 200);
	output_stop(o, 100);
	output_free(o);
	assert_in_range(check_file(path), 100, 199);
	assert_int_equal(umount(sub), 0);
	assert_int_equal(rmdir(sub), 0);
}

static void test_rotation(void **state)
{
	struct output_stats stats;
	struct output *o;

	assert_int_equal(output_new(path, 1 << 20, &o), 0);
	assert_int_equal(output_start(o), 0);
	for (unsigned int i = 0; i < 1000; i++)
		assert_true(put_number(o, "a", i, 50));
	wait_lines(o, 1000);
	assert_int_equal(rename(path, path2), 0);
	output_reopen(o);
	for (int i = 0; i < 5000 && access(path, F_OK) < 0; i++)
		usleep(1000);
	for (unsigned int i = 1000; i < 1500; i++)
		assert_true(put_number(o, "a", i, 50));
	output_stop(o, 5000);
	output_stats(o, &stats);
	output_free(o);
	assert_int_equal(stats.write_errors, 0);
	assert_int_equal(check_file(path2), 1000);
	assert_int_equal(check_file(path), 500);
}

/* The directory is gone at reopen: the old file goes on, the error shows, and it heals. */
static void test_reopen_fails_then_heals(void **state)
{
	struct output_stats stats;
	struct output *o;
	char sub[96], moved[96], file[128];

	snprintf(sub, sizeof(sub), "%s/sub", dir);
	snprintf(moved, sizeof(moved), "%s/moved", dir);
	snprintf(file, sizeof(file), "%s/out", sub);
	assert_int_equal(mkdir(sub, 0700), 0);
	assert_int_equal(output_new(file, 1 << 20, &o), 0);
	assert_int_equal(output_start(o), 0);
	assert_int_equal(rename(sub, moved), 0);
	output_reopen(o);
	wait_error(o, ENOENT, 1);
	assert_true(put_number(o, "a", 0, 1));
	wait_lines(o, 1);
	wait_error(o, ENOENT, 1); /* a line that went well does not hide it */
	assert_int_equal(mkdir(sub, 0700), 0);
	for (int i = 0; i < 5000 && access(file, F_OK) < 0; i++)
		usleep(1000);
	assert_true(put_number(o, "a", 1, 1));
	wait_lines(o, 2);
	output_stats(o, &stats);
	assert_int_equal(stats.last_error, 0);
	output_stop(o, 100);
	output_free(o);
	assert_int_equal(check_file(file), 1);
	unlink(file);
	rmdir(sub);
	snprintf(file, sizeof(file), "%s/out", moved);
	assert_int_equal(check_file(file), 1);
	unlink(file);
	rmdir(moved);
}

static int listen_unix(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%.90s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 4), 0);
	return fd;
}

/* The peer closes while lines wait: what it had not taken goes whole to the next connection. */
static void test_unix_reconnects(void **state)
{
	struct output_stats stats;
	struct output *o;
	char where[128], text[4096];
	ssize_t n;
	int listener = listen_unix(), peer, small = 4096;

	snprintf(where, sizeof(where), "unix:%s", path);
	assert_int_equal(output_new(where, 1 << 20, &o), 0);
	assert_int_equal(output_kind(o), OUTPUT_UNIX);
	assert_int_equal(output_start(o), 0);
	peer = accept(listener, NULL, NULL);
	setsockopt(peer, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	assert_true(put_number(o, "a", 0, 10));
	n = read(peer, text, sizeof(text));
	assert_true(n > 0 && text[n - 1] == '\n');
	close(peer);
	assert_true(put_number(o, "a", 1, 10));
	peer = accept(listener, NULL, NULL);
	n = read(peer, text, sizeof(text) - 1);
	assert_true(n > 0);
	text[n] = 0;
	assert_int_equal(check_text(text), 1);
	output_stats(o, &stats);
	assert_in_range(stats.write_errors, 1, 2);
	output_stop(o, 100);
	output_free(o);
	close(peer);
	close(listener);
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
	struct output_stats stats;
	pthread_t threads[2];
	struct output *o;

	assert_int_equal(output_new(path, 32768, &o), 0);
	assert_int_equal(output_start(o), 0);
	for (int i = 0; i < 2; i++) {
		p[i].o = o;
		assert_int_equal(pthread_create(&threads[i], NULL, produce, &p[i]), 0);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	output_stop(o, 5000);
	output_stats(o, &stats);
	output_free(o);
	assert_int_equal(stats.lines, p[0].kept + p[1].kept);
	assert_int_equal(stats.lines + stats.dropped_lines, 40000);
	assert_int_equal(check_file(path), stats.lines);
}

static void test_stdout_pipe(void **state)
{
	int saved = dup(STDOUT_FILENO), p[2];
	struct output_stats stats;
	struct output *o;
	char text[64] = "";

	fflush(stdout);
	assert_int_equal(pipe(p), 0);
	dup2(p[1], STDOUT_FILENO);
	assert_int_equal(output_new("-", 4096, &o), 0);
	assert_null(output_path(o));
	assert_int_equal(output_start(o), 0);
	output_reopen(o); /* means nothing here */
	assert_true(put_number(o, "a", 0, 1));
	wait_lines(o, 1);
	assert_int_equal(read(p[0], text, sizeof(text)), 6);
	assert_int_equal(fcntl(STDOUT_FILENO, F_GETFL) & O_NONBLOCK, 0);
	close(p[0]); /* SIGPIPE would end the test */
	assert_true(put_number(o, "a", 1, 1));
	wait_error(o, EPIPE, 1);
	output_stop(o, 0);
	output_stats(o, &stats);
	output_free(o);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	close(p[1]);
	assert_int_equal(stats.dropped_lines, 1);
}

static void test_throughput(void **state)
{
	char line[512];
	struct output *o;
	const unsigned int lines = 200000;
	uint64_t start_ns, ns;

	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 1] = '\n';
	assert_int_equal(output_new("/dev/null", 4 << 20, &o), 0);
	assert_int_equal(output_start(o), 0);
	start_ns = clock_mono_ns();
	for (unsigned int i = 0; i < lines; i++)
		while (!output_put(o, line, sizeof(line), 1))
			usleep(50);
	wait_lines(o, lines);
	ns = clock_mono_ns() - start_ns;
	output_stop(o, 100);
	output_free(o);
	print_message("%.2f M lines/s of 512 bytes\n", (double)lines * 1000.0 / (double)ns);
	assert_true(ns < 10 * NSEC_PER_SEC);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(file_order),      TEST(refusals),
		TEST(idle_sleeps),     TEST(stopped_reader),
		TEST(stop_times_out),  TEST(dev_full),
		TEST(full_disk_freed), TEST(reopen_from_full),
		TEST(rotation),	       TEST(reopen_fails_then_heals),
		TEST(unix_reconnects), TEST(two_producers),
		TEST(stdout_pipe),     TEST(throughput),
	};

	return cmocka_run_group_tests_name("output", tests, NULL, NULL);
}
