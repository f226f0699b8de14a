/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * captive.c: takes the consumer's place, for a while, and does its worst. captive BPF_DIR
 *   BROKER_SOCKET PREY_FILE SECONDS SEED captive look PREY_FILE: searches its stdin as it searches
 *   all that it reads, which shows that it finds: a sample, as in the ring. Each leak is a line,
 *   and its summary is the last one, in JSON. Exit status 0: it came to its end.
 */
#include "captive.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "policy/policy.h"
#include "shared/tools/macro.h"
#include "shared/tools/parse.h"

#define NOBODY	     65534
#define PATHS_MAX    32
#define SECONDS_MAX  86400
#define TURN_NS	     200000000ull /* of one mood */
#define SAMPLE_BYTES 65536

uint64_t captive_random(struct captive *c, uint64_t n)
{
	uint64_t z = c->seed += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (z ^ z >> 31) % n;
}

uint64_t captive_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct prey *captive_prey(struct captive *c)
{
	return &c->prey[captive_random(c, c->prey_count)];
}

uint64_t captive_word(struct captive *c)
{
	const struct prey *p = captive_prey(c);

	switch (captive_random(c, 8)) {
	case 0:
		return 0;
	case 1:
		return captive_random(c, 16);
	case 2:
		return UINT64_MAX - captive_random(c, 16);
	case 3:
		return p->range_count ? p->ranges[captive_random(c, p->range_count)].start : 1;
	case 4:
		return captive_now_ns() + captive_random(c, 1u << 30);
	case 5:
		return captive_random(c, 2) ? p->pid : p->cgroup_id;
	case 6:
		return 1ull << captive_random(c, 64);
	default:
		return captive_random(c, UINT64_MAX);
	}
}

void captive_fill(struct captive *c, void *to, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
		uint64_t word = captive_word(c);

		memcpy((uint8_t *)to + i, &word, MIN(bytes - i, sizeof(word)));
	}
}

static int landlock(const struct captive *c)
{
	struct policy_path paths[PATHS_MAX];
	uint32_t abi;
	size_t n;
	const struct policy_path *rows = policy_landlock_paths(POLICY_CONSUMER, &n);

	if (n + 1 > ARRAY_SIZE(paths))
		return -E2BIG;
	memcpy(paths, rows, n * sizeof(*rows));
	paths[n++] = (struct policy_path){ .path = c->bpf_dir };
	return policy_landlock(paths, n, &abi);
}

/* As consumer/main.c has it, step by step: what was open before its filter is open here. */
static int become_consumer(struct captive *c)
{
	const gid_t group = NOBODY;
	struct rlimit limit;
	int r;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	c->schedstat_fd = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
	r = policy_capabilities_become(NOBODY, NOBODY, &group, 1);
	if (r == 0)
		r = policy_capabilities_none();
	if (r == 0)
		r = policy_harden();
	if (r == 0)
		r = captive_maps_open(c);
	if (r == 0)
		r = landlock(c);
	if (r == 0)
		r = policy_seccomp_flags(POLICY_CONSUMER, POLICY_USES_BROKER);
	return r;
}

/* What it does, and how often: chances of all those of its mood. */
static const struct deed {
	void (*act)(struct captive *c);
	unsigned int calm, wild;
} deeds[] = {
	/* Calm: well-formed tables and words with false contents. */
	{ captive_arm, 4, 4 },	  { captive_unwind, 4, 2 },  { captive_lie, 0, 24 },
	{ captive_drain, 16, 8 }, { captive_iterate, 2, 4 }, { captive_ask, 6, 12 },
	{ captive_use, 6, 8 },	  { captive_pry, 1, 2 },     { captive_peek, 2, 4 },
};

static void act(struct captive *c, bool wild)
{
	unsigned int sum = 0, at;

	for (size_t i = 0; i < ARRAY_SIZE(deeds); i++)
		sum += wild ? deeds[i].wild : deeds[i].calm;
	at = (unsigned int)captive_random(c, sum);
	for (size_t i = 0; i < ARRAY_SIZE(deeds); i++) {
		unsigned int chance = wild ? deeds[i].wild : deeds[i].calm;

		if (at < chance) {
			deeds[i].act(c);
			return;
		}
		at -= chance;
	}
}

static void work(struct captive *c, uint64_t seconds)
{
	uint64_t began_ns = captive_now_ns(), now_ns = began_ns;

	while (now_ns - began_ns < seconds * 1000000000u) {
		bool wild = (now_ns - began_ns) / TURN_NS & 1;

		for (unsigned int i = 0; i < 8; i++)
			act(c, wild);
		now_ns = captive_now_ns();
	}
	captive_arm(c);
	captive_drain(c);
}

static void print_counts(const char *name, const uint64_t *counts, size_t n)
{
	printf(", \"%s\": [", name);
	for (size_t i = 0; i < n; i++)
		printf("%s%" PRIu64, i ? ", " : "", counts[i]);
	printf("]");
}

static void print_result(const struct captive *c)
{
	const struct {
		const char *name;
		uint64_t number;
	} words[] = {
		{ "leaks", c->leaks },	   { "writes", c->writes },
		{ "reads", c->reads },	   { "bytes", c->bytes },
		{ "samples", c->samples }, { "frames", c->frames },
		{ "unwound", c->unwound }, { "fills", c->fills },
		{ "used", c->used },	   { "answers", c->answers },
		{ "slow", c->slow },	   { "slowest_us", c->slowest_ns / 1000 },
	};

	printf("{");
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		printf("%s\"%s\": %" PRIu64, i ? ", " : "", words[i].name, words[i].number);
	print_counts("granted", c->granted, ARRAY_SIZE(c->granted));
	print_counts("refused", c->refused, ARRAY_SIZE(c->refused));
	printf("}\n");
}

/* What stands on stdin, as a record and as bytes. */
static void look(struct captive *c)
{
	static uint8_t bytes[SAMPLE_BYTES];
	size_t n = fread(bytes, 1, sizeof(bytes), stdin);

	captive_look_at_sample(c, bytes, n);
	captive_look(c, "stdin", bytes, n);
}

static int fail(const char *what, int r)
{
	fprintf(stderr, "captive: %s: %s\n", what, strerror(-r));
	return 1;
}

int main(int argc, char *argv[])
{
	static struct captive captive = { .links = { { .fd = -1 }, { .fd = -1 } } };
	struct captive *c = &captive;
	bool only_look = argc == 3 && strcmp(argv[1], "look") == 0;
	uint64_t seconds = 0;
	int r;

	if (!only_look && (argc != 6 || parse_u64(argv[4], 1, SECONDS_MAX, &seconds) < 0 ||
			   parse_u64(argv[5], 0, UINT64_MAX, &c->seed) < 0))
		return fail("BPF_DIR BROKER_SOCKET PREY_FILE SECONDS SEED", -EINVAL);
	r = captive_read(c, argv[only_look ? 2 : 3]);
	if (r < 0)
		return fail("the prey", r);
	if (only_look) {
		look(c);
		print_result(c);
		return 0;
	}
	c->bpf_dir = argv[1];
	c->broker = argv[2];
	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	r = become_consumer(c);
	if (r < 0)
		return fail("to become the consumer", r);
	work(c, seconds);
	print_result(c);
	return 0;
}
