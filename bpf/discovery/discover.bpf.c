// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * discover.bpf.c: reports processes that take, inherit or lose a name that a rule matches, and
 * their exit. The programs keep `targets` exact and put events into the ring. The events are
 * limited (event_limit.h, event_ring.h); the consumer's scan finds the changes of which the event
 * was held back or lost.
 */
#include <linux/bpf.h>
#include <linux/errno.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "bpf/discovery/process_marks.h"
#include "bpf/maps/event_limit.h"
#include "bpf/maps/event_ring.h"
#include "bpf/maps/task_keys.h"
#include "bpf/unwind/process_table.h"
#include "bpf/watch/scope.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Returns true if the consumer has rules to match. */
static __always_inline bool is_discovery_on(const struct control *c)
{
	return c && READ_WORD(c->events_on);
}

enum asker { ASKER_EXEC, ASKER_FORK, ASKER_RENAME, ASKER_COUNT_ };

#define UNMATCHED_NAMES_BITS 7 /* index bits: names kept per asker and CPU */

/*
 * Private: names that no rule in the active tries matches. The same few programs start all day, and
 * a lookup in a trie that is not cached costs 200 ns. The consumer fills only an inactive trie, and
 * generations only grow, so a state of the tries never recurs: a name learnt from a trie that was
 * deactivated in the meantime is never used. A program does not interrupt itself on one CPU, so
 * each entry that it writes is whole. Another program may interrupt it, so each program has its own
 * entries.
 */
struct unmatched_name {
	__u64 words[2]; /* the name */
	__u32 generation, active;
	__u64 pad; /* fills 32 bytes, so that an entry is in one cache line */
};

MAP(PERCPU_ARRAY, unmatched_names, __u32, struct unmatched_name,
    ASKER_COUNT_ << UNMATCHED_NAMES_BITS);

/* Returns the rule for `name` in the active tries, or NULL. */
static __always_inline struct rule_value *find_rule(const struct task_name *name,
						    const struct control *c, enum asker asker)
{
	__u32 active = READ_ORDERED(c->active), generation = READ_WORD(c->generation);
	const __u64 *words = (const __u64 *)name->key.comm;
	__u64 hash = (words[0] ^ words[1] * 31) * 0x9e3779b97f4a7c15ull;
	__u32 index =
		((__u32)asker << UNMATCHED_NAMES_BITS) + (hash >> (64 - UNMATCHED_NAMES_BITS));
	struct unmatched_name *s = bpf_map_lookup_elem(&unmatched_names, &index);
	struct rule_value *value;

	if (s && s->words[0] == words[0] && s->words[1] == words[1] &&
	    s->generation == generation && s->active == active)
		return 0;
	value = task_keys_find_rule(name, active);
	if (!value && s) {
		s->words[0] = words[0];
		s->words[1] = words[1];
		s->generation = generation;
		s->active = active;
	}
	return value;
}

/*
 * Returns true if an event of the current task may be put into the ring: there is space, and the
 * quotas of its user and cgroup allow it.
 */
static __always_inline bool may_report(__u32 kind)
{
	return event_ring_admits(kind) && event_limit_admits_bytes(sizeof(struct event));
}

/*
 * Puts a process event into the ring. It reads the memory of `task` with the helper: the verifier
 * searches the kernel's types by name for each plain load of a pointer, which would take most of
 * the time to verify these programs. `comm` is NUL-terminated within COMM_BYTES. `exec`: the
 * process has just got a new image. Returns true if the consumer will see the event.
 */
static __always_inline bool put_process_event(__u32 kind, struct task_struct *task,
					      const struct process_key *key, const char *comm,
					      __u32 rule, __u32 generation, bool exec)
{
	struct event event = {};

	event.time_ns = bpf_ktime_get_ns();
	event.start_ns = key->start_ns;
	event.cgroup_id = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
	event.kind = kind;
	event.tgid = key->tgid;
	event.ppid = BPF_CORE_READ(task, real_parent, tgid);
	event.rule = rule;
	event.generation = generation;
	event.uid = BPF_CORE_READ(task, real_cred, uid.val);
	event.flags = exec ? EVENT_NEW_IMAGE : 0;
	bpf_probe_read_kernel_str(event.comm, COMM_BYTES, comm);
	return event_ring_put(&event, sizeof(event));
}

