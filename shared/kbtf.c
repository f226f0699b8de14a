/* SPDX-License-Identifier: BSD-2-Clause */
#include "kbtf.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btf.h>
#include <string.h>

#include "cleanup.h"
#include "io.h"

void kbtf_done(struct kbtf *btf)
{
	free(btf->data);
	*btf = (struct kbtf){ 0 };
}

int kbtf_take(char *data, size_t bytes, struct kbtf *ret_btf)
{
	_cleanup_free_ char *owned = data;
	struct btf_header h;
	size_t body;

	if (bytes < sizeof(h))
		return -EBADMSG;
	memcpy(&h, owned, sizeof(h));
	if (h.magic != BTF_MAGIC || h.hdr_len < sizeof(h) || h.hdr_len > bytes)
		return -EBADMSG;
	body = bytes - h.hdr_len;
	if (h.type_off > body || h.type_len > body - h.type_off || h.str_off > body ||
	    h.str_len > body - h.str_off || h.str_len == 0)
		return -EBADMSG;
	if (owned[h.hdr_len + (size_t)h.str_off + h.str_len - 1] != '\0')
		return -EBADMSG;
	*ret_btf = (struct kbtf){
		.bytes = bytes,
		.types = owned + h.hdr_len + h.type_off,
		.types_bytes = h.type_len,
		.strings = owned + h.hdr_len + h.str_off,
		.strings_bytes = h.str_len,
	};
	ret_btf->data = TAKE_PTR(owned);
	return 0;
}

int kbtf_open(struct kbtf *ret_btf)
{
	char *data;
	size_t bytes;
	int r;

	r = io_read_file(AT_FDCWD, KBTF_PATH, KBTF_BYTES_MAX, &data, &bytes);
	if (r < 0)
		return r;
	return kbtf_take(data, bytes, ret_btf);
}

/* Bytes that follow struct btf_type, or -EBADMSG for a kind that this code does not know. */
static int trailer(uint32_t kind, uint32_t vlen)
{
	switch (kind) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return (int)(vlen * sizeof(struct btf_member));
	case BTF_KIND_ENUM:
		return (int)(vlen * sizeof(struct btf_enum));
	case BTF_KIND_FUNC_PROTO:
		return (int)(vlen * sizeof(struct btf_param));
	case BTF_KIND_DATASEC:
		return (int)(vlen * sizeof(struct btf_var_secinfo));
	case BTF_KIND_ENUM64:
		return (int)(vlen * sizeof(struct btf_enum64));
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		return 0;
	default:
		return -EBADMSG;
	}
}

int kbtf_find(const struct kbtf *btf, uint32_t kind, const char *name, uint32_t *ret_id,
	      uint32_t *ret_members)
{
	struct btf_type t;
	size_t at = 0;

	for (uint32_t id = 1; btf->types_bytes - at >= sizeof(t); id++) {
		int more;

		memcpy(&t, btf->types + at, sizeof(t));
		more = trailer(BTF_INFO_KIND(t.info), BTF_INFO_VLEN(t.info));
		if (more < 0 || (size_t)more > btf->types_bytes - at - sizeof(t) ||
		    t.name_off >= btf->strings_bytes)
			return -EBADMSG;
		if (BTF_INFO_KIND(t.info) == kind && strcmp(btf->strings + t.name_off, name) == 0) {
			if (ret_id)
				*ret_id = id;
			if (ret_members)
				*ret_members = BTF_INFO_VLEN(t.info);
			return 0;
		}
		at += sizeof(t) + (size_t)more;
	}
	return -ENOENT;
}
