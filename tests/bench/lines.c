/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lines ROUNDS STACKS: event lines a second of 30 user frames each, to /dev/null, in turns:
 *   report    the product's whole way: session_report_write names each frame, renders, splits and
 * queues writer    the product's writer alone, on names that are known json_c    the same line by
 * json-c;  snprintf  the same line by snprintf, which escapes nothing
 */
#include <errno.h>
#include <json-c/json.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "consumer/evidence/evidence_kinds.h"
#include "consumer/naming/frame_name.h"
#include "consumer/output/event_line.h"
#include "consumer/output/host.h"
#include "consumer/report/session_report.h"
#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"
#include "tests/bench/tool.h"

#define FRAMES	  30
#define BUILD_ID  "3f1c2f9d3fbb4f8d0f1d9f2c7a6b5e4d3c2b1a09"
#define LINE_MAX_ 16384

static struct host host;
static struct event_lines lines = { .host = &host, .max_bytes = LINE_MAX_ };
static struct symbols *symbols;
static struct signal_stacks taken = { .expected = UINT64_MAX };
static struct signal oncpu = { .id = SIGNAL_ONCPU, .taken = &taken };
static struct session_result session = {
	.cgroup = (char *)"/bench",
	.cgroup_id = 1,
	.signals[SIGNAL_ONCPU] = &oncpu,
};
static struct frame frames[FRAMES];
static struct named_frame names[FRAMES];
static FILE *null;
static uint64_t line_bytes;

/* The file offset of an address in our own text, by the program headers (dl_iterate_phdr(3)). */
static int find_offset(struct dl_phdr_info *info, size_t size, void *context)
{
	uint64_t *address = context;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t at = *address - info->dlpi_addr - p->p_vaddr;

		if (p->p_type == PT_LOAD && at < p->p_filesz) {
			*address = at + p->p_offset;
			return 1;
		}
	}
	return 0;
}

/* Frames in functions of this very program, all different. */
static void make_frames(void)
{
	static const void *const functions[] = {
		(void *)jsonw_object,	  (void *)jsonw_array,	  (void *)jsonw_string,
		(void *)jsonw_u64,	  (void *)jsonw_hex,	  (void *)session_report_write,
		(void *)event_line_begin, (void *)event_line_end, (void *)frame_name_frame,
		(void *)symbols_new,
	};
	struct file_identity identity;
	struct module *module;
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	struct stat st;

	if (n < 0 || stat("/proc/self/exe", &st) < 0)
		tool_die("/proc/self/exe");
	path[n] = '\0';
	identity = elf_file_identity(&st);
	if (symbols_module(symbols, &identity, path, false, &module) < 0)
		tool_die("module");
	for (size_t i = 0; i < FRAMES; i++) {
		uint64_t address = (uint64_t)(uintptr_t)functions[i % ARRAY_SIZE(functions)];

		dl_iterate_phdr(find_offset, &address);
		frames[i] = (struct frame){ .module = module, .offset = address + 1 + i };
	}
}

static void make_session(uint32_t stacks)
{
	taken.stacks.items = calloc(stacks, sizeof(*taken.stacks.items));
	if (!taken.stacks.items)
		tool_die("stacks");
	session.reason.kind = TRIGGER_REQUEST;
	for (uint32_t i = 0; i < stacks; i++) {
		struct stack *s = calloc(1, sizeof(*s) + sizeof(frames));

		if (!s)
			tool_die("stack");
		*s = (struct stack){ .weight_ns = 10000000,
				     .count = 1,
				     .start_ns = 1,
				     .tgid = 4242,
				     .threads = 1,
				     .number = i,
				     .user_frames = FRAMES,
				     .phase = PHASE_DURING,
				     .comm = "bench",
				     .exe = frames[0].module };
		memcpy(s->frames, frames, sizeof(frames));
		taken.stacks.items[taken.stacks.count++] = s;
	}
}

static void name_frames(void)
{
	for (size_t i = 0; i < FRAMES; i++) {
		frame_name_frame(symbols, taken.stacks.items[0], i, &names[i]);
		errno = 0;
		if (!names[i].fn)
			tool_die("frame %zu has no name: %s", i, names[i].reason);
	}
}

static uint64_t by_report(uint32_t count)
{
	bool hurry = false;
	struct output_queue_stats before, after;

	output_queue_stats(lines.output, &before);
	taken.phase[PHASE_DURING] = (struct ledger){ .attempted = count, .emitted = count };
	session_report_write(&session, &lines, symbols, &hurry);
	do {
		output_queue_stats(lines.output, &after);
	} while (after.queued_bytes);
	line_bytes = (after.bytes - before.bytes) / (after.lines - before.lines);
	errno = 0;
	if (after.lines - before.lines < count)
		tool_die("%llu of %u lines were written",
			 (unsigned long long)(after.lines - before.lines), count);
	return after.lines - before.lines;
}

