/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/sampling/wait_files.h"

#include <stdio.h>
#include <string.h>

#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"
#include "shared/tools/path_text.h"

#define DEVICE_MINOR_BITS 20  /* of the minor number in the kernel's dev_t */
#define SAYS_BYTES	  128 /* of a path in a sentence */

/* Prefix of a path that does not begin at a root. */
static const char *const begins[LOOK_PATH_ENDS_] = {
	[LOOK_PATH_WHOLE] = "",
	[LOOK_PATH_DETACHED] = "(unreachable)",
	[LOOK_PATH_DEEP] = "[...]",
};

/* Reason for a missing or partial path. */
static const char *const reasons[LOOK_PATH_ENDS_] = {
	[LOOK_PATH_DETACHED] = "its file system is mounted nowhere any more, or has no names",
	[LOOK_PATH_DEEP] = "it has more names than are read",
	[LOOK_PATH_RENAMED] = "a part of it was renamed as it was read",
};

void wait_files_plain(const struct look_on *on, struct look_on *to)
{
	size_t bytes = strnlen(on->path, sizeof(on->path) - 1);

	memset(to->path, 0, sizeof(to->path));
	memset(to->fs, 0, sizeof(to->fs));
	to->pad = 0;
	to->path_cut = 0;
	to->path_head = to->point_bytes = 0;
	to->path_end = to->deleted = 0;
	if (on->kind != LOOK_ON_FILE)
		return;
	memcpy(to->fs, on->fs, strnlen(on->fs, sizeof(on->fs) - 1));
	to->deleted = on->deleted != 0;
	to->path_end = on->path_end < LOOK_PATH_ENDS_ ? on->path_end : LOOK_PATH_NONE;
	if (!bytes || !begins[to->path_end])
		return;
	memcpy(to->path, on->path, bytes);
	if (on->path_cut && on->path_head <= bytes) {
		to->path_cut = on->path_cut;
		to->path_head = on->path_head;
	}
	to->point_bytes = on->point_bytes <= bytes ? on->point_bytes : LOOK_PATH_NO_POINT;
}

size_t wait_files_path(const struct look_on *on, char text[WAIT_FILES_PATH_BYTES])
{
	const char *begin = begins[on->path_end];
	size_t n;

	if (!on->path[0] || !begin)
		return 0;
	n = (size_t)snprintf(text, WAIT_FILES_PATH_BYTES, "%s", begin);
	if (on->path_cut)
		n += (size_t)snprintf(text + n, WAIT_FILES_PATH_BYTES - n, "%.*s/[%u bytes]",
				      on->path_head, on->path, on->path_cut);
	n += (size_t)snprintf(text + n, WAIT_FILES_PATH_BYTES - n, "%s",
			      on->path + (on->path_cut ? on->path_head : 0));
	return n;
}

int wait_files_say(const struct look_on *on, char *text, size_t space)
{
	char path[WAIT_FILES_PATH_BYTES], cut[SAYS_BYTES];
	size_t bytes = wait_files_path(on, path);

	if (!bytes)
		return snprintf(text, space, " on the file %s", on->name);
	path_text_cut(path, bytes, cut, sizeof(cut));
	return snprintf(text, space, " on the file %s%s", cut, on->deleted ? " (deleted)" : "");
}

/* Writes the path, with its last part always complete. */
static void write_path(const struct look_on *on, const char *path, size_t bytes, struct jsonw *w)
{
	const char *slash = memrchr(path, '/', bytes);

	jsonw_string(w, "name", slash && slash[1] ? slash + 1 : path);
	jsonw_string_n(w, "path", path, bytes);
	if (on->path_end != LOOK_PATH_WHOLE || on->point_bytes == LOOK_PATH_NO_POINT)
		return;
	jsonw_string_n(w, "mount", on->point_bytes ? on->path : "/",
		       MAX(on->point_bytes, (uint16_t)1));
}

void wait_files_write(const struct look_on *on, struct jsonw *w)
{
	char path[WAIT_FILES_PATH_BYTES], device[32];
	size_t bytes = wait_files_path(on, path);

	if (bytes)
		write_path(on, path, bytes, w);
	else
		jsonw_string(w, "name", on->name);
	if (reasons[on->path_end])
		jsonw_string(w, "path_reason", reasons[on->path_end]);
	if (on->deleted)
		jsonw_bool(w, "deleted", true);
	if (on->fs[0])
		jsonw_string(w, "fs", on->fs);
	snprintf(device, sizeof(device), "%u:%u", on->device >> DEVICE_MINOR_BITS,
		 on->device & ((1u << DEVICE_MINOR_BITS) - 1));
	jsonw_string(w, "device", device);
	jsonw_u64(w, "inode", on->inode);
}
