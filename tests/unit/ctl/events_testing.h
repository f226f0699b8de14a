/* SPDX-License-Identifier: BSD-2-Clause */
/* events_testing.h: event lines for tests, and command lines run on them. */
#ifndef TROCAR_TESTS_UNIT_CTL_EVENTS_TESTING_H
#define TROCAR_TESTS_UNIT_CTL_EVENTS_TESTING_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/command.h"

/* What every line has; S is the last digit of the session. */
#define EVENTS_HEAD(type, S)                                           \
	"{\"v\":1,\"type\":\"" type "\",\"ts\":\"2026-11-21T15:59:0" S \
	".098828602Z\",\"session\":"                                   \
	"\"000000000000000" S "\",\"rule\":\"rule" S "\",\"cgroup\":\"/c/" S "\""
#define EVENTS_STACK(S, phase, comm, count, ns, frames)                                  \
	EVENTS_HEAD("stack", S)                                                          \
	",\"signal\":\"oncpu\",\"phase\":\"" phase "\",\"pid\":7,\"start_ns\":1,"        \
	"\"comm\":\"" comm "\",\"exe\":\"/bin/" comm "\",\"threads\":1,\"count\":" count \
	",\"weight_ns\":" ns ",\"quality\":\"complete\",\"frames\":[" frames "]}\n"
/* A thread that waits; `state` has the keys state, wait and idle. */
#define EVENTS_WAIT(S, phase, comm, count, ns, state, frames)                            \
	EVENTS_HEAD("stack", S)                                                          \
	",\"signal\":\"offcpu\",\"phase\":\"" phase "\",\"pid\":7,\"start_ns\":1,"       \
	"\"comm\":\"" comm "\",\"exe\":\"/bin/" comm "\",\"threads\":1,\"count\":" count \
	",\"weight_ns\":" ns "," state ",\"quality\":\"complete\",\"frames\":[" frames "]}\n"
#define EVENTS_BLOCKED(wait, idle) "\"state\":\"blocked\",\"wait\":\"" wait "\",\"idle\":" idle
#define EVENTS_RUNNABLE		   "\"state\":\"runnable\",\"idle\":false"
#define EVENTS_USER(fn)                                                                     \
	"{\"fn\":\"" fn "\",\"module\":\"/bin/a\",\"build_id\":\"aabb\",\"offset\":4096,\"" \
	"kind\":\"user\"}"
#define EVENTS_UNNAMED                                                                   \
	"{\"fn\":null,\"why\":\"no_symbol\",\"module\":\"/lib/libc.so.6\",\"build_id\":" \
	"\"ccdd\",\"offset\":160330,\"kind\":\"user\"}"
#define EVENTS_KERNEL(fn) \
	"{\"fn\":\"" fn "\",\"module\":\"kernel\",\"offset\":32,\"kind\":\"kernel\"}"
#define EVENTS_START(S)                                                                        \
	EVENTS_HEAD("session.start", S)                                                        \
	",\"reason\":{\"pressure\":{\"resource\":\"cpu\",\"kind\":\"some\",\"stall_ms\":434,"  \
	"\"window_ms\":1000}},\"signals\":[\"oncpu\"],\"signals_reason\":\"auto\",\"pre_ms\":" \
	"2500,\"during_ms\":2000,\"hz\":97,\"recorder_hz\":19,\"slot\":0}\n"
#define EVENTS_END(S)                                                                            \
	EVENTS_HEAD("session.end", S)                                                            \
	",\"duration_ms\":2000,\"pre_ms\":1000,\"ledger\":{\"oncpu\":{\"attempted\":10,"         \
	"\"emitted\":9,\"lost\":{\"ring_full\":1},\"before\":{\"attempted\":3,\"emitted\":3},"   \
	"\"during\":{\"attempted\":7,\"emitted\":6},\"expected\":8,\"stacks\":3}},"              \
	"\"verdict\":\"partial\",\"verdict_reason\":\"1 of 10 samples was lost\","               \
	"\"lost_share\":0.100,\"headline\":\"/c/" S " stalled on cpu for 434 ms\",\"top\":[],"   \
	"\"modules_unnamed\":[{\"module\":\"/lib/libc.so.6\",\"frames\":3,\"why\":\"no_symbol\"" \
	"}],\"memory_bytes\":100,\"pressure_end\":{\"some\":{\"avg10\":12.33,\"avg60\":2.3,"     \
	"\"avg300\":0.48,\"total_us\":2673812},\"full\":{\"avg10\":10.5,\"avg60\":1.97,"         \
	"\"avg300\":0.41,\"total_us\":2214178}}}\n"

static char events_file[] = "/tmp/trocar-events-XXXXXX";
static char *events_out, *events_err;
static size_t events_out_bytes;

/* Runs `trocar` with these words (NULL ends them); what it prints is in events_out and events_err.
 */
static inline int events_command(const char *word, ...)
{
	char *argv[16] = { (char *)"trocar", (char *)word };
	size_t err_bytes;
	FILE *out, *err;
	va_list args;
	int argc = 2, status;

	va_start(args, word);
	while (argc < 15 && (argv[argc] = va_arg(args, char *)))
		argc++;
	va_end(args);
	free(events_out);
	free(events_err);
	out = open_memstream(&events_out, &events_out_bytes);
	err = open_memstream(&events_err, &err_bytes);
	status = command_main(argc, argv, out, err);
	fclose(out);
	fclose(err);
	return status;
}

static inline void events_write_n(const char *lines, size_t bytes)
{
	FILE *file = fopen(events_file, "we");

	if (!file || fwrite(lines, 1, bytes, file) != bytes || fclose(file) == EOF)
		abort();
}

static inline void events_write(const char *lines)
{
	events_write_n(lines, strlen(lines));
}

static inline int events_setup(void **state)
{
	int fd;

	strcpy(events_file, "/tmp/trocar-events-XXXXXX");
	fd = mkstemp(events_file);
	return fd < 0 ? -1 : close(fd);
}

static inline int events_teardown(void **state)
{
	free(events_out);
	free(events_err);
	events_out = events_err = NULL;
	return unlink(events_file);
}

#endif
