// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * iter.bpf.c: iterators for an unprivileged reader: the processes that rules match, and the
 * executable mappings of watched processes (symbols: ksyms.bpf.c). They change only the bits of
 * process_marks.h and, for `ranges`, a table. Any number of readers may read them at a time.
 */
#include <linux/bpf.h>
#include <linux/errno.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>

#include "bpf/discovery/process_marks.h"
#include "bpf/mappings/mapping_writer.h"
#include "bpf/mappings/memory_thread.h"
#include "bpf/mappings/vma_tree.h"
#include "bpf/maps/task_keys.h"
#include "bpf/runtimes/runtime_check.h"
#include "bpf/unwind/unwind_ranges.h"
#include "bpf/watch/scope.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/*
 * One show of an iterator may write at most the seq buffer of 32 KiB and fails with -E2BIG beyond
 * (bpf_seq_read, kernel/bpf/bpf_iter.c). The open-coded loop stops here, with space for one more
 * record.
 */
#define SHOW_BYTES 24576u

_Static_assert(SHOW_BYTES + 2 * (sizeof(struct mapping_record) + MAPPING_PATH_BYTES) < 32768,
	       "a show could exceed the seq buffer");

/*
 * State of one walk over the tree of mappings of a process. Values that change from step to step
 * are here and not on the stack, where the verifier would track each value.
 */
struct tree_scratch {
	struct vma_node node;
	__u64 at; /* the next address */
	__u32 met, written;
	__u32 more;   /* no space left: the reader continues from `at` */
	__u32 broken; /* the tree could not be read, or is being changed */
	struct mapping_scratch mapping;
};

union reader_scratch {
	struct mapping_scratch mapping;
	struct tree_scratch tree;
};

/*
 * Iterators are preemptible, and another reader may then run on the same CPU: a per-CPU scratch
 * would mix the paths of two processes. So each reading thread has its own element.
 */
TASK_MAP(readers, union reader_scratch);

extern int bpf_iter_task_vma_new(struct bpf_iter_task_vma *it, struct task_struct *task,
				 __u64 address) __weak __ksym;
extern struct vm_area_struct *bpf_iter_task_vma_next(struct bpf_iter_task_vma *it) __weak __ksym;
extern void bpf_iter_task_vma_destroy(struct bpf_iter_task_vma *it) __weak __ksym;
extern struct task_struct *bpf_task_from_pid(__s32 pid) __weak __ksym;
extern void bpf_task_release(struct task_struct *task) __weak __ksym;

/* Returns true for a thread of a user process that has not ended. */
static __always_inline bool is_of_process(struct task_struct *task)
{
	return !(task->flags & PF_KTHREAD) && BPF_CORE_READ(task, signal, live.counter) > 0;
}

/* Returns true for the thread-group leader of a user process that has not ended. */
static __always_inline bool is_process(struct task_struct *task)
{
	return task->pid == task->tgid && is_of_process(task);
}

/* Ends the reader's read(2) after each TASKS_PAUSE tasks (shared/abi/abi.h). */
static __always_inline void pause_tasks(struct seq_file *seq, __u64 number)
{
	struct task_record record = {};

	if (number % TASKS_PAUSE != TASKS_PAUSE - 1)
		return;
	for (int i = 0; i < TASKS_AT_ONCE; i++)
		bpf_seq_write(seq, &record, sizeof(record));
}

/*
 * Lists the processes with a name in the trie of control.scan_trie, those in watched cgroups, and
 * those with a mark. The consumer knows no other processes, so a known process that is not in the
 * list has ended. The trie may be inactive, so the program does not write `targets`.
 */
