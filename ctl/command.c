/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/command.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "ctl/cli/completion.h"
#include "ctl/cli/options.h"
#include "ctl/cli/terminal.h"
#include "ctl/cli/wrap.h"
#include "ctl/client/calls.h"
#include "ctl/client/capture.h"
#include "ctl/client/journal.h"
#include "ctl/client/kept.h"
#include "ctl/client/loader_check.h"
#include "ctl/client/profile.h"
#include "ctl/client/rules_check.h"
#include "ctl/events/input.h"
#include "ctl/render/diff.h"
#include "ctl/render/explain.h"
#include "ctl/render/flamegraph.h"
#include "ctl/render/folded.h"
#include "ctl/render/html.h"
#include "ctl/render/pprof.h"
#include "ctl/render/text_report.h"
#include "ctl/symbolize/symbolize.h"
#include "shared/tools/macro.h"
#include "shared/tools/similar.h"

#define NAME_BYTES 32 /* of a command's words */

#define CAPTURE_OPTIONS                                                                       \
	(OPTION_BIT(OPTION_RULE) | OPTION_BIT(OPTION_CGROUP) | OPTION_BIT(OPTION_PID) |       \
	 OPTION_BIT(OPTION_UNIT) | OPTION_BIT(OPTION_DURING_MS) | OPTION_BIT(OPTION_REASON) | \
	 OPTION_BIT(OPTION_SIGNALS) | OPTION_BIT(OPTION_WAIT))

#define VIEW_OPTIONS (OPTION_BIT(OPTION_COUNT) | OPTION_BIT(OPTION_BY) | OPTION_BIT(OPTION_OFFSETS))

#define PROFILE_OPTIONS                                                                      \
	(OPTION_BIT(OPTION_CGROUP) | OPTION_BIT(OPTION_UNIT) | VIEW_OPTIONS |                \
	 OPTION_BIT(OPTION_ANNOTATE) | OPTION_BIT(OPTION_REPORT) | OPTION_BIT(OPTION_FULL) | \
	 OPTION_BIT(OPTION_SVG) | OPTION_BIT(OPTION_PPROF) | OPTION_BIT(OPTION_JSONL) |      \
	 OPTION_BIT(OPTION_TITLE) | OPTION_BIT(OPTION_TOP) | OPTION_BIT(OPTION_INVERTED) |   \
	 OPTION_BIT(OPTION_NATIVE))

static int do_help(const struct options *options, const char *const *arguments);
static int do_completion(const struct options *options, const char *const *arguments);

