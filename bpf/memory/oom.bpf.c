// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * oom.bpf.c: reports at once a process of a watch that the OOM killer kills: its memory, the
 * process that requested memory, and the cgroup that reached its limit. The program is always
 * attached and costs nothing until a process is killed.
 */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "bpf/kernel/kernel_memory.h"
#include "bpf/maps/event_limit.h"
#include "bpf/maps/event_ring.h"
#include "bpf/maps/task_keys.h"
#include "bpf/watch/scope.h"
#include "bpf/watch/watch_lookup.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define OOM_LEVELS 32 /* maximum number of searched cgroup levels, from the victim's up */

/* The record that is put into the ring. */
struct oom_event {
	struct event event;
	struct oom_victim victim;
};

/* Returns the memory cgroup of `task`, in the hierarchy that has the controller. */
static __always_inline struct mem_cgroup *find_group(const struct task_struct *task)
{
	const struct css_set___memory *set = (const void *)BPF_CORE_READ(task, cgroups);
	__u32 id = bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id);
	struct cgroup_subsys_state *const *places =
		__builtin_preserve_access_index(&set->subsys[0]);
	struct cgroup_subsys_state *css = 0;

	bpf_core_read(&css, sizeof(css), &places[id]);
	return (struct mem_cgroup *)css;
}

/*
 * Sets the cgroup that reached its limit. While the kernel kills for the limit of a memory cgroup,
 * it holds oom_lock of that cgroup and of all its descendants (mem_cgroup_oom_trylock of
 * mm/memcontrol-v1.c). So the outermost locked one is the cgroup with the limit. Sets nothing if
 * the kernel does not have the member.
 */
static __always_inline void find_limit(const struct task_struct *task, struct oom_victim *v)
{
	const struct mem_cgroup *group = find_group(task), *limited = 0;
	const struct kernfs_node *kn;

	if (!bpf_core_field_exists(group->oom_lock))
		return;
	for (__u32 i = 0; i < OOM_LEVELS && group; i++) {
		if (BPF_CORE_READ(group, oom_lock)) {
			limited = group;
			v->limit_level = i;
		}
		group = (const struct mem_cgroup *)BPF_CORE_READ(group, css.parent);
	}
	v->limit = limited ? OOM_LIMIT_CGROUP : group ? OOM_LIMIT_UNKNOWN : OOM_LIMIT_NONE;
	if (!limited)
		return;
	v->limit_pages = BPF_CORE_READ(limited, memory.max);
	kn = BPF_CORE_READ(limited, css.cgroup, kn);
	if (!BPF_CORE_READ(limited, css.cgroup, root, hierarchy_id))
		v->limit_cgroup_id = BPF_CORE_READ(kn, id);
	bpf_probe_read_kernel_str(v->limit_name, sizeof(v->limit_name), BPF_CORE_READ(kn, name));
}

/*
 * Returns one memory counter of the process. A macro, because the offset of an element is relocated
 * only if the compiler's front end knows its index.
 */
#define COUNT_PAGES(mm, which)                                                           \
	({                                                                               \
		const struct mm_struct___counted *counted_ = (const void *)(mm);         \
		const struct mm_struct___percpu *percpu_ = (const void *)(mm);           \
		__s64 pages_;                                                            \
                                                                                         \
		if (bpf_core_field_exists(counted_->rss_stat.count))                     \
			pages_ = BPF_CORE_READ(counted_, rss_stat.count[which].counter); \
		else                                                                     \
			pages_ = BPF_CORE_READ(percpu_, rss_stat[which].count);          \
		pages_ > 0 ? (__u64)pages_ : 0;                                          \
	})

static __always_inline void fill_victim(const struct task_struct *task, __u32 slot,
					struct oom_victim *v)
{
	const struct signal_struct___oom *signal = (const void *)BPF_CORE_READ(task, signal);
	const struct mm_struct *mm = BPF_CORE_READ(task, mm);

	v->slot = slot;
	v->score_adj = BPF_CORE_READ(signal, oom_score_adj);
	v->asker_tgid = bpf_get_current_pid_tgid() >> 32;
	bpf_get_current_comm(v->asker_comm, sizeof(v->asker_comm));
	find_limit(task, v);
	if (!mm)
		return;
	v->has_memory = 1;
	v->file_pages = COUNT_PAGES(mm, MM_FILEPAGES);
	v->anon_pages = COUNT_PAGES(mm, MM_ANONPAGES);
	v->swap_pages = COUNT_PAGES(mm, MM_SWAPENTS);
	v->shmem_pages = COUNT_PAGES(mm, MM_SHMEMPAGES);
}

/*
 * `task` is a thread of the victim, which still has its memory; the running process requested more
 * memory. The victim may have threads in other cgroups: the cgroup of this thread counts.
 */
SEC("tp_btf/mark_victim")
int BPF_PROG(on_oom, struct task_struct *task)
{
	const struct control *c = control_get();
	struct oom_event e = {};
	struct process_key key;
	__u32 slot;

	e.event.time_ns = bpf_ktime_get_ns();
	if (!c || !READ_WORD(c->armed) || watch_lookup_is_stale(c, e.event.time_ns))
		return 0;
	e.event.cgroup_id = task_keys_read_cgroup(task);
	if (!watch_lookup(e.event.cgroup_id, &slot) || !scope_allows_task(task))
		return 0;
	if (!event_limit_admits_kill(sizeof(e)))
		return 0;
	task_keys_read_process(task, &key);
	e.event.start_ns = key.start_ns;
	e.event.kind = EVENT_OOM;
	e.event.tgid = key.tgid;
	e.event.ppid = BPF_CORE_READ(task, real_parent, tgid);
	e.event.rule = NO_SLOT;
	e.event.generation = READ_WORD(c->generation);
	e.event.uid = BPF_CORE_READ(task, real_cred, uid.val);
	BPF_CORE_READ_STR_INTO(&e.event.comm, task, group_leader, comm);
	fill_victim(task, slot, &e.victim);
	event_ring_submit(&e.event, sizeof(e), true);
	return 0;
}