/*
 * Marks the process as matched. `exec`: it has a new image, so the consumer's knowledge of its
 * mappings is no longer valid. `unwind`: target.unwind of a new entry. `reported`: the caller puts
 * an event of the match into the ring. If `targets` is full, this is counted and reported as an
 * error, and the caller still sends the event.
 */
static __always_inline void match_target(const struct process_key *key,
					 const struct rule_value *value, bool exec, __u32 unwind,
					 bool reported)
{
	__u32 flags = TARGET_MATCHED | (reported ? TARGET_REPORTED : 0);
	struct target fresh = { .flags = flags,
				.rule = value->rule,
				.generation = value->generation,
				.unwind = unwind };
	struct target *known = bpf_map_lookup_elem(&targets, key);
	int r;

	process_marks_set(key->tgid);
	if (known) {
		known->rule = fresh.rule;
		known->generation = fresh.generation;
		known->flags = (exec ? known->flags & TARGET_REPORTED : known->flags) | flags;
		return;
	}
	r = bpf_map_update_elem(&targets, key, &fresh, BPF_ANY);
	/*
	 * For other errors the bucket's lock is held on this CPU: the next scan finds the process.
	 */
	if (r == -E2BIG) {
		TOTALS_COUNT(targets_full);
		error_ring_put(ERROR_TARGETS_FULL, r, NO_SLOT, fresh.rule, sizeof(fresh));
	}
}

/*
 * Marks the process as unmatched, because no rule matches its name any more. If the consumer knows
 * the process as matched, so that an event must report the change, returns its entry and sets
 * *ret_rule to the old rule. Otherwise returns NULL.
 */
static __always_inline struct target *unmatch_target(const struct process_key *key, bool exec,
						     __u32 *ret_rule)
{
	struct target *known = bpf_map_lookup_elem(&targets, key);

	if (!known)
		return 0;
	*ret_rule = known->rule;
	known->rule = NO_SLOT;
	known->flags &= exec ? TARGET_REPORTED : ~TARGET_MATCHED;
	return known->flags & TARGET_REPORTED ? known : 0;
}

/*
 * Reports that no rule matches the new `name`, which came from an execve or a rename. After this
 * event the exit of the process is not reported, unless the consumer knows its mappings.
 */
static __always_inline void report_unmatched(struct target *known, struct task_struct *task,
					     const struct process_key *key,
					     const struct task_name *name, __u32 rule,
					     const struct control *c, bool exec)
{
	if (may_report(EVENT_UNNAME) && put_process_event(EVENT_UNNAME, task, key, name->key.comm,
							  rule, READ_WORD(c->generation), exec))
		known->flags &= ~TARGET_REPORTED;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task)
{
	const struct control *c = control_get();
	struct rule_value *value;
	struct process_key key;
	struct task_name name;
	struct target *known;
	__u32 rule = NO_SLOT;
	bool reported;

	if (!is_discovery_on(c))
		return 0;
	task_keys_name(task, &name);
	value = find_rule(&name, c, ASKER_EXEC);
	if (!value && !process_marks_has(task->tgid))
		return 0;
	if (!scope_allows_task(task))
		return 0;
	task_keys_leader(task, &key); /* execve has ended the other threads */
	if (value) {
		reported = may_report(EVENT_EXEC);
		match_target(&key, value, true, 0, reported);
		if (reported)
			put_process_event(EVENT_EXEC, task, &key, name.key.comm, value->rule,
					  value->generation, true);
		return 0;
	}
	known = unmatch_target(&key, true, &rule);
	if (known)
		report_unmatched(known, task, &key, &name, rule, c, true);
	return 0;
}

/*
 * Adds a child that no rule matches, of a process that has a table, so that its stacks are walked
 * by that table from its first tick on. If `targets` is full, the first tick of the child reports
 * it.
 */
static __always_inline void enter_child(const struct process_key *key, __u32 generation,
					__u32 unwind)
{
	struct target fresh = { .rule = NO_SLOT, .generation = generation, .unwind = unwind };

	process_marks_set(key->tgid);
	bpf_map_update_elem(&targets, key, &fresh, BPF_NOEXIST);
}

