/* SPDX-License-Identifier: BSD-2-Clause */
/* Sinks that fail, move and come back, through the output that writes to them. */
#include "tests/unit/consumer/testing/output_testing.h"

static void test_dev_full(void **state)
{
	struct output_queue_stats stats;
	struct output *o;

	assert_int_equal(output_queue_new("/dev/full", 4096, &o), 0);
	assert_int_equal(output_queue_start(o), 0);
	assert_true(put_number(o, "a", 0, 1));
	wait_error(o, ENOSPC, 3); /* at once, after 100 and after 300 ms */
	output_queue_stats(o, &stats);
	assert_int_equal(stats.lines, 0);
	assert_in_range(stats.write_errors, 3, 6);
	output_queue_stop(o, 10);
	output_queue_stats(o, &stats);
	assert_int_equal(stats.dropped_lines, 1);
	output_queue_free(o);
}

/* A disk that fills in the middle of a line, and is freed: the line is completed, none is cut. */
static void test_full_disk_freed(void **state)
{
	struct output_queue_stats stats;
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
	assert_int_equal(output_queue_new(path, 1 << 20, &o), 0);
	assert_int_equal(output_queue_start(o), 0);
	for (unsigned int i = 0; i < 300; i++)
		kept += put_number(o, "a", i, 100);
	wait_error(o, ENOSPC, 1);
	output_queue_stats(o, &stats);
	assert_true(stats.lines > 0 && stats.lines < 300);
	assert_int_equal(unlink(filler), 0);
	close(TAKE_FD(fd));
	wait_lines(o, kept);
	output_queue_stats(o, &stats);
	assert_int_equal(stats.last_error, 0);
	output_queue_stop(o, 100);
	output_queue_free(o);
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
	assert_int_equal(output_queue_new(path, 1 << 20, &o), 0);
	assert_int_equal(output_queue_start(o), 0);
	for (unsigned int i = 0; i < 200; i++)
		assert_true(put_number(o, "a", i, 100));
	wait_error(o, ENOSPC, 1);
	assert_int_equal(unlink(path), 0);
	output_queue_reopen(o);
	wait_lines(o, 200);
	output_queue_stop(o, 100);
	output_queue_free(o);
	assert_in_range(check_file(path), 100, 199);
	assert_int_equal(umount(sub), 0);
	assert_int_equal(rmdir(sub), 0);
}

static void test_rotation(void **state)
{
	struct output_queue_stats stats;
	struct output *o;

	assert_int_equal(output_queue_new(path, 1 << 20, &o), 0);
	assert_int_equal(output_queue_start(o), 0);
	for (unsigned int i = 0; i < 1000; i++)
		assert_true(put_number(o, "a", i, 50));
	wait_lines(o, 1000);
	assert_int_equal(rename(path, path2), 0);
	output_queue_reopen(o);
	for (int i = 0; i < 5000 && access(path, F_OK) < 0; i++)
		usleep(1000);
	for (unsigned int i = 1000; i < 1500; i++)
		assert_true(put_number(o, "a", i, 50));
	output_queue_stop(o, 5000);
	output_queue_stats(o, &stats);
	output_queue_free(o);
	assert_int_equal(stats.write_errors, 0);
	assert_int_equal(check_file(path2), 1000);
	assert_int_equal(check_file(path), 500);
}

/* The directory is gone at reopen: the old file goes on, the error shows, and it heals. */
static void test_reopen_fails_then_heals(void **state)
{
	struct output_queue_stats stats;
	struct output *o;
	char sub[96], moved[96], file[128];

	snprintf(sub, sizeof(sub), "%s/sub", dir);
	snprintf(moved, sizeof(moved), "%s/moved", dir);
	snprintf(file, sizeof(file), "%s/out", sub);
	assert_int_equal(mkdir(sub, 0700), 0);
	assert_int_equal(output_queue_new(file, 1 << 20, &o), 0);
	assert_int_equal(output_queue_start(o), 0);
	assert_int_equal(rename(sub, moved), 0);
	output_queue_reopen(o);
	wait_error(o, ENOENT, 1);
	assert_true(put_number(o, "a", 0, 1));
	wait_lines(o, 1);
	wait_error(o, ENOENT, 1); /* a line that went well does not hide it */
	assert_int_equal(mkdir(sub, 0700), 0);
	for (int i = 0; i < 5000 && access(file, F_OK) < 0; i++)
		usleep(1000);
	assert_true(put_number(o, "a", 1, 1));
	wait_lines(o, 2);
	output_queue_stats(o, &stats);
	assert_int_equal(stats.last_error, 0);
	output_queue_stop(o, 100);
	output_queue_free(o);
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
	struct output_queue_stats stats;
	struct output *o;
	char where[128], text[4096];
	ssize_t n;
	int listener = listen_unix(), peer, small = 4096;

	snprintf(where, sizeof(where), "unix:%s", path);
	assert_int_equal(output_queue_new(where, 1 << 20, &o), 0);
	assert_int_equal(output_queue_kind(o), OUTPUT_UNIX);
	assert_int_equal(output_queue_start(o), 0);
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
	output_queue_stats(o, &stats);
	assert_in_range(stats.write_errors, 1, 2);
	output_queue_stop(o, 100);
	output_queue_free(o);
	close(peer);
	close(listener);
}

