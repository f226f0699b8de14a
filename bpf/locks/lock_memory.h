/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lock_memory.h: finds the memory that contains a lock, from the mapping at its address. The tree
 * of mappings is read as bytes without a lock (vma_tree.h), so it may change during the read. A
 * mapping is therefore accepted only if it belongs to the process's mm and contains the address,
 * both before and after all other reads. Callers hold RCU, which keeps the name of the mapped file
 * intact until then.
 */
#ifndef TROCAR_BPF_LOCKS_LOCK_MEMORY_H
#define TROCAR_BPF_LOCKS_LOCK_MEMORY_H

#include <stdbool.h>

#include <bpf/bpf_core_read.h>

#include "bpf/mappings/mapped_file.h"
#include "bpf/mappings/vma_tree.h"
#include "bpf/maps/maps.h"

/* Maximum distance of a lock on a stack above the stack pointer. */
#define LOCK_STACK_BYTES (8ull << 20)

/* Size of a glibc or musl thread descriptor (struct pthread), from the thread pointer on. */
#define LOCK_THREAD_BYTES 4096

/*
 * Too large for the BPF stack. A wake-up may interrupt a pass of `lock_waits` and overwrite the
 * node: then the pass finds no mapping of its process in it.
 */
__weak MAP(PERCPU_ARRAY, lock_memory_node, __u32, struct vma_node, 1);

/* The addresses that decide whether a lock is in a thread's own memory. */
struct lock_thread {
	__u64 address, begin, end; /* the lock, and the range of its mapping */
	__u64 sp, pointer;	   /* the thread's stack pointer and thread pointer */
};

/* Returns whether the mapping belongs to `mm` and contains `address`. */
static __always_inline bool lock_memory_holds(const struct vm_area_struct *vma,
					      const struct mm_struct *mm, __u64 address)
{
	return BPF_CORE_READ(vma, vm_mm) == mm && address >= BPF_CORE_READ(vma, vm_start) &&
	       address < BPF_CORE_READ(vma, vm_end);
}

/*
 * Returns whether the lock is on the stack of a thread, or in the thread's own data next to it. A
 * runtime that keeps thread stacks on its heap has both in a mapping with much other data. There
 * the thread pointer is the upper limit: above it is only the library's thread descriptor.
 */
static __always_inline bool lock_memory_is_of(const struct lock_thread *t)
{
	if (t->sp < t->begin || t->sp >= t->end || t->address < t->sp ||
	    t->address - t->sp >= LOCK_STACK_BYTES)
		return false;
#if defined(__TARGET_ARCH_x86)
	return t->pointer >= t->begin && t->pointer < t->end &&
	       t->address < t->pointer + LOCK_THREAD_BYTES;
#else
	return true;
#endif
}

static __always_inline __u64 lock_memory_pointer(const struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return BPF_CORE_READ(task, thread.fsbase);
#else
	return 0;
#endif
}

/*
 * Sets the owner of the stack that contains the lock: the main thread, the waiting thread, or the
 * running thread.
 */
static __always_inline void lock_memory_find_stack(struct lock_memory *m,
						   const struct task_struct *task,
						   const struct vm_area_struct *vma, __u64 address,
						   __u64 sp)
{
	struct task_struct *current = bpf_get_current_task_btf();
	const struct pt_regs___lock *regs = (const void *)bpf_task_pt_regs(current);
	const struct mm_struct *mm = BPF_CORE_READ(task, mm);
	__u64 main = BPF_CORE_READ(mm, start_stack);
	struct lock_thread t = { .address = address,
				 .begin = BPF_CORE_READ(vma, vm_start),
				 .end = BPF_CORE_READ(vma, vm_end),
				 .sp = sp,
				 .pointer = lock_memory_pointer(task) };

	if (main >= t.begin && main < t.end) {
		m->tid = BPF_CORE_READ(task, tgid);
	} else if (lock_memory_is_of(&t)) {
		m->tid = BPF_CORE_READ(task, pid);
	} else if (BPF_CORE_READ(current, mm) == mm) {
		t.sp = BPF_CORE_READ(regs, sp);
		t.pointer = lock_memory_pointer(current);
		if (lock_memory_is_of(&t))
			m->tid = BPF_CORE_READ(current, pid);
	}
	if (m->tid)
		m->kind = LOCK_MEMORY_STACK;
}

