/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/bpffs/pin_set.h"

#include <bpf/bpf.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "loader/bpffs/bpfdir.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/cpus.h"
#include "shared/tools/macro.h"

#define NAME_BYTES 32
#define NAMES_MAX  (CPUS_MAX + 64)
#define PATH_BYTES (BPFDIR_PATH_BYTES + 64)
#define SAMPLER	   "sampler_cpu"
#define OLD_ABI	   "abi_old" /* only in new/: the old set's abi while the sets are exchanged */

static const char *const fixed[] = {
#define PIN_MAP(name, mode, help) #name,
#define PIN_ITER(name, help)	  #name,
#define PIN_LINK(name, help)	  #name,
#define PIN_PROG(name, help)	  #name,
#include "shared/abi/pins.def"
	OLD_ABI,
};

struct names {
	char (*items)[NAME_BYTES]; /* owned */
	size_t count;
};

static void free_names(struct names *names)
{
	free(names->items);
}

static void write_path(const char *dir, const char *sub, const char *name, char path[PATH_BYTES])
{
	snprintf(path, PATH_BYTES, "%s%s%s/%s", dir, *sub ? "/" : "", sub, name);
}

static bool is_ours(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
		if (strcmp(name, fixed[i]) == 0)
			return true;
	if (strncmp(name, SAMPLER, strlen(SAMPLER)) != 0)
		return false;
	name += strlen(SAMPLER);
	return *name && strlen(name) <= 5 && strspn(name, "0123456789") == strlen(name);
}

static bool has_name(const struct names *names, const char *name)
{
	for (size_t i = 0; i < names->count; i++)
		if (strcmp(names->items[i], name) == 0)
			return true;
	return false;
}

/*
 * Adds the names of our pins in `path` that `names` does not have. A missing directory adds none.
 */
static int list_names(const char *path, struct names *names)
{
	_cleanup_closedir_ DIR *d = opendir(path);
	const struct dirent *e;

	if (!d)
		return errno == ENOENT ? 0 : -errno;
	if (!names->items) {
		names->items = calloc(NAMES_MAX, NAME_BYTES);
		if (!names->items)
			return -ENOMEM;
	}
	for (;;) {
		errno = 0;
		e = readdir(d);
		if (!e)
			return -errno;
		if (strlen(e->d_name) >= NAME_BYTES || !is_ours(e->d_name) ||
		    has_name(names, e->d_name))
			continue;
		if (names->count == NAMES_MAX)
			return -E2BIG;
		memcpy(names->items[names->count++], e->d_name, strlen(e->d_name) + 1);
	}
}

int pin_set_stage(const char *dir)
{
	char path[PATH_BYTES];

	write_path(dir, "", PIN_SET_NEW, path);
	return mkdir(path, 0700) < 0 ? -errno : 0;
}

int pin_set_put(const char *dir, const char *name, int fd, mode_t mode, gid_t gid)
{
	char path[PATH_BYTES];

	write_path(dir, PIN_SET_NEW, name, path);
	if (bpf_obj_pin(fd, path) < 0)
		return -errno;
	if (chmod(path, mode) < 0 || chown(path, 0, gid) < 0)
		return -errno;
	return 0;
}

/* Renames within the directory; `flags` as renameat2(2). */
static int move_pin(const char *dir, const char *from_sub, const char *from, const char *to_sub,
		    const char *to, unsigned int flags)
{
	char from_path[PATH_BYTES], to_path[PATH_BYTES];

	write_path(dir, from_sub, from, from_path);
	write_path(dir, to_sub, to, to_path);
	return renameat2(AT_FDCWD, from_path, AT_FDCWD, to_path, flags) < 0 ? -errno : 0;
}

/*
 * Exchanges the staged and the old pin of one name; one of the two may be missing. A second call
 * undoes the first.
 */
static int swap_pin(const char *dir, const char *name)
{
	int r;

	r = move_pin(dir, PIN_SET_NEW, name, "", name, RENAME_EXCHANGE);
	if (r != -ENOENT)
		return r;
	r = move_pin(dir, PIN_SET_NEW, name, "", name, RENAME_NOREPLACE);
	if (r != -ENOENT)
		return r;
	return move_pin(dir, "", name, PIN_SET_NEW, name, RENAME_NOREPLACE);
}

