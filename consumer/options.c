/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/options.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "shared/broker.h"
#include "shared/log.h"
#include "shared/macro.h"
#include "shared/parse.h"

enum option_type { OPTION_TEXT, OPTION_NUMBER, OPTION_YES, OPTION_NO };

/* Rows of the table: where the value goes, its walls and its help. */
static const struct option_row {
	const char *name, *value;
	enum option_type type;
	size_t offset;
	uint64_t min, max;
	const char *help;
} rows[] = {
	{ "--rules", "FILE", OPTION_TEXT, offsetof(struct options, rules), 0, 0,
	  "rule set, JSON (default /etc/trocar/rules.json)" },
	{ "--output", "WHERE", OPTION_TEXT, offsetof(struct options, output), 0, 0,
	  "event lines: - (stdout, default), a file or FIFO, or unix:PATH" },
	{ "--bpf-dir", "DIR", OPTION_TEXT, offsetof(struct options, bpf_dir), 0, 0,
	  "where the loader pinned (default /run/trocar/bpf)" },
	{ "--socket", "PATH", OPTION_TEXT, offsetof(struct options, socket), 0, 0,
	  "control socket (default /run/trocar/control.sock)" },
	{ "--broker", "PATH", OPTION_TEXT, offsetof(struct options, broker), 0, 0,
	  "broker's socket (default " BROKER_SOCKET "); none: do without" },
	{ "--user", "NAME", OPTION_TEXT, offsetof(struct options, user), 0, 0,
	  "user to become when started as root (default trocar)" },
	{ "--group", "NAME", OPTION_TEXT, offsetof(struct options, group), 0, 0,
	  "group of the pins (default trocar); its members can write the maps" },
	{ "--socket-group", "NAME", OPTION_TEXT, offsetof(struct options, socket_group), 0, 0,
	  "group that may connect to the control socket (default: --group)" },
	{ "--admin-group", "NAME", OPTION_TEXT, offsetof(struct options, admin_group), 0, 0,
	  "group that may change rules and start sessions (default trocar-admin)" },
	{ "--max-line-bytes", "N", OPTION_NUMBER, offsetof(struct options, max_line_bytes), 4096,
	  1 << 20, "longest event line (default 8096: rsyslog cuts there)" },
	{ "--queue-kib", "N", OPTION_NUMBER, offsetof(struct options, queue_kib), 64, 1 << 20,
	  "memory between drain and output (default 4096)" },
	{ "--recorder-kib", "N", OPTION_NUMBER, offsetof(struct options, recorder_kib), 64, 1 << 20,
	  "memory of the seconds before a trigger (default 16384, used as needed)" },
	{ "--symbols-kib", "N", OPTION_NUMBER, offsetof(struct options, symbols_kib), 1024, 1 << 20,
	  "memory of symbol tables (default 32768, used as needed)" },
	{ "--health-seconds", "N", OPTION_NUMBER, offsetof(struct options, health_seconds), 0,
	  86400,
	  "how often the agent says what it costs, while it watches (default 60; 0: never)" },
	{ "--lines-per-minute", "N", OPTION_NUMBER, offsetof(struct options, lines_per_minute), 10,
	  1 << 20, "lines about a rule's processes and watches in a minute (default 600)" },
	{ "--no-rules-watch", NULL, OPTION_NO, offsetof(struct options, rules_watch), 0, 0,
	  "do not reload the rules file when it changes" },
	{ "--symbols-path", "DIR:DIR", OPTION_TEXT, offsetof(struct options, symbols_path), 0, 0,
	  "more directories whose programs may be read for function names" },
	{ "--journal", NULL, OPTION_YES, offsetof(struct options, journal), 0, 0,
	  "prefix messages with their priority for the journal" },
	{ "--help", NULL, OPTION_YES, offsetof(struct options, help), 0, 0, "this text" },
	{ "--version", NULL, OPTION_YES, offsetof(struct options, version), 0, 0, "the version" },
};

static const struct option_row *find_row(const char *name, size_t length)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (strlen(rows[i].name) == length && !memcmp(rows[i].name, name, length))
			return &rows[i];
	return NULL;
}

static int set_value(const struct option_row *row, const char *text, struct options *options)
{
	void *place = (char *)options + row->offset;
	int r;

	switch (row->type) {
	case OPTION_TEXT:
		*(const char **)place = text;
		return 0;
	case OPTION_NUMBER:
		r = parse_u64(text, row->min, row->max, place);
		if (r < 0)
			log_error("%s %s: want a number from %llu to %llu", row->name, text,
				  (unsigned long long)row->min, (unsigned long long)row->max);
		return r < 0 ? -EINVAL : 0;
	case OPTION_YES:
	case OPTION_NO:
		*(bool *)place = row->type == OPTION_YES;
		return 0;
	}
	return -EINVAL;
}

int options_parse(int argc, char *argv[], struct options *ret_options)
{
	struct options options = {
		.rules = "/etc/trocar/rules.json",
		.output = "-",
		.bpf_dir = "/run/trocar/bpf",
		.socket = "/run/trocar/control.sock",
		.broker = BROKER_SOCKET,
		.user = "trocar",
		.group = "trocar",
		.admin_group = "trocar-admin",
		.max_line_bytes = 8096,
		.queue_kib = 4096,
		.recorder_kib = 16384,
		.symbols_kib = 32768,
		.health_seconds = 60,
		.lines_per_minute = 600,
		.rules_watch = true,
	};

	for (int i = 1; i < argc; i++) {
		const char *equals = strchr(argv[i], '='), *value = NULL;
		const struct option_row *row =
			find_row(argv[i], equals ? (size_t)(equals - argv[i]) : strlen(argv[i]));

		if (!row) {
			log_error("%s: no such option; --help lists them", argv[i]);
			return -EINVAL;
		}
		if (row->value)
			value = equals ? equals + 1 : i + 1 < argc ? argv[++i] : NULL;
		if (!row->value != !value || (!row->value && equals)) {
			log_error("%s: %s", row->name,
				  row->value ? "a value is missing" : "takes no value");
			return -EINVAL;
		}
		if (set_value(row, value, &options) < 0)
			return -EINVAL;
	}
	*ret_options = options;
	return 0;
}

const char *options_broker(const struct options *options)
{
	return strcmp(options->broker, "none") != 0 ? options->broker : "";
}

void options_help(void)
{
	printf("usage: trocar-consumer [OPTION...]\n\n"
	       "Drains what trocar-loader pinned and writes JSON lines; holds no privilege.\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		printf("  %s%s%-*s %s\n", rows[i].name, rows[i].value ? " " : "",
		       (int)(24 - strlen(rows[i].name)), rows[i].value ? rows[i].value : "",
		       rows[i].help);
	printf("\nExit status: 0 ended by a signal, 1 failure, 2 usage, 4 the loader is of another "
	       "version,\n6 the rules file at start is missing or faulty.\n");
}
