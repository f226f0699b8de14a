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
	_cleanup_free_ char *tame = NULL;
	const char *data;
	size_t bytes;

	if (text == STORE_NONE)
		return labels_plain(l, "-", ret_label);
	data = pool_get(&l->store->texts, text, &bytes);
	tame = text_tame(data, bytes);
	return tame ? labels_plain(l, tame, ret_label) : -ENOMEM;
}

static int label_unnamed_frame(struct labels *l, const struct store_frame *f, uint32_t *ret_label)
{
	static const char *const places[] = {
		[STORE_USER] = "unknown",
		[STORE_KERNEL] = "kernel",
		[STORE_RUNTIME] = "runtime",
		[STORE_JIT] = "jit",
	};
	_cleanup_free_ char *module = NULL, *name = NULL;
	const char *data;
	size_t bytes;
	int r;

	if (f->module != STORE_NONE && f->kind != STORE_JIT) {
		data = pool_get(&l->store->texts, f->module, &bytes);
		module = text_tame(data, bytes);
		if (!module)
			return -ENOMEM;
	}
	r = l->offsets && f->has_offset
		    ? asprintf(&name, "[%s+0x%" PRIx64 "]",
			       module ? labels_base(module) : places[f->kind], f->offset)
		    : asprintf(&name, "[%s]", module ? labels_base(module) : places[f->kind]);
	if (r < 0) {
		name = NULL;
		return -ENOMEM;
	}
	return labels_plain(l, name, ret_label);
}

int labels_frame(struct labels *l, uint32_t frame, uint32_t *ret_label)
{
	const struct store_frame *f = store_frame_get(l->store, frame);
	int r;

	r = pool_grow(l->texts.budget, (void **)&l->of_frame, &l->space, frame + 1,
		      sizeof(*l->of_frame));
	if (r < 0)
		return r;
	if (l->of_frame[frame]) {
		*ret_label = l->of_frame[frame] - 1;
		return 0;
	}
	r = f->fn != STORE_NONE ? labels_text(l, f->fn, ret_label)
				: label_unnamed_frame(l, f, ret_label);
	if (r < 0)
		return r;
	l->of_frame[frame] = *ret_label + 1;
	return 0;
}

const char *labels_get(const struct labels *l, uint32_t label)
{
	return pool_text(&l->texts, label);
}
