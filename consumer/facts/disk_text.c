/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/facts/disk_text.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"
#include "shared/tools/path_text.h"

#define NUMBER_BYTES 24

#define PATH_BYTES  128 /* of a path in a line */
#define SHORT_BYTES 52	/* of a path in a sentence */
#define POINTS_SAID 2	/* mount points in a sentence */

static const char no_table[] = "the mount table of process 1 cannot be read";

static const char *const kinds[] = {
	[FACTS_DISK_WHOLE] = "disk", [FACTS_DISK_PARTITION] = "partition", [FACTS_DISK_DM] = "dm",
	[FACTS_DISK_MD] = "md",	     [FACTS_DISK_LOOP] = "loop",
};
_Static_assert(ARRAY_SIZE(kinds) == FACTS_DISK_KINDS_, "a word for each");

/* The meaning of `name` for each kind; NULL: such a device has no name. */
static const char *const names[FACTS_DISK_KINDS_] = {
	[FACTS_DISK_DM] = "name", [FACTS_DISK_MD] = "level", [FACTS_DISK_LOOP] = "file"
};

/* ---- mount points */

/* Mount points of one device, complete file systems first. */
struct points {
	char paths[DISK_TEXT_MOUNTS][PATH_BYTES];
	size_t count; /* number of all of them */
};

static bool shows_all(const struct mounts_row *row)
{
	return row->root.bytes == 1;
}

/* Whether a mount further down the table has the same mount point, and so hides this one. */
static bool is_hidden(const struct mounts_row *row, const char *rest)
{
	struct mounts_row later;

	while (mounts_next(&rest, &later))
		if (later.point.bytes == row->point.bytes &&
		    !memcmp(later.point.at, row->point.at, row->point.bytes))
			return true;
	return false;
}

static void add_point(struct points *p, struct mounts_text point)
{
	char path[PATH_MAX];
	size_t bytes = mounts_unescape(point, path, sizeof(path));

	if (p->count < DISK_TEXT_MOUNTS)
		path_text_cut(path, MIN(bytes, sizeof(path) - 1), p->paths[p->count], PATH_BYTES);
	p->count++;
}

static void find_points(const struct facts_disks *d, size_t place, struct points *ret_points)
{
	struct mounts_row row;

	ret_points->count = 0;
	for (int turn = 0; d->mounts && turn < 2; turn++) {
		const char *at = d->mounts;

		while (mounts_next(&at, &row)) {
			if (shows_all(&row) != (turn == 0) || !facts_disks_is_mount(d, place, &row))
				continue;
			if (ret_points->count >= DISK_TEXT_MOUNTS || !is_hidden(&row, at))
				add_point(ret_points, row.point);
		}
	}
}

/* ---- for programs */

static void write_path(struct jsonw *w, const char *key, const char *path)
{
	char text[PATH_BYTES];

	path_text_cut(path, strlen(path), text, sizeof(text));
	jsonw_string(w, key, text);
}

static void write_below(const struct facts_disks *d, const struct facts_disk *disk, struct jsonw *w)
{
	if (disk->n_below) {
		jsonw_array(w, "over");
		for (uint16_t i = 0; i < disk->n_below; i++)
			jsonw_string(w, NULL, d->devices.rows[disk->below[i]].name);
		jsonw_array_end(w);
	}
	jsonw_u64_nonzero(w, "over_more", disk->below_more);
}

static void write_mounts(const struct facts_disks *d, size_t place, struct jsonw *w)
{
	struct points points;

	find_points(d, place, &points);
	if (!points.count)
		return;
	jsonw_array(w, "mounts");
	for (size_t i = 0; i < MIN(points.count, (size_t)DISK_TEXT_MOUNTS); i++)
		jsonw_string(w, NULL, points.paths[i]);
	jsonw_array_end(w);
	if (points.count > DISK_TEXT_MOUNTS)
		jsonw_u64(w, "mounts_more", points.count - DISK_TEXT_MOUNTS);
}

static void write_disk(const struct facts_disks *d, size_t place, struct jsonw *w)
{
	const struct facts_disk *disk = &d->items[place];

	jsonw_object(w, NULL);
	jsonw_string(w, "device", d->devices.rows[place].name);
	jsonw_string(w, "kind", kinds[disk->kind]);
	if (disk->name && names[disk->kind])
		write_path(w, names[disk->kind], disk->name);
	write_below(d, disk, w);
	write_mounts(d, place, w);
	if (disk->swap)
		jsonw_bool(w, "swap", true);
	jsonw_object_end(w);
}

