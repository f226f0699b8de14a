/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * event_limit.h: limits how much each process, cgroup and user may put into the events ring. A
 * limit holds one process that renames itself, or one cgroup that fills and empties, to
 * LIMIT_EVENTS a second. A quota holds one user, and all users of one cgroup, to a part of the
 * ring. The limits apply only to events that match a rule.
 */
#ifndef TROCAR_BPF_MAPS_EVENT_LIMIT_H
#define TROCAR_BPF_MAPS_EVENT_LIMIT_H

#include <stdbool.h>

#include "bpf/maps/maps.h"

#define LIMIT_EVENTS 4
#define LIMIT_NS     1000000000ull

/* The subject of a limit: a process by start time and tgid, or a cgroup by id and 0. */
struct limit_key {
	__u64 id;
	__u32 tgid;
	__u32 pad;
};

struct limit {
	__u64 since_ns; /* start of the current second */
	__u32 count;	/* events requested in it */
	__u32 pad;
};

/*
 * Private. An evicted subject starts a new second early. An owner with so many subjects that they
 * evict each other is held by its quota.
 */
__weak MAP(LRU_HASH, limits, struct limit_key, struct limit, 4096);

/*
 * Returns true if the subject may have one more event in this second; else counts the event as
 * limited and returns false.
 */
static __always_inline bool event_limit_admits(__u64 id, __u32 tgid)
{
	struct limit_key key = { .id = id, .tgid = tgid };
	struct limit *known = bpf_map_lookup_elem(&limits, &key);
	struct limit fresh = { .since_ns = bpf_ktime_get_ns(), .count = 1 };

	if (!known) {
		bpf_map_update_elem(&limits, &key, &fresh, BPF_ANY);
		return true;
	}
	if (fresh.since_ns - known->since_ns >= LIMIT_NS) {
		known->since_ns = fresh.since_ns;
		known->count = 1;
		return true;
	}
	if (__sync_fetch_and_add(&known->count, 1) < LIMIT_EVENTS)
		return true;
	TOTALS_COUNT(events_limited);
	return false;
}

/*
 * A window ends when it is QUOTA_NS old and the consumer has drained everything that was in the
 * ring at its begin. So at most two windows of one owner wait in the ring, however late the
 * consumer is, and the number of events that reach the consumer in a second has a limit too.
 */
#define QUOTA_NS	   100000000ull
#define QUOTA_USER_PART	   16 /* 1/N of the ring per window: one user in one cgroup */
#define QUOTA_CGROUP_PART  8  /* all users in one cgroup: a user may own many user ids */
#define QUOTA_CGROUP_LEVEL 2  /* user.slice/user-1000.slice: no user chooses at this level */
#define QUOTA_ALL_USERS	   0xffffffffu
#define QUOTA_KILLS	   0xfffffffeu /* kills in one cgroup, of all users */

struct quota_key {
	__u64 cgroup;
	__u32 uid; /* or QUOTA_ALL_USERS, or QUOTA_KILLS */
	__u32 pad;
};

struct quota {
	__u64 since_ns; /* start of the window */
	__u64 position; /* producer position at that time */
	__u64 bytes;	/* requested in the window */
};

/* Private. */
__weak MAP(LRU_HASH, quotas, struct quota_key, struct quota, 1024);

/* Returns the key of the quota of `uid` in the cgroup of the current task. */
static __always_inline struct quota_key quota_key_of(__u32 uid)
{
	struct quota_key key = {
		.cgroup = bpf_get_current_ancestor_cgroup_id(QUOTA_CGROUP_LEVEL),
		.uid = uid,
	};

	if (!key.cgroup)
		key.cgroup = bpf_get_current_cgroup_id();
	return key;
}

static __always_inline bool charge_quota(const struct quota_key *key, __u64 bytes, __u64 max)
{
	struct quota *known = bpf_map_lookup_elem(&quotas, key);
	__u64 now = bpf_ktime_get_ns(), drained;

	if (!known) {
		struct quota fresh = { .since_ns = now,
				       .position = bpf_ringbuf_query(&events, BPF_RB_PROD_POS),
				       .bytes = bytes };

		bpf_map_update_elem(&quotas, key, &fresh, BPF_ANY);
		return true;
	}
	drained = bpf_ringbuf_query(&events, BPF_RB_CONS_POS);
	if (now - known->since_ns >= QUOTA_NS && drained > known->position) {
		known->since_ns = now;
		known->position = bpf_ringbuf_query(&events, BPF_RB_PROD_POS);
		known->bytes = bytes;
		return true;
	}
	return __sync_fetch_and_add(&known->bytes, bytes) + bytes <= max;
}

/*
 * Returns 1 if the user and the cgroup of the current task may put `bytes` more into the ring; else
 * counts the event as over quota and returns 0. A global function: the verifier checks it once, and
 * not on each path that calls it.
 */
__weak __attribute__((noinline)) int event_limit_admits_bytes(__u64 bytes)
{
	struct quota_key key = quota_key_of((__u32)bpf_get_current_uid_gid());
	__u64 size = bpf_ringbuf_query(&events, BPF_RB_RING_SIZE);

	bytes += BPF_RINGBUF_HDR_SZ;
	if (charge_quota(&key, bytes, size / QUOTA_USER_PART)) {
		key.uid = QUOTA_ALL_USERS;
		if (charge_quota(&key, bytes, size / QUOTA_CGROUP_PART))
			return 1;
	}
	TOTALS_COUNT(events_over_quota);
	return 0;
}

/*
 * As event_limit_admits_bytes, for the event of an OOM kill, in the cgroup of the current task,
 * which requested the memory. Kills have a separate quota, so that a storm of process starts cannot
 * hide them.
 */
static __always_inline bool event_limit_admits_kill(__u64 bytes)
{
	struct quota_key key = quota_key_of(QUOTA_KILLS);

	bytes += BPF_RINGBUF_HDR_SZ;
	if (charge_quota(&key, bytes,
			 bpf_ringbuf_query(&events, BPF_RB_RING_SIZE) / QUOTA_CGROUP_PART))
		return true;
	TOTALS_COUNT(events_over_quota);
	return false;
}

#endif
