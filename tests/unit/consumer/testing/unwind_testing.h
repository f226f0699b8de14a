/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_testing.h: a fake agent that unwinds by rows, with memory for the kernel side's maps and a
 * file for its iterator. Functions assert.
 */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_TESTING_UNWIND_TESTING_H
#define TROCAR_TESTS_UNIT_CONSUMER_TESTING_UNWIND_TESTING_H

#include "tests/unit/consumer/testing/fake_agent_testing.h"

#include "tests/unit/consumer/unwind/testing/own_program_testing.h"

#define UNWIND_TESTING_ELEMENTS (1u << 20)
#define UNWIND_TESTING_TABLES	3

struct unwind_testing {
	struct fake *fake;
	char ranges[128];
	void *pool;
	struct unwind_process *tables;
};

/* Starts with a pool of so many elements. False when this process may make no maps. */
bool unwind_testing_start(struct unwind_testing *t, uint32_t elements);
void unwind_testing_stop(struct unwind_testing *t);

/* The kernel side's answer to the next filling. */
void unwind_testing_record(struct unwind_testing *t, struct ranges_record record);
void unwind_testing_fill(struct unwind_testing *t, uint64_t fill, uint32_t table, uint32_t count);

/* A process that asked for a capture and has this one file mapped; its line was written. */
struct process *unwind_testing_mapped(struct unwind_testing *t, uint32_t tgid,
				      struct mapping mapping);

/* Its mappings were read: makes or renews its table. */
void unwind_testing_renew(struct unwind_testing *t, struct process *p);

/* A tick meets the process, with a stack that is not walked by its table. */
void unwind_testing_sample(struct unwind_testing *t, struct process *p);

/* What the loop does, until there has been as much news as is needed or `ms` have passed. */
bool unwind_testing_run(struct unwind_testing *t, bool (*done)(const struct process *p),
			const struct process *p, int ms);

/* A done() of the above. */
bool unwind_testing_has_table(const struct process *p);

/* A process with this program mapped and a table, which is number `table`, filled as `fill`. */
struct process *unwind_testing_published(struct unwind_testing *t, uint32_t tgid, uint32_t table,
					 uint64_t fill);

/* The words written to the kernel side: number of the process's table plus 1. */
uint32_t unwind_testing_told(const struct unwind_testing *t, const struct process *p);

#endif