/*
 * A fork copies the name of the thread that forks, so the child of a matched process matches too.
 * It copies the mappings as well, so the child uses its parent's table until it has its own.
 */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	const struct control *c = control_get();
	struct rule_value *value;
	struct process_key key, parent_key;
	struct task_name name;
	__u32 unwind = 0;
	bool parent_known, reported;

	if (!is_discovery_on(c))
		return 0;
	if (child->pid != child->tgid || child->flags & PF_KTHREAD)
		return 0;
	task_keys_name(child, &name);
	value = find_rule(&name, c, ASKER_FORK);
	parent_known = process_marks_has(parent->tgid);
	if (!value && !parent_known)
		return 0;
	if (!scope_allows_task(child))
		return 0;
	task_keys_leader(child, &key);
	if (parent_known) {
		task_keys_read_process(parent, &parent_key);
		unwind = process_table_inherit(parent, &parent_key, &key);
	}
	if (value) {
		reported = may_report(EVENT_FORK);
		match_target(&key, value, false, unwind, reported);
		if (reported)
			put_process_event(EVENT_FORK, child, &key, name.key.comm, value->rule,
					  value->generation, false);
	} else if (unwind) {
		enter_child(&key, READ_WORD(c->generation), unwind);
	}
	return 0;
}

/*
 * Returns true if the entry already has this rule and the consumer knows it: another event would
 * add nothing.
 */
static __always_inline bool is_reported_match(const struct process_key *key,
					      const struct rule_value *value)
{
	const struct target *known = bpf_map_lookup_elem(&targets, key);

	return known && known->flags & TARGET_MATCHED && known->flags & TARGET_REPORTED &&
	       known->rule == value->rule && known->generation == value->generation;
}

/*
 * Handles a rename to a name that a rule matches. The entry is updated even if the event is held
 * back.
 */
static __always_inline void match_rename(struct task_struct *task, const struct process_key *key,
					 const struct task_name *name,
					 const struct rule_value *value)
{
	bool reported;

	/* A service that renames itself all day within one prefix must not flood the ring. */
	if (is_reported_match(key, value))
		return;
	reported = event_limit_admits(key->start_ns, key->tgid) && may_report(EVENT_RENAME);
	match_target(key, value, false, 0, reported);
	if (reported)
		put_process_event(EVENT_RENAME, task, key, name->key.comm, value->rule,
				  value->generation, false);
}

/*
 * Handles a rename by prctl(PR_SET_NAME) or /proc/PID/comm. Only the name of the group leader is
 * the process's. execve renames too, just before sched_process_exec; task->in_execve marks it, and
 * on_exec handles that one. task->comm still holds the old name here.
 */
SEC("tp_btf/task_rename")
int BPF_PROG(on_rename, struct task_struct *task, const char *to)
{
	const struct control *c = control_get();
	struct rule_value *value;
	struct process_key key;
	struct task_name name;
	struct target *known;
	__u32 rule = NO_SLOT;

	if (!is_discovery_on(c))
		return 0;
	if (task->pid != task->tgid || task->flags & (PF_KTHREAD | PF_EXITING))
		return 0;
	if (BPF_CORE_READ_BITFIELD_PROBED(task, in_execve))
		return 0;
	if (!task_keys_read_name(to, &name))
		return 0;
	value = find_rule(&name, c, ASKER_RENAME);
	if (!value && !process_marks_has(task->tgid))
		return 0;
	if (!scope_allows_task(task))
		return 0;
	task_keys_leader(task, &key);
	if (value) {
		match_rename(task, &key, &name, value);
		return 0;
	}
	known = unmatch_target(&key, false, &rule);
	if (known && event_limit_admits(key.start_ns, key.tgid))
		report_unmatched(known, task, &key, &name, rule, c, false);
	return 0;
}

/*
 * A process ends with its last thread (signal->live is decremented before the tracepoint). Two last
 * threads may both see 0: the one that deletes the entry reports the exit. The program does not
 * test events_on: entries that the sampler added must be deleted even if no rule is left.
 */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	const struct control *c = control_get();
	struct process_key key;
	struct target *known;
	__u32 flags, rule;

	if (!c || BPF_CORE_READ(task, signal, live.counter))
		return 0;
	task_keys_read_process(task, &key);
	known = bpf_map_lookup_elem(&targets, &key);
	if (!known)
		return 0;
	flags = known->flags;
	rule = known->rule;
	if (bpf_map_delete_elem(&targets, &key))
		return 0;
	process_marks_clear(key.tgid);
	if (flags & (TARGET_REPORTED | TARGET_MAPPED) && scope_allows_task(task))
		put_process_event(EVENT_EXIT, task, &key, BPF_CORE_READ(task, group_leader)->comm,
				  rule, READ_WORD(c->generation), false);
	return 0;
}
