/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The main thread learns modules, their places and their build-ids while the symbolizer's names
 * frames by them. What is read is whole; a build with -Db_sanitize=thread sees every access that is
 * not ordered.
 */
#include "tests/unit/runner/unit.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/symbols/symbols.h"
#include "tests/unit/consumer/symbols/specimen_testing.h"

#define MODULES 3000u

static char *specimen;

struct both {
	struct symbols *symbols;
	struct module *modules[MODULES];
	size_t count; /* atomic: those that the namer may look at */
	size_t whole; /* build-ids that it read */
	bool torn;
};

/* Told ids have the same byte throughout; that of the specimen is its own. */
static void look(struct both *b, const struct module *m, bool is_file)
{
	uint8_t id[SYMBOLS_BUILD_ID_MAX], bytes = symbols_build_id(b->symbols, m, id);

	b->whole += bytes == BUILD_ID_BYTES;
	if (bytes != 0 && bytes != BUILD_ID_BYTES)
		b->torn = true;
	for (size_t i = 1; i < bytes && !is_file; i++)
		b->torn = b->torn || id[i] != id[0];
}

static void *name_all(void *context)
{
	struct both *b = context;
	size_t count = 0;

	for (size_t i = 0; i < MODULES; i++) {
		struct symbol_name name;
		bool is_file = i % 8 == 0;

		while (i >= count)
			count = __atomic_load_n(&b->count, __ATOMIC_ACQUIRE);
		look(b, b->modules[i], is_file);
		symbols_user(b->symbols, b->modules[i], 64, false, &name);
		look(b, b->modules[i], is_file);
	}
	return NULL;
}

/*
 * One module in eight is the specimen by another path; the kernel reports a wrong build-id of it.
 */
static struct module *make(struct both *b, size_t i)
{
	struct module *m;
	char path[256];

	if (i % 8 == 0) {
		snprintf(path, sizeof(path), "%.*s%s", (int)(i / 8 % 64) + 1,
			 "////////////////////////////////////////////////////////////////",
			 specimen);
		return module_of(b->symbols, path);
	}
	snprintf(path, sizeof(path), "/nonexistent/%zu", i);
	assert_int_equal(symbols_module(b->symbols,
					&(struct file_identity){ .device = 1, .inode = i }, path,
					false, &m),
			 0);
	return m;
}

static void test_learn_and_name(void **state)
{
	static struct both b;
	struct symbols_stats stats;
	uint8_t id[BUILD_ID_BYTES];
	pthread_t namer;

	b.symbols = fresh(64 << 20);
	assert_int_equal(pthread_create(&namer, NULL, name_all, &b), 0);
	for (size_t i = 0; i < MODULES; i++) {
		const struct process_key process = { .tgid = (uint32_t)i + 1, .start_ns = i };
		struct module *m = make(&b, i);

		b.modules[i] = m;
		__atomic_store_n(&b.count, i + 1, __ATOMIC_RELEASE);
		symbols_place(b.symbols, m, &process, i << 12, (i + 1) << 12);
		memset(id, (int)(i % 255) + 1, sizeof(id));
		if (symbols_lacks_build_id(m))
			symbols_learn_build_id(b.symbols, m, id);
		symbols_is(b.symbols, m, id);
		symbols_stats(b.symbols, &stats);
	}
	pthread_join(namer, NULL);
	assert_false(b.torn);
	assert_true(b.whole > 0);
	symbols_stats(b.symbols, &stats);
	assert_int_equal(stats.lookups, MODULES);
	symbols_free(b.symbols);
}

UNIT_TESTS(symbols_threads)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_learn_and_name) };

	int r;

	specimen = argc == 2 ? realpath(argv[1], NULL) : NULL;
	if (!specimen)
		return 2;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	free(specimen);
	return r;
}
