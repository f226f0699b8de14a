/* SPDX-License-Identifier: BSD-2-Clause */
/* specimens_testing.h: the programs of make_specimens, and their properties. */
#ifndef TROCAR_TESTS_UNIT_CTL_SPECIMENS_TESTING_H
#define TROCAR_TESTS_UNIT_CTL_SPECIMENS_TESTING_H

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *specimens_dir, *specimens_source; /* of the command line */

struct specimens_facts {
	char id[160]; /* hex digits */
	uint64_t at;  /* file offset of the inlined instruction */
};

static inline void specimens_path(char path[512], const char *name)
{
	snprintf(path, 512, "%s/%s", specimens_dir, name);
}

/* A descriptor, or -1: no such linker was there. */
static inline int specimens_open(const char *name)
{
	char path[512];

	specimens_path(path, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* False: no such linker was there. */
static inline int specimens_facts(const char *layout, struct specimens_facts *ret_facts)
{
	char name[64], text[256], *end;
	ssize_t n;
	int fd;

	snprintf(name, sizeof(name), "%s.facts", layout);
	fd = specimens_open(name);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	end = strchr(text, ' ');
	if (!end || end - text >= (ptrdiff_t)sizeof(ret_facts->id))
		abort();
	*end = '\0';
	memcpy(ret_facts->id, text, (size_t)(end - text) + 1);
	ret_facts->at = strtoull(end + 1, NULL, 10);
	return 1;
}

/* The number of the source's line that ends with these words. */
static inline unsigned int specimens_line(const char *words)
{
	FILE *file = fopen(specimens_source, "re");
	unsigned int number = 0;
	char line[256];

	if (!file)
		abort();
	while (fgets(line, sizeof(line), file)) {
		number++;
		if (strstr(line, words)) {
			fclose(file);
			return number;
		}
	}
	abort();
}

#endif
