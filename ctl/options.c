/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/options.h"

#include <errno.h>
#include <string.h>

#include "ctl/client.h"
#include "shared/macro.h"

static const struct row {
	const char *name;
	const char *value; /* NULL: a flag */
	const char *help;
} rows[] = {
	[OPTION_JSON] = { "json", NULL, "print the agent's result as one line of JSON" },
	[OPTION_SOCKET] = { "socket", "PATH",
			    "control socket (" CLIENT_SOCKET ", or $TROCAR_SOCKET)" },
	[OPTION_HELP] = { "help", NULL, "print help" },
	[OPTION_VERSION] = { "version", NULL, "print the version" },
	[OPTION_RULE] = { "rule", "NAME", "this rule" },
	[OPTION_CGROUP] = { "cgroup", "PATH",
			    "this cgroup (path below the cgroup2 mount), in files what is below too" },
	[OPTION_PID] = { "pid", "PID", "this process; for a capture its cgroup" },
	[OPTION_DURING_MS] = { "during-ms", "N", "capture for so long (100 to 60000)" },
	[OPTION_SESSION] = { "session", "ID", "this session, by its first digits" },
	[OPTION_SIGNAL] = { "signal", "NAME", "this signal (oncpu)" },
	[OPTION_PHASE] = { "phase", "PHASE", "before or during" },
	[OPTION_COMM] = { "comm", "NAME", "threads of this name" },
	[OPTION_SINCE] = { "since", "TIME",
			   "sessions from then on (UTC, 2026-11-21T15:59:03Z or its beginning)" },
	[OPTION_UNTIL] = { "until", "TIME", "sessions up to then" },
	[OPTION_MEMORY_MIB] = { "memory-mib", "N",
				"hold at most so much of a file's stacks and names (1024)" },
	[OPTION_UNIT] = { "unit", "UNIT", "count samples or ns" },
	[OPTION_BY] = { "by", "KEYS",
			"what stands below each stack: comm (default), none, or any of session, "
			"rule, cgroup, signal, phase, exe, comm, pid with commas between" },
	[OPTION_OFFSETS] = { "offsets", NULL,
			     "tell frames without a name apart by their place in the file" },
	[OPTION_ANNOTATE] = { "annotate", NULL,
			      "mark frames of the kernel _[k] and of a JIT _[j], as flamegraph.pl "
			      "colours them" },
	[OPTION_SVG] = { "svg", NULL, "a picture of the difference" },
	[OPTION_TITLE] = { "title", "TEXT", "above the picture, in place of what stalled" },
	[OPTION_DEBUG_DIR] = { "debug-dir", "DIR",
			       "name frames from the programs, libraries and debug files below this "
			       "folder, by build-id; may be given 16 times" },
	[OPTION_SOURCE] = { "source", NULL,
			    "add source lines, and the functions that are inlined there" },
	[OPTION_MAX_LINE_BYTES] = { "max-line-bytes", "N",
				    "write no longer lines (8096): stacks may need more of them" },
	[OPTION_TOP] = { "top", "N", "show so many functions (20)" },
};

_Static_assert(ARRAY_SIZE(rows) == OPTION_COUNT_, "an option has no row");

const char *options_name(enum option option)
{
	return rows[option].name;
}

/* The row that `text` (behind the dashes) names; *ret_value is behind its '=', or NULL. */
static int find(const char *text, const char **ret_value)
{
	size_t bytes = strcspn(text, "=");

	*ret_value = text[bytes] ? text + bytes + 1 : NULL;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (strlen(rows[i].name) == bytes && !strncmp(rows[i].name, text, bytes))
			return (int)i;
	return -ENOENT;
}

/* The one option that may be given more than once. */
static int take_dir(const char *path, struct options *options)
{
	if (options->n_dirs == OPTIONS_DIRS_MAX) {
		fprintf(options->err, "trocar: --debug-dir: want at most %u\n", OPTIONS_DIRS_MAX);
		return -EINVAL;
	}
	options->dirs[options->n_dirs++] = path;
	return 0;
}

/* Takes the option argv[*i], and its value. */
static int take(char *argv[], int *i, struct options *options)
{
	const char *value = NULL, *text = argv[*i];
	int row = !strcmp(text, "-h") ? OPTION_HELP : find(text + 2, &value);

	if (row < 0 || (text[1] != '-' && row != OPTION_HELP)) {
		fprintf(options->err, "trocar: unknown option %s: see trocar help\n", text);
		return -EINVAL;
	}
	if (!rows[row].value && value) {
		fprintf(options->err, "trocar: --%s takes no value\n", rows[row].name);
		return -EINVAL;
	}
	if (rows[row].value && !value)
		value = argv[*i + 1] ? argv[++*i] : NULL;
	if (rows[row].value && !value) {
		fprintf(options->err, "trocar: --%s needs a value: %s\n", rows[row].name,
			rows[row].value);
		return -EINVAL;
	}
	options->values[row] = value ? value : "";
	options->given |= OPTION_BIT(row);
	return row == OPTION_DEBUG_DIR ? take_dir(value, options) : 0;
}

int options_parse(int argc, char *argv[], FILE *out, FILE *err, struct options *ret_options)
{
	struct options options = { .out = out, .err = err };
	bool words_only = false;
	int r;

	for (int i = 1; i < argc; i++) {
		if (!words_only && !strcmp(argv[i], "--")) {
			words_only = true;
			continue;
		}
		if (!words_only && argv[i][0] == '-' && argv[i][1]) {
			r = take(argv, &i, &options);
			if (r < 0)
				return r;
			continue;
		}
		if (options.n_words == OPTIONS_WORDS_MAX) {
			fprintf(err, "trocar: too many arguments: see trocar help\n");
			return -EINVAL;
		}
		options.words[options.n_words++] = argv[i];
	}
	*ret_options = options;
	return 0;
}

void options_help(unsigned int bits, FILE *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char name[32];

		if (!(bits & OPTION_BIT(i)))
			continue;
		snprintf(name, sizeof(name), "--%s %s", rows[i].name,
			 rows[i].value ? rows[i].value : "");
		fprintf(out, "  %-18s %s\n", name, rows[i].help);
	}
}