static const struct command {
	const char *words[2];  /* the second may be NULL */
	const char *argument;  /* in the form of the help; NULL: none */
	unsigned int min, max; /* number of arguments */
	uint64_t options;      /* OPTION_BIT */
	int (*call)(const struct options *options, const char *const *arguments);
	const char *help;
} commands[] = {
	{ { "status" },
	  NULL,
	  0,
	  0,
	  OPTIONS_COMMON | OPTION_BIT(OPTION_ALL),
	  calls_status,
	  "the health of the agent, its watches, its last sessions, its losses" },
	{ { "rules", "get" },
	  NULL,
	  0,
	  0,
	  OPTIONS_COMMON,
	  calls_rules_get,
	  "print the rules in force" },
	{ { "rules", "check" },
	  "RULES",
	  1,
	  1,
	  OPTIONS_COMMON | OPTION_BIT(OPTION_OFFLINE) | OPTION_BIT(OPTION_STRICT),
	  rules_check_call,
	  "list the faults and warnings of a rules file and, where an agent runs, its matches on "
	  "this host; applies nothing" },
	{ { "rules", "set" },
	  "RULES",
	  1,
	  1,
	  OPTIONS_COMMON,
	  calls_rules_set,
	  "put a rules file in force (root and the group trocar-admin)" },
	{ { "watches" },
	  NULL,
	  0,
	  0,
	  OPTIONS_COMMON,
	  calls_watches,
	  "list the cgroups under observation" },
	{ { "sessions" },
	  NULL,
	  0,
	  0,
	  OPTIONS_COMMON,
	  calls_sessions,
	  "list running and recent sessions" },
	{ { "capture" },
	  NULL,
	  0,
	  0,
	  OPTIONS_COMMON | CAPTURE_OPTIONS,
	  capture_call,
	  "start a session now, by --rule, --cgroup or --pid (root and the group trocar-admin)" },
	{ { "profile" },
	  "[PID [SECONDS] | -- COMMAND...]",
	  0,
	  OPTION_TABLE_WORDS_MAX,
	  OPTION_BIT(OPTION_SOCKET) | OPTIONS_HELP | PROFILE_OPTIONS,
	  profile_call,
	  "capture a process (or --cgroup, or --unit) until Ctrl-C or for SECONDS, or a command until it ends, and print its stacks folded; on a terminal its report" },
	{ { "show" },
	  "[SESSION]",
	  0,
	  1,
	  OPTION_BIT(OPTION_SOCKET) | OPTIONS_HELP | OPTION_BIT(OPTION_MEMORY_MIB) |
		  OPTION_BIT(OPTION_OFFSETS) | OPTION_BIT(OPTION_TOP) | OPTION_BIT(OPTION_FULL),
	  kept_show_call,
	  "the report of a session that the agent still has, by its first digits; without, the last" },
	{ { "report" },
	  "[FILE...]",
	  0,
	  INPUT_FILES_MAX,
	  OPTIONS_HELP | OPTIONS_SELECT | OPTIONS_PLACE | OPTION_BIT(OPTION_OFFSETS) |
		  OPTION_BIT(OPTION_TOP) | OPTION_BIT(OPTION_FULL),
	  text_report_call,
	  "the newest session (or --all) as text: the answer on one screen, with --full all evidence" },
	{ { "explain" },
	  "[FILE...]",
	  0,
	  INPUT_FILES_MAX,
	  OPTIONS_HELP | OPTIONS_SELECT | OPTIONS_PLACE,
	  explain_call,
	  "why the service stalled, in sentences: causes, what helps, and the proof" },
	{ { "folded" },
	  "[FILE...]",
	  0,
	  INPUT_FILES_MAX,
	  OPTIONS_SELECT | OPTIONS_PLACE | VIEW_OPTIONS | OPTION_BIT(OPTION_ANNOTATE),
	  folded_call,
	  "stacks of event lines as one line each, root first, for flamegraph.pl and speedscope" },
	{ { "symbolize" },
	  "[FILE]",
	  0,
	  1,
	  OPTIONS_HELP | OPTION_BIT(OPTION_DEBUG_DIR) | OPTION_BIT(OPTION_DEBUGINFOD_CACHE) |
		  OPTION_BIT(OPTION_SOURCE) | OPTION_BIT(OPTION_MAX_LINE_BYTES),
	  symbolize_call,
	  "name frames of event lines that have none, from files of the same build" },
	{ { "pprof" },
	  "[FILE...]",
	  0,
	  INPUT_FILES_MAX,
	  OPTIONS_HELP | OPTIONS_SELECT | OPTIONS_PLACE,
	  pprof_call,
	  "stacks of event lines as a gzipped profile.proto, for go tool pprof and profile stores" },
	{ { "flamegraph" },
	  "[FILE...]",
	  0,
	  INPUT_FILES_MAX,
	  OPTIONS_HELP | OPTIONS_SELECT | OPTIONS_PLACE | VIEW_OPTIONS | OPTION_BIT(OPTION_TITLE) |
		  OPTION_BIT(OPTION_INVERTED),
	  flamegraph_call,
	  "stacks of event lines as one SVG file, baseline and during side by side" },
	{ { "html" },
	  "[FILE...]",
	  0,
	  INPUT_FILES_MAX,
	  OPTIONS_HELP | OPTIONS_SELECT | OPTIONS_PLACE | OPTION_BIT(OPTION_TITLE) |
		  OPTION_BIT(OPTION_TOP),
	  html_call,
	  "the newest session (or --all) as one page for a browser: the report and its flame graphs" },
	{ { "diff" },
	  "[A] [B]",
	  0,
	  2,
	  OPTIONS_HELP | OPTIONS_SELECT | VIEW_OPTIONS | OPTION_BIT(OPTION_TITLE) |
		  OPTION_BIT(OPTION_ANNOTATE) | OPTION_BIT(OPTION_SVG) |
		  OPTION_BIT(OPTION_INVERTED),
	  diff_call,
	  "functions that grew and shrank from A to B by time; of one file from the baseline to "
	  "during" },
	{ { "check" },
	  NULL,
	  0,
	  0,
	  OPTIONS_COMMON,
	  loader_check_call,
	  "check this machine for the features that trocar needs; asks no agent" },
	{ { "version" }, NULL, 0, 0, OPTIONS_COMMON, calls_version, "print the version" },
	{ { "help" },
	  "[COMMAND]",
	  0,
	  2,
	  OPTIONS_COMMON,
	  do_help,
	  "print this, or the help of a command" },
	{ { "completion" },
	  "SHELL",
	  1,
	  1,
	  OPTIONS_HELP,
	  do_completion,
	  "print the completion script of these commands for bash, zsh or fish" },
};

