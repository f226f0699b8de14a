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
