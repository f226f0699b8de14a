/* SPDX-License-Identifier: BSD-2-Clause */
/* The symbols of a language runtime in real and in damaged files. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include "consumer/runtimes/runtime_symbols.h"

/* Reads a whole file; NULL if there is none. */
static uint8_t *read_file(const char *path, size_t *ret_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t *data = NULL;
	struct stat st;

	if (fd < 0)
		return NULL;
	assert_int_equal(fstat(fd, &st), 0);
	*ret_bytes = (size_t)st.st_size;
	data = malloc(*ret_bytes);
	assert_non_null(data);
	assert_int_equal(read(fd, data, *ret_bytes), st.st_size);
	close(fd);
	return data;
}

static bool read_symbols(const uint8_t *data, size_t bytes, struct runtime_symbols *ret)
{
	struct elf_image image = { .fd = -1, .memory = data, .bytes = bytes };
	struct elf_reader e;
	bool found = elf_reader_open(&image, &e) == 0 && runtime_symbols_read(&e, ret);

	elf_reader_done(&e);
	return found;
}

/* Reads a python of this system, which the caller frees; skips the test if there is none. */
static uint8_t *read_python(size_t *ret_bytes)
{
	uint8_t *data = NULL;
	glob_t found;

	if (glob("/usr/bin/python3.[0-9]*[0-9]", 0, NULL, &found) == 0) {
		data = read_file(found.gl_pathv[0], ret_bytes);
		globfree(&found);
	}
	if (!data) {
		print_message("there is no /usr/bin/python3.N\n");
		skip();
	}
	return data;
}

static void python_has_all_symbols(void **state)
{
	struct runtime_symbols symbols;
	size_t bytes = 0;
	uint8_t *data = read_python(&bytes);

	assert_true(read_symbols(data, bytes, &symbols));
	for (size_t i = 0; i < RUNTIME_SYMBOL_VERSION; i++)
		assert_int_not_equal(symbols.indices[i], 0);
	free(data);
}

static void other_programs_have_none(void **state)
{
	struct runtime_symbols symbols;
	size_t bytes;
	uint8_t *data = read_file("/proc/self/exe", &bytes);

	assert_non_null(data);
	assert_false(read_symbols(data, bytes, &symbols));
	for (size_t i = 0; i < RUNTIME_SYMBOLS; i++)
		assert_int_equal(symbols.indices[i], 0);
	free(data);
}

/* Random damage: no read leaves the file (ASan), and nothing takes long. */
static void damaged_files(void **state)
{
	struct runtime_symbols symbols;
	uint64_t random = 4;
	size_t bytes = 0;
	uint8_t *data = read_python(&bytes);

	for (int round = 0; round < 100; round++) {
		size_t at = next_random(&random) % 4096;
		uint8_t before = data[at];

		/* In the headers, in the tables, and in the section headers at the end. */
		if (round % 3 == 1)
			at = next_random(&random) % 100000;
		if (round % 3 == 2)
			at = bytes - 1 - next_random(&random) % 2048;
		before = data[at];
		data[at] = (uint8_t)next_random(&random);
		read_symbols(data, bytes - (round % 5 ? 0 : next_random(&random) % bytes),
			     &symbols);
		data[at] = before;
	}
	free(data);
}

UNIT_TESTS(runtime_symbols)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(python_has_all_symbols),
		cmocka_unit_test(other_programs_have_none),
		cmocka_unit_test(damaged_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
