/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/facts/facts_disks.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/facts/facts_text.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"
#include "shared/tools/macro.h"

#define FILE_BYTES (64u << 10)
#define ROOT_BYTES 256

static const char virtual_disks[] = "/sys/devices/virtual/block";

/* ---- partitions */

/*
 * Whether `name` is the kernel's name for a partition of `disk`: a number follows, after a "p" if
 * the disk's own name ends with a digit (bdevname, block/partitions/core.c).
 */
static bool is_partition(const char *name, const char *disk)
{
	size_t bytes = strlen(disk);

	if (!bytes || strncmp(name, disk, bytes) != 0)
		return false;
	name += bytes;
	if (isdigit((unsigned char)disk[bytes - 1]) && *name++ != 'p')
		return false;
	return *name && strspn(name, "0123456789") == strlen(name);
}

static void add_below(struct facts_disk *disk, int place)
{
	if (place < 0 || disk->n_below == FACTS_DISKS_BELOW)
		disk->below_more++;
	else
		disk->below[disk->n_below++] = (uint16_t)place;
}

static void find_partitions(struct facts_disks *d)
{
	for (size_t i = 0; i < d->devices.count; i++)
		for (size_t k = 0; k < d->devices.count; k++) {
			if (!is_partition(d->devices.rows[i].name, d->devices.rows[k].name))
				continue;
			d->items[i].kind = FACTS_DISK_PARTITION;
			add_below(&d->items[i], (int)k);
			break;
		}
}

/* ---- virtual disks */

static int find_name(const struct facts_disks *d, const char *name)
{
	for (size_t i = 0; i < d->devices.count; i++)
		if (!strcmp(d->devices.rows[i].name, name))
			return (int)i;
	return -1;
}

/* Returns the text of a file of the disk without its last newline, to be freed; NULL: none. */
static char *read_text(int disk_fd, const char *path)
{
	char *text;
	size_t bytes;

	if (io_read_file(disk_fd, path, FILE_BYTES, &text, &bytes) < 0)
		return NULL;
	if (bytes && text[bytes - 1] == '\n')
		text[bytes - 1] = '\0';
	if (*text)
		return text;
	free(text);
	return NULL;
}

static DIR *open_dir(int at_fd, const char *path)
{
	_cleanup_close_ int fd = openat(at_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (dir)
		(void)TAKE_FD(fd);
	return dir;
}

/* Adds the devices below the disk, from the entries of its folder `slaves`, links to devices. */
static void read_below(struct facts_disks *d, struct facts_disk *disk, int disk_fd)
{
	_cleanup_closedir_ DIR *dir = open_dir(disk_fd, "slaves");
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			add_below(disk, find_name(d, entry->d_name));
}

static void read_virtual(struct facts_disks *d, struct facts_disk *disk, int disk_fd)
{
	static const struct {
		const char *path;
		enum facts_disk_kind kind;
	} kinds[] = {
		{ "dm/name", FACTS_DISK_DM },
		{ "md/level", FACTS_DISK_MD },
		{ "loop/backing_file", FACTS_DISK_LOOP },
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds) && !disk->name; i++) {
		disk->name = read_text(disk_fd, kinds[i].path);
		if (disk->name)
			disk->kind = kinds[i].kind;
	}
	read_below(d, disk, disk_fd);
}

static void read_all_virtual(struct facts_disks *d, const char *root)
{
	_cleanup_closedir_ DIR *dir = NULL;
	const struct dirent *entry;
	char path[ROOT_BYTES];

	snprintf(path, sizeof(path), "%s%s", root, virtual_disks);
	dir = open_dir(AT_FDCWD, path);
	while (dir && (entry = readdir(dir))) {
		int place = find_name(d, entry->d_name);
		_cleanup_close_ int fd = -1;

		if (place < 0)
			continue;
		fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0)
			read_virtual(d, &d->items[place], fd);
	}
}

