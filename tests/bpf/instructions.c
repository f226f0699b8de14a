/* SPDX-License-Identifier: BSD-2-Clause */
/* instructions.c: how much work the verifier has with each program; a table to read, and its walls.
 */
#include <string.h>
#include <sys/utsname.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "harness.h"
#include "loader/kernel_types.h"
#include "shared/tools/cleanup.h"

/* Other kernels' verifiers walk more or less of the same program; no more than this all the same.
 */
#define LANDED_ON	    "6.18."
#define OTHER_KERNEL_FACTOR 8

static const struct row {
	const char *name;
	uint32_t landed;
} rows[] = {
#define PROGRAM(name, landed) { #name, landed },
#include "instructions.def"
};

static const struct row *row_find(const char *name)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (!strcmp(rows[i].name, name))
			return &rows[i];
	return NULL;
}

static uint32_t wall(const struct row *row)
{
	struct utsname u;

	assert_int_equal(uname(&u), 0);
	if (!strncmp(u.release, LANDED_ON, strlen(LANDED_ON)))
		return row->landed + row->landed / 4;
	return row->landed * OTHER_KERNEL_FACTOR;
}

static size_t print_all(const struct trocar *skel)
{
	struct bpf_program *program;
	size_t loaded = 0;

	print_message("%-14s %10s %10s %10s %10s\n", "program", "verified", "landed", "xlated",
		      "jited B");
	bpf_object__for_each_program(program, skel->obj)
	{
		const struct row *row = row_find(bpf_program__name(program));
		struct bpf_prog_info info = {};
		uint32_t bytes = sizeof(info);

		assert_non_null(row);
		if (bpf_program__fd(program) < 0)
			continue;
		assert_int_equal(bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &bytes),
				 0);
		print_message("%-14s %10u %10u %10u %10u\n", row->name, info.verified_insns,
			      row->landed, info.xlated_prog_len / 8, info.jited_prog_len);
		assert_in_range(info.verified_insns, 1, wall(row));
		loaded++;
	}
	return loaded;
}

static void each_program_stays_small(void **state)
{
	struct harness_options each = { .vmas_tree = true };
	struct harness *h = harness_new(NULL);

	/* Without those of modules, and one of vmas. */
	assert_int_equal(print_all(h->skel), sizeof(rows) / sizeof(*rows) - 3);
	harness_free(h);
	h = harness_new(&each);
	/* Without those of modules, vmas_open, vmas_pid and ranges_pid. */
	assert_int_equal(print_all(h->skel), sizeof(rows) / sizeof(*rows) - 5);
	harness_free(h);
}

static void destroy_skeleton(struct trocar **skel)
{
	trocar__destroy(*skel);
}

static struct trocar *load_plain(const struct bpf_object_open_opts *options)
{
	struct trocar *skel = trocar__open_opts(options);

	assert_non_null(skel);
	bpf_program__set_autoload(skel->progs.on_module_load, false);
	bpf_program__set_autoload(skel->progs.on_module_free, false);
	bpf_program__set_autoload(skel->progs.dirty_pause, false);
	return skel;
}

/* Compares libbpf's results for two programs; a load of 64 bits has a map's descriptor. */
static void same_instructions(const struct bpf_program *a, const struct bpf_program *b)
{
	const struct bpf_insn *x = bpf_program__insns(a), *y = bpf_program__insns(b);

	assert_int_equal(bpf_program__insn_cnt(a), bpf_program__insn_cnt(b));
	for (size_t i = 0; i < bpf_program__insn_cnt(a); i++) {
		if (x[i].code == (BPF_LD | BPF_DW | BPF_IMM))
			i++;
		else if (memcmp(&x[i], &y[i], sizeof(*x)) != 0)
			fail_msg("%s: instruction %zu", bpf_program__name(a), i);
	}
}

/* Every program is relocated alike by the kernel's BTF and by the loader's copy of its types. */
static void a_copy_of_the_types_relocates_alike(void **state)
{
	struct trocar *by_kernel __attribute__((cleanup(destroy_skeleton))) = NULL;
	struct trocar *by_copy __attribute__((cleanup(destroy_skeleton))) = NULL;
	struct btf *kernel = btf__parse_raw("/sys/kernel/btf/vmlinux");
	char path[KERNEL_TYPES_PATH_BYTES];
	_cleanup_close_ int fd = kernel_types_open(path);
	LIBBPF_OPTS(bpf_object_open_opts, options, .btf_custom_path = path);
	struct bpf_program *program, *other;

	assert_true(kernel && fd >= 0);
	by_kernel = load_plain(NULL);
	by_copy = load_plain(&options);
	assert_int_equal(kernel_types_fill(fd, kernel, bpf_object__btf(by_copy->obj)), 0);
	btf__free(kernel);
	assert_int_equal(trocar__load(by_kernel), 0);
	assert_int_equal(trocar__load(by_copy), 0);
	other = bpf_object__next_program(by_copy->obj, NULL);
	bpf_object__for_each_program(program, by_kernel->obj)
	{
		same_instructions(program, other);
		other = bpf_object__next_program(by_copy->obj, other);
	}
	assert_null(other);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(each_program_stays_small),
					    cmocka_unit_test(a_copy_of_the_types_relocates_alike) };

	harness_main(argc, argv);
	harness_load_mappings();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
