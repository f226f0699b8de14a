/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/completion.h"
#include "ctl/cli/options.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

static const struct completion_command commands[] = {
	{ { "list" }, NULL, "an agent's things", OPTIONS_COMMON },
	{ { "rules", "get" }, NULL, "print: all", OPTIONS_HELP },
	{ { "rules", "set" }, "RULES", "put [a] file", OPTIONS_HELP },
	{ { "draw" },
	  "[FILE]",
	  "a picture",
	  OPTION_BIT(OPTION_PHASE) | OPTION_BIT(OPTION_DEBUG_DIR) },
	{ { "watch" }, "[PID] SECONDS", "a process", OPTION_BIT(OPTION_CGROUP) },
	{ { "guess" }, "UNHEARD", "what nobody knows", OPTIONS_HELP },
	{ { "help" }, "[COMMAND]", "help", OPTIONS_HELP },
};

static char *print_for(const char *shell)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_int_equal(completion_print(shell, commands, ARRAY_SIZE(commands), out), 0);
	fclose(out);
	return text;
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("there is no %s in:\n%s", part, text);
}

static void test_bash(void **state)
{
	static const char *const parts[] = {
		"'list '*)",
		"_trocar_lines '--json --socket --help --version'",
		"'rules set '*)",
		"'rules '*) _trocar_lines 'get set' ;;",
		"' '*) _trocar_lines 'list rules draw watch guess help' ;;",
		"--phase) _trocar_lines 'before onset during' ;;",
		"--debug-dir) _trocar_files -d ;;",
		"--socket) _trocar_files -f ;;",
		"--reason) : ;;",
		"complete -F _trocar trocar\n",
	};
	_cleanup_free_ char *text = print_for("bash");

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		assert_has(text, parts[i]);
}

/* What is in single quotes leaves them for an apostrophe; brackets and colons have a meaning of
 * their own. */
static void test_zsh(void **state)
{
	static const char *const parts[] = {
		"#compdef trocar\n",
		"'list:an agent'\\''s things'",
		"'get:print\\: all'",
		"_trocar_rules() {",
		"'rules set') _arguments",
		"'--phase=[this phase]:PHASE:(before onset during)'",
		"'*--debug-dir=[",
		":DIR:_files -/'",
		"'*:argument:_trocar_commands'",
		"'--help[print help]'",
	};
	_cleanup_free_ char *text = print_for("zsh");

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		assert_has(text, parts[i]);
}

static void test_fish(void **state)
{
	static const char *const parts[] = {
		"complete -c trocar -n __trocar_at -a list -d 'an agent\\'s things'\n",
		"complete -c trocar -n '__trocar_at rules' -a get -d 'print: all'\n",
		"complete -c trocar -n '__trocar_in draw' -l phase -d 'this phase' -x -a 'before onset during'\n",
		"complete -c trocar -n '__trocar_in draw' -F\n",
		"complete -c trocar -n '__trocar_in rules set' -F\n",
		"complete -c trocar -n '__trocar_in guess'\n",
		"complete -c trocar -n '__trocar_in help' -a 'list rules draw watch guess help'\n",
	};
	_cleanup_free_ char *text = print_for("fish");

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		assert_has(text, parts[i]);
}

/* Each option of a command is offered behind it by each shell. */
static void test_every_option(void **state)
{
	static const struct completion_command all = { { "all" }, NULL, "everything", OPTIONS_ALL };
	static const char *const shells[] = { "bash", "zsh", "fish" };
	const struct option_table *table = options_table();

	for (size_t shell = 0; shell < ARRAY_SIZE(shells); shell++) {
		_cleanup_free_ char *text = NULL;
		size_t bytes;
		FILE *out = open_memstream(&text, &bytes);

		assert_int_equal(completion_print(shells[shell], &all, 1, out), 0);
		fclose(out);
		for (size_t i = 0; i < table->n_rows; i++)
			assert_has(strstr(text, "all"), table->rows[i].name);
	}
}

static void test_no_such_shell(void **state)
{
	_cleanup_free_ char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_int_equal(completion_print("sh", commands, ARRAY_SIZE(commands), out), -EINVAL);
	fclose(out);
	assert_string_equal(text, "");
}

UNIT_TESTS(completion)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bash),	      cmocka_unit_test(test_zsh),
		cmocka_unit_test(test_fish),	      cmocka_unit_test(test_every_option),
		cmocka_unit_test(test_no_such_shell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
