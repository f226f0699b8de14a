/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * file_version.h: reads from an inode the members that identify one version of a file. Linux 6.6,
 * 6.7 and 6.11 renamed the members of the times.
 */
#ifndef TROCAR_BPF_MAPPINGS_FILE_VERSION_H
#define TROCAR_BPF_MAPPINGS_FILE_VERSION_H

#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel/kernel.h"
#include "shared/abi/abi.h"

/*
 * Returns nanoseconds. Values from a file system are not trusted: they may wrap around, and are
 * only compared.
 */
static __always_inline __u64 join_time(__s64 seconds, __u64 nanoseconds)
{
	return (__u64)seconds * 1000000000ull + nanoseconds;
}

/* Set in i_ctime_nsec after the time has been read (include/linux/fs.h, 6.13 and newer). */
#define CTIME_QUERIED 0x80000000u

/* Returns when the inode was last changed (i_ctime). */
static __always_inline __u64 read_change_time(const struct inode *inode)
{
	const struct inode___underscored *underscored = (const void *)inode;
	const struct inode___plain *plain = (const void *)inode;

	if (bpf_core_field_exists(inode->i_ctime_sec))
		return join_time(inode->i_ctime_sec, inode->i_ctime_nsec & ~CTIME_QUERIED);
	if (bpf_core_field_exists(underscored->__i_ctime))
		return join_time(underscored->__i_ctime.tv_sec, underscored->__i_ctime.tv_nsec);
	return join_time(plain->i_ctime.tv_sec, plain->i_ctime.tv_nsec);
}

/* Returns when the file's content was last written (i_mtime). `inode` may be any pointer. */
static __always_inline __u64 read_write_time(const struct inode *inode)
{
	const struct inode___underscored *underscored = (const void *)inode;
	const struct inode___plain *plain = (const void *)inode;

	if (bpf_core_field_exists(inode->i_mtime_sec))
		return join_time(BPF_CORE_READ(inode, i_mtime_sec),
				 BPF_CORE_READ(inode, i_mtime_nsec));
	if (bpf_core_field_exists(underscored->__i_mtime))
		return join_time(BPF_CORE_READ(underscored, __i_mtime.tv_sec),
				 BPF_CORE_READ(underscored, __i_mtime.tv_nsec));
	return join_time(BPF_CORE_READ(plain, i_mtime.tv_sec),
			 BPF_CORE_READ(plain, i_mtime.tv_nsec));
}

/* Sets the members that identify the mapped file; NULL: none. */
static __always_inline void file_version_fill(struct mapping_record *record, struct file *file,
					      __u64 file_offset)
{
	const struct inode *inode;

	record->file_offset = 0;
	record->inode = 0;
	record->file_bytes = 0;
	record->changed_ns = 0;
	record->written_ns = 0;
	record->device = 0;
	record->generation = 0;
	if (!file)
		return;
	inode = file->f_inode;
	record->file_offset = file_offset;
	record->inode = inode->i_ino;
	record->file_bytes = inode->i_size;
	record->changed_ns = read_change_time(inode);
	record->written_ns = read_write_time(inode);
	record->device = BPF_CORE_READ(inode, i_sb, s_dev);
	record->generation = inode->i_generation;
}

#endif
