/* SPDX-License-Identifier: BSD-2-Clause */
/* options.h: the consumer's command line: one constant table, which also makes the help text. */
#ifndef TROCAR_CONSUMER_AGENT_OPTIONS_H
#define TROCAR_CONSUMER_AGENT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct options {
	const char *rules;	  /* file */
	const char *output;	  /* "-", a path, "unix:PATH" */
	const char *bpf_dir;	  /* the loader's pin directory */
	const char *socket;	  /* control socket */
	const char *broker;	  /* the broker's socket; "" or "none" for none */
	const char *user;	  /* becomes this user when started as root */
	const char *group;	  /* group of pins and control socket */
	const char *socket_group; /* may connect to the control socket; NULL: as group */
	const char *admin_group;  /* may call methods that change state */
	const char *symbols_path; /* "DIR:DIR", NULL for none */
	uint64_t max_line_bytes;
	uint64_t queue_kib;
	uint64_t keep_kib; /* of lines of the last sessions; 0: none */
	uint64_t recorder_kib;
	uint64_t symbols_kib;
	uint64_t health_seconds;   /* between two health lines; 0: none */
	uint64_t lines_per_minute; /* about processes and watches, per rule */
	uint64_t looks_permille;   /* of a CPU, for off-CPU samples */
	bool rules_watch;	   /* reload the file when it changes */
	bool journal;		   /* "<N>" prefixes for the journal */
	bool help, version;
};

/*
 * Parses the command line into `ret_options` (strings are borrowed from argv). Returns 0; -EINVAL
 * after a line on stderr with the fault.
 */
int options_parse(int argc, char *argv[], struct options *ret_options);

/* Returns the path of the broker's socket; "" if the consumer runs without a broker. */
const char *options_broker(const struct options *options);

/* Prints the help text to stdout. */
void options_help(void);

#endif
