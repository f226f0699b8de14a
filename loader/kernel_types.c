/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/kernel_types.h"

#include <bpf/btf.h>
#include <errno.h>
#include <search.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"

#define DEPTH_MAX 32 /* of structs in structs and arrays of them */

/* A copy in progress. */
struct copying {
	const struct btf *from;
	struct btf *to;
	uint32_t *ids; /* of the copies, by the number in `from`; 0: not copied */
};

static int copy_type(struct copying *c, uint32_t id, unsigned int depth);

static bool has_members(const struct btf_type *t)
{
	return btf_is_struct(t) || btf_is_union(t);
}

/* Returns the length of a name without the flavour of libbpf's "NAME___FLAVOUR". */
static size_t plain_bytes(const char *name)
{
	const char *flavour = strstr(name, "___");

	return flavour ? (size_t)(flavour - name) : strlen(name);
}

static const char *name_of(const struct copying *c, uint32_t offset)
{
	return btf__name_by_offset(c->from, offset);
}

static int copy_enum(const struct copying *c, const struct btf_type *t)
{
	const struct btf_enum *values = btf_enum(t);
	int id = btf__add_enum(c->to, name_of(c, t->name_off), t->size), r = id;

	for (uint32_t i = 0; r >= 0 && i < btf_vlen(t); i++)
		r = btf__add_enum_value(c->to, name_of(c, values[i].name_off), values[i].val);
	return r < 0 ? r : id;
}

static int copy_enum64(const struct copying *c, const struct btf_type *t)
{
	const struct btf_enum64 *values = btf_enum64(t);
	int id = btf__add_enum64(c->to, name_of(c, t->name_off), t->size, btf_kflag(t)), r = id;

	for (uint32_t i = 0; r >= 0 && i < btf_vlen(t); i++)
		r = btf__add_enum64_value(c->to, name_of(c, values[i].name_off),
					  btf_enum64_value(&values[i]));
	return r < 0 ? r : id;
}

static int copy_array(struct copying *c, const struct btf_type *t, unsigned int depth)
{
	const struct btf_array *array = btf_array(t);
	int index = copy_type(c, array->index_type, depth);
	int element = index < 0 ? index : copy_type(c, array->type, depth);

	return element < 0 ? element : btf__add_array(c->to, index, element, array->nelems);
}

/*
 * Copies the types of all members first, because a struct's members must follow it without a gap.
 */
static int copy_struct(struct copying *c, const struct btf_type *t, unsigned int depth)
{
	const struct btf_member *members = btf_members(t);
	const char *name = name_of(c, t->name_off);
	int id, r = 0;

	for (uint32_t i = 0; r >= 0 && i < btf_vlen(t); i++)
		r = copy_type(c, members[i].type, depth);
	if (r < 0)
		return r;
	id = btf_is_struct(t) ? btf__add_struct(c->to, name, t->size)
			      : btf__add_union(c->to, name, t->size);
	for (uint32_t i = 0; id >= 0 && r >= 0 && i < btf_vlen(t); i++)
		r = btf__add_field(c->to, name_of(c, members[i].name_off),
				   copy_type(c, members[i].type, depth),
				   btf_member_bit_offset(t, i), btf_member_bitfield_size(t, i));
	return r < 0 ? r : id;
}

static int copy_new(struct copying *c, const struct btf_type *t, unsigned int depth)
{
	switch (btf_kind(t)) {
	case BTF_KIND_INT:
		return btf__add_int(c->to, name_of(c, t->name_off), t->size, btf_int_encoding(t));
	case BTF_KIND_FLOAT:
		return btf__add_float(c->to, name_of(c, t->name_off), t->size);
	case BTF_KIND_PTR:
		return btf__add_ptr(c->to, 0);
	case BTF_KIND_ENUM:
		return copy_enum(c, t);
	case BTF_KIND_ENUM64:
		return copy_enum64(c, t);
	case BTF_KIND_ARRAY:
		return copy_array(c, t, depth);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return copy_struct(c, t, depth);
	default: /* typedef and qualifiers, which libbpf skips */
		return copy_type(c, t->type, depth);
	}
}

/* Returns the number of the copy, 0 for void; makes the copy if needed. */
static int copy_type(struct copying *c, uint32_t id, unsigned int depth)
{
	const struct btf_type *t = btf__type_by_id(c->from, id);
	int r;

	if (!id || c->ids[id])
		return (int)c->ids[id];
	if (!t || depth == DEPTH_MAX)
		return -E2BIG;
	r = copy_new(c, t, depth + 1);
	if (r > 0)
		c->ids[id] = (uint32_t)r;
	return r;
}

static bool is_named(const struct btf_type *t)
{
	return has_members(t) || btf_is_enum(t) || btf_is_enum64(t);
}

/* Puts the names of the programs' types into the table; it keeps their text in `names`. */
static int enter_names(const struct btf *programs, struct hsearch_data *table, char **names)
{
	uint32_t count = btf__type_cnt(programs);
	ENTRY *found;
	size_t n = 0;

	if (!hcreate_r(2 * (size_t)count, table))
		return -ENOMEM;
	for (uint32_t id = 1; id < count; id++) {
		const struct btf_type *t = btf__type_by_id(programs, id);
		const char *name = btf__name_by_offset(programs, t->name_off);

		if (!is_named(t) || !name || !*name)
			continue;
		names[n] = strndup(name, plain_bytes(name));
		if (!names[n] || !hsearch_r((ENTRY){ .key = names[n] }, ENTER, &found, table))
			return -ENOMEM;
		n++;
	}
	return 0;
}

static int copy_named(struct copying *c, struct hsearch_data *table)
{
	uint32_t count = btf__type_cnt(c->from);
	int r = 0;

	for (uint32_t id = 1; r >= 0 && id < count; id++) {
		const struct btf_type *t = btf__type_by_id(c->from, id);
		ENTRY *found;

		if (is_named(t) && t->name_off &&
		    hsearch_r((ENTRY){ .key = (char *)name_of(c, t->name_off) }, FIND, &found,
			      table))
			r = copy_type(c, id, 0);
	}
	return r < 0 ? r : 0;
}

static int copy_all(const struct btf *kernel, const struct btf *programs, struct btf *to)
{
	_cleanup_free_ uint32_t *ids = calloc(btf__type_cnt(kernel), sizeof(*ids));
	char **names = calloc(btf__type_cnt(programs), sizeof(*names));
	struct copying c = { .from = kernel, .to = to, .ids = ids };
	struct hsearch_data table = { 0 };
	int r = ids && names ? enter_names(programs, &table, names) : -ENOMEM;

	if (r == 0)
		r = copy_named(&c, &table);
	hdestroy_r(&table);
	for (uint32_t i = 0; names && i < btf__type_cnt(programs); i++)
		free(names[i]);
	free(names);
	return r;
}

static void free_btf(struct btf **btf)
{
	btf__free(*btf);
}

int kernel_types_open(char ret_path[static KERNEL_TYPES_PATH_BYTES])
{
	int fd = memfd_create("kernel-types", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	snprintf(ret_path, KERNEL_TYPES_PATH_BYTES, "/proc/self/fd/%d", fd);
	return fd;
}

int kernel_types_fill(int fd, const struct btf *kernel, const struct btf *programs)
{
	struct btf *to __attribute__((cleanup(free_btf))) = btf__new_empty();
	const void *data;
	uint32_t bytes;
	int r = to ? copy_all(kernel, programs, to) : -ENOMEM;

	if (r < 0)
		return r;
	data = btf__raw_data(to, &bytes);
	return data ? io_write_full(fd, data, bytes) : -ENOMEM;
}
