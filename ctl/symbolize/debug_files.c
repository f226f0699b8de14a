/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/symbolize/debug_files.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/elf/build_id.h"
#include "shared/elf/debug_file.h"
#include "shared/files/regular.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

struct walk {
	struct debug_files *d;
	char path[DEBUG_FILES_PATH];
	size_t bytes;
};

void debug_files_init(struct debug_files *d)
{
	*d = (struct debug_files){ .root = DEBUG_FILE_ROOT };
	d->budget.max_bytes = DEBUG_FILES_MAX_BYTES;
	pool_init(&d->ids, &d->budget);
	pool_init(&d->paths, &d->budget);
}

void debug_files_done(struct debug_files *d)
{
	pool_done(&d->ids);
	pool_done(&d->paths);
	free(d->known);
	d->known = NULL;
}

/* Opens a regular file with at least the size of an ELF header; the caller closes ret_image->fd. */
static int open_file(int dir_fd, const char *path, struct elf_image *ret_image)
{
	_cleanup_close_ int held_fd = -1;
	struct stat st;
	int fd;

	held_fd = regular_hold(dir_fd, path, true, &st);
	if (held_fd < 0)
		return held_fd;
	/* Files of /proc and the like have size 0, and some of them block a reader. */
	if (st.st_size < (off_t)sizeof(Elf32_Ehdr))
		return -ENOEXEC;
	fd = regular_open(held_fd);
	if (fd < 0)
		return fd;
	*ret_image = (struct elf_image){ .fd = fd, .bytes = (uint64_t)st.st_size };
	return 0;
}

static void pass_over(struct walk *w, int error)
{
	uint32_t number;

	if (!w->d->passed_over++ && pool_put(&w->d->paths, w->path, w->bytes, &number) == 0) {
		w->d->first = number + 1;
		w->d->first_error = error;
	}
}

/*
 * Computes a hash of the entry point and the segments, which strip(1) does not change. Addresses
 * are relative to the first segment, because prelink(8) moves all.
 */
static int read_shape(const struct elf_image *image, uint64_t *ret_shape)
{
	_cleanup_(elf_reader_done) struct elf_reader e = {};
	uint64_t words[1 + 4 * ELF_SEGMENTS_MAX], base;
	size_t n = 0;
	int r = elf_reader_open(image, &e);

	if (r < 0)
		return r;
	base = elf_reader_base(&e);
	words[n++] = e.header.e_entry - base;
	for (size_t i = 0; i < e.segment_count && i < ELF_SEGMENTS_MAX; i++) {
		const Elf64_Phdr *s = &e.segments[i];

		if (s->p_type != PT_LOAD)
			continue;
		words[n++] = s->p_offset;
		words[n++] = s->p_vaddr - base;
		words[n++] = s->p_filesz;
		words[n++] = s->p_memsz;
	}
	*ret_shape = MAX(pool_hash(words, n * sizeof(words[0])), UINT64_C(1));
	return 0;
}

/*
 * Records that the file at the walk's path is of this build. The first file of each kind is kept.
 * `shape`: of a program or library.
 */
static int note_file(struct walk *w, const struct build_id *id, uint64_t shape)
{
	struct debug_files *d = w->d;
	struct debug_files_known *known;
	uint32_t number, path, *place;
	int r = pool_put(&d->ids, id->bytes, id->n, &number);

	if (r == 0)
		r = pool_grow(&d->budget, (void **)&d->known, &d->space, number + 1,
			      sizeof(*d->known));
	if (r < 0)
		return r;
	d->files++;
	known = &d->known[number];
	place = id->code ? &known->code : &known->debug;
	if (*place) {
		known->shared |= id->code && known->shape != shape;
		return 0;
	}
	r = pool_put(&d->paths, w->path, w->bytes, &path);
	if (r < 0)
		return r;
	*place = path + 1;
	if (id->code)
		known->shape = shape;
	return 0;
}

