/* SPDX-License-Identifier: BSD-2-Clause */
/* instructions.c: how much work the verifier has with each program; a table to read, and its walls.
 */
#include <string.h>
#include <sys/utsname.h>

#include <bpf/bpf.h>

#include "harness.h"

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

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(each_program_stays_small) };

	harness_main(argc, argv);
	harness_load_mappings();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