/* ---- location of a loop device's file */

/* Returns how much of the path the mount point covers; 0: the file is not below it. */
static size_t match_point(const struct mounts_row *row, const char *path)
{
	char point[PATH_MAX];
	size_t bytes = mounts_unescape(row->point, point, sizeof(point));

	if (bytes >= sizeof(point))
		return 0;
	if (bytes == 1)
		return 1;
	if (strncmp(path, point, bytes) != 0 || (path[bytes] && path[bytes] != '/'))
		return 0;
	return bytes;
}

/* Returns the index of the device that a path of process 1 is on; -1: not known. */
static int find_device(const struct facts_disks *d, const char *path)
{
	const char *at = d->mounts ? d->mounts : "";
	struct mounts_row row;
	size_t best = 0;
	int place = -1;

	while (mounts_next(&at, &row)) {
		size_t bytes = match_point(&row, path);

		/* Of two mounts at one point the later one is visible. */
		if (!bytes || bytes < best)
			continue;
		best = bytes;
		place = -1;
		for (size_t i = 0; place < 0 && i < d->devices.count; i++)
			if (facts_disks_is_mount(d, i, &row))
				place = (int)i;
	}
	return place;
}

static void find_loops(struct facts_disks *d)
{
	for (size_t i = 0; i < d->devices.count; i++) {
		struct facts_disk *disk = &d->items[i];
		int place;

		if (disk->kind != FACTS_DISK_LOOP || disk->name[0] != '/')
			continue;
		place = find_device(d, disk->name);
		if (place >= 0)
			add_below(disk, place);
	}
}

/* ---- swap devices */

/*
 * "/dev/vda2    partition 999420  0       -2". Returns the index of the device; -1: no device.
 */
static int find_swap(const struct facts_disks *d, struct facts_text line)
{
	static const char partition[] = "partition";
	struct facts_text path, kind;
	char name[FACTS_DEVICES_BYTES];
	const char *slash;
	size_t bytes;

	if (!facts_text_word(&line, ' ', &path) || !facts_text_word(&line, ' ', &kind) ||
	    kind.bytes < strlen(partition) || memcmp(kind.at, partition, strlen(partition)) != 0)
		return -1;
	slash = memrchr(path.at, '/', path.bytes);
	bytes = slash ? (size_t)(path.at + path.bytes - slash - 1) : 0;
	if (!bytes || bytes >= sizeof(name))
		return -1;
	memcpy(name, slash + 1, bytes);
	name[bytes] = '\0';
	return find_name(d, name);
}

void facts_disks_add_swaps(struct facts_disks *d, const char *text, size_t bytes)
{
	struct facts_text rest = { text, bytes }, line;

	while (facts_text_line(&rest, &line)) {
		int place = find_swap(d, line);

		if (place >= 0)
			d->items[place].swap = true;
	}
}

/* ---- all of it */

/* Returns the text of a file below `root`, to be freed; NULL if it cannot be read. */
static char *read_below_root(const char *root, const char *file, size_t most, size_t *ret_bytes)
{
	char path[ROOT_BYTES], *text;

	snprintf(path, sizeof(path), "%s%s", root, file);
	return io_read_file(AT_FDCWD, path, most, &text, ret_bytes) < 0 ? NULL : text;
}

static void read_swaps(struct facts_disks *d, const char *root)
{
	_cleanup_free_ char *text = NULL;
	size_t bytes;

	text = read_below_root(root, "/proc/swaps", FILE_BYTES, &bytes);
	if (text)
		facts_disks_add_swaps(d, text, bytes);
}

static void read_devices(struct facts_disks *d, const char *root)
{
	_cleanup_free_ char *text = NULL;
	size_t bytes;

	text = read_below_root(root, "/proc/partitions", FILE_BYTES, &bytes);
	if (text)
		facts_devices_parse(&d->devices, text, bytes);
	d->items = calloc(MAX(d->devices.count, (size_t)1), sizeof(*d->items));
	if (!d->items)
		facts_devices_done(&d->devices);
}

