/* SPDX-License-Identifier: BSD-2-Clause */
/* unit_testing.h: what the tests of this folder share: cmocka in the order it asks for, and
 * samples. */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_TESTING_UNIT_TESTING_H
#define TROCAR_TESTS_UNIT_CONSUMER_TESTING_UNIT_TESTING_H

#include "tests/unit/runner/unit.h"

#include <stdlib.h>
#include <string.h>

#include "consumer/sampling/stack_sample.h"

/* Whether a sanitizer slows the code down: bounds of time hold without one only. */
#ifdef __SANITIZE_ADDRESS__ /* gcc */
#define SANITIZED 1
#elif defined(__has_feature) /* clang */
#define SANITIZED __has_feature(address_sanitizer)
#else
#define SANITIZED 0
#endif

/* A reproducible stream of numbers: splitmix64. */
static inline uint64_t next_random(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ULL;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* A decoded sample of tgid 100 with that many frames, kernel ones at 0xffff..., user ones of
 * `module`. */
static inline struct stack_sample *new_stack_sample(uint16_t kernel, uint16_t user,
						    struct module *module)
{
	struct stack_sample *h =
		calloc(1, sizeof(*h) + STACK_SAMPLE_FRAMES_MAX * sizeof(struct frame));

	assert_non_null(h);
	h->tgid = h->tid = 100;
	h->start_ns = 77;
	h->kernel_frames = kernel;
	h->user_frames = user;
	strcpy(h->comm, "work");
	for (uint16_t i = 0; i < kernel; i++)
		h->frames[i].offset = 0xffffffff81000000ULL + i;
	for (uint16_t i = 0; i < user; i++)
		h->frames[kernel + i] = (struct frame){ module, 0x1000u + i };
	return h;
}

#endif
