/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* mapping_writer.h: writes the records of `vmas`, one for each executable mapping of a process. */
#ifndef TROCAR_BPF_MAPPINGS_MAPPING_WRITER_H
#define TROCAR_BPF_MAPPINGS_MAPPING_WRITER_H

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel/kernel.h"
#include "bpf/mappings/file_path.h"
#include "bpf/mappings/file_version.h"
#include "bpf/mappings/mapped_file.h"
#include "bpf/maps/maps.h"

#define RECORD_ALIGN 8

struct mapping_scratch {
	/* Data of the process (read_process): */
	__u64 mm, exe; /* kernel addresses of its mm_struct and of the executable's inode */
	__u64 vdso;    /* address of the vDSO; ~0: none, or unknown to the kernel */
	__u64 written; /* bytes of this show; in memory, so that the verifier does not track it */
	struct file_path walk;
	union {
		struct mapping_record record;
		char room[sizeof(struct mapping_record) + MAPPING_PATH_BYTES + RECORD_ALIGN];
	};
};

static __always_inline __u32 pad_bytes(__u32 bytes)
{
	return (bytes + RECORD_ALIGN - 1) & ~(RECORD_ALIGN - 1);
}

/*
 * Reads the process's data for write_mapping, once before its mappings: newer verifiers search BTF
 * at each load of a kernel pointer, and check a load in a loop again for each iteration. A later
 * execve(2) is visible in task->mm.
 */
static __always_inline void read_process(struct mapping_scratch *s, struct task_struct *task)
{
	struct mm_struct *mm = task->mm;

	s->mm = (__u64)mm;
	s->exe = (__u64)mm->exe_file->f_inode;
	s->vdso = ~0ull;
	if (bpf_core_field_exists(mm->context.vdso))
		s->vdso = (__u64)mm->context.vdso;
	s->record.start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	s->record.tgid = task->tgid;
}

/*
 * Returns the flags (enum mapping_flag) of an executable mapping of `file`, NULL for none, except
 * the flag of its path. The caller loads vma->vm_file once and passes it: newer verifiers demand a
 * check after each load.
 */
static __always_inline __u32 find_mapping_flags(const struct mapping_scratch *s,
						struct vm_area_struct *vma, struct file *file)
{
	if (file && !mapped_file_is_memory(vma, file))
		return (__u64)BPF_CORE_READ(file, f_inode) == s->exe ? MAPPING_IS_EXE : 0;
	return !file && vma->vm_start == s->vdso ? MAPPING_VDSO : MAPPING_ANON;
}

/* Sets the path. A path that is too long or cannot be read is omitted and marked. */
static __always_inline void fill_mapping_path(struct mapping_scratch *s, struct file *file)
{
	__u64 bytes = file_path_build(&s->walk, file);

	asm volatile("" : "+r"(bytes));
	if (!bytes || bytes > MAPPING_PATH_BYTES) {
		s->record.flags |= MAPPING_PATH_CUT;
		return;
	}
	bpf_probe_read_kernel(s->record.path, bytes, s->walk.text + (MAPPING_PATH_BYTES - bytes));
	__builtin_memset(s->record.path + bytes, 0, RECORD_ALIGN);
	s->record.path_bytes = pad_bytes(bytes);
}

/*
 * Writes one mapping. Returns the bytes written; 0 for a mapping that is not executable, or that
 * execve(2) has just replaced: execve gives the process its new memory before it counts the image
 * (begin_new_exec of fs/exec.c), and does not wait for readers of the old memory.
 */
static __always_inline __u32 write_mapping(struct seq_file *seq, struct mapping_scratch *s,
					   struct task_struct *task, struct vm_area_struct *vma)
{
	struct file *file = vma->vm_file; /* before the branches (task_keys.h) */
	__u64 bytes, mm;

	if (!(vma->vm_flags & VM_EXEC))
		return 0;
	s->record.image = task->self_exec_id;
	mm = (__u64)BPF_CORE_READ(task, mm);
	if ((__u64)BPF_CORE_READ(vma, vm_mm) != mm || mm != s->mm)
		return 0;
	s->record.start = vma->vm_start;
	s->record.end = vma->vm_end;
	s->record.flags = find_mapping_flags(s, vma, file);
	s->record.path_bytes = 0;
	if (s->record.flags & MAPPING_ANON)
		file = 0;
	file_version_fill(&s->record, file, (__u64)vma->vm_pgoff << page_shift());
	if (file)
		fill_mapping_path(s, file);
	bytes = s->record.path_bytes;
	asm volatile("" : "+r"(bytes));
	if (bytes > MAPPING_PATH_BYTES)
		return 0;
	bpf_seq_write(seq, &s->record, sizeof(s->record) + bytes);
	return sizeof(s->record) + bytes;
}

/* Writes a record without a mapping, with the address to continue from. */
static __always_inline void write_continuation(struct seq_file *seq, struct task_struct *task,
					       __u64 from)
{
	struct mapping_record record = {};

	record.start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	record.end = from;
	record.tgid = task->tgid;
	record.flags = MAPPING_MORE;
	bpf_seq_write(seq, &record, sizeof(record));
}

#endif
