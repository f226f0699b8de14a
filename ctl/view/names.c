/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/view/names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/text.h"
#include "shared/tools/cleanup.h"

void names_init(struct names *n, struct store *store, bool offsets)
{
	*n = (struct names){ .store = store, .offsets = offsets };
	pool_init(&n->texts, &store->budget);
}

void names_done(struct names *n)
{
	pool_done(&n->texts);
	free(n->of_frame);
	n->of_frame = NULL;
}

const char *names_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

int names_plain(struct names *n, const char *text, uint32_t *ret_name)
{
	return pool_put(&n->texts, text, strlen(text), ret_name);
}

int names_text(struct names *n, uint32_t text, uint32_t *ret_name)
{
	_cleanup_free_ char *tame = NULL;
	const char *data;
	size_t bytes;

	if (text == STORE_NONE)
		return names_plain(n, "-", ret_name);
	data = pool_get(&n->store->texts, text, &bytes);
	tame = text_tame(data, bytes);
	return tame ? names_plain(n, tame, ret_name) : -ENOMEM;
}

static int unnamed_frame(struct names *n, const struct store_frame *f, uint32_t *ret_name)
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
		data = pool_get(&n->store->texts, f->module, &bytes);
		module = text_tame(data, bytes);
		if (!module)
			return -ENOMEM;
	}
	r = n->offsets && f->has_offset
		    ? asprintf(&name, "[%s+0x%" PRIx64 "]",
			       module ? names_base(module) : places[f->kind], f->offset)
		    : asprintf(&name, "[%s]", module ? names_base(module) : places[f->kind]);
	if (r < 0) {
		name = NULL;
		return -ENOMEM;
	}
	return names_plain(n, name, ret_name);
}

int names_frame(struct names *n, uint32_t frame, uint32_t *ret_name)
{
	const struct store_frame *f = store_frame_get(n->store, frame);
	int r;

	r = pool_grow(n->texts.budget, (void **)&n->of_frame, &n->space, frame + 1,
		      sizeof(*n->of_frame));
	if (r < 0)
		return r;
	if (n->of_frame[frame]) {
		*ret_name = n->of_frame[frame] - 1;
		return 0;
	}
	r = f->fn != STORE_NONE ? names_text(n, f->fn, ret_name) : unnamed_frame(n, f, ret_name);
	if (r < 0)
		return r;
	n->of_frame[frame] = *ret_name + 1;
	return 0;
}

const char *names_get(const struct names *n, uint32_t name)
{
	return pool_text(&n->texts, name);
}
