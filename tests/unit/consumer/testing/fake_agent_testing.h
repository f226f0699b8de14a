/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake_agent_testing.h: an agent without programs in the kernel: real maps (so root is needed),
 * rings and words in memory, iterators that are files, and an output that is read back. Nothing of
 * the agent itself is replaced.
 */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_TESTING_FAKE_AGENT_TESTING_H
#define TROCAR_TESTS_UNIT_CONSUMER_TESTING_FAKE_AGENT_TESTING_H

#include "tests/unit/consumer/testing/unit_testing.h"

#include <json-c/json.h>
#include <stdbool.h>

#include "consumer/agent/agent.h"

static inline void cleanup_json(json_object **object)
{
	json_object_put(*object);
}

#define _cleanup_json_ __attribute__((cleanup(cleanup_json)))

#define FAKE_SLOTS	4
#define FAKE_ASKED	6 /* elements of `asked` */
#define FAKE_PROCESSES	32
#define FAKE_RING_BYTES (256u << 10)
#define FAKE_HZ		100
#define FAKE_LINES	600 /* of a rule in a minute */

struct fake_ring {
	unsigned long consumer, producer;
	_Alignas(8) uint8_t data[FAKE_RING_BYTES];
};

struct fake {
	struct agent a;
	struct control control;
	struct slot slots[FAKE_SLOTS];
	struct fake_ring samples, events, errors;
	char dir[64], output[96], tasks[96], vmas[96];
};

/* An agent with an empty rule set, its output in `dir`. NULL when this process may make no maps. */
struct fake *fake_new(void);
/*
 * Ends the agent as the program does, and removes its directory; then the test fails when one of
 * the lines does not match the schemas.
 */
void fake_free(struct fake *f);

/* Applies a rule set; the test fails when it is refused. */
void fake_rules(struct fake *f, const char *json);

/* Scans the processes, in as many turns as it takes. */
void fake_scan(struct fake *f);

/* Puts a record into a ring, as the kernel does. */
void fake_put(struct fake_ring *ring, const void *record, size_t bytes);
/* Drain a ring to its end, in as many turns as it takes. */
void fake_drain_samples(struct fake *f);
void fake_drain_events(struct fake *f);
/* Puts an event about a process, and drains. */
void fake_event(struct fake *f, enum event_kind kind, uint32_t tgid, uint64_t cgroup_id,
		const char *comm);
/* An event about a cgroup, with its path. */
void fake_cgroup_event(struct fake *f, enum event_kind kind, uint64_t cgroup_id, const char *path);
/* What the next scan will list; the counters of a slot, the same on each CPU. */
void fake_tasks(struct fake *f, const struct task_record *tasks, size_t count);
void fake_counters(struct fake *f, uint32_t slot, struct slot_counters counters);

/* Start time of the processes of fake_event. */
uint64_t fake_start_ns(uint32_t tgid);

/* All lines so far as an array; the caller puts it. */
json_object *fake_lines(struct fake *f);
/* How many lines of that type there are so far. */
size_t fake_count(struct fake *f, const char *type);
/* The last line of that type, or NULL; the caller puts it. */
json_object *fake_last(struct fake *f, const char *type);
/* The text at a key, or NULL. */
const char *fake_text(json_object *line, const char *key);

/* A cgroup of its own with one process in it; false when that is not possible here. */
struct fake_cgroup {
	char path[64]; /* below the mount */
	char directory[4200];
	uint64_t id;
	int pid;
};
bool fake_cgroup_make(struct fake *f, const char *name, struct fake_cgroup *ret_cgroup);
/* Ends its process. */
void fake_cgroup_empty(struct fake_cgroup *c);
/* Ends its process and removes it. */
void fake_cgroup_remove(struct fake_cgroup *c);

#endif
