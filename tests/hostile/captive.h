/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * captive.h: a consumer that has been taken over, as far as it can go: its user, no capability, its
 * Landlock and its system-call filter, and every pin open that it may open. What it attacks it
 * takes from the tables: each map of shared/abi/pins.def, each iterator, each request of
 * shared/broker/broker.def, each descriptor that it gets. It searches all that it reads for secrets
 * that it must never see; a find is a leak, printed on stdout as a line.
 */
#ifndef TROCAR_TESTS_HOSTILE_CAPTIVE_H
#define TROCAR_TESTS_HOSTILE_CAPTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/abi/abi.h"
#include "shared/broker/broker.h"

#define CAPTIVE_MAPS	48
#define CAPTIVE_PREY	8
#define CAPTIVE_RANGES	512
#define CAPTIVE_SECRETS 128
#define CAPTIVE_HELD	256 /* descriptors that it keeps at once */
#define CAPTIVE_LEAKS	16  /* that are printed */
#define CAPTIVE_PATH	512
#define CAPTIVE_PAGE	4096u
#define CAPTIVE_SLOW_NS 100000000ull /* no answer takes longer */

enum prey_kind {
	PREY_WATCHED,  /* its secrets are known to the test, and its code is all that may be seen */
	PREY_STRANGER, /* may be looked at; what it has mapped changes */
	PREY_OUTSIDE,  /* of the scope: nothing of it may be seen at all */
	PREY_KINDS_
};

/* A process that it is after: what it has mapped, as /proc has it, which the captive cannot read.
 */
struct prey {
	enum prey_kind kind;
	uint32_t pid;
	uint64_t cgroup_id, start_ns;
	struct {
		uint64_t start, end, inode;
		bool code;
	} ranges[CAPTIVE_RANGES];
	size_t range_count;
};

/* One pinned map. */
struct captive_map {
	const char *name;
	int fd;
	bool writable;
	uint32_t type, key_bytes, value_bytes, entries;
	uint8_t *memory; /* mmapped, or NULL */
	size_t memory_bytes;
	const uint8_t *data; /* a ring's: the producer's page, and the records twice in a row */
	uint64_t position;   /* in it, up to where the captive has read */
};

/* What the broker gave. */
struct captive_held {
	int fd;
	uint32_t request; /* enum broker_request */
	uint8_t *memory;  /* mmapped, or NULL */
};

/* A connection to the broker; fd -1: none. */
struct captive_link {
	int fd;
	uint32_t sequence;
};

struct captive {
	const char *bpf_dir, *broker;
	uint64_t seed;
	uint32_t hz, cpus; /* of the set as it was loaded: its rate, possible CPUs */
	struct captive_map maps[CAPTIVE_MAPS];
	size_t map_count;
	struct prey prey[CAPTIVE_PREY];
	size_t prey_count;
	uint64_t secrets[CAPTIVE_SECRETS];
	size_t secret_count;
	uint8_t heads[1 << 13]; /* a bit for each pair of bytes that a secret begins with */
	/* What it did and saw. */
	uint64_t writes, reads, bytes, samples, frames, unwound, fills, used;
	uint64_t granted[BROKER_COUNT_], refused[REFUSAL_COUNT_];
	uint64_t answers, slowest_ns, slow; /* of the broker; those above CAPTIVE_SLOW_NS */
	uint64_t leaks;
	struct captive_held held[CAPTIVE_HELD];
	size_t held_count;
	struct captive_link links[2];
	int schedstat_fd; /* its own: how long it has waited for a CPU */
};

/* A number below `n`; all of them from one seed, so that a run can be had again. */
uint64_t captive_random(struct captive *c, uint64_t n);

/* A word as it is of use to a liar: small, all ones, an address, the time, or anything. */
uint64_t captive_word(struct captive *c);

/* `bytes` of such words. */
void captive_fill(struct captive *c, void *to, size_t bytes);

/* CLOCK_MONOTONIC. */
uint64_t captive_now_ns(void);

/* One of the prey. */
struct prey *captive_prey(struct captive *c);

/* The file with the prey's identity and the secrets; see captive_file.c. 0 or -errno. */
int captive_read(struct captive *c, const char *path);

/* Opens every pin of pins.def; the most that the mode of each allows. 0 or -errno. */
int captive_maps_open(struct captive *c);

/* The map of that name, which is one of pins.def. */
struct captive_map *captive_map(struct captive *c, const char *name);

/* Reads an element of one map. */
void captive_peek(struct captive *c);

/* Lies in one map: anything, anywhere. */
void captive_lie(struct captive *c);

/*
 * Has everything run: the prey watched and captured, a heartbeat, rules that match every process.
 */
void captive_arm(struct captive *c);

/* Reads the rings, and one of the iterators. */
void captive_drain(struct captive *c);
void captive_iterate(struct captive *c);

/* Makes a table for one of the prey, of random rows and rules, and publishes it. */
void captive_unwind(struct captive *c);

/* Asks the broker for something, right or wrong; keeps or closes the descriptors that it gets. */
void captive_ask(struct captive *c);

/* Uses one of the descriptors that it holds in every possible way. */
void captive_use(struct captive *c);

/* Tries files of /proc that show memory, and reads those that it may read. */
void captive_pry(struct captive *c);

/* A leak: counts it, and prints the first few of them as a line. */
__attribute__((format(printf, 2, 3))) void captive_leak(struct captive *c, const char *format, ...);

/* Searches the bytes that it has read, from `where`. */
void captive_look(struct captive *c, const char *where, const void *bytes, size_t n);
void captive_look_at_process(struct captive *c, const char *where, uint32_t pid);
void captive_look_at_sample(struct captive *c, const void *record, size_t n);

#endif