/*
 * Commands with output that programs read, or that users copy: their lines are not wrapped. A
 * report is for people, whichever command prints it.
 */
static const char *const raw[] = { "rules get", "folded",     "symbolize", "pprof",
				   "diff",	"flamegraph", "profile",   "html" };

static const struct {
	const char *command, *line, *help;
} examples[] = {
#define EXAMPLE(command, line, help) { command, line, help },
#include "ctl/command_examples.def"
#undef EXAMPLE
};

/* Writes "rules get" for { "rules", "get" }. */
static const char *write_name(const struct command *command, char name[NAME_BYTES])
{
	snprintf(name, NAME_BYTES, "%s%s%s", command->words[0], command->words[1] ? " " : "",
		 command->words[1] ? command->words[1] : "");
	return name;
}

static bool is_raw(const struct command *command)
{
	char name[NAME_BYTES];

	write_name(command, name);
	for (size_t i = 0; i < ARRAY_SIZE(raw); i++)
		if (!strcmp(raw[i], name))
			return true;
	return false;
}

static void print_examples(const struct command *command, FILE *out)
{
	char name[NAME_BYTES];
	bool first = true;

	write_name(command, name);
	for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
		if (strcmp(examples[i].command, name) != 0)
			continue;
		fprintf(out, "%s%s  %s\n      %s\n", first ? "\nExamples:\n" : "", wrap_not(),
			examples[i].line, examples[i].help);
		first = false;
	}
}

static void print_usage(const struct command *command, FILE *out)
{
	char name[NAME_BYTES];

	fputs(write_name(command, name), out);
	if (command->argument)
		fprintf(out, " %s", command->argument);
}

static void print_command(const struct command *command, FILE *out)
{
	fprintf(out, "Usage: trocar ");
	print_usage(command, out);
	fprintf(out, " [OPTION...]\n\n%s\n", command->help);
	if (command->argument && strstr(command->argument, "RULES"))
		fprintf(out, "RULES is a file, or - for standard input; at most 1 MiB.\n");
	if (command->options & (OPTION_BIT(OPTION_SESSION) | OPTION_BIT(OPTION_DEBUG_DIR)))
		fprintf(out, "A file has event lines; - or none is standard input.\n");
	fprintf(out, "\nOptions:\n");
	options_help(command->options, out);
	print_examples(command, out);
}

static void print_all(FILE *out)
{
	fprintf(out, "Usage: trocar COMMAND [OPTION...]\n\nCommands:\n");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		fputs("  ", out);
		print_usage(&commands[i], out);
		fprintf(out, "\n      %s\n", commands[i].help);
	}
	fprintf(out, "\nOptions of the commands that ask the agent:\n");
	options_help(OPTIONS_COMMON, out);
	fprintf(out,
		"\nExit status: 0 done, 1 failed or refused by the agent, 2 usage, 3 agent not "
		"reachable,\n4 session held back; of capture --wait also 5 partial, 6 "
		"inconclusive.\n");
}

/* Finds the command of the words; *ret_used words are its name. */
static const struct command *find_command(const char *const *words, unsigned int n,
					  unsigned int *ret_used)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		unsigned int own = commands[i].words[1] ? 2 : 1;

		if (n < own || strcmp(words[0], commands[i].words[0]) != 0 ||
		    (own == 2 && strcmp(words[1], commands[i].words[1]) != 0))
			continue;
		*ret_used = own;
		return &commands[i];
	}
	return NULL;
}

/* Prints that there is no such command, and a similar one, if any. */
static int refuse_command(const char *const *words, unsigned int n, FILE *err)
{
	char typed[NAME_BYTES + OPTION_TABLE_WORDS_MAX], name[NAME_BYTES], near[NAME_BYTES] = "";
	const char *meant = NULL;
	size_t distance = 0;

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		const char *before = meant;
		bool two = commands[i].words[1] && n > 1;

		snprintf(typed, sizeof(typed), "%.31s%s%.31s", words[0], two ? " " : "",
			 two ? words[1] : "");
		write_name(&commands[i], name);
		similar_offer(typed, name, &meant, &distance);
		if (meant != before)
			meant = memcpy(near, name, sizeof(near));
	}
	if (meant)
		fprintf(err, "trocar: %.40s: there is no such command; did you mean trocar %s?\n",
			words[0], meant);
	else
		fprintf(err, "trocar: %.40s: there is no such command: see trocar help\n",
			words[0]);
	return COMMAND_USAGE;
}

