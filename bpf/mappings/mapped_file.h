/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * mapped_file.h: identifies the file of a mapping, and distinguishes files from memory that the
 * kernel stores as a file.
 */
#ifndef TROCAR_BPF_MAPPINGS_MAPPED_FILE_H
#define TROCAR_BPF_MAPPINGS_MAPPED_FILE_H

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel/kernel.h"
#include "bpf/mappings/file_version.h"
#include "bpf/maps/maps.h"

/*
 * Returns true for a mapping of memory. `file` is vma->vm_file; both may be any pointers. Memory
 * that processes share, or that is in huge pages, is also a file, without a name in any directory:
 * "/dev/zero", "/memfd:NAME", "/anon_hugepage" and "/SYSV..." of /proc/PID/maps. JIT compilers
 * store code there, to have it mapped twice or in several processes. A program or a library is
 * never mapped shared, so a private mapping of a memfd counts as a file.
 */
static __always_inline bool mapped_file_is_memory(const struct vm_area_struct *vma,
						  const struct file *file)
{
	const struct inode *inode;
	unsigned long magic;

	/*
	 * A mapping without operations is anonymous (vma_is_anonymous), such as that of /dev/zero.
	 */
	if (!file || !BPF_CORE_READ(vma, vm_ops))
		return true;
	inode = BPF_CORE_READ(file, f_inode);
	if (BPF_CORE_READ(inode, i_nlink))
		return false;
	magic = BPF_CORE_READ(inode, i_sb, s_magic);
	return magic == HUGETLBFS_MAGIC ||
	       (magic == TMPFS_MAGIC && BPF_CORE_READ(vma, vm_flags) & VM_SHARED);
}

/*
 * Returns the shift of vm_pgoff, which counts pages. BTF does not contain the page size: it is
 * fixed on x86-64, and elsewhere the loader sets it (arm64 has 4, 16 or 64 KiB).
 */
static __always_inline __u32 page_shift(void)
{
#if defined(__TARGET_ARCH_x86)
	return 12;
#else
	const struct abi_header *header = map_single(&abi);

	return header && header->page_shift ? header->page_shift & 63 : 12;
#endif
}

/* Returns the inode of the file of a mapping, 0 for memory. */
static __always_inline __u64 mapped_file_inode(const struct vm_area_struct *vma,
					       const struct file *file)
{
	return !file || mapped_file_is_memory(vma, file) ? 0 : file->f_inode->i_ino;
}

static __always_inline __u64 mapped_file_mix(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

/* Returns a number that identifies the version of the file (file_version.h). */
static __always_inline __u64 mapped_file_version(const struct file *file)
{
	const struct inode *inode = BPF_CORE_READ(file, f_inode);
	__u64 number = mapped_file_mix(1, BPF_CORE_READ(inode, i_ino));

	number = mapped_file_mix(number, (__u64)BPF_CORE_READ(inode, i_sb, s_dev) << 32 |
						 BPF_CORE_READ(inode, i_generation));
	number = mapped_file_mix(number, BPF_CORE_READ(inode, i_size));
	return mapped_file_mix(number, read_write_time(inode));
}

/*
 * Returns a number that identifies the version of the mapped file and the address at which the
 * whole file would begin; 0 for memory. So a mapping that is split, cut or joined keeps its number.
 * `vma` may be any pointer: members that cannot be read count as 0.
 */
static __always_inline __u64 mapped_file_number(const struct vm_area_struct *vma)
{
	const struct file *file = BPF_CORE_READ(vma, vm_file);

	if (mapped_file_is_memory(vma, file))
		return 0;
	return mapped_file_mix(mapped_file_version(file),
			       BPF_CORE_READ(vma, vm_start) -
				       (BPF_CORE_READ(vma, vm_pgoff) << page_shift()));
}

#endif
