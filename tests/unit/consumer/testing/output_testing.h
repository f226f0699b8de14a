/* SPDX-License-Identifier: BSD-2-Clause */
/* output_testing.h: what the tests of the output and of its sinks share: a folder, numbered lines,
 * their check. */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_TESTING_OUTPUT_TESTING_H
#define TROCAR_TESTS_UNIT_CONSUMER_TESTING_OUTPUT_TESTING_H

#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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

#include "consumer/output/output_queue.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/io.h"
#include "shared/tools/macro.h"

#define FILE_MAX (256u << 20)

static char dir[64], path[96], path2[96];

static inline int setup(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/trocar-output-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/out", dir);
	snprintf(path2, sizeof(path2), "%s/out.1", dir);
	return 0;
}

static inline int teardown(void **state)
{
	unlink(path);
	unlink(path2);
	return rmdir(dir);
}

static inline bool put_number(struct output *o, const char *who, unsigned int n, size_t pad)
{
	char line[4096];
	int bytes = snprintf(line, sizeof(line), "%s %u %0*d\n", who, n, (int)pad, 0);

	return output_queue_put(o, line, (size_t)bytes, 1);
}

/* Waits until `lines` are written; fails after 5 s. */
static inline void wait_lines(struct output *o, uint64_t lines)
{
	struct output_queue_stats stats;

	for (int i = 0; i < 5000; i++) {
		output_queue_stats(o, &stats);
		if (stats.lines >= lines)
			return;
		usleep(1000);
	}
	fail_msg("%lu of %lu lines", (unsigned long)stats.lines, (unsigned long)lines);
}

static inline void wait_error(struct output *o, int error, uint64_t at_least)
{
	struct output_queue_stats stats;

	for (int i = 0; i < 5000; i++) {
		output_queue_stats(o, &stats);
		if (stats.last_error == error && stats.write_errors >= at_least)
			return;
		usleep(1000);
	}
	fail_msg("error %d (%lu times)", stats.last_error, (unsigned long)stats.write_errors);
}

/* Every line is "name number 000", whole, the numbers of each name growing. Returns the lines. */
static inline unsigned int check_text(char *text)
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

static inline unsigned int check_file(const char *name)
{
	_cleanup_free_ char *text = NULL;
	size_t bytes;

	assert_int_equal(io_read_file(AT_FDCWD, name, FILE_MAX, &text, &bytes), 0);
	if (bytes)
		assert_int_equal(text[bytes - 1], '\n');
	return check_text(text);
}

#endif