static __always_inline void lock_memory_read_name(struct lock_memory *m, const void *name)
{
	if (name && bpf_probe_read_kernel_str(m->name, sizeof(m->name), name) < 0)
		m->name[0] = 0;
}

/* Sets the kind of a mapping without a file. */
static __always_inline void lock_memory_at_plain(struct lock_memory *m,
						 const struct task_struct *task,
						 const struct vm_area_struct *vma, __u64 address,
						 __u64 sp)
{
	const struct vm_area_struct___named *named = (const void *)vma;
	const struct mm_struct *mm = BPF_CORE_READ(task, mm);
	__u64 heap = BPF_CORE_READ(mm, start_brk);

	m->kind = LOCK_MEMORY_ANONYMOUS;
	if (address >= heap && address < BPF_CORE_READ(mm, brk)) {
		m->kind = LOCK_MEMORY_HEAP;
		m->offset = address - heap;
		return;
	}
	lock_memory_find_stack(m, task, vma, address, sp);
	if (m->kind == LOCK_MEMORY_ANONYMOUS && bpf_core_field_exists(named->anon_name)) {
		const struct anon_vma_name *name = BPF_CORE_READ(named, anon_name);

		lock_memory_read_name(m, name ? name->name : 0);
	}
}

/* Sets the kind of a file mapping, and the offset of the lock in the file. */
static __always_inline void lock_memory_at_file(struct lock_memory *m,
						const struct vm_area_struct *vma,
						const struct file *file, __u64 address)
{
	const struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry);
	const struct inode *inode = BPF_CORE_READ(file, f_inode);
	__u64 magic = BPF_CORE_READ(inode, i_sb, s_magic);

	m->kind = LOCK_MEMORY_FILE;
	if (BPF_CORE_READ(vma, vm_flags) & VM_SHARED &&
	    (magic == TMPFS_MAGIC || magic == HUGETLBFS_MAGIC))
		m->kind = LOCK_MEMORY_SHARED;
	m->offset = address - BPF_CORE_READ(vma, vm_start) +
		    ((__u64)BPF_CORE_READ(vma, vm_pgoff) << page_shift());
	m->inode = BPF_CORE_READ(inode, i_ino);
	lock_memory_read_name(m, BPF_CORE_READ(dentry, d_name.name));
}

/*
 * Sets *m to the memory at `address` of the task; *m must be all zeros before. The task waits in a
 * system call, from which it returns with stack pointer `sp`. Sets nothing if the tree of mappings
 * cannot be read or changes during the read.
 */
static __noinline int lock_memory_find(struct lock_memory *m, const struct task_struct *task,
				       __u64 address, __u64 sp)
{
	const struct mm_struct *mm = BPF_CORE_READ(task, mm);
	const struct vm_area_struct *vma;
	const struct file *file;
	__u64 found = 0, last;
	struct vma_node *node = map_single(&lock_memory_node);

	if (!node || !mm || !address || !vma_tree_find(mm, node, address, &found, &last) || !found)
		return 0;
	vma = (const void *)found;
	if (!lock_memory_holds(vma, mm, address))
		return 0;
	file = BPF_CORE_READ(vma, vm_file);
	if (file)
		lock_memory_at_file(m, vma, file, address);
	else
		lock_memory_at_plain(m, task, vma, address, sp);
	if (!lock_memory_holds(vma, mm, address) || BPF_CORE_READ(vma, vm_file) != file)
		__builtin_memset(m, 0, sizeof(*m));
	return 0;
}

#endif