SEC("iter/task")
int tasks(struct bpf_iter__task *ctx)
{
	struct seq_file *seq = ctx->meta->seq;
	struct task_struct *task = ctx->task;
	const struct control *c = control_get();
	struct task_record record = {};
	struct task_name name;
	struct rule_value *value;
	bool marked;

	if (!task || !c)
		return 0;
	pause_tasks(seq, ctx->meta->seq_num);
	if (!is_process(task))
		return 0;
	task_keys_name(task, &name);
	value = task_keys_find_rule(&name, READ_WORD(c->scan_trie));
	marked = process_marks_has(task->tgid);
	/* If nothing is watched, most processes end here, after two lookups. */
	if (!value && !marked && !READ_WORD(c->armed))
		return 0;
	record.cgroup_id = task_keys_read_cgroup(task);
	if (!value && !marked && !bpf_map_lookup_elem(&watches, &record.cgroup_id))
		return 0;
	if (!scope_allows_task(task))
		return 0;
	process_marks_set(task->tgid);
	record.start_ns = task->start_boottime;
	record.tgid = task->tgid;
	record.ppid = BPF_CORE_READ(task, real_parent, tgid);
	record.rule = value ? value->rule : NO_SLOT;
	record.generation = value ? value->generation : READ_WORD(c->generation);
	__builtin_memcpy(record.comm, name.key.comm, COMM_BYTES);
	bpf_seq_write(seq, &record, sizeof(record));
	return 0;
}

/*
 * Returns true for a process within the scope that is in `targets` or in a watched cgroup. Mappings
 * may be read only of such a process.
 */
static __always_inline bool is_watched_process(struct task_struct *task)
{
	struct process_key key;
	__u64 cgroup;

	if (!scope_allows_task(task))
		return false;
	task_keys_read_process(task, &key);
	cgroup = task_keys_read_cgroup(task);
	return bpf_map_lookup_elem(&targets, &key) || bpf_map_lookup_elem(&watches, &cgroup);
}

/*
 * Returns true if the mappings of `task` may be listed. If control.vma_tgid is set, only that
 * process is listed; otherwise only processes with a living leader. The cheapest test is first,
 * because this runs for every task on the host.
 */
static __noinline bool may_list_mappings(struct task_struct *task, const struct control *c,
					 const struct bpf_iter_meta *meta)
{
	__u32 wanted = READ_WORD(c->vma_tgid);

	if (wanted ? (__u32)task->tgid != wanted : task->pid != task->tgid)
		return false;
	if (!is_of_process(task) || !is_watched_process(task) ||
	    !memory_thread_is_chosen(task, meta))
		return false;
	/* The reader will mark these mappings as known in `targets`. */
	process_marks_set(task->tgid);
	return true;
}

/*
 * As may_list_mappings, for a process in `asked`. One pass lists all processes there, each from its
 * own address on and with its own choice of a thread.
 */
static __always_inline bool may_list_asked(struct task_struct *task,
					   const struct bpf_iter_meta *meta, __u64 *ret_from)
{
	__u32 tgid = task->tgid;
	struct asked_process *wanted = bpf_map_lookup_elem(&asked, &tgid);

	if (!wanted || READ_WORD(wanted->failed) >= ASKED_TRIES || !is_of_process(task) ||
	    !is_watched_process(task) || !memory_thread_is_asked(task, meta, wanted))
		return false;
	*ret_from = READ_WORD(wanted->from);
	process_marks_set(task->tgid);
	return true;
}

/*
 * Counts a failed attempt. If the program returned 1 for a process, the kernel shows that process
 * again before any other. A process with a lock that is never free must not block the next ones.
 */
static __noinline void count_failure(const struct task_struct *task, const struct control *c)
{
	__u32 tgid = task->tgid;
	struct asked_process *wanted;

	if (READ_WORD(c->vma_tgid))
		return;
	wanted = bpf_map_lookup_elem(&asked, &tgid);
	if (wanted)
		wanted->failed++;
}

/*
 * Returns whether `vmas_tree` may list the mappings of `task`: those of one process, or of all
 * processes in `asked`.
 */