static int look_at_file(struct walk *w, int dir_fd, const char *name)
{
	struct elf_image image = { .fd = -1 };
	uint64_t shape = 0;
	struct build_id id;
	int r;

	r = open_file(dir_fd, name, &image);
	if (r == 0)
		r = build_id_read(&image, &id);
	if (r == 0 && id.code)
		r = read_shape(&image, &shape);
	cleanup_close(&image.fd);
	if (r == 0)
		return note_file(w, &id, shape);
	if (r == -ENOMEM)
		return r;
	/* Other files than ELF files and dangling links are not counted as unreadable. */
	if (r != -EINVAL && r != -ENOEXEC && r != -ENODATA && r != -ENOENT && r != -ELOOP)
		pass_over(w, r);
	return 0;
}

static int walk_folder(struct walk *w, int parent_fd, const char *name, unsigned int depth);

/* Reads a regular file, or a link to one. */
static int look_at(struct walk *w, int dir_fd, const struct dirent *entry, unsigned int depth)
{
	unsigned int type = entry->d_type;
	struct stat st;

	if (type == DT_UNKNOWN) {
		if (fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return 0;
		type = IFTODT(st.st_mode);
	}
	if (type == DT_DIR)
		return walk_folder(w, dir_fd, entry->d_name, depth);
	return type == DT_REG || type == DT_LNK ? look_at_file(w, dir_fd, entry->d_name) : 0;
}

/* Walks the folder `fd`, and closes it. */
static int walk_entries(struct walk *w, int fd, unsigned int depth)
{
	_cleanup_closedir_ DIR *dir = fdopendir(fd);
	size_t own = w->bytes;
	struct dirent *entry;
	int r = 0;

	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	while (r == 0 && (entry = readdir(dir)) != NULL) {
		size_t bytes = strlen(entry->d_name);

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (bytes + 2 > sizeof(w->path) - own) {
			pass_over(w, ENAMETOOLONG);
			continue;
		}
		w->path[own] = '/';
		memcpy(w->path + own + 1, entry->d_name, bytes + 1);
		w->bytes = own + 1 + bytes;
		r = look_at(w, dirfd(dir), entry, depth);
		w->bytes = own;
		w->path[own] = '\0';
	}
	return r;
}

/* Recursion is bounded by DEBUG_FILES_DEPTH. */
static int walk_folder(struct walk *w, int parent_fd, const char *name, unsigned int depth)
{
	int fd;

	if (depth == DEBUG_FILES_DEPTH) {
		pass_over(w, ELOOP);
		return 0;
	}
	fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		pass_over(w, errno);
		return 0;
	}
	return walk_entries(w, fd, depth + 1);
}

int debug_files_add(struct debug_files *d, int fd, const char *path)
{
	struct walk w = { .d = d };
	int n = snprintf(w.path, sizeof(w.path), "%s", path);

	if (n < 0 || (size_t)n >= sizeof(w.path))
		return -ENAMETOOLONG;
	w.bytes = (size_t)n;
	return walk_folder(&w, fd, ".", 0);
}

/* Opens `path` if it is of the build; the caller closes ret_image->fd. */
static int open_build(const char *path, const char *hex, size_t digits, struct elf_image *ret_image,
		      struct build_id *ret_id)
{
	struct elf_image image = { .fd = -1 };
	_cleanup_close_ int fd = -1;
	int r;

	r = open_file(AT_FDCWD, path, &image);
	if (r < 0)
		return r;
	fd = image.fd;
	r = build_id_read(&image, ret_id);
	if (r < 0)
		return r == -ENODATA ? -ESTALE : r;
	if (!build_id_is(ret_id, hex, digits))
		return -ESTALE;
	image.fd = TAKE_FD(fd);
	*ret_image = image;
	return 0;
}

/* Opens `path` if it is of the build, into the free member of the pair for its kind. */
static int try_path(const char *path, const char *hex, size_t digits, struct debug_files_pair *pair)
{
	struct elf_image image;
	struct build_id id;
	int r, *place;

	r = open_build(path, hex, digits, &image, &id);
	if (r < 0)
		return r;
	place = id.code ? &pair->code : &pair->debug;
	if (*place < 0)
		*place = TAKE_FD(image.fd);
	cleanup_close(&image.fd);
	return 0;
}

uint64_t debug_files_shape(const char *hex, size_t digits, const char *module)
{
	struct elf_image image;
	uint64_t shape = 0;
	struct build_id id;

	if (!module || module[0] != '/' || open_build(module, hex, digits, &image, &id) < 0)
		return 0;
	if (id.code)
		(void)read_shape(&image, &shape);
	cleanup_close(&image.fd);
	return shape;
}

