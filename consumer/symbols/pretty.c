/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/symbols/pretty.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shared/elf/elf_gather.h"
#include "shared/tools/demangle.h"
#include "shared/tools/idmap.h"

struct pretty {
	struct idmap by_raw; /* address of the raw name -> readable name, owned unless equal */
	size_t text_bytes;
};

const char *pretty_name(struct pretty **p, const char *raw)
{
	char text[DEMANGLE_OUT_BYTES], *found;
	const char *name = raw;

	/* Most names are not mangled, and this check costs less than a lookup. */
	if (raw[0] != '_' && !strchr(raw, '@'))
		return raw;
	if (!*p) {
		*p = calloc(1, sizeof(**p));
		if (!*p)
			return raw;
		idmap_init(&(*p)->by_raw, ELF_SYMBOLS_MAX);
	}
	found = idmap_get(&(*p)->by_raw, (uintptr_t)raw);
	if (found)
		return found;
	if (demangle(raw, text)) {
		found = strdup(text);
		name = found ? found : raw;
	}
	if (idmap_put(&(*p)->by_raw, (uintptr_t)raw, (void *)(uintptr_t)name) < 0) {
		free(found);
		return raw;
	}
	(*p)->text_bytes += found ? strlen(found) + 1 : 0;
	return name;
}

void pretty_free(struct pretty *p)
{
	uint64_t raw;
	void *name;

	if (!p)
		return;
	idmap_for_each (&p->by_raw, i, raw, name)
		if ((uintptr_t)name != raw)
			free(name);
	idmap_done(&p->by_raw);
	free(p);
}

size_t pretty_bytes(const struct pretty *p)
{
	if (!p)
		return 0;
	return sizeof(*p) + p->text_bytes + p->by_raw.space * (sizeof(uint64_t) + sizeof(void *));
}
