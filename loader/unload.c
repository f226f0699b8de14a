/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/unload.h"

#include <errno.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>

#include "loader/bpffs/bpfdir.h"
#include "loader/bpffs/pin_set.h"
#include "loader/exit_status.h"
#include "shared/tools/log.h"
#include "shared/tools/macro.h"

#define BUSY_MS	   1000
#define PAUSE_MS   20
#define MOUNTS_MAX 8 /* bpffs mounted above one another, by loads in different mount namespaces */

static bool is_there(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

/* Removes the pins of one bpffs. Adds their number to *total. */
static int remove_all_pins(const char *dir, unsigned int *total)
{
	unsigned int removed = 0;
	int r, first;

	first = pin_set_unstage(dir, &removed);
	*total += removed;
	removed = 0;
	r = pin_set_remove(dir, &removed);
	*total += removed;
	if (first == 0)
		first = r;
	if (first < 0)
		log_error("%s: a pin could not be removed: %s", dir, strerror(-first));
	return first;
}

/*
 * Unmounts. Tries for BUSY_MS while the mount is in use: bpftool and others that walk all of bpffs
 * pass through it, and a process that was just killed still closes its files.
 */
static int unmount_patiently(const char *dir)
{
	const struct timespec pause = { .tv_nsec = PAUSE_MS * NSEC_PER_MSEC };

	for (unsigned int waited_ms = 0;; waited_ms += PAUSE_MS) {
		if (umount2(dir, UMOUNT_NOFOLLOW) == 0)
			return 0;
		if (errno != EBUSY || waited_ms >= BUSY_MS)
			return -errno;
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
}

static int unmount_dir(const char *dir)
{
	int r = unmount_patiently(dir);

	if (r == 0)
		return 0;
	if (r == -EINVAL && !bpfdir_is_mount(dir))
		return 0; /* a service manager has just unmounted it */
	if (r == -EBUSY)
		log_error(
			"%s: the pins are gone, but the mount is in use: a process has a file or its "
			"working directory in it, probably trocar-consumer. Stop it and unload again "
			"(fuser -vm %s names it)",
			dir, dir);
	else
		log_error("%s: cannot unmount: %s", dir, strerror(-r));
	return r;
}

/*
 * Removes our pins from each bpffs that is mounted at `dir`, and unmounts it. -ENOTEMPTY if one
 * holds files of others.
 */
static int clear_mounts(const char *dir, unsigned int *total, unsigned int *mounts)
{
	int r;

	for (unsigned int i = 0; i < MOUNTS_MAX && bpfdir_is_bpffs(dir); i++) {
		r = remove_all_pins(dir, total);
		if (r < 0)
			return r;
		if (!bpfdir_is_mount(dir))
			return 0; /* a directory in another bpffs: nothing to unmount */
		if (!pin_set_is_empty(dir))
			return -ENOTEMPTY;
		r = unmount_dir(dir);
		if (r < 0)
			return r;
		(*mounts)++;
	}
	return 0;
}

/* Removes only the pins: the service manager unmounts, in the mount namespace of the host. */
static int unload_pins(const char *dir)
{
	unsigned int pins = 0;

	if (bpfdir_is_bpffs(dir) && remove_all_pins(dir, &pins) < 0)
		return EXIT_FAILED;
	if (pins == 0)
		log_info("nothing is loaded at %s", dir);
	else
		log_info("unloaded: %u pins are gone, the mount at %s stays", pins, dir);
	return EXIT_FINE;
}

static int unload_dir(struct bpfdir *locked)
{
	const char *dir = locked->path;
	unsigned int pins = 0, mounts = 0;
	int r;

	r = clear_mounts(dir, &pins, &mounts);
	if (r < 0 && r != -ENOTEMPTY)
		return EXIT_FAILED;
	if (r == 0)
		r = bpfdir_remove(locked);
	if (r == -ENOTEMPTY || r == -EEXIST) {
		log_error("%s: %u pins removed; the directory stays, because it holds other files",
			  dir, pins);
		return EXIT_FAILED;
	}
	if (r < 0) {
		log_error("%s: cannot remove the directory: %s", dir, strerror(-r));
		return EXIT_FAILED;
	}
	log_info("unloaded: %u pins, %u mounts and the directory %s are gone", pins, mounts, dir);
	return EXIT_FINE;
}

int unload_run(const struct options *o)
{
	struct bpfdir dir = BPFDIR_NONE;
	int r;

	r = bpfdir_lock(o->bpf_dir, false, &dir);
	if (r != -EBUSY && !is_there(o->bpf_dir)) {
		bpfdir_close(&dir);
		log_info("nothing is loaded at %s", o->bpf_dir);
		return EXIT_FINE;
	}
	if (r < 0) {
		bpfdir_log_unlocked(o->bpf_dir, r);
		return EXIT_FAILED;
	}
	r = o->keep_mount ? unload_pins(o->bpf_dir) : unload_dir(&dir);
	bpfdir_close(&dir);
	return r;
}
