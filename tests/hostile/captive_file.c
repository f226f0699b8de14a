/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The prey, as the test wrote it down; numbers are decimal:
 *   prey KIND PID CGROUP START_NS     KIND of enum prey_kind
 *   range START END INODE CODE        a mapping of the last prey; CODE 1: it is executable
 *   secret WORD                       8 bytes that must never be seen
 */
#include "captive.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "shared/tools/macro.h"
#include "shared/tools/parse.h"

#define NUMBERS 4

static int add_prey(struct captive *c, const uint64_t numbers[NUMBERS])
{
	if (c->prey_count == CAPTIVE_PREY || numbers[0] >= PREY_KINDS_)
		return -EINVAL;
	c->prey[c->prey_count++] = (struct prey){
		.kind = (enum prey_kind)numbers[0],
		.pid = (uint32_t)numbers[1],
		.cgroup_id = numbers[2],
		.start_ns = numbers[3],
	};
	return 0;
}

static int add_range(struct captive *c, const uint64_t numbers[NUMBERS])
{
	struct prey *p = c->prey_count ? &c->prey[c->prey_count - 1] : NULL;

	if (!p || p->range_count == CAPTIVE_RANGES)
		return -EINVAL;
	p->ranges[p->range_count].start = numbers[0];
	p->ranges[p->range_count].end = numbers[1];
	p->ranges[p->range_count].inode = numbers[2];
	p->ranges[p->range_count++].code = numbers[3];
	return 0;
}

static int add_secret(struct captive *c, const uint64_t numbers[NUMBERS])
{
	uint32_t head = (uint16_t)numbers[0]; /* its first two bytes in memory */

	if (c->secret_count == CAPTIVE_SECRETS)
		return -E2BIG;
	c->secrets[c->secret_count++] = numbers[0];
	c->heads[head >> 3] |= (uint8_t)(1u << (head & 7));
	return 0;
}

static const struct {
	const char *word;
	unsigned int numbers;
	int (*add)(struct captive *c, const uint64_t numbers[NUMBERS]);
} rows[] = {
	{ "prey", 4, add_prey },
	{ "range", 4, add_range },
	{ "secret", 1, add_secret },
};

static int read_line(struct captive *c, char *line)
{
	const char *word = strsep(&line, " \n");
	uint64_t numbers[NUMBERS] = {};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (strcmp(word, rows[i].word) != 0)
			continue;
		for (unsigned int n = 0; n < rows[i].numbers; n++)
			if (!line ||
			    parse_u64(strsep(&line, " \n"), 0, UINT64_MAX, &numbers[n]) < 0)
				return -EINVAL;
		return rows[i].add(c, numbers);
	}
	return -EINVAL;
}

int captive_read(struct captive *c, const char *path)
{
	FILE *file = fopen(path, "re");
	char line[256];
	int r = 0;

	if (!file)
		return -errno;
	while (r == 0 && fgets(line, sizeof(line), file))
		r = read_line(c, line);
	fclose(file);
	return r == 0 && !c->prey_count ? -ENODATA : r;
}
