/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pressure_testing.h: a fake agent with a cgroup of its own; its pressure files are opened here
 * instead of by a broker. Shared by the tests of psi_opener.c and pressure_follow.c.
 */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_TESTING_PRESSURE_TESTING_H
#define TROCAR_TESTS_UNIT_CONSUMER_TESTING_PRESSURE_TESTING_H

#include "tests/unit/consumer/testing/fake_agent_testing.h"

#include "consumer/watch/binding.h"

/* NULL where this cannot be: no root, no PSI, no cgroup. */
extern struct fake *fake;
extern struct fake_cgroup group;
extern struct psi_opener *opener;

/*
 * What the opener does: the number of requests, its answer, and whether its files have a trigger
 * already.
 */
extern int opened, answer;
extern const char *answer_why;
extern bool armed;

int pressure_testing_setup(void **state);
int pressure_testing_teardown(void **state);

/* `n` rules for our cgroup, each with its own text for `when`; bound to its watch. */
struct watch *pressure_testing_watch(const char *const *when, size_t n);

/* What is followed of a watch. */
struct followed *pressure_testing_of(const struct watch *w);

/* The one threshold of a watch. */
struct threshold *pressure_testing_only(const struct watch *w);

/* Runs the agent's loop for so long. */
void pressure_testing_loop(uint64_t ns);

/* A drain that is not held back by the one before. */
void pressure_testing_drained(void);

#define CPU(stall, window) "{\"pressure\":\"cpu\",\"some_ms\":" #stall ",\"window_ms\":" #window "}"

#define EACH(test) \
	cmocka_unit_test_setup_teardown(test, pressure_testing_setup, pressure_testing_teardown)

#endif
