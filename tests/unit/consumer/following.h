/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * following.h: a fake agent with a cgroup of its own, whose pressure files are opened here instead
 * of by a broker. Shared by the tests of triggers.c and pressure_watch.c.
 */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_FOLLOWING_H
#define TROCAR_TESTS_UNIT_CONSUMER_FOLLOWING_H

#include "fake_agent.h"

/* NULL where this cannot be: no root, no PSI, no cgroup. */
extern struct fake *fake;
extern struct fake_cgroup group;
extern struct triggers *ts;

/* What the opener does: how often it was asked, what it answers, and whether its files have a
 * trigger already. */
extern int opened, answer;
extern const char *answer_why;
extern bool armed;

int following_setup(void **state);
int following_teardown(void **state);

/* `n` rules for our cgroup, each with its own text for `when`; bound to its watch. */
struct watch *following_watch(const char *const *when, size_t n);

/* The one threshold of a watch. */
struct threshold *following_only(const struct watch *w);

/* Runs the agent's loop for so long. */
void following_loop(uint64_t ns);

/* A drain that is not held back by the one before. */
void following_drained(void);

#define CPU(stall, window) "{\"pressure\":\"cpu\",\"some_ms\":" #stall ",\"window_ms\":" #window "}"

#define EACH(test) cmocka_unit_test_setup_teardown(test, following_setup, following_teardown)

#endif