static void write_text(const char *text)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void assert_text(const char *want)
{
	_cleanup_free_ char *text = NULL;
	size_t bytes;

	assert_int_equal(io_read_file(AT_FDCWD, path, FILE_MAX, &text, &bytes), 0);
	assert_string_equal(text, want);
}

static void put_one(struct output_sink *sink, const char *text)
{
	struct iovec iov = { .iov_base = (char *)text, .iov_len = strlen(text) };

	assert_int_equal(output_sink_write(sink, &iov, 1), strlen(text));
}

/* What an earlier writer could not finish is not continued: a line begins at the begin of one. */
static void test_torn_tail(void **state)
{
	struct output_sink sink;

	write_text("");
	assert_int_equal(output_sink_open(path, &sink), 0);
	put_one(&sink, "a\n");
	put_one(&sink, "b");
	assert_text("a\nb");
	assert_int_equal(output_sink_reopen(&sink), 0);
	put_one(&sink, "c\n");
	put_one(&sink, "d\n");
	assert_text("a\nb\nc\nd\n");
	assert_int_equal(output_sink_reopen(&sink), 0);
	put_one(&sink, "e\n");
	output_sink_done(&sink);
	assert_text("a\nb\nc\nd\ne\n");
}

/* The same where the file is the standard output that a shell has opened. */
static void test_torn_tail_of_stdout(void **state)
{
	struct output_sink sink;
	int kept = dup(STDOUT_FILENO);
	_cleanup_close_ int fd = -1;

	write_text("{\"half");
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_int_equal(dup2(fd, STDOUT_FILENO), STDOUT_FILENO);
	assert_int_equal(output_sink_open("-", &sink), 0);
	put_one(&sink, "a\n");
	output_sink_done(&sink);
	assert_int_equal(dup2(kept, STDOUT_FILENO), STDOUT_FILENO);
	close(kept);
	assert_text("{\"half\na\n");
}

#define LOOK(s) output_sink_is_lost(&sink, (s)*NSEC_PER_SEC)

static void test_lost_file(void **state)
{
	struct output_sink sink;

	assert_int_equal(output_sink_open(path, &sink), 0);
	assert_false(LOOK(10));
	assert_int_equal(unlink(path), 0);
	assert_false(LOOK(10)); /* the look is a second old at most */
	assert_true(LOOK(11));
	assert_int_equal(output_sink_reopen(&sink), 0);
	assert_false(LOOK(12));
	/* A rotation: for a while the old file is written to, whether or not there is a new one. */
	assert_int_equal(rename(path, path2), 0);
	assert_false(LOOK(20));
	assert_false(LOOK(40));
	write_text("");
	assert_false(LOOK(41));
	assert_false(LOOK(45));
	assert_true(LOOK(46));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rename(path2, path), 0);
	assert_false(LOOK(47));
	output_sink_done(&sink);
}

/* Deleted in use: what comes then is in a new file of that name, and it is counted. */
static void test_deleted_in_use(void **state)
{
	struct output_queue_stats stats;
	struct output *o;

	assert_int_equal(output_queue_new(path, 1 << 20, &o), 0);
	assert_int_equal(output_queue_start(o), 0);
	assert_true(put_number(o, "a", 0, 1));
	wait_lines(o, 1);
	assert_int_equal(unlink(path), 0);
	usleep(1100000); /* a look is a second old at most */
	assert_true(put_number(o, "a", 1, 1));
	wait_lines(o, 2);
	output_queue_stats(o, &stats);
	assert_int_equal(stats.lost_files, 1);
	assert_int_equal(stats.write_errors, 0);
	output_queue_stop(o, 100);
	output_queue_free(o);
	assert_int_equal(check_file(path), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

UNIT_TESTS(output_sink)
{
	const struct CMUnitTest tests[] = {
		TEST(dev_full),	      TEST(full_disk_freed),	     TEST(reopen_from_full),
		TEST(rotation),	      TEST(reopen_fails_then_heals), TEST(unix_reconnects),
		TEST(torn_tail),      TEST(torn_tail_of_stdout),     TEST(lost_file),
		TEST(deleted_in_use),
	};

	return cmocka_run_group_tests_name("sink", tests, NULL, NULL);
}
