/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * group_testing.h: a fake agent with a real cgroup of its own. Each test program has one; `fake` is
 * NULL where no maps or no cgroup can be made.
 */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_TESTING_GROUP_TESTING_H
#define TROCAR_TESTS_UNIT_CONSUMER_TESTING_GROUP_TESTING_H

#include "tests/unit/consumer/testing/fake_agent_testing.h"

#include <bpf/bpf.h>

static struct fake *fake;
static struct fake_cgroup group;

/* Makes them; `name` is a part of the cgroup's. */
static inline void group_begin(const char *name)
{
	fake = fake_new();
	if (!fake || fake_cgroup_make(fake, name, &group))
		return;
	fake_free(fake);
	fake = NULL;
}

static inline int teardown(void **state)
{
	if (!fake)
		return 0;
	fake_cgroup_remove(&group);
	fake_free(fake);
	fake = NULL;
	return 0;
}

/* Returns the flags of the process's entry in `targets`; ~0: it has none. */
static inline uint32_t target_flags(uint32_t tgid)
{
	struct process_key key = { .tgid = tgid, .start_ns = fake_start_ns(tgid) };
	struct target target;

	if (bpf_map_lookup_elem(fake->a.pins.targets_fd, &key, &target) < 0)
		return ~0u;
	return target.flags;
}

static inline struct watch *watch_of(uint64_t cgroup_id)
{
	return idmap_get(&fake->a.watches.by_cgroup, cgroup_id);
}

#endif
