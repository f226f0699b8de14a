/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * file.h: opens the file that a process has mapped, and no other one. The path comes from a process
 * that may be hostile: it is looked at before it is opened, so that no FIFO blocks and no device
 * wakes.
 */
#ifndef TROCAR_CONSUMER_FILE_H
#define TROCAR_CONSUMER_FILE_H

#include <stdint.h>

#include "consumer/symbols/elf_symbols.h"
#include "consumer/symbols/reason.h"

/*
 * Opens `path` when it is a regular file with inode `inode` on `device` (kernel's dev_t, major <<
 * 20 | minor). On btrfs, bcachefs and overlayfs stat(2) gives another device than the kernel's
 * mapping does (fs/btrfs/inode.c, btrfs_getattr; fs/overlayfs/inode.c, ovl_map_dev_ino), so there
 * the inode decides. REASON_NONE with *ret_image (image.fd is the caller's to close), else the
 * reason.
 */
enum reason file_open(const char *path, uint64_t device, uint64_t inode,
		      struct elf_image *ret_image);

#endif