/* Parses the hex digits of event lines; false for other texts. */
static bool parse_hex(const char *hex, size_t digits, uint8_t id[BUILD_ID_BYTES_MAX])
{
	static const char figures[] = "0123456789abcdef";

	if (digits < 4 || digits % 2 || digits > 2 * BUILD_ID_BYTES_MAX)
		return false;
	for (size_t i = 0; i < digits; i++) {
		const char *found = hex[i] ? strchr(figures, hex[i]) : NULL;

		if (!found)
			return false;
		id[i / 2] = (uint8_t)(id[i / 2] << 4 | (found - figures));
	}
	return true;
}

/* Returns whether the build-id alone does not identify the program of the file at `module`. */
static bool is_shared(const struct debug_files_known *known, const char *hex, size_t digits,
		      const char *module)
{
	uint64_t shape;

	if (known->shared || !known->code)
		return known->shared;
	shape = debug_files_shape(hex, digits, module);
	return shape && shape != known->shape;
}

static void try_known(const struct debug_files *d, const struct debug_files_known *known,
		      const char *hex, size_t digits, struct debug_files_pair *pair)
{
	if (known->code)
		(void)try_path(pool_text(&d->paths, known->code - 1), hex, digits, pair);
	if (known->debug)
		(void)try_path(pool_text(&d->paths, known->debug - 1), hex, digits, pair);
}

/*
 * Searches the files where debuginfod_find_executable(3) and debuginfod_find_debuginfo(3) keep
 * their downloads.
 */
static void try_cache(const struct debug_files *d, const char *hex, size_t digits,
		      struct debug_files_pair *pair)
{
	static const char *const names[] = { "executable", "debuginfo" };
	char path[DEBUG_FILES_PATH];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (snprintf(path, sizeof(path), "%s/%.*s/%s", d->cache, (int)digits, hex,
			     names[i]) < (int)sizeof(path))
			(void)try_path(path, hex, digits, pair);
}

/* Opens only the program at `module`, and no file that is found by the build-id alone. */
static int open_shared(const char *hex, size_t digits, const char *module,
		       struct debug_files_pair *pair)
{
	if (module && module[0] == '/')
		(void)try_path(module, hex, digits, pair);
	cleanup_close(&pair->debug);
	pair->debug = -1;
	return pair->code < 0 ? -ENOTUNIQ : 0;
}

static int open_pair(struct debug_files *d, const char *hex, size_t digits, const char *module,
		     struct debug_files_pair *pair)
{
	char path[DEBUG_FILES_PATH];
	int r = -ENOENT;

	if (pair->code < 0 && module && module[0] == '/')
		r = try_path(module, hex, digits, pair);
	if (d->cache)
		try_cache(d, hex, digits, pair);
	if (pair->debug < 0 && snprintf(path, sizeof(path), "%s/.build-id/%.2s/%.*s.debug", d->root,
					hex, (int)digits - 2, hex + 2) < (int)sizeof(path))
		(void)try_path(path, hex, digits, pair);
	if (pair->code < 0 && pair->debug < 0)
		return r == -ESTALE || r == -EACCES ? r : -ENOENT;
	return 0;
}

int debug_files_open(struct debug_files *d, const char *hex, size_t digits, const char *module,
		     struct debug_files_pair *ret_pair)
{
	struct debug_files_pair pair = { .code = -1, .debug = -1 };
	uint8_t id[BUILD_ID_BYTES_MAX] = { 0 };
	uint32_t number;
	int r;

	if (!parse_hex(hex, digits, id))
		return -ENOENT;
	if (pool_find(&d->ids, id, digits / 2, &number) < 0) {
		r = open_pair(d, hex, digits, module, &pair);
	} else if (is_shared(&d->known[number], hex, digits, module)) {
		r = open_shared(hex, digits, module, &pair);
	} else {
		try_known(d, &d->known[number], hex, digits, &pair);
		r = open_pair(d, hex, digits, module, &pair);
	}
	if (r == 0)
		*ret_pair = pair;
	return r;
}
