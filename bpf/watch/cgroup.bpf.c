// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cgroup.bpf.c: reports cgroups that are created, get their first process, lose their last one or
 * are removed, and maintains the `watches` entries of cgroups below watched ones. The kernel passes
 * each tracepoint the path below the root of the hierarchy (kernel/cgroup/cgroup.c,
 * TRACE_CGROUP_PATH). The programs ignore hierarchies of cgroup v1.
 */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_tracing.h>

#include "bpf/kernel/kernel.h"
#include "bpf/maps/event_limit.h"
#include "bpf/maps/event_ring.h"
#include "bpf/watch/scope.h"
#include "bpf/watch/watch_tree.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/*
 * The program that owns a scratch element. A program runs once at a time on a CPU, but another
 * program may interrupt it.
 */
enum scratch_owner { SCRATCH_MKDIR, SCRATCH_RMDIR, SCRATCH_POPULATED, SCRATCH_COUNT_ };

struct cgroup_scratch {
	struct cgroup_key key;
	__u32 pad;
	struct event event;
	char path[CGROUP_PATH_BYTES + 8]; /* the event's path[]: directly after it */
};

_Static_assert(__builtin_offsetof(struct cgroup_scratch, path) ==
		       __builtin_offsetof(struct cgroup_scratch, event) + sizeof(struct event),
	       "the path is not the event's");
_Static_assert(CGROUP_PATH_BYTES == CGROUP_PREFIX_BYTES, "the key takes the whole path");

MAP(PERCPU_ARRAY, cgroup_scratch, __u32, struct cgroup_scratch, SCRATCH_COUNT_);

/* Returns true if the cgroup itself is watched. */
static __always_inline bool is_watched(__u64 id)
{
	const struct watch_entry *entry = bpf_map_lookup_elem(&watches, &id);

	return entry && READ_WORD(entry->flags) & WATCH_OWN;
}

/*
 * Reads `path` into the scratch, as the path of the event and as the key of the tries. A path that
 * does not fit is cut and marked. Returns its length with the NUL; 0 if it cannot be read or is
 * outside the scope (scope.h).
 */
static __always_inline __u32 read_path(struct cgroup_scratch *s, const char *path)
{
	/* Reads one byte more than fits, to distinguish a cut path from one that fits exactly. */
	long n = bpf_probe_read_kernel_str(s->path, CGROUP_PATH_BYTES + 1, path);

	if (n <= 0)
		return 0;
	s->event.path_cut = n > CGROUP_PATH_BYTES;
	if (n > CGROUP_PATH_BYTES)
		n = CGROUP_PATH_BYTES;
	s->path[CGROUP_PATH_BYTES - 1] = 0;
	__builtin_memcpy(s->key.path, s->path, CGROUP_PATH_BYTES);
	s->key.prefix_bits = 8 * (n - 1);
	s->event.path_bytes = n;
	if (scoped && !scope_holds(&s->key, n - 1))
		return 0;
	return n;
}

/* Returns the rule with the longest prefix of the path from read_path, or NULL. */
static __always_inline struct rule_value *find_path_rule(const struct cgroup_scratch *s,
							 const struct control *c)
{
	if (READ_ORDERED(c->active))
		return bpf_map_lookup_elem(&cgroups_b, &s->key);
	return bpf_map_lookup_elem(&cgroups_a, &s->key);
}

/* Sets all members of the event except its path, and puts it into the ring. */
static __always_inline void put_cgroup_event(struct cgroup_scratch *s, __u32 kind, __u64 id,
					     const struct control *c,
					     const struct rule_value *value)
{
	__u64 bytes = s->event.path_bytes;

	s->event.time_ns = bpf_ktime_get_ns();
	s->event.start_ns = 0;
	s->event.cgroup_id = id;
	s->event.kind = kind;
	s->event.tgid = bpf_get_current_pid_tgid() >> 32;
	s->event.ppid = 0;
	s->event.uid = 0;
	s->event.flags = 0;
	s->event.rule = value ? value->rule : NO_SLOT;
	s->event.generation = value ? value->generation : READ_WORD(c->generation);
	bpf_get_current_comm(s->event.comm, COMM_BYTES);
	asm volatile("" : "+r"(bytes));
	if (bytes > CGROUP_PATH_BYTES)
		return;
	event_ring_put(&s->event, sizeof(s->event) + bytes);
}

