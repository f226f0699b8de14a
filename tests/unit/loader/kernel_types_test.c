/* SPDX-License-Identifier: BSD-2-Clause */
/* The copies are the kernel's types in all that a relocation asks for: names, sizes, places. */
#include "tests/unit/runner/unit.h"

#include <bpf/btf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "loader/kernel_types.h"
#include "shared/tools/cleanup.h"

static struct btf *kernel, *programs, *copies;

/* Fills `copies` with the types of a file of kernel_types_fill. */
static void copy(void)
{
	char path[KERNEL_TYPES_PATH_BYTES];
	_cleanup_close_ int fd = kernel_types_open(path);

	assert_true(fd >= 0);
	assert_int_equal(kernel_types_fill(fd, kernel, programs), 0);
	btf__free(copies);
	copies = btf__parse_raw(path);
	assert_non_null(copies);
}

static int setup(void **state)
{
	kernel = btf__new_empty();
	programs = btf__new_empty();
	return kernel && programs ? 0 : -1;
}

static int teardown(void **state)
{
	btf__free(kernel);
	btf__free(programs);
	btf__free(copies);
	kernel = programs = copies = NULL;
	return 0;
}

/* Returns the type under qualifiers and typedefs. */
static const struct btf_type *plain(const struct btf *btf, uint32_t id)
{
	const struct btf_type *t = btf__type_by_id(btf, id);

	while (btf_is_mod(t) || btf_is_typedef(t))
		t = btf__type_by_id(btf, t->type);
	return t;
}

static void same_type(uint32_t id, uint32_t copied);

static void same_members(const struct btf_type *t, const struct btf_type *c)
{
	assert_int_equal(btf_vlen(t), btf_vlen(c));
	for (uint32_t i = 0; i < btf_vlen(t); i++) {
		const struct btf_member *m = btf_members(t) + i, *n = btf_members(c) + i;

		assert_string_equal(btf__name_by_offset(kernel, m->name_off),
				    btf__name_by_offset(copies, n->name_off));
		assert_int_equal(btf_member_bit_offset(t, i), btf_member_bit_offset(c, i));
		assert_int_equal(btf_member_bitfield_size(t, i), btf_member_bitfield_size(c, i));
		same_type(m->type, n->type);
	}
}

static void same_type(uint32_t id, uint32_t copied)
{
	const struct btf_type *t = plain(kernel, id), *c = plain(copies, copied);

	assert_int_equal(btf_kind(t), btf_kind(c));
	assert_string_equal(btf__name_by_offset(kernel, t->name_off),
			    btf__name_by_offset(copies, c->name_off));
	if (btf_is_struct(t) || btf_is_union(t) || btf_is_int(t) || btf_is_any_enum(t))
		assert_int_equal(t->size, c->size);
	if (btf_is_struct(t) || btf_is_union(t))
		same_members(t, c);
	if (btf_is_array(t)) {
		assert_int_equal(btf_array(t)->nelems, btf_array(c)->nelems);
		same_type(btf_array(t)->type, btf_array(c)->type);
	}
	if (btf_is_enum(t))
		assert_memory_equal(&btf_enum(t)->val, &btf_enum(c)->val, sizeof(__s32));
}

static uint32_t find(const struct btf *btf, const char *name, uint32_t kind)
{
	int id = btf__find_by_name_kind(btf, name, kind);

	if (id < 0)
		fail_msg("no %s: %d", name, id);
	return (uint32_t)id;
}

/* A struct, by the name that a flavour of it has, with its members' types and without the rest. */
static void test_small(void **state)
{
	int number = btf__add_int(kernel, "int", 4, BTF_INT_SIGNED), inner, far, alias, array, to;

	inner = btf__add_struct(kernel, "inner", 8);
	btf__add_field(kernel, "low", number, 0, 5);
	btf__add_field(kernel, "high", number, 32, 0);
	far = btf__add_struct(kernel, "far", 4);
	btf__add_field(kernel, "a", number, 0, 0);
	alias = btf__add_typedef(kernel, "inner_t", inner);
	array = btf__add_array(kernel, number, alias, 4);
	btf__add_struct(kernel, "outer", 32);
	btf__add_field(kernel, "all", array, 0, 0);
	assert_true(btf__add_struct(programs, "outer___ours", 0) > 0);
	/* What a pointer points to is not copied, and no struct that no program names. */
	to = btf__add_ptr(kernel, far);
	btf__add_struct(kernel, "pointing", 8);
	btf__add_field(kernel, "to", to, 0, 0);
	assert_true(btf__add_struct(programs, "pointing", 0) > 0);
	copy();
	same_type(find(kernel, "outer", BTF_KIND_STRUCT), find(copies, "outer", BTF_KIND_STRUCT));
	assert_int_equal(btf__find_by_name(copies, "far"), -ENOENT);
	assert_int_equal(
		btf_vlen(btf__type_by_id(copies, find(copies, "pointing", BTF_KIND_STRUCT))), 1);
}

/* Types within types without end, which no compiler makes: refused. */
static void test_endless(void **state)
{
	char path[KERNEL_TYPES_PATH_BYTES];
	_cleanup_close_ int fd = kernel_types_open(path);

	btf__add_struct(kernel, "itself", 4);
	btf__add_field(kernel, "again", 1, 0, 0);
	btf__add_struct(programs, "itself", 4);
	assert_int_equal(kernel_types_fill(fd, kernel, programs), -E2BIG);
}

/* Many structs of this kernel, whole. */
static void test_of_this_kernel(void **state)
{
	static const char *const names[] = { "task_struct", "mm_struct", "cgroup", "sock",
					     "request",	    "bio",	 "file",   "pt_regs",
					     "inode",	    "module",	 "rq",	   "orc_entry" };

	btf__free(kernel);
	kernel = btf__parse_raw("/sys/kernel/btf/vmlinux");
	if (!kernel)
		unit_skip("this kernel has no BTF");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_true(btf__add_struct(programs, names[i], 0) > 0);
	assert_true(btf__add_enum(programs, "cgroup_subsys_id", 4) > 0);
	copy();
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		same_type(find(kernel, names[i], BTF_KIND_STRUCT),
			  find(copies, names[i], BTF_KIND_STRUCT));
	same_type(find(kernel, "cgroup_subsys_id", BTF_KIND_ENUM),
		  find(copies, "cgroup_subsys_id", BTF_KIND_ENUM));
}

UNIT_TESTS(kernel_types)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_small, setup, teardown),
		cmocka_unit_test_setup_teardown(test_endless, setup, teardown),
		cmocka_unit_test_setup_teardown(test_of_this_kernel, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
