/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/report_testing.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "consumer/evidence/evidence_kinds.h"
#include "consumer/report/session_report.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/io.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/symbols/records_testing.h"

#define TEXT_BYTES (16u << 20)

static struct host host;
static char dir[64], ksyms[96];
char report_testing_path[96];
struct event_lines report_testing_lines = { .host = &host };
struct symbols *report_testing_symbols;

/* The kernel's function i; each fourth of a module, the names as long as the test wants them. */
static void write_ksyms(int name_bytes)
{
	FILE *f = fopen(ksyms, "we");
	char name[512];

	assert_non_null(f);
	for (unsigned int i = 0; i < FUNCTIONS; i++) {
		snprintf(name, sizeof(name), "fn_%03u_%0*d", i, MAX(name_bytes - 7, 1), 0);
		records_file_ksym(f, KERNEL_BASE + i * KERNEL_STEP, name, i % 4 ? "" : "xfs");
	}
	fclose(f);
}

void report_testing_begin(size_t queue_bytes, size_t max_bytes, int name_bytes)
{
	write_ksyms(name_bytes);
	report_testing_lines.max_bytes = max_bytes;
	symbols_free(report_testing_symbols);
	assert_int_equal(symbols_new(4u << 20, ksyms, &report_testing_symbols), 0);
	assert_int_equal(
		output_queue_new(report_testing_path, queue_bytes, &report_testing_lines.output),
		0);
}

int report_testing_setup(void **state)
{
	strcpy(dir, "/tmp/trocar-report-XXXXXX");
	if (!mkdtemp(dir) || host_read(&host) < 0)
		return -1;
	snprintf(report_testing_path, sizeof(report_testing_path), "%s/lines", dir);
	snprintf(ksyms, sizeof(ksyms), "%s/ksyms", dir);
	return 0;
}

int report_testing_teardown(void **state)
{
	if (report_testing_lines.output) {
		output_queue_stop(report_testing_lines.output, 100);
		output_queue_free(report_testing_lines.output);
	}
	symbols_free(TAKE_PTR(report_testing_symbols));
	report_testing_lines.output = NULL;
	unlink(report_testing_path);
	unlink(ksyms);
	return rmdir(dir);
}

struct signal_stacks *report_testing_taken_by(struct session_result *s)
{
	return s->signals[SIGNAL_ONCPU]->taken;
}

struct session_result *report_testing_new_session(const char *cgroup)
{
	const struct pinned_maps pins = { .abi = { .cpus_possible = 1, .hz = 100 } };
	const struct signal_host on = { .kinds = evidence_kinds, .pins = &pins };
	const struct signal_target target = { .slot = 1 };
	struct session_result *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->signals[SIGNAL_ONCPU] = signals_new(SIGNAL_ONCPU, &on, &target);
	assert_non_null(s->signals[SIGNAL_ONCPU]);
	s->id = 0x1234;
	s->cgroup = strdup(cgroup);
	s->cgroup_id = 4242;
	s->reason.kind = TRIGGER_REQUEST;
	s->start_ns = clock_mono_ns();
	s->stop_ns = s->start_ns + 3 * NSEC_PER_SEC;
	return s;
}

/* Counts `count` samples of one stack: kernel functions first.. and then unknown user addresses. */
void report_testing_add(struct session_result *s, enum phase phase, unsigned int first,
			uint16_t kernel, uint16_t user, unsigned int count)
{
	struct stack_sample *h = new_stack_sample(kernel, user, &stack_sample_unknown);

	for (uint16_t i = 0; i < kernel; i++)
		/* Within the function for the leaf, behind the call for its callers. */
		h->frames[i].offset =
			KERNEL_BASE + ((first + i) % FUNCTIONS) * KERNEL_STEP + (i ? 8 : 4);
	for (unsigned int i = 0; i < count; i++) {
		h->tid = 100 + i % 3;
		assert_int_equal(stack_table_add(&report_testing_taken_by(s)->stacks, h, phase,
						 10 * NSEC_PER_MSEC, NULL),
				 0);
	}
	report_testing_taken_by(s)->phase[phase].emitted += count;
	report_testing_taken_by(s)->phase[phase].attempted += count;
	free(h);
}

/* Ends the output and gives its lines, each within the wall; keeps them for the validator. */
json_object *report_testing_finish(void)
{
	_cleanup_free_ char *text = NULL;
	json_object *all = json_object_new_array();
	char *save = NULL;
	size_t bytes;

	output_queue_stop(report_testing_lines.output, 5000);
	output_queue_free(TAKE_PTR(report_testing_lines.output));
	assert_int_equal(io_read_file(AT_FDCWD, report_testing_path, TEXT_BYTES, &text, &bytes), 0);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		json_object *root = json_tokener_parse(line);

		assert_true(strlen(line) + 1 <= report_testing_lines.max_bytes);
		if (!root)
			fail_msg("not JSON: %s", line);
		json_object_array_add(all, root);
	}
	unit_keep_lines(report_testing_path);
	return all;
}

void report_testing_report(struct session_result *s)
{
	bool hurry = false;

	session_report_write(s, &report_testing_lines, report_testing_symbols, &hurry);
}

json_object *report_testing_end_of(struct session_result *s)
{
	json_object *all, *end;

	report_testing_begin(1u << 20, 8192, 12);
	assert_int_equal(output_queue_start(report_testing_lines.output), 0);
	report_testing_report(s);
	all = report_testing_finish();
	end = json_object_get(at(all, json_object_array_length(all) - 1));
	json_object_put(all);
	session_result_free(s);
	return end;
}
