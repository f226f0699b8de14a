/* SPDX-License-Identifier: BSD-2-Clause */
/* own_program_testing.h: this program as a mapped file that can be compiled. Functions assert. */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_UNWIND_TESTING_OWN_PROGRAM_TESTING_H
#define TROCAR_TESTS_UNIT_CONSUMER_UNWIND_TESTING_OWN_PROGRAM_TESTING_H

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "consumer/mappings/mappings.h"
#include "shared/tools/cleanup.h"
#include "tests/unit/consumer/testing/unit_testing.h"

/* Memory that stands for a map of the kernel side; *ret_memory is mapped. */
static inline int own_memory(size_t bytes, void **ret_memory)
{
	int fd = memfd_create("unwind", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	*ret_memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(*ret_memory, MAP_FAILED);
	return fd;
}

/* The module of a file, as a mapping of it would make it. */
static inline struct module *own_module_of(struct symbols *symbols, const char *path)
{
	struct module *m;
	struct file_identity identity;
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	identity = elf_file_identity(&st);
	assert_int_equal(symbols_module(symbols, &identity, path, false, &m), 0);
	return m;
}

/* Where a process's program is mapped: the first executable mapping that this maps file lists. */
static inline struct mapping own_mapping_of(struct symbols *symbols, const char *maps)
{
	_cleanup_fclose_ FILE *file = fopen(maps, "re");
	char line[600], mode[5], path[512];
	struct mapping m = { 0 };
	unsigned long start, end, offset;

	assert_non_null(file);
	while (!m.module && fgets(line, sizeof(line), file)) {
		/* NOLINTNEXTLINE(cert-err34-c): the kernel writes no number that does not fit */
		if (sscanf(line, "%lx-%lx %4s %lx %*s %*s %511s", &start, &end, mode, &offset,
			   path) != 5 ||
		    mode[2] != 'x')
			continue;
		m = (struct mapping){ .start = start, .end = end, .file_offset = offset };
		m.module = own_module_of(symbols, path);
	}
	assert_non_null(m.module);
	return m;
}

static inline struct mapping own_mapping(struct symbols *symbols)
{
	return own_mapping_of(symbols, "/proc/self/maps");
}

#endif