/* Prints the commands that begin with this word, for "help rules"; returns their number. */
static unsigned int print_group(const char *word, FILE *out)
{
	unsigned int n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (strcmp(commands[i].words[0], word) != 0)
			continue;
		if (n++)
			fputc('\n', out);
		print_command(&commands[i], out);
	}
	return n;
}

static int do_help(const struct options *options, const char *const *arguments)
{
	const struct command *command;
	unsigned int used, n = options->words.count - 1;

	if (!n) {
		print_all(options->out);
		return COMMAND_FINE;
	}
	command = find_command(arguments, n, &used);
	if (command && used == n) {
		print_command(command, options->out);
		return COMMAND_FINE;
	}
	if (n == 1 && print_group(arguments[0], options->out))
		return COMMAND_FINE;
	return refuse_command(arguments, n, options->err);
}

static int do_completion(const struct options *options, const char *const *arguments)
{
	struct completion_command known[ARRAY_SIZE(commands)];

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		known[i] = (struct completion_command){
			.words = { commands[i].words[0], commands[i].words[1] },
			.arguments = commands[i].argument,
			.help = commands[i].help,
			.options = commands[i].options,
		};
	if (completion_print(arguments[0], known, ARRAY_SIZE(known), options->out) == 0)
		return COMMAND_FINE;
	fprintf(options->err, "trocar: completion %s: want bash, zsh or fish\n", arguments[0]);
	return COMMAND_USAGE;
}

static int check_words(const struct command *command, const struct options *options,
		       unsigned int used)
{
	unsigned int n = options->words.count - used;

	if (n >= command->min && n <= command->max)
		return 0;
	fprintf(options->err, "trocar: usage: trocar ");
	print_usage(command, options->err);
	fprintf(options->err, "\n");
	return -EINVAL;
}

/* Makes the input that replaces a file the standard input. Returns enum command_exit. */
static int replace_files(const struct options *options, const char *command, bool files)
{
	if (!options->last && !options->journal)
		return COMMAND_FINE;
	if (files || (options->last && options->journal)) {
		fprintf(options->err, "trocar: %s: give exactly one of: files, --last, --journal\n",
			command);
		return COMMAND_USAGE;
	}
	return options->last ? kept_read(options, NULL) : journal_read(options);
}

static int call_command(const struct command *command, const struct options *options,
			unsigned int used)
{
	const char *const *arguments = (const char *const *)options->words.items + used;
	int status = replace_files(options, command->words[0], arguments[0]);

	return status == COMMAND_FINE ? command->call(options, arguments) : status;
}

/*
 * The first parse of the command line accepted all options; this one accepts only those of the
 * command. `plain` is the output without wrapped lines.
 */
static int run_command(int argc, char *argv[], const struct options *all, FILE *plain)
{
	const struct command *command;
	struct options options;
	unsigned int used = 0;

	command = find_command(all->words.items, all->words.count, &used);
	if (!command && all->help && all->words.count == 1 &&
	    print_group(all->words.items[0], all->out))
		return COMMAND_FINE;
	if (!command)
		return refuse_command(all->words.items, all->words.count, all->err);
	if (all->help) {
		print_command(command, all->out);
		return COMMAND_FINE;
	}
	if (options_parse(command->words[0], command->options, argc - 1, argv + 1,
			  (is_raw(command) && !all->report) || all->json ? plain : all->out,
			  all->err, &options) < 0 ||
	    check_words(command, &options, used) < 0)
		return COMMAND_USAGE;
	return call_command(command, &options, used);
}

static int run_line(int argc, char *argv[], FILE *out, FILE *plain, FILE *err)
{
	struct options all;

	if (options_parse(NULL, OPTIONS_ALL, argc - 1, argv + 1, out, err, &all) < 0)
		return COMMAND_USAGE;
	if (all.version)
		return calls_version(&all, NULL);
	if (!all.words.count) {
		print_all(all.help ? out : err);
		return all.help ? COMMAND_FINE : COMMAND_USAGE;
	}
	return run_command(argc, argv, &all, plain);
}

int command_main(int argc, char *argv[], FILE *out, FILE *err)
{
	struct terminal terminal;
	FILE *wrapping = NULL;
	int status;

	terminal_find(out, &terminal);
	terminal_use(&terminal);
	if (terminal.columns)
		wrapping = wrap_open(out, terminal.columns);
	status = run_line(argc, argv, wrapping ? wrapping : out, out, err);
	if (wrapping)
		wrap_close(wrapping);
	return status;
}
