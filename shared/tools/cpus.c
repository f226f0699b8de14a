/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/tools/cpus.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"

#define LIST_BYTES_MAX 65536
#define ONLINE	       "/sys/devices/system/cpu/online"
#define POSSIBLE       "/sys/devices/system/cpu/possible"

/* Reads one number at *at and moves *at past it. */
static int read_number(const char **at, uint32_t *ret_number)
{
	uint32_t n = 0;

	if (!isdigit((unsigned char)**at))
		return -EINVAL;
	for (; isdigit((unsigned char)**at); (*at)++) {
		n = n * 10 + (uint32_t)(**at - '0');
		if (n >= CPUS_MAX)
			return -ERANGE;
	}
	*ret_number = n;
	return 0;
}

/* Reads "3" or "0-3" at *at and moves *at past it. */
static int read_range(const char **at, uint32_t *ret_first, uint32_t *ret_last)
{
	uint32_t first, last;
	int r;

	r = read_number(at, &first);
	if (r < 0)
		return r;
	last = first;
	if (**at == '-') {
		(*at)++;
		r = read_number(at, &last);
		if (r < 0)
			return r;
	}
	if (last < first)
		return -EINVAL;
	*ret_first = first;
	*ret_last = last;
	return 0;
}

int cpus_parse(const char *text, uint32_t **ret_cpus, size_t *ret_count)
{
	_cleanup_free_ uint32_t *cpus = NULL;
	const char *at = text;
	uint32_t first, last;
	size_t count = 0;
	int r;

	cpus = calloc(CPUS_MAX, sizeof(*cpus));
	if (!cpus)
		return -ENOMEM;
	for (;;) {
		r = read_range(&at, &first, &last);
		if (r < 0)
			return r;
		if (count > 0 && first <= cpus[count - 1])
			return -EINVAL;
		for (uint32_t cpu = first; cpu <= last; cpu++)
			cpus[count++] = cpu;
		if (*at != ',')
			break;
		at++;
	}
	if (strcmp(at, "") != 0 && strcmp(at, "\n") != 0)
		return -EINVAL;
	*ret_cpus = TAKE_PTR(cpus);
	*ret_count = count;
	return 0;
}

static int read_list(const char *path, uint32_t **ret_cpus, size_t *ret_count)
{
	_cleanup_free_ char *text = NULL;
	size_t bytes;
	int r;

	r = io_read_file(AT_FDCWD, path, LIST_BYTES_MAX, &text, &bytes);
	if (r < 0)
		return r;
	return cpus_parse(text, ret_cpus, ret_count);
}

int cpus_online(uint32_t **ret_cpus, size_t *ret_count)
{
	return read_list(ONLINE, ret_cpus, ret_count);
}

int cpus_possible(uint32_t *ret_count)
{
	_cleanup_free_ uint32_t *cpus = NULL;
	size_t count;
	int r;

	r = read_list(POSSIBLE, &cpus, &count);
	if (r < 0)
		return r;
	*ret_count = cpus[count - 1] + 1; /* the number that libbpf_num_possible_cpus returns */
	return 0;
}
