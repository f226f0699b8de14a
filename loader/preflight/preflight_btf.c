/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/preflight/preflight_btf.h"

#include <bpf/btf.h>
#include <errno.h>

int preflight_btf_load(struct preflight_btf *b)
{
	if (!b->btf && !b->error) {
		b->btf = btf__parse_raw(PREFLIGHT_BTF_PATH);
		if (!b->btf)
			b->error = errno;
	}
	return -b->error;
}

void preflight_btf_done(struct preflight_btf *b)
{
	btf__free(b->btf);
	*b = (struct preflight_btf){ 0 };
}

uint32_t preflight_btf_bytes(const struct preflight_btf *b)
{
	uint32_t bytes = 0;

	if (b->btf)
		(void)btf__raw_data(b->btf, &bytes);
	return bytes;
}

int preflight_btf_find(struct preflight_btf *b, uint32_t kind, const char *name)
{
	int r = preflight_btf_load(b);

	return r < 0 ? r : btf__find_by_name_kind(b->btf, name, kind);
}

bool preflight_btf_has_members(struct preflight_btf *b, const char *name)
{
	int id = preflight_btf_find(b, BTF_KIND_STRUCT, name);

	return id > 0 && btf_vlen(btf__type_by_id(b->btf, (uint32_t)id)) > 0;
}

/* Returns the function type of a typedef of a function pointer, or NULL. */
static const struct btf_type *find_call(struct preflight_btf *b, const char *name)
{
	int id = preflight_btf_find(b, BTF_KIND_TYPEDEF, name);
	const struct btf_type *type = id > 0 ? btf__type_by_id(b->btf, (uint32_t)id) : NULL;

	if (type)
		type = btf__type_by_id(b->btf, type->type);
	if (!type || !btf_is_ptr(type))
		return NULL;
	type = btf__type_by_id(b->btf, type->type);
	return type && btf_is_func_proto(type) ? type : NULL;
}

bool preflight_btf_takes_pointer(struct preflight_btf *b, const char *name, unsigned int argument)
{
	const struct btf_type *call = find_call(b, name), *type;

	if (!call || argument >= btf_vlen(call))
		return false;
	type = btf__type_by_id(b->btf, btf_params(call)[argument].type);
	return type && btf_is_ptr(type);
}

unsigned int preflight_btf_arguments(struct preflight_btf *b, const char *name)
{
	const struct btf_type *call = find_call(b, name);

	return call ? btf_vlen(call) : 0;
}
