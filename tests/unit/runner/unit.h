/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unit.h: one test program per folder, of many test files. Each file has its own group of cmocka
 * tests and runs in a process of its own, so a crash or a limit that one file sets does not reach
 * the next.
 *
 *   PROGRAM [FILE...] [--args FILE ARG...]...
 *
 * runs all files, or those that are named there or in $TROCAR_UNIT (separated by commas). --args
 * gives a file its arguments, up to the next --args. The output is TAP (Test Anything Protocol,
 * version 12), each case with the name of its file.
 */
#ifndef TROCAR_TESTS_UNIT_RUNNER_UNIT_H
#define TROCAR_TESTS_UNIT_RUNNER_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A test file. `run` gets the file's name and arguments as main does, and returns 0 for success. */
struct unit_file {
	const char *name;
	int (*run)(int argc, char **argv);
	struct unit_file *next;
};

/* Adds a test file to those of this program, which keeps the pointer. Called before main. */
void unit_add(struct unit_file *file);

/* Begins the function that runs the tests of FILE_test.c; it stands where main would. */
#define UNIT_TESTS(file)                                                                       \
	static int run_tests_of_##file(int argc, char **argv);                                 \
	__attribute__((constructor)) static void add_tests_of_##file(void)                     \
	{                                                                                      \
		static struct unit_file entry = { .name = #file, .run = run_tests_of_##file }; \
		unit_add(&entry);                                                              \
	}                                                                                      \
	static int run_tests_of_##file(int argc, char **argv)

/* Skips the running test. `why` goes into its line: the missing thing, and its use. */
#define unit_skip(why)                               \
	do {                                         \
		print_message("skipped: %s\n", why); \
		skip();                              \
	} while (0)

/*
 * Keeps the event lines in the file at `path` for the end of the program, where the validator of
 * docs/schema/ reads the lines of all tests at once.
 */
void unit_keep_lines(const char *path);

#endif
