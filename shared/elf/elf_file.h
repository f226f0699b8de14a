/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf_file.h: opens the file that a process has mapped, and no other one. The path comes from a
 * process that may be hostile: only regular files are opened (shared/tools/regular.h), so that no
 * FIFO blocks and no device wakes.
 */
#ifndef TROCAR_SHARED_ELF_ELF_FILE_H
#define TROCAR_SHARED_ELF_ELF_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "shared/elf/elf_reader.h"
#include "shared/elf/reason.h"

#define ELF_FILE_MAX (1ULL << 30) /* bytes of a file that is opened here */

/*
 * Opens `path` when it is a regular file with inode `inode` on `device` (kernel's dev_t, major <<
 * 20 | minor). On btrfs, bcachefs and overlayfs stat(2) gives another device than the kernel's
 * mapping does (fs/btrfs/inode.c, btrfs_getattr; fs/overlayfs/inode.c, ovl_map_dev_ino), so there
 * the inode decides. REASON_NONE with *ret_image (image.fd is the caller's to close), else the
 * reason.
 */
enum reason elf_file_open(const char *path, uint64_t device, uint64_t inode,
			  struct elf_image *ret_image);

/*
 * Opens any regular file; `follow` follows a symbolic link at the end of the path. Results as
 * above.
 */
enum reason elf_file_open_any(const char *path, bool follow, struct elf_image *ret_image);

/*
 * Takes a descriptor of the file that a mapping holds, opened by someone else: a regular file of
 * that device and inode. On overlayfs and the like the numbers may differ: then *ret_vague is true
 * and the caller must know the file by its build-id. On success the descriptor is ret_image's.
 */
enum reason elf_file_adopt(int fd, uint64_t device, uint64_t inode, struct elf_image *ret_image,
			   bool *ret_vague);

#endif