void facts_disks_read(struct facts_disks *d, const char *root)
{
	size_t bytes;

	*d = (struct facts_disks){};
	read_devices(d, root);
	if (!d->devices.count)
		return;
	find_partitions(d);
	read_all_virtual(d, root);
	d->mounts = read_below_root(root, "/proc/1/mountinfo", MOUNTS_BYTES, &bytes);
	find_loops(d);
	read_swaps(d, root);
}

void facts_disks_done(struct facts_disks *d)
{
	for (size_t i = 0; d->items && i < d->devices.count; i++)
		free(d->items[i].name);
	free(d->items);
	free(d->mounts);
	facts_devices_done(&d->devices);
	*d = (struct facts_disks){};
}

int facts_disks_find(const struct facts_disks *d, uint32_t major, uint32_t minor)
{
	for (size_t i = 0; d && i < d->devices.count; i++)
		if (d->devices.rows[i].major == major && d->devices.rows[i].minor == minor)
			return (int)i;
	return -1;
}

/* Whether `source` is the device's node: "/dev/vdb", "/dev/mapper/NAME". */
static bool is_node(const struct facts_disks *d, size_t i, struct mounts_text source)
{
	static const char dev[] = "/dev/", mapper[] = "/dev/mapper/";
	char path[PATH_MAX];

	if (mounts_unescape(source, path, sizeof(path)) >= sizeof(path))
		return false;
	if (d->items[i].kind == FACTS_DISK_DM && d->items[i].name &&
	    !strncmp(path, mapper, strlen(mapper)))
		return !strcmp(path + strlen(mapper), d->items[i].name);
	return !strncmp(path, dev, strlen(dev)) &&
	       !strcmp(path + strlen(dev), d->devices.rows[i].name);
}

bool facts_disks_is_mount(const struct facts_disks *d, size_t i, const struct mounts_row *row)
{
	static const char btrfs[] = "btrfs";

	if (row->major)
		return row->major == d->devices.rows[i].major &&
		       row->minor == d->devices.rows[i].minor;
	/*
	 * btrfs has a number of its own and reports one of its devices; other file systems report
	 * any text.
	 */
	return row->type.bytes == strlen(btrfs) && !memcmp(row->type.at, btrfs, row->type.bytes) &&
	       is_node(d, i, row->source);
}

static bool stands_on(const struct facts_disk *disk, size_t place)
{
	for (uint16_t i = 0; i < disk->n_below; i++)
		if (disk->below[i] == place)
			return true;
	return false;
}

/* The indexes that a walk has visited, each once. */
struct met {
	uint16_t places[FACTS_DEVICES_MAX];
	size_t count;
};

static void meet_place(struct met *met, size_t place)
{
	for (size_t i = 0; i < met->count; i++)
		if (met->places[i] == place)
			return;
	met->places[met->count++] = (uint16_t)place;
}

size_t facts_disks_stack(const struct facts_disks *d, size_t i, uint16_t *places, size_t most,
			 size_t *ret_up)
{
	struct met met = { .places = { (uint16_t)i }, .count = 1 };
	size_t up;

	for (size_t at = 0; at < met.count; at++)
		for (size_t k = 0; k < d->devices.count; k++)
			if (stands_on(&d->items[k], met.places[at]))
				meet_place(&met, k);
	up = met.count;
	for (size_t at = 0; at < met.count; at = at ? at + 1 : up) {
		const struct facts_disk *disk = &d->items[met.places[at]];

		for (uint16_t k = 0; k < disk->n_below; k++)
			meet_place(&met, disk->below[k]);
	}
	memcpy(places, met.places, MIN(met.count, most) * sizeof(*places));
	*ret_up = MIN(up, most);
	return met.count;
}