/*
 * Returns the scratch element of the program if `cgroup` is in cgroup2 and the consumer has rules;
 * else NULL.
 */
static __always_inline struct cgroup_scratch *find_scratch(struct cgroup *cgroup,
							   const struct control *c, __u32 owner)
{
	if (!c || !READ_WORD(c->events_on) || BPF_CORE_READ(cgroup, root, hierarchy_id))
		return 0;
	return bpf_map_lookup_elem(&cgroup_scratch, &owner);
}

SEC("tp_btf/cgroup_mkdir")
int BPF_PROG(on_mkdir, struct cgroup *cgroup, const char *path)
{
	const struct control *c = control_get();
	__u64 id = BPF_CORE_READ(cgroup, kn, id);
	struct cgroup_scratch *s = find_scratch(cgroup, c, SCRATCH_MKDIR);
	const struct watch_entry *above;
	struct rule_value *value;

	if (!c || BPF_CORE_READ(cgroup, root, hierarchy_id))
		return 0;
	above = READ_WORD(c->armed) ? watch_tree_above(cgroup) : 0;
	if (above)
		watch_tree_enter(id, above);
	if (!s || !read_path(s, path))
		return 0;
	value = find_path_rule(s, c);
	if (value)
		put_cgroup_event(s, EVENT_MKDIR, id, c, value);
	return 0;
}

SEC("tp_btf/cgroup_rmdir")
int BPF_PROG(on_rmdir, struct cgroup *cgroup, const char *path)
{
	const struct control *c = control_get();
	__u64 id = BPF_CORE_READ(cgroup, kn, id);
	struct cgroup_scratch *s = find_scratch(cgroup, c, SCRATCH_RMDIR);
	const struct watch_entry *entry;

	if (s && is_watched(id) && read_path(s, path))
		put_cgroup_event(s, EVENT_RMDIR, id, c, 0);
	entry = bpf_map_lookup_elem(&watches, &id);
	if (entry)
		watch_tree_delete(id, entry);
	return 0;
}

SEC("tp_btf/cgroup_notify_populated")
int BPF_PROG(on_populated, struct cgroup *cgroup, const char *path, int populated)
{
	const struct control *c = control_get();
	__u64 id = BPF_CORE_READ(cgroup, kn, id);
	struct cgroup_scratch *s = find_scratch(cgroup, c, SCRATCH_POPULATED);
	struct rule_value *value;
	bool watched = is_watched(id);

	if (!s || (!populated && !watched) || !read_path(s, path))
		return 0;
	if (!populated) {
		if (event_limit_admits(id, 0))
			put_cgroup_event(s, EVENT_EMPTY, id, c, 0);
		return 0;
	}
	value = find_path_rule(s, c);
	if ((value || watched) && event_limit_admits(id, 0))
		put_cgroup_event(s, EVENT_POPULATED, id, c, value);
	return 0;
}

/*
 * Corrects the `watches` entries of all cgroups, parents before children. The consumer reads this
 * iterator after it adds or removes a watch. The iterator writes nothing to its reader.
 */
SEC("iter/cgroup")
int watch_tree(struct bpf_iter__cgroup *ctx)
{
	struct cgroup *cgroup = ctx->cgroup;
	__u64 number = ctx->meta->seq_num;
	__u32 *entered = map_single(&watch_entered);

	if (!cgroup)
		return 0;
	if (entered && !number)
		*entered = 0;
	watch_tree_visit(cgroup);
	return 0;
}
