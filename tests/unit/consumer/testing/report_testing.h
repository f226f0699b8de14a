/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report_testing.h: ended sessions with known stacks, and the lines that are written of them, which
 * the validator of the schemas reads too.
 */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_TESTING_REPORT_TESTING_H
#define TROCAR_TESTS_UNIT_CONSUMER_TESTING_REPORT_TESTING_H

#include "tests/unit/consumer/testing/unit_testing.h"

#include <json-c/json.h>

#include "consumer/session/session_result.h"
#include "consumer/symbols/symbols.h"

#define KERNEL_BASE 0xffffffff81000000ULL
#define KERNEL_STEP 0x100u
#define FUNCTIONS   200

extern struct event_lines report_testing_lines;
extern char report_testing_path[96]; /* of the output */
extern struct symbols *report_testing_symbols;

/* A folder for the output and the kernel's symbols; removed again. */
int report_testing_setup(void **state);
int report_testing_teardown(void **state);

/* Opens the output, and symbols with names of that many bytes. */
void report_testing_begin(size_t queue_bytes, size_t max_bytes, int name_bytes);

/* An ended session on request without samples; session_result_free it. */
struct session_result *report_testing_new_session(const char *cgroup);

/* What its signal `oncpu` has taken. */
struct signal_stacks *report_testing_taken_by(struct session_result *s);

/* Counts `count` samples of one stack: kernel functions first.. and then unknown user addresses. */
void report_testing_add(struct session_result *s, enum phase phase, unsigned int first,
			uint16_t kernel, uint16_t user, unsigned int count);

/* Reports it to the output. */
void report_testing_report(struct session_result *s);

/* Ends the output and gives its lines, each within the limit; keeps them for the validator. */
json_object *report_testing_finish(void);

/* All of that with one session, which it frees: its last line. */
json_object *report_testing_end_of(struct session_result *s);

static inline json_object *at(json_object *all, size_t i)
{
	return json_object_array_get_idx(all, i);
}

static inline const char *get(json_object *line, const char *key)
{
	return json_object_get_string(json_object_object_get(line, key));
}

static inline int64_t number(json_object *line, const char *key)
{
	return json_object_get_int64(json_object_object_get(line, key));
}

#endif