static bool is_abi(const char *name)
{
	return strcmp(name, "abi") == 0 || strcmp(name, OLD_ABI) == 0;
}

/* Exchanges all pins except `abi`; on failure exchanges them back. */
static int swap_pins(const char *dir, const struct names *names)
{
	int r = 0;
	size_t i;

	for (i = 0; i < names->count; i++) {
		if (is_abi(names->items[i]))
			continue;
		r = swap_pin(dir, names->items[i]);
		if (r < 0)
			break;
	}
	while (r < 0 && i-- > 0)
		if (!is_abi(names->items[i]))
			swap_pin(dir, names->items[i]);
	return r;
}

int pin_set_commit(const char *dir)
{
	struct names names __attribute__((cleanup(free_names))) = { 0 };
	char path[PATH_BYTES];
	int r;

	write_path(dir, "", PIN_SET_NEW, path);
	r = list_names(path, &names);
	if (r == 0)
		r = list_names(dir, &names);
	if (r < 0)
		return r;
	r = move_pin(dir, "", "abi", PIN_SET_NEW, OLD_ABI, RENAME_NOREPLACE);
	if (r < 0 && r != -ENOENT)
		return r;
	r = swap_pins(dir, &names);
	if (r == 0) {
		r = move_pin(dir, PIN_SET_NEW, "abi", "", "abi", RENAME_NOREPLACE);
		if (r < 0)
			for (size_t i = names.count; i-- > 0;)
				if (!is_abi(names.items[i]))
					swap_pin(dir, names.items[i]);
	}
	if (r < 0) {
		move_pin(dir, PIN_SET_NEW, OLD_ABI, "", "abi", RENAME_NOREPLACE);
		return r;
	}
	return pin_set_unstage(dir, NULL);
}

/* Removes our pins in `dir`/`sub`. */
static int remove_pins(const char *dir, const char *sub, unsigned int *ret_removed)
{
	struct names names __attribute__((cleanup(free_names))) = { 0 };
	char path[PATH_BYTES];
	unsigned int removed = 0;
	int r, first = 0;

	snprintf(path, sizeof(path), "%s%s%s", dir, *sub ? "/" : "", sub);
	r = list_names(path, &names);
	if (r < 0)
		return r;
	for (size_t i = 0; i < names.count; i++) {
		write_path(dir, sub, names.items[i], path);
		if (unlink(path) == 0)
			removed++;
		else if (first == 0)
			first = -errno;
	}
	if (ret_removed)
		*ret_removed = removed;
	return first;
}

int pin_set_unstage(const char *dir, unsigned int *ret_removed)
{
	char path[PATH_BYTES];
	int r;

	r = remove_pins(dir, PIN_SET_NEW, ret_removed);
	if (r < 0)
		return r;
	write_path(dir, "", PIN_SET_NEW, path);
	return rmdir(path) < 0 && errno != ENOENT ? -errno : 0;
}

int pin_set_remove(const char *dir, unsigned int *ret_removed)
{
	return remove_pins(dir, "", ret_removed);
}

/*
 * bpffs refuses names with a dot (bpf_lookup in kernel/bpf/inode.c). Only the kernel makes such
 * names: "." and "..", and the maps.debug and progs.debug of CONFIG_BPF_PRELOAD.
 */
bool pin_set_is_empty(const char *dir)
{
	_cleanup_closedir_ DIR *d = opendir(dir);
	const struct dirent *e;

	if (!d)
		return false;
	while ((e = readdir(d)))
		if (!strchr(e->d_name, '.'))
			return false;
	return true;
}

int pin_set_abi(const char *dir, struct abi_header *ret_header)
{
	struct abi_header header = { 0 };
	_cleanup_close_ int fd = -1;
	struct bpf_map_info info = { 0 };
	__u32 bytes = sizeof(info), zero = 0;
	char path[BPFDIR_PATH_BYTES + sizeof("/abi")];

	snprintf(path, sizeof(path), "%s/abi", dir);
	fd = bpf_obj_get(path);
	if (fd < 0)
		return -errno;
	if (bpf_obj_get_info_by_fd(fd, &info, &bytes) < 0)
		return -errno;
	if (info.value_size != sizeof(header)) /* the header of another version */
		return -EPROTO;
	if (bpf_map_lookup_elem(fd, &zero, &header) < 0)
		return -errno;
	*ret_header = header;
	return 0;
}
