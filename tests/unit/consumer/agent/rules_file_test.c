/* SPDX-License-Identifier: BSD-2-Clause */
/* What counts as a change of the rules file: it may stand behind links, alone or in a chain. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
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

static uint64_t again_ms;

static bool changed(bool asked)
{
	return rules_file_changed(&file, asked, &again_ms);
}

static void watch(void)
{
	rules_file_init(&file, rules);
	rules_file_watch(&file);
	assert_false(changed(false));
	assert_int_equal(again_ms, 0);
}

/* Whether the command is a change; then it is one, and not two. */
static bool changes(const char *command)
{
	bool is;

	run(command);
	is = changed(false);
	assert_false(changed(false));
	return is;
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
	assert_false(changed(false));
	assert_int_equal(again_ms, RULES_FILE_WRITTEN_MS);
	assert_false(changed(true)); /* written just now */
	assert_int_equal(write(fd, "5", 1), 1);
	close(fd);
	assert_true(changes(":"));
	assert_int_equal(again_ms, 0);
}

/* A way of replacing the rules; `at_once`: an event reports it, else the next look finds it. */
static const struct way {
	const char *before, *command;
	bool at_once;
} ways[] = {
	{ "echo 1 > etc/rules.json", "echo 22 > etc/rules.json", true },
	{ "echo 1 > etc/rules.json", "echo 2 > etc/new; mv etc/new etc/rules.json", true },
	{ "echo 1 > etc/rules.json",
	  "cp -p etc/rules.json etc/old; echo 2 > etc/rules.json~; mv etc/rules.json~ etc/rules.json",
	  true },
	{ "echo 1 > etc/rules.json; chmod 0 etc/rules.json", "chmod 644 etc/rules.json", false },
	{ "true", "echo 1 > other/new; ln other/new etc/rules.json", false },
	{ "echo 1 > etc/rules.json",
	  "echo 2 > other/new; ln -f other/new etc/rules.json; rm other/new", true },
	{ "echo 1 > etc/rules.json", "mv etc old; mkdir etc; echo 2 > etc/rules.json; rm -r old",
	  true },
	{ "echo 1 > etc/rules.json", "rm -r etc; mkdir etc; echo 2 > etc/rules.json", true },
	{ "mkdir etc/1 etc/2; echo 1 > etc/1/r; echo 2 > etc/2/r; ln -s 1 etc/now; ln -s now/r etc/rules.json",
	  "ln -s 2 etc/next; mv -T etc/next etc/now", true },
	{ "mkdir other/1 other/2; echo 1 > other/1/r; echo 2 > other/2/r; ln -s 1 other/now; ln -s ../other/now/r etc/rules.json",
	  "ln -s 2 other/next; mv -T other/next other/now", true },
	{ "rmdir etc; echo 1 > other/rules.json; ln -s other etc",
	  "rm etc; mkdir etc; echo 2 > etc/rules.json", true },
};

/* Each way is followed, and so is a write behind it, wherever the path leads by then. */
static void every_way_of_replacing(void **state)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		bool at_once;

		run(ways[i].before);
		watch();
		run(ways[i].command);
		at_once = changed(false);
		if (at_once != ways[i].at_once)
			fail_msg("%s: at once %d", ways[i].command, at_once);
		if (!at_once) {
			assert_true(again_ms > 0);
			usleep(1100000);
			if (!changed(true))
				fail_msg("%s: not seen", ways[i].command);
		}
		run("echo 333 > etc/rules.json");
		if (!changed(again_ms != 0))
			fail_msg("%s: what is written later is not seen", ways[i].command);
		rules_file_done(&file);
		run("rm -rf etc other old; mkdir etc other");
	}
}

/* The rules go and come back: it is no change as long as another file may be on its way. */
static void deleted_file(void **state)
{
	run("echo 1 > etc/rules.json");
	watch();
	run("mv etc away");
	assert_false(changed(false));
	assert_int_equal(again_ms, RULES_FILE_LOOK_MS);
	assert_true(changed(true)); /* and still gone at the next look */
	assert_false(changed(true));
	run("mv away etc");
	assert_true(changed(true));
	assert_false(changed(true));
	assert_int_equal(again_ms, RULES_FILE_LOOK_MS); /* from now on */
}

/* Without an inotify instance the path is looked at. */
static void without_inotify(void **state)
{
	struct rlimit before, none;

	run("echo 1 > etc/rules.json");
	rules_file_init(&file, rules);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	rules_file_watch(&file);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(file.fd, -1);
	assert_false(changed(true));
	assert_int_equal(again_ms, RULES_FILE_LOOK_MS);
	run("echo 22 > etc/rules.json");
	assert_true(changed(true));
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
		cmocka_unit_test_setup_teardown(every_way_of_replacing, setup, teardown),
		cmocka_unit_test_setup_teardown(deleted_file, setup, teardown),
		cmocka_unit_test_setup_teardown(without_inotify, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
