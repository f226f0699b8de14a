/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/facts/facts_devices.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/facts/facts_text.h"
#include "shared/tools/macro.h"

void facts_devices_done(struct facts_devices *d)
{
	free(d->rows);
	*d = (struct facts_devices){};
}

/* A row is "   8        0  268435456 sda"; the kernel writes a ' ' in a name as '!'. */
static bool parse_row(struct facts_text line, struct facts_devices_row *ret_row)
{
	struct facts_text major, minor, blocks, name;
	uint64_t a, b;

	if (!facts_text_word(&line, ' ', &major) || !facts_text_word(&line, ' ', &minor) ||
	    !facts_text_word(&line, ' ', &blocks) || !facts_text_word(&line, ' ', &name) ||
	    !facts_text_number(major, &a) || !facts_text_number(minor, &b) || a > UINT32_MAX ||
	    b > UINT32_MAX || name.bytes >= FACTS_DEVICES_BYTES ||
	    memchr(name.at, '\0', name.bytes))
		return false;
	*ret_row = (struct facts_devices_row){ .major = (uint32_t)a, .minor = (uint32_t)b };
	memcpy(ret_row->name, name.at, name.bytes);
	return true;
}

int facts_devices_parse(struct facts_devices *d, const char *text, size_t bytes)
{
	struct facts_text rest = { text, bytes }, line;

	if (!d->rows)
		d->rows = calloc(FACTS_DEVICES_MAX, sizeof(*d->rows));
	if (!d->rows)
		return -ENOMEM;
	while (d->count < FACTS_DEVICES_MAX && facts_text_line(&rest, &line))
		d->count += parse_row(line, &d->rows[d->count]);
	return 0;
}

void facts_devices_name(const struct facts_devices *d, uint32_t major, uint32_t minor,
			char name[FACTS_DEVICES_BYTES])
{
	for (size_t i = 0; i < d->count; i++)
		if (d->rows[i].major == major && d->rows[i].minor == minor) {
			snprintf(name, FACTS_DEVICES_BYTES, "%s", d->rows[i].name);
			return;
		}
	snprintf(name, FACTS_DEVICES_BYTES, "%u:%u", major, minor);
}