static __noinline bool may_list_in_walk(struct task_struct *task, const struct control *c,
					const struct bpf_iter_meta *meta, __u64 *ret_from)
{
	if (!READ_WORD(c->vma_tgid))
		return may_list_asked(task, meta, ret_from);
	*ret_from = READ_WORD(c->vma_from);
	return may_list_mappings(task, c, meta);
}

/*
 * Lists the mappings of `task` with the open-coded iterator (Linux 6.7 and newer), which walks only
 * the mappings of the wanted processes. One show writes all of a process, so it stops at
 * SHOW_BYTES.
 */
static __always_inline int list_mappings(const struct bpf_iter_meta *meta, struct task_struct *task,
					 const struct control *c)
{
	struct vm_area_struct *vma;
	struct bpf_iter_task_vma it;
	struct seq_file *seq = meta->seq;
	union reader_scratch *s;
	int r;

	if (!may_list_mappings(task, c, meta))
		return 0;
	s = map_of_thread(&readers);
	if (!s)
		return 0;
	read_process(&s->mapping, task);
	s->mapping.written = 0;
	r = bpf_iter_task_vma_new(&it, task, READ_WORD(c->vma_from));
	while ((vma = bpf_iter_task_vma_next(&it))) {
		if (s->mapping.written > SHOW_BYTES) {
			write_continuation(seq, task, vma->vm_start);
			break;
		}
		s->mapping.written += write_mapping(seq, &s->mapping, task, vma);
	}
	bpf_iter_task_vma_destroy(&it);
	return r == -EBUSY;
}

SEC("iter/task")
int vmas_open(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	const struct control *c = control_get();

	return task && c ? list_mappings(ctx->meta, task, c) : 0;
}

/*
 * Returns whether the program must do its work: once per pass. An iterator over links visits a few
 * dozen of them, including ours, and takes none of their locks; an unprivileged reader can trigger
 * that by a read(2) alone. An iterator over map elements would visit only one element, but some
 * kernels refuse it. The kernel counts a link when it visits the next one: if ours were the only
 * link, the next read(2) would treat a link created in the meantime as the first. The loader pins
 * more links.
 */
static __always_inline bool is_first(const struct bpf_iter__bpf_link *ctx)
{
	return ctx->link && !ctx->meta->seq_num;
}

/* As vmas_open, for only the process in control.vma_tgid, without a walk over all tasks. */
SEC("iter/bpf_link")
int vmas_pid(struct bpf_iter__bpf_link *ctx)
{
	const struct control *c = control_get();
	struct task_struct *task;
	int r;

	if (!is_first(ctx) || !c)
		return 0;
	task = bpf_task_from_pid(READ_WORD(c->vma_tgid));
	if (!task)
		return 0;
	r = list_mappings(ctx->meta, task, c);
	bpf_task_release(task);
	return r;
}

/* A walk over the tree of mappings of one process. */
struct tree_walk {
	struct seq_file *seq;
	struct task_struct *task;
	struct tree_scratch *scratch;
};

static long write_tree_mapping(struct task_struct *task, struct vm_area_struct *vma, void *context)
{
	struct tree_walk *w = context;

	w->scratch->written += write_mapping(w->seq, &w->scratch->mapping, task, vma);
	return 0;
}

/* Visits one mapping or gap. For mappings that are not executable the tree alone is enough. */
static long visit_tree_entry(__u32 i, void *context)
{
	struct tree_walk *w = context;
	struct tree_scratch *s = w->scratch;
	const struct vm_area_struct *vma;
	__u64 at = s->at, found = 0, last = 0;

	if (!vma_tree_find(w->task->mm, &s->node, at, &found, &last)) {
		s->broken = 1;
		return 1;
	}
	vma = (const void *)found;
	if (found && BPF_CORE_READ(vma, vm_flags) & VM_EXEC) {
		if (s->written > SHOW_BYTES) {
			s->more = 1;
			return 1;
		}
		s->broken = bpf_find_vma(w->task, at, write_tree_mapping, w, 0) != 0;
	}
	s->met += found != 0;
	s->at = last + 1;
	return s->broken || last >= VMA_ADDRESSES;
}

