/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/agent/options.h"

#include <stdio.h>
#include <string.h>

#include "shared/broker/broker.h"
#include "shared/tools/log.h"
#include "shared/tools/macro.h"
#include "shared/tools/option_table.h"

#define ALL 1u /* the only verb bit: the consumer has no verbs */

static const struct option_row rows[] = {
	OPTION_ROW(TEXT, ALL, rules, "rules", .value = "FILE", .preset = "/etc/trocar/rules.json",
		   .help = "rule set, JSON"),
	OPTION_ROW(TEXT, ALL, output, "output", .value = "WHERE", .preset = "-",
		   .help = "event lines: - (stdout), a file or FIFO, or unix:PATH"),
	OPTION_ROW(TEXT, ALL, bpf_dir, "bpf-dir", .value = "DIR", .preset = "/run/trocar/bpf",
		   .help = "where the loader pinned"),
	OPTION_ROW(TEXT, ALL, socket, "socket", .value = "PATH",
		   .preset = "/run/trocar/control.sock", .help = "control socket"),
	OPTION_ROW(TEXT, ALL, broker, "broker", .value = "PATH", .preset = BROKER_SOCKET,
		   .help = "broker's socket; none: run without the broker"),
	OPTION_ROW(TEXT, ALL, user, "user", .value = "USER", .preset = "trocar",
		   .help = "user to become when started as root, by name or number"),
	OPTION_ROW(TEXT, ALL, group, "group", .value = "GROUP", .preset = "trocar",
		   .help = "group of the pins; its members can write the maps"),
	OPTION_ROW(TEXT, ALL, socket_group, "socket-group", .value = "GROUP",
		   .help = "group that may connect to the control socket (default: --group)"),
	OPTION_ROW(TEXT, ALL, admin_group, "admin-group", .value = "GROUP",
		   .preset = "trocar-admin",
		   .help = "group that may change rules and start sessions"),
	OPTION_ROW(NUMBER, ALL, max_line_bytes, "max-line-bytes", .value = "N", .min = 4096,
		   .max = 1 << 20, .preset = "8096",
		   .help = "longest event line; rsyslog cuts at 8096"),
	OPTION_ROW(NUMBER, ALL, queue_kib, "queue-kib", .value = "N", .min = 64, .max = 1 << 20,
		   .preset = "4096", .help = "memory between drain and output"),
	OPTION_ROW(NUMBER, ALL, keep_kib, "keep-kib", .value = "N", .min = 0, .max = 4096,
		   .preset = "2048",
		   .help = "lines of the last sessions, for trocar show; 0: none"),
	OPTION_ROW(NUMBER, ALL, recorder_kib, "recorder-kib", .value = "N", .min = 64,
		   .max = 1 << 20, .preset = "16384",
		   .help = "memory of the seconds before a trigger"),
	OPTION_ROW(NUMBER, ALL, symbols_kib, "symbols-kib", .value = "N", .min = 1024,
		   .max = 1 << 20, .preset = "32768",
		   .help = "memory of symbol tables, used as needed"),
	OPTION_ROW(NUMBER, ALL, health_seconds, "health-seconds", .value = "N", .min = 0,
		   .max = 86400, .preset = "60",
		   .help = "seconds between two health lines, while it watches; 0: none"),
	OPTION_ROW(NUMBER, ALL, lines_per_minute, "lines-per-minute", .value = "N", .min = 10,
		   .max = 1 << 20, .preset = "600",
		   .help = "lines about a rule's processes and watches"),
	OPTION_ROW(NUMBER, ALL, looks_permille, "looks-permille", .value = "N", .min = 1,
		   .max = 1000, .preset = "10",
		   .help = "limit of off-CPU sampling by sessions, in 1/1000 of a CPU"),
	OPTION_ROW(CLEAR, ALL, rules_watch, "no-rules-watch",
		   .help = "do not reload the rules file when it changes"),
	OPTION_ROW(TEXT, ALL, symbols_path, "symbols-path", .value = "DIR:DIR",
		   .help = "more directories whose programs may be read for function names"),
	OPTION_ROW(SET, ALL, journal, "journal",
		   .help = "prefix messages with their priority for the journal"),
	OPTION_ROW(SET, ALL, help, "help", .letter = 'h', .help = "this text"),
	OPTION_ROW(SET, ALL, version, "version", .help = "the version"),
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), "trocar-consumer --help" };

int options_parse(int argc, char *argv[], struct options *ret_options)
{
	char fault[OPTION_TABLE_FAULT_BYTES];
	struct options options = { 0 };
	int r;

	r = option_table_parse(&table, ALL, argc - 1, argv + 1, &options, NULL, fault);
	if (r < 0) {
		log_error("%s", fault);
		return r;
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
	       "Drains the maps of trocar-loader and writes JSON lines; holds no privilege.\n\n");
	option_table_help(&table, ALL, "  ", stdout);
	printf("\nExit status: 0 ended by a signal, 1 failure, 2 usage, 4 the loader is of another "
	       "version,\n6 the rules file at start is missing or faulty.\n");
}
