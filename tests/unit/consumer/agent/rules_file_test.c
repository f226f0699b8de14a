/* SPDX-License-Identifier: BSD-2-Clause */
/* What counts as a change of the rules file: it may stand behind links, alone or in a chain. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "consumer/agent/rules_file.h"

static char dir[] = "/tmp/trocar-rules-XXXXXX", rules[64];
static struct rules_file file;

static void run(const char *command)
{
	char line[512];

	snprintf(line, sizeof(line), "cd %s && %s", dir, command);
	/* NOLINTNEXTLINE(cert-env33-c) the words are the test's own */
	assert_int_equal(system(line), 0);
}

static int setup(void **state)
{
	strcpy(dir + sizeof(dir) - 7, "XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(rules, sizeof(rules), "%s/etc/rules.json", dir);
	run("mkdir etc other");
	return 0;
}

static int teardown(void **state)
{
	rules_file_done(&file);
	run("rm -r etc other");
	return rmdir(dir);
}

static void watch(void)
{
	rules_file_init(&file, rules);
	assert_int_equal(rules_file_watch(&file), 0);
	assert_false(rules_file_changed(&file));
}

/* Whether the command is a change; then it is one, and not two. */
static bool changes(const char *command)
{
	bool changed;

	run(command);
	changed = rules_file_changed(&file);
	assert_false(rules_file_changed(&file));
	return changed;
}

static void a_plain_file(void **state)
{
	int fd;

	run("echo 1 > etc/rules.json");
	watch();
	assert_true(changes("echo 22 > etc/rules.json"));
	assert_true(changes("echo 3 > etc/new && mv etc/new etc/rules.json"));
	assert_false(changes("echo 4 > etc/neighbour && ln -s x etc/link"));
	/* It is made, and nothing is in it yet: that is seen when it is whole. */
	run("rm etc/rules.json");
	fd = open(rules, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_false(rules_file_changed(&file));
	assert_int_equal(write(fd, "5", 1), 1);
	close(fd);
	assert_true(changes(":"));
}

/* kubelet makes a new folder and exchanges the link `..data` with rename(2). */
static void the_swap_of_a_config_map(void **state)
{
	run("mkdir etc/..1 && echo 1 > etc/..1/rules.json && ln -s ..1 etc/..data && "
	    "ln -s ..data/rules.json etc/rules.json");
	watch();
	assert_true(changes(
		"mkdir etc/..2 && echo 2 > etc/..2/rules.json && "
		"ln -s ..2 etc/..data_tmp && mv -T etc/..data_tmp etc/..data && rm -r etc/..1"));
	/* The same once more: the folder of the first has gone. */
	assert_true(changes(
		"mkdir etc/..3 && echo 3 > etc/..3/rules.json && "
		"ln -s ..3 etc/..data_tmp && mv -T etc/..data_tmp etc/..data && rm -r etc/..2"));
}

/* The file that the link leads to, in another folder, is written or replaced there. */
static void a_link_to_another_folder(void **state)
{
	run("echo 1 > other/file && ln -s ../other/file etc/rules.json");
	watch();
	assert_true(changes("echo 22 > other/file"));
	assert_true(changes("echo 3 > other/new && mv other/new other/file"));
	assert_false(changes("echo 4 > other/neighbour"));
	/* Another link in its place, made anew. */
	assert_true(changes("echo 5 > other/second && rm etc/rules.json && "
			    "ln -s ../other/second etc/rules.json"));
}

UNIT_TESTS(rules_file)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_plain_file, setup, teardown),
		cmocka_unit_test_setup_teardown(the_swap_of_a_config_map, setup, teardown),
		cmocka_unit_test_setup_teardown(a_link_to_another_folder, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
