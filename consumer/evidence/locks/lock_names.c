/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/locks/lock_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/evidence/locks/lock_waits.h"
#include "consumer/symbols/symbols.h"
#include "shared/elf/reason.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

/* The locks that may belong to one module. */
struct asked {
	struct elf_object objects[LOCK_WAITS_NAMED];
	size_t of[LOCK_WAITS_NAMED]; /* index of the lock */
	size_t count;
};

/* Collects the locks of the module of lock number `from`, which is the module's first lock. */
static void collect_locks(const struct lock_waits *waits, size_t from, struct asked *asked)
{
	asked->count = 0;
	for (size_t i = from; i < waits->count && asked->count < LOCK_WAITS_NAMED; i++) {
		const struct lock_waited *l = &waits->items[i];

		if (l->place.module != waits->items[from].place.module)
			continue;
		asked->of[asked->count] = i;
		asked->objects[asked->count++] = (struct elf_object){
			.address = l->lock.address,
			.code_address = l->place.code_address,
			.code_offset = l->place.code_offset,
		};
	}
}

static const char *why_nameless(const struct elf_object_file *file)
{
	if (file->cut)
		return reason_word(REASON_TOO_LARGE);
	return reason_word(file->stripped ? REASON_STRIPPED : REASON_NO_SYMBOL);
}

/* Reads the module's file. Returns NULL, or the reason for a failure. */
static const char *read_file(struct symbols *symbols, const struct module *m, struct asked *asked,
			     struct elf_object_file *ret_file)
{
	struct elf_image image = { .fd = -1 };
	const char *why = symbols_open(symbols, m, &image);
	int r;

	if (why)
		return why;
	r = elf_object_find(&image, asked->objects, asked->count, ret_file);
	cleanup_close(&image.fd);
	if (r < 0)
		return reason_word(reason_of_elf(r));
	if (!symbols_is_build(symbols, m, ret_file->id.bytes, ret_file->id.n))
		return reason_word(REASON_OTHER_FILE);
	return NULL;
}

static void name_asked(struct symbols *symbols, const struct module *m, struct asked *asked,
		       struct lock_name *names)
{
	struct elf_object_file file = { .stripped = false };
	const char *why = read_file(symbols, m, asked, &file);

	for (size_t i = 0; i < asked->count; i++) {
		struct lock_name *name = &names[asked->of[i]];
		const struct elf_object *o = &asked->objects[i];

		name->reason = why;
		if (why || !o->within)
			continue;
		name->module = m->path;
		if (!o->name[0]) {
			name->reason = why_nameless(&file);
			continue;
		}
		memcpy(name->text, o->name, sizeof(name->text));
		name->symbol = name->text;
		name->offset = o->offset;
	}
}

/* Whether an earlier lock is in the same module: then this lock was named with it. */
static bool is_named(const struct lock_waits *waits, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (waits->items[k].place.module == waits->items[i].place.module)
			return true;
	return false;
}

/* Describes the memory of locks that are not variables. */
static void name_others(const struct lock_waits *waits, struct lock_name *names)
{
	for (size_t i = 0; i < waits->count; i++) {
		const struct lock_memory *m = &waits->items[i].memory;

		if (!names[i].module && m->kind > LOCK_MEMORY_UNKNOWN &&
		    m->kind < LOCK_MEMORY_KINDS_)
			names[i].memory = m;
	}
}

struct lock_name *lock_names_read(const struct session_result *s, struct symbols *symbols)
{
	const struct lock_waits *waits = lock_waits_of(s->signals);
	_cleanup_free_ struct asked *asked = NULL;
	struct lock_name *names;

	if (!waits || !waits->count)
		return NULL;
	names = calloc(waits->count, sizeof(*names));
	asked = malloc(sizeof(*asked));
	for (size_t i = 0; names && asked && i < waits->count; i++) {
		if (!waits->items[i].place.module || is_named(waits, i))
			continue;
		collect_locks(waits, i, asked);
		name_asked(symbols, waits->items[i].place.module, asked, names);
	}
	if (names)
		name_others(waits, names);
	return names;
}

/* Omits the thread of a stack, which only the line has: its number means nothing to the reader. */
static void say_memory(const struct lock_memory *m, char *text, size_t space)
{
	static const char *const says[] = {
#define LOCK_MEMORY(id, json, say) say,
#include "shared/abi/lock_memory.def"
#undef LOCK_MEMORY
	};
	bool anonymous = m->kind == LOCK_MEMORY_ANONYMOUS;

	snprintf(text, space, "one lock %s%s%s", says[m->kind],
		 m->name[0] ? anonymous ? " named " : " " : "", m->name);
}

void lock_names_say(const struct lock_name *name, char *text, size_t space)
{
	const char *slash = name && name->module ? strrchr(name->module, '/') : NULL;

	if (name && name->symbol && slash)
		snprintf(text, space, "lock %.100s in %.100s", name->symbol, slash + 1);
	else if (slash)
		snprintf(text, space, "one lock in %.100s", slash + 1);
	else if (name && name->memory)
		say_memory(name->memory, text, space);
	else
		snprintf(text, space, "one lock");
}
