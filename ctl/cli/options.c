/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/cli/options.h"

#include "shared/tools/macro.h"
#include "shared/tools/reason_text.h"

/* A row of the option OPTION_id. */
#define ROW(type, id, field, name, ...) \
	OPTION_ROW(type, OPTION_BIT(OPTION_##id), field, name, __VA_ARGS__)

static const struct option_row rows[] = {
	ROW(SET, JSON, json, "json", .help = "print the agent's result as one line of JSON"),
	ROW(TEXT, SOCKET, socket, "socket", .value = "PATH",
	    .help = "control socket (" OPTIONS_SOCKET ", or $TROCAR_SOCKET)"),
	ROW(SET, HELP, help, "help", .letter = 'h', .help = "print help"),
	ROW(SET, VERSION, version, "version", .help = "print the version"),
	ROW(TEXT, RULE, rule, "rule", .value = "NAME", .help = "this rule"),
	ROW(TEXT, CGROUP, cgroup, "cgroup", .value = "PATH",
	    .help = "this cgroup (path below the cgroup2 mount); in files also the cgroups below "
		    "it"),
	ROW(NUMBER, PID, pid, "pid", .value = "PID", .min = 1, .max = OPTIONS_PID_MAX,
	    .help = "this process; for a capture its cgroup"),
	ROW(NUMBER, DURING_MS, during_ms, "during-ms", .value = "N", .min = 100, .max = 60000,
	    .help = "capture for this long"),
	ROW(TEXT, REASON, reason, "reason", .value = "TEXT",
	    .help = "the reason, for the lines (" REASON_TEXT_RIGHT
		    "); with --rule its cooldown holds"),
	ROW(TEXT, SIGNALS, signals, "signals", .value = "LIST",
	    .help = "these signals, with commas between, or auto; else the rule's"),
	ROW(SET, WAIT, wait, "wait",
	    .help = "wait until the session has ended, and print its headline"),
	ROW(TEXT, SESSION, session, "session", .value = "ID",
	    .help = "this session, by its first digits if it alone has them"),
	ROW(TEXT, SIGNAL, signal, "signal", .value = "NAME",
	    .help = "this signal (oncpu, offcpu), or wall: both, by time"),
	ROW(CHOICE, PHASE, phase, "phase", .value = "PHASE", .choices = "before|onset|during",
	    .help = "this phase"),
	ROW(TEXT, COMM, comm, "comm", .value = "NAME", .help = "threads of this name"),
	ROW(TEXT, SINCE, since, "since", .value = "TIME",
	    .help = "sessions from then on: -1h, today, 15:59, \"2026-11-21 15:59\" (local), or with "
		    "a Z UTC"),
	ROW(TEXT, UNTIL, until, "until", .value = "TIME", .help = "sessions up to then"),
	ROW(NUMBER, MEMORY_MIB, memory_mib, "memory-mib", .value = "N", .min = 1, .max = 1 << 20,
	    .preset = "1024", .help = "hold at most this much of a file's stacks and names"),
	ROW(TEXT, UNIT, unit, "unit", .value = "UNIT",
	    .help = "the cgroup of this unit of systemd: nginx, nginx.service, user.slice"),
	ROW(CHOICE, COUNT, count, "count", .value = "WHAT", .choices = "samples|ns",
	    .help = "what is counted"),
	ROW(TEXT, BY, by, "by", .value = "KEYS", .preset = OPTIONS_BY,
	    .help = "add below each stack: none, or any of session, rule, cgroup, signal, phase, "
		    "exe, comm, pid with commas between"),
	ROW(SET, OFFSETS, offsets, "offsets",
	    .help = "distinguish frames without a name by their place in the file"),
	ROW(SET, ANNOTATE, annotate, "annotate",
	    .help = "mark frames of the kernel _[k] and of a JIT _[j], as flamegraph.pl colours "
		    "them"),
	ROW(SET, SVG, svg, "svg", .help = "a picture: of a difference, or of the capture"),
	ROW(SET, REPORT, report, "report", .help = "the capture as trocar report prints it"),
	ROW(SET, FULL, full, "full",
	    .help = "all of the evidence, not only the answer and what it rests on"),
	ROW(SET, PPROF, pprof, "pprof", .help = "the capture as a gzipped profile.proto"),
	ROW(SET, JSONL, jsonl, "jsonl", .help = "the agent's lines of the session as they come"),
	ROW(SET, INVERTED, inverted, "inverted",
	    .help = "draw the first function at the bottom, as flamegraph.pl does"),
	ROW(TEXT, TITLE, title, "title", .value = "TEXT",
	    .help = "title of the picture, instead of the headline"),
	ROW(TEXT, DEBUG_DIR, dirs, "debug-dir", .value = "DIR", .times = OPTIONS_DIRS_MAX,
	    .help = "name frames from the programs, libraries and debug files below this folder, "
		    "by build-id"),
	ROW(TEXT, DEBUGINFOD_CACHE, debuginfod_cache, "debuginfod-cache", .value = "DIR",
	    .help = "name frames from the files that debuginfod-find(1) has put there, as "
		    "~/.cache/debuginfod_client"),
	ROW(SET, SOURCE, source, "source",
	    .help = "add source lines, and the functions that are inlined there"),
	ROW(NUMBER, MAX_LINE_BYTES, max_line_bytes, "max-line-bytes", .value = "N", .min = 4096,
	    .max = 1 << 20, .preset = "8096",
	    .help = "write no longer lines: stacks may need more of them"),
	ROW(NUMBER, TOP, top, "top", .value = "N", .min = 1, .max = 100000, .preset = "20",
	    .help = "show N functions"),
	ROW(SET, ALL, all, "all",
	    .help = "all selected sessions, not only the newest; of status: everything that the "
		    "agent reports of itself"),
	ROW(SET, NATIVE, native, "native",
	    .help = "show the frames of an interpreter too, where functions that it interprets "
		    "are known"),
	ROW(SET, LAST, last, "last",
	    .help = "the last session that ended, which the agent still has, instead of a file"),
	ROW(SET, JOURNAL, journal, "journal",
	    .help = "this host's journal, by journalctl, instead of a file"),
	ROW(TEXT, HOST, host, "host", .value = "NAME", .help = "sessions of this host"),
	ROW(SET, OFFLINE, offline, "offline", .help = "ask no agent, also where one runs"),
	ROW(SET, STRICT, strict, "strict", .help = "warnings are failures: exit status 1"),
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), "trocar help" };

int options_parse(const char *command, uint64_t bits, int argc, char *const argv[], FILE *out,
		  FILE *err, struct options *ret_options)
{
	struct options options = { .out = out, .err = err };
	char fault[OPTION_TABLE_FAULT_BYTES];
	int r;

	r = option_table_parse(&table, bits, argc, argv, &options, &options.words, fault);
	if (r < 0) {
		fprintf(err, "trocar: %s%s%s\n", command ? command : "", command ? ": " : "",
			fault);
		return r;
	}
	*ret_options = options;
	return 0;
}

const struct option_table *options_table(void)
{
	return &table;
}

void options_help(uint64_t bits, FILE *out)
{
	option_table_help(&table, bits, "  ", out);
}
