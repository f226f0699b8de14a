/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/symbols/module_file.h"

#include <string.h>
#include <unistd.h>

#include "consumer/symbols/vdso.h"
#include "shared/elf/elf_file.h"
#include "shared/tools/macro.h"

/*
 * Returns whether an opened file may represent the module. If its numbers, size and times cannot
 * decide, only the kernel's build-id can, which every reader of the file compares.
 */
static bool may_be_file(const struct module *m, bool vague)
{
	return !vague || __atomic_load_n(&m->build_id_known, __ATOMIC_RELAXED);
}

/*
 * Whether the file is a memory file (memfd_create(2)): it was not removed, it never had a path. The
 * broker does not open such files.
 */
static bool is_memory_file(const struct module *m)
{
	static const char prefix[] = "/memfd:";

	return m->deleted && strncmp(m->path, prefix, strlen(prefix)) == 0;
}

enum reason module_file_open(const struct module *m, struct elf_image *ret_image)
{
	struct elf_image image;
	enum reason reason;
	bool vague;

	if (m->anonymous)
		return REASON_ANONYMOUS;
	if (m->deleted)
		return is_memory_file(m) ? REASON_MEMORY_FILE : REASON_DELETED;
	if (strcmp(m->path, VDSO_PATH) == 0 && !vdso_is_own(&m->identity))
		return REASON_OTHER_IMAGE;
	if (strcmp(m->path, VDSO_PATH) == 0)
		return vdso_image(ret_image) < 0 ? REASON_NO_FILE : REASON_NONE;
	reason = elf_file_open(m->path, &m->identity, &image, &vague);
	if (reason != REASON_NONE)
		return reason;
	if (!may_be_file(m, vague)) {
		close(image.fd);
		return REASON_OTHER_FILE;
	}
	*ret_image = image;
	return REASON_NONE;
}

bool module_file_may_borrow(const struct module_file *f, const struct module *m, enum reason reason)
{
	if (!f->borrow || m->anonymous || m->identity.inode == 0 ||
	    __atomic_load_n(&m->place_count, __ATOMIC_RELAXED) == 0)
		return false;
	return reason == REASON_NO_FILE || reason == REASON_NO_PERMISSION ||
	       reason == REASON_DELETED || reason == REASON_OTHER_FILE ||
	       reason == REASON_NOT_REGULAR || reason == REASON_READ_ERROR;
}

/* Copies the places of a module, the most recently seen first; returns how many. */
static size_t places_of(const struct module_file *f, const struct module *m,
			struct module_place places[MODULE_PLACES])
{
	size_t count;

	pthread_mutex_lock(f->lock);
	count = MIN(m->place_count, (uint32_t)MODULE_PLACES);
	for (size_t i = 0; i < count; i++)
		places[i] = m->places[(m->place_count - 1 - i) % MODULE_PLACES];
	pthread_mutex_unlock(f->lock);
	return count;
}

/*
 * Takes a descriptor from the broker if it is the module's file. The broker opens the file that is
 * mapped there now, which may be a different one.
 */
static bool adopt_image(int fd, const struct module *m, struct elf_image *ret_image)
{
	bool vague = false;

	if (elf_file_adopt(fd, &m->identity, ret_image, &vague) == REASON_NONE &&
	    may_be_file(m, vague))
		return true;
	close(fd);
	return false;
}

enum reason module_file_borrow(const struct module_file *f, const struct module *m,
			       enum reason host, struct elf_image *ret_image)
{
	struct module_place places[MODULE_PLACES];
	size_t count = places_of(f, m, places);

	for (size_t i = 0; i < count; i++) {
		int fd;

		if (f->borrow(f->context, &places[i].process, places[i].start, places[i].end,
			      &fd) == 0 &&
		    adopt_image(fd, m, ret_image))
			return REASON_NONE;
	}
	return host;
}

enum reason module_file_open_any(const struct module_file *f, const struct module *m,
				 struct elf_image *ret_image)
{
	enum reason reason = module_file_open(m, ret_image);

	if (!module_file_may_borrow(f, m, reason))
		return reason;
	return module_file_borrow(f, m, reason, ret_image);
}
