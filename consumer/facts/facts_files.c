/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/facts/facts_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "consumer/facts/facts_place.h"
#include "consumer/facts/facts_text.h"
#include "shared/tools/cleanup.h"

#define TEXT_BYTES 2048 /* /proc/PID/limits of Linux 6.18 has 1.3 KiB */

/* The descriptors of one process. */
struct count {
	uint64_t pid, open, max;
};

bool facts_files_parse(const char *text, size_t bytes, uint64_t *ret_max)
{
	static const char key[] = "Max open files ";
	struct facts_text rest = { text, bytes }, line, word;

	while (facts_text_line(&rest, &line)) {
		if (line.bytes < strlen(key) || memcmp(line.at, key, strlen(key)) != 0)
			continue;
		line.at += strlen(key);
		line.bytes -= strlen(key);
		return facts_text_word(&line, ' ', &word) && facts_text_number(word, ret_max);
	}
	return false;
}

static size_t read_of(uint64_t pid, const char *file, char *text, size_t space)
{
	char path[64];
	_cleanup_close_ int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%llu/%s", (unsigned long long)pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, space);
	return n < 0 ? 0 : (size_t)n;
}

/*
 * Returns false if the process is gone, hidden or in a sandbox, or has no limit, or if the kernel
 * does not count.
 */
static bool count_files(uint64_t pid, struct count *ret_count)
{
	char text[TEXT_BYTES], path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%llu/fd", (unsigned long long)pid);
	if (stat(path, &st) < 0 || st.st_size <= 0)
		return false;
	*ret_count = (struct count){ .pid = pid, .open = (uint64_t)st.st_size };
	return facts_files_parse(text, read_of(pid, "limits", text, sizeof(text)),
				 &ret_count->max) &&
	       ret_count->max != FACTS_NO_LIMIT && ret_count->max >= FACTS_FILES_LEAST;
}

/* Whether `a` is nearer to its limit. */
static bool is_nearer(const struct count *a, const struct count *b)
{
	return (double)a->open * (double)b->max > (double)b->open * (double)a->max;
}

static void set_fact(struct facts *f, enum fact fact, uint64_t value)
{
	f->value[fact] = value;
	f->has |= 1ULL << fact;
}

void facts_files_read(const char *pids, size_t bytes, struct facts *f)
{
	struct facts_text rest = { pids, bytes }, line;
	struct count most = { .max = 1 }, count;
	uint64_t pid, unasked = 0;
	size_t n;

	for (n = 0; facts_text_line(&rest, &line); n++) {
		if (n >= FACTS_PLACE_PIDS)
			unasked++;
		else if (facts_text_number(line, &pid) && count_files(pid, &count) &&
			 is_nearer(&count, &most))
			most = count;
	}
	if (!most.pid)
		return;
	if (unasked)
		set_fact(f, FACT_FILES_UNASKED, unasked);
	set_fact(f, FACT_FILES_PID, most.pid);
	set_fact(f, FACT_FILES_OPEN, most.open);
	set_fact(f, FACT_FILES_MAX, most.max);
	n = read_of(most.pid, "comm", f->files_comm, sizeof(f->files_comm) - 1);
	f->files_comm[n] = '\0';
	f->files_comm[strcspn(f->files_comm, "\n")] = '\0';
}
