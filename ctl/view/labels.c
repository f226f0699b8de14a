/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/view/labels.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/text.h"
#include "shared/tools/cleanup.h"

void labels_init(struct labels *l, struct store *store, bool offsets)
{
	*l = (struct labels){ .store = store, .offsets = offsets };
	pool_init(&l->texts, &store->budget);
}

void labels_done(struct labels *l)
{
	pool_done(&l->texts);
	free(l->of_frame);
	l->of_frame = NULL;
}

const char *labels_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

int labels_plain(struct labels *l, const char *text, uint32_t *ret_label)
{
	return pool_put(&l->texts, text, strlen(text), ret_label);
}

int labels_text(struct labels *l, uint32_t text, uint32_t *ret_label)
{
	_cleanup_free_ char *tame = store_tame(l->store, text);

	return tame ? labels_plain(l, tame, ret_label) : -ENOMEM;
}

static int tame_text(const struct labels *l, uint32_t text, char **ret_tame)
{
	if (text == STORE_NONE)
		return 0;
	*ret_tame = store_tame(l->store, text);
	return *ret_tame ? 0 : -ENOMEM;
}

/* Makes the name of a frame without a function. */
static char *name_unnamed(const struct labels *l, const struct store_frame *f, const char *module)
{
	static const char *const places[] = {
		[STORE_USER] = "unknown",
		[STORE_KERNEL] = "kernel",
		[STORE_RUNTIME] = "runtime",
		[STORE_JIT] = "jit",
	};
	const char *place = module && f->kind != STORE_JIT ? module : places[f->kind];
	char *name = NULL;
	int r = l->offsets && f->has_offset
			? asprintf(&name, "[%s+0x%" PRIx64 "]", place, f->offset)
			: asprintf(&name, "[%s]", place);

	return r < 0 ? NULL : name;
}

/* Stores the name and, if it distinguishes labels, the module after its NUL. */
static int put_label(struct labels *l, const char *name, const char *module, uint32_t *ret_label)
{
	size_t name_bytes = strlen(name), module_bytes = module ? strlen(module) : 0;
	_cleanup_free_ char *both = NULL;

	if (l->joined || !module_bytes)
		return labels_plain(l, name, ret_label);
	both = malloc(name_bytes + 1 + module_bytes + 1);
	if (!both)
		return -ENOMEM;
	memcpy(both, name, name_bytes + 1);
	memcpy(both + name_bytes + 1, module, module_bytes + 1);
	return pool_put(&l->texts, both, name_bytes + 1 + module_bytes, ret_label);
}

static int label_frame(struct labels *l, const struct store_frame *f, uint32_t *ret_label)
{
	_cleanup_free_ char *path = NULL, *name = NULL;
	const char *module;
	int r = tame_text(l, f->module, &path);

	if (r == 0)
		r = tame_text(l, f->fn, &name);
	if (r < 0)
		return r;
	module = path ? labels_base(path) : NULL;
	if (!name)
		name = name_unnamed(l, f, module);
	return name ? put_label(l, name, module, ret_label) : -ENOMEM;
}

int labels_frame(struct labels *l, uint32_t frame, uint32_t *ret_label)
{
	int r = pool_grow(l->texts.budget, (void **)&l->of_frame, &l->space, frame + 1,
			  sizeof(*l->of_frame));

	if (r < 0)
		return r;
	if (l->of_frame[frame]) {
		*ret_label = l->of_frame[frame] - 1;
		return 0;
	}
	r = label_frame(l, store_frame_get(l->store, frame), ret_label);
	if (r < 0)
		return r;
	l->of_frame[frame] = *ret_label + 1;
	return 0;
}

const char *labels_module(const struct labels *l, uint32_t label)
{
	size_t bytes, name_bytes;
	const char *text = pool_get(&l->texts, label, &bytes);

	name_bytes = strlen(text);
	return name_bytes < bytes ? text + name_bytes + 1 : NULL;
}

const char *labels_get(const struct labels *l, uint32_t label)
{
	return pool_text(&l->texts, label);
}