void disk_text_write_one(const struct facts_disks *d, uint32_t major, uint32_t minor,
			 struct jsonw *w)
{
	int place = facts_disks_find(d, major, minor);

	if (place >= 0)
		write_disk(d, (size_t)place, w);
}

void disk_text_write(const struct facts_disks *d, uint32_t major, uint32_t minor, struct jsonw *w)
{
	int place = facts_disks_find(d, major, minor);
	uint16_t places[DISK_TEXT_TOLD];
	size_t count, up, written = 0;

	if (place < 0)
		return;
	count = facts_disks_stack(d, (size_t)place, places, ARRAY_SIZE(places), &up);
	jsonw_array(w, "stack");
	for (; written < MIN(count, ARRAY_SIZE(places)); written++) {
		struct jsonw_mark mark = jsonw_mark(w);

		write_disk(d, places[written], w);
		if (jsonw_end(w) == 0 && w->bytes <= w->max_bytes / 2)
			continue;
		jsonw_rewind(w, mark);
		break;
	}
	jsonw_array_end(w);
	if (count > written)
		jsonw_u64(w, "stack_more", count - written);
	if (!d->mounts)
		jsonw_string(w, "mounts_reason", no_table);
}

/* ---- for people */

/* The mount points of a device as text. */
struct said {
	char *text;
	size_t bytes; /* of text so far */
	size_t named, more;
};

static void add_path(struct said *s, const char *before, const char *path)
{
	char cut[SHORT_BYTES];

	path_text_cut(path, strlen(path), cut, sizeof(cut));
	s->bytes += (size_t)snprintf(s->text + s->bytes, DISK_TEXT_BYTES - s->bytes, "%s%s", before,
				     cut);
}

static void say_points(const struct facts_disks *d, size_t place, struct said *s)
{
	struct points points;

	find_points(d, place, &points);
	for (size_t i = 0; i < points.count; i++) {
		if (s->named == POINTS_SAID || i == DISK_TEXT_MOUNTS) {
			s->more += points.count - i;
			return;
		}
		add_path(s, s->named++ ? ", " : " at ", points.paths[i]);
	}
}

void disk_text_name(const struct facts_disks *d, uint32_t major, uint32_t minor,
		    char name[FACTS_DEVICES_BYTES])
{
	static const struct facts_devices none;

	facts_devices_name(d ? &d->devices : &none, major, minor, name);
}

void disk_text_write_name(const struct facts_disks *d, uint32_t device, struct jsonw *w)
{
	char name[FACTS_DEVICES_BYTES];

	disk_text_name(d, device >> 20, device & 0xfffff, name);
	jsonw_string(w, "device", name);
}

void disk_text_write_number(uint32_t device, struct jsonw *w)
{
	char number[NUMBER_BYTES];

	snprintf(number, sizeof(number), "%u:%u", device >> 20, device & 0xfffff);
	jsonw_string(w, "number", number);
}

void disk_text_say(const struct facts_disks *d, uint32_t major, uint32_t minor,
		   char text[DISK_TEXT_BYTES])
{
	uint16_t places[DISK_TEXT_TOLD];
	int place = facts_disks_find(d, major, minor);
	char name[FACTS_DEVICES_BYTES];
	struct said s = { .text = text };
	size_t up;

	disk_text_name(d, major, minor, name);
	s.bytes = (size_t)snprintf(text, DISK_TEXT_BYTES, "%s", name);
	if (place < 0)
		return;
	if (d->items[place].name) {
		add_path(&s, " (", d->items[place].name);
		s.bytes += (size_t)snprintf(text + s.bytes, DISK_TEXT_BYTES - s.bytes, ")");
	}
	facts_disks_stack(d, (size_t)place, places, ARRAY_SIZE(places), &up);
	for (size_t i = 0; i < up; i++)
		say_points(d, places[i], &s);
	if (s.more)
		snprintf(text + s.bytes, DISK_TEXT_BYTES - s.bytes, " and %zu more", s.more);
}
