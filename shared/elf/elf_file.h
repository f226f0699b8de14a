/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf_file.h: opens the file that a process has mapped, and no other. The path comes from a process
 * that may be hostile: only regular files are opened (shared/files/regular.h), so that no FIFO
 * blocks and no device is started. A file may have any length: each reader bounds the bytes that it
 * reads.
 */
#ifndef TROCAR_SHARED_ELF_ELF_FILE_H
#define TROCAR_SHARED_ELF_ELF_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "shared/elf/elf_reader.h"
#include "shared/elf/reason.h"

/*
 * The members that identify one version of a file. File systems reuse the number of a deleted
 * inode, mostly for the next file, and a file may be written in place. Times are ns since 1970.
 */
struct file_identity {
	uint64_t device; /* kernel's dev_t, major << 20 | minor */
	uint64_t inode;
	uint64_t bytes;
	uint64_t changed_ns; /* last change of content or attributes (ctime) */
	uint64_t written_ns; /* last change of content (mtime) */
	uint32_t generation; /* changes with each use of the inode number; not in stat(2) */
};

/* Returns the version of a file by stat(2); the generation is 0. */
struct file_identity elf_file_identity(const struct stat *st);

/*
 * Opens `path` if it is a regular file with the device and inode of `identity`. On btrfs, bcachefs
 * and overlayfs stat(2) reports another device than the kernel's mapping does (fs/btrfs/inode.c,
 * btrfs_getattr; fs/overlayfs/inode.c, ovl_map_dev_ino), so there only the inode is compared.
 * Returns REASON_NONE with *ret_image (the caller closes image.fd), else the reason. *ret_vague is
 * true if the file's size has changed or it was written since: then the caller must identify it by
 * its build-id.
 */
enum reason elf_file_open(const char *path, const struct file_identity *identity,
			  struct elf_image *ret_image, bool *ret_vague);

/*
 * Opens any regular file; `follow`: also through a symbolic link at the end of the path. Returns as
 * elf_file_open.
 */
enum reason elf_file_open_any(const char *path, bool follow, struct elf_image *ret_image);

/*
 * Takes a descriptor of a mapped file that another process opened: it must be a regular file of
 * that device and inode. *ret_vague as for elf_file_open; it is also true on overlayfs and similar
 * file systems if the numbers differ. On success ret_image owns the descriptor.
 */
enum reason elf_file_adopt(int fd, const struct file_identity *identity,
			   struct elf_image *ret_image, bool *ret_vague);

#endif
