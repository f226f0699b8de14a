/* SPDX-License-Identifier: BSD-2-Clause */
/* layout.c: the structs of shared/abi/abi.h are the same on both sides of the line, and have no
 * holes.
 */
#include <linux/bpf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <bpf/btf.h>

#include "shared/abi/abi.h"

struct row {
	const char *structure;
	const char *field; /* NULL: the row of the structure itself */
	size_t offset, bytes;
};

static const struct row rows[] = {
#define STRUCT(name) { #name, NULL, 0, sizeof(struct name) },
#define FIELD(name, field) \
	{ #name, #field, offsetof(struct name, field), sizeof(((struct name *)0)->field) },
#include "layout.def"
};

static const char *object;

/* The member of that name, or NULL. */
static const struct btf_member *member_find(const struct btf *btf, const struct btf_type *type,
					    const char *name)
{
	const struct btf_member *members = btf_members(type);

	for (int i = 0; i < btf_vlen(type); i++)
		if (!strcmp(btf__name_by_offset(btf, members[i].name_off), name))
			return &members[i];
	return NULL;
}

/* Checks the fields that follow row `at`; all bytes and all members must be covered. */
static void check_struct(const struct btf *btf, size_t at)
{
	int id = btf__find_by_name_kind(btf, rows[at].structure, BTF_KIND_STRUCT);
	const struct btf_type *type;
	size_t fields = 0, bytes = 0;

	print_message("struct %s: %zu bytes\n", rows[at].structure, rows[at].bytes);
	assert_true(id > 0);
	type = btf__type_by_id(btf, (uint32_t)id);
	assert_int_equal(type->size, rows[at].bytes);
	for (size_t i = at + 1; i < sizeof(rows) / sizeof(*rows) && rows[i].field; i++) {
		const struct btf_member *m = member_find(btf, type, rows[i].field);

		assert_string_equal(rows[i].structure, rows[at].structure);
		assert_non_null(m);
		assert_int_equal(m->offset, rows[i].offset * 8);
		assert_int_equal(btf__resolve_size(btf, m->type), rows[i].bytes);
		assert_int_equal(rows[i].offset, bytes);
		bytes += rows[i].bytes;
		fields++;
	}
	assert_int_equal(bytes, rows[at].bytes);
	/* A flexible array at the end is of no size and has no row. */
	if (btf_vlen(type) > fields)
		assert_int_equal(btf__resolve_size(btf, btf_members(type)[btf_vlen(type) - 1].type),
				 0);
	assert_in_range(btf_vlen(type), fields, fields + 1);
}

static void both_sides_agree(void **state)
{
	struct btf *btf = btf__parse(object, NULL);

	assert_non_null(btf);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (!rows[i].field)
			check_struct(btf, i);
	btf__free(btf);
}

/* The header promises this layout by name (uapi/linux/bpf.h, struct bpf_stack_build_id). */
static void frames_are_the_kernels(void **state)
{
	assert_int_equal(sizeof(struct frame_build_id), sizeof(struct bpf_stack_build_id));
	assert_int_equal(offsetof(struct frame_build_id, build_id),
			 offsetof(struct bpf_stack_build_id, build_id));
	assert_int_equal(offsetof(struct frame_build_id, offset_or_ip),
			 offsetof(struct bpf_stack_build_id, offset));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_sides_agree),
		cmocka_unit_test(frames_are_the_kernels),
	};

	if (argc < 2)
		return 2;
	object = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