static uint64_t by_writer(uint32_t count)
{
	struct jsonw w;

	for (uint32_t k = 0; k < count; k++) {
		event_line_begin(&lines, &w, "stack", NULL);
		jsonw_array(&w, "frames");
		for (size_t i = 0; i < FRAMES; i++) {
			jsonw_object(&w, NULL);
			jsonw_string(&w, "fn", names[i].fn);
			jsonw_string(&w, "module", names[i].module);
			jsonw_hex(&w, "build_id", names[i].build_id, names[i].build_id_bytes);
			jsonw_u64(&w, "offset", names[i].offset);
			jsonw_string(&w, "kind", names[i].kind);
			jsonw_object_end(&w);
		}
		jsonw_array_end(&w);
		jsonw_object_end(&w);
		fwrite(w.data, 1, w.bytes, null);
		jsonw_done(&w);
	}
	return count;
}

static void add_text(struct json_object *o, const char *key, const char *text)
{
	json_object_object_add(o, key, json_object_new_string(text));
}

static struct json_object *json_c_line(void)
{
	struct json_object *line = json_object_new_object(), *array = json_object_new_array();
	char text[CLOCK_TEXT_BYTES];

	clock_text(clock_real_ns(), text);
	json_object_object_add(line, "v", json_object_new_int(1));
	add_text(line, "type", "stack");
	add_text(line, "ts", text);
	json_object_object_add(line, "mono_ns", json_object_new_uint64(clock_mono_ns()));
	add_text(line, "host", host.name);
	add_text(line, "boot_id", host.boot_id);
	for (size_t i = 0; i < FRAMES; i++) {
		struct json_object *f = json_object_new_object();

		add_text(f, "fn", names[i].fn);
		add_text(f, "module", names[i].module);
		add_text(f, "build_id", BUILD_ID);
		json_object_object_add(f, "offset", json_object_new_uint64(names[i].offset));
		add_text(f, "kind", names[i].kind);
		json_object_array_add(array, f);
	}
	json_object_object_add(line, "frames", array);
	return line;
}

static uint64_t by_json_c(uint32_t count)
{
	for (uint32_t k = 0; k < count; k++) {
		struct json_object *line = json_c_line();
		size_t bytes;
		const char *text =
			json_object_to_json_string_length(line, JSON_C_TO_STRING_PLAIN, &bytes);

		fwrite(text, 1, bytes, null);
		json_object_put(line);
	}
	return count;
}

static uint64_t by_snprintf(uint32_t count)
{
	static char text[LINE_MAX_];
	char ts[CLOCK_TEXT_BYTES];

	for (uint32_t k = 0; k < count; k++) {
		int n;

		clock_text(clock_real_ns(), ts);
		n = snprintf(text, sizeof(text),
			     "{\"v\":1,\"type\":\"stack\",\"ts\":\"%s\",\"mono_ns\":%llu,"
			     "\"host\":\"%s\",\"boot_id\":\"%s\",\"frames\":[",
			     ts, (unsigned long long)clock_mono_ns(), host.name, host.boot_id);
		for (size_t i = 0; i < FRAMES; i++)
			n += snprintf(text + n, sizeof(text) - (size_t)n,
				      "%s{\"fn\":\"%s\",\"module\":\"%s\",\"build_id\":\"%s\","
				      "\"offset\":%llu,\"kind\":\"%s\"}",
				      i ? "," : "", names[i].fn, names[i].module, BUILD_ID,
				      (unsigned long long)names[i].offset, names[i].kind);
		n += snprintf(text + n, sizeof(text) - (size_t)n, "]}");
		fwrite(text, 1, (size_t)n, null);
	}
	return count;
}

int main(int argc, char **argv)
{
	static struct way {
		const char *name;
		uint64_t (*run)(uint32_t count);
		double best; /* lines a second: what else ran can only take from it */
	} ways[] = { { .name = "report", .run = by_report },
		     { .name = "writer", .run = by_writer },
		     { .name = "json_c", .run = by_json_c },
		     { .name = "snprintf", .run = by_snprintf } };
	uint32_t rounds = (uint32_t)tool_number(argc, argv, 1, 1, 1000);
	uint32_t count = (uint32_t)tool_number(argc, argv, 2, 10, STACK_TABLE_MAX);

	null = fopen("/dev/null", "w");
	if (!null || host_read(&host) < 0 || symbols_new(32u << 20, NULL, &symbols) < 0 ||
	    output_queue_new("/dev/null", 16u << 20, &lines.output) < 0 ||
	    output_queue_start(lines.output) < 0)
		tool_die("surroundings");
	oncpu.kind = evidence_kinds[SIGNAL_ONCPU];
	make_frames();
	make_session(count);
	name_frames();
	for (uint32_t i = 0; i < rounds; i++)
		for (size_t k = 0; k < ARRAY_SIZE(ways); k++) {
			uint64_t start_ns = clock_mono_ns(), n = ways[k].run(count);
			double rate = (double)n * 1e9 / (double)(clock_mono_ns() - start_ns);

			if (rate > ways[k].best)
				ways[k].best = rate;
		}
	printf("{\"rounds\":%u,\"line_bytes\":%llu", rounds, (unsigned long long)line_bytes);
	for (size_t k = 0; k < ARRAY_SIZE(ways); k++)
		printf(",\"%s\":%.0f", ways[k].name, ways[k].best);
	printf("}\n");
	output_queue_stop(lines.output, 1000);
	return 0;
}