/* Lists the mappings of `task` from address `from` on. Returns 1 if they must be read again. */
static __always_inline int list_tree(struct seq_file *seq, struct task_struct *task, __u64 from)
{
	union reader_scratch *s = map_of_thread(&readers);
	struct tree_walk w;
	int before;

	if (!s)
		return 0;
	w = (struct tree_walk){ .seq = seq, .task = task, .scratch = &s->tree };
	read_process(&s->tree.mapping, task);
	s->tree.at = from;
	s->tree.met = s->tree.written = s->tree.more = s->tree.broken = 0;
	before = task->mm->map_count;
	bpf_loop(VMA_TREE_STEPS, visit_tree_entry, &w, 0);
	if (s->tree.more)
		write_continuation(seq, task, s->tree.at);
	else if (!from && (s->tree.met != before || task->mm->map_count != before))
		return 1;
	return s->tree.broken ? 1 : 0;
}

/*
 * As vmas_open, for older kernels. If the mappings change during the walk, the process must be read
 * again: a show that returns 1 writes nothing. Without control.vma_tgid one pass lists all
 * processes in `asked`, each from its own address on.
 */
SEC("iter/task")
int vmas_tree(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	const struct control *c = control_get();
	__u64 from;
	int r;

	if (!task || !c || !may_list_in_walk(task, c, ctx->meta, &from) || !task->mm)
		return 0;
	r = list_tree(ctx->meta->seq, task, from);
	if (r)
		count_failure(task, c);
	return r;
}

/*
 * Fills a table with the ranges of `task` if `unwind_claims` names its process, as `vmas` would
 * list them. The programs that call it are separate from `vmas` because they store their own
 * findings, in a map that only they write.
 */
static __always_inline int fill_ranges(const struct bpf_iter_meta *meta, struct task_struct *task,
				       const struct unwind_claims *claims)
{
	struct seq_file *seq = meta->seq;
	struct ranges_record record = {};
	struct ranges_writer w = {};
	__u32 number;

	if ((__u32)task->tgid != READ_WORD(claims->tgid) || !is_of_process(task) ||
	    task_keys_read_start(task) != READ_WORD(claims->start_ns) ||
	    !is_watched_process(task) || !memory_thread_is_chosen(task, meta))
		return 0;
	number = READ_WORD(claims->table);
	w.ranges = bpf_map_lookup_elem(&unwind_ranges, &number);
	if (!w.ranges || __sync_val_compare_and_swap(&w.ranges->busy, 0, 1))
		return 0;
	w.task = task;
	record.table_generation = unwind_ranges_fill(&w, claims);
	record.table = number;
	record.count = w.ranges->count;
	record.image = w.ranges->image;
	record.missed = w.missed;
	record.cut = w.cut;
	if (record.table_generation)
		record.runtime = runtime_check(task, w.ranges, number, claims);
	__sync_lock_test_and_set(&w.ranges->busy, 0);
	bpf_seq_write(seq, &record, sizeof(record));
	return 0;
}

SEC("iter/task")
int ranges(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	const struct unwind_claims *claims = map_single(&unwind_claims);

	return task && claims ? fill_ranges(ctx->meta, task, claims) : 0;
}

/* As ranges, without a walk over all tasks, as vmas_pid. */
SEC("iter/bpf_link")
int ranges_pid(struct bpf_iter__bpf_link *ctx)
{
	const struct unwind_claims *claims = map_single(&unwind_claims);
	struct task_struct *task;
	int r;

	if (!is_first(ctx) || !claims)
		return 0;
	task = bpf_task_from_pid(READ_WORD(claims->tgid));
	if (!task)
		return 0;
	r = fill_ranges(ctx->meta, task, claims);
	bpf_task_release(task);
	return r;
}
