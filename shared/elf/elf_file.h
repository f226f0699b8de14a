/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf_file.h: opens the file that a process has mapped, and no other. The path comes from a process
 * that may be hostile: only regular files are opened (shared/files/regular.h), so that no FIFO
 * blocks and no device is started. A file may have any length: what is read of it is bounded where
 * it is read.
 */
#ifndef TROCAR_SHARED_ELF_ELF_FILE_H
#define TROCAR_SHARED_ELF_ELF_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "shared/elf/elf_reader.h"
#include "shared/elf/reason.h"

/*
 * Opens `path` if it is a regular file with inode `inode` on `device` (kernel's dev_t, major << 20
 * | minor). On btrfs, bcachefs and overlayfs stat(2) reports another device than the kernel's
 * mapping does (fs/btrfs/inode.c, btrfs_getattr; fs/overlayfs/inode.c, ovl_map_dev_ino), so there
 * only the inode is compared. Returns REASON_NONE with *ret_image (the caller closes image.fd),
 * else the reason.
 */
enum reason elf_file_open(const char *path, uint64_t device, uint64_t inode,
			  struct elf_image *ret_image);

/*
 * Opens any regular file; `follow`: also through a symbolic link at the end of the path. Returns as
 * elf_file_open.
 */
enum reason elf_file_open_any(const char *path, bool follow, struct elf_image *ret_image);

/*
 * Takes a descriptor of a mapped file that somebody else opened: it must be a regular file of that
 * device and inode. On overlayfs and similar file systems the numbers may differ: then *ret_vague
 * is true, and the caller must identify the file by its build-id. On success ret_image owns the
 * descriptor.
 */
enum reason elf_file_adopt(int fd, uint64_t device, uint64_t inode, struct elf_image *ret_image,
			   bool *ret_vague);

#endif
