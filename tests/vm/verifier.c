/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verifier: loads each program of the BPF object on the running kernel and prints, one row per
 * program, the instructions that the verifier walked, the time it took, and the result. Root. Exits
 * 1 when one is refused, with the end of the verifier's log of that one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "bpf/trocar.skel.h"

/* BPF_LOG_STATS of include/linux/bpf_verifier.h: a few lines, among them the time. */
#define LOG_STATS 4
#define LOG_BYTES 16384
#define PROGRAMS  64
/* The whole log of a program, for one that is refused, and how much of its end is printed. */
#define LOG_WHOLE	1
#define LOG_WHOLE_BYTES (64u << 20)
#define LOG_END_BYTES	4800

static char logs[PROGRAMS][LOG_BYTES];

__attribute__((format(printf, 2, 0))) static int quiet(enum libbpf_print_level level,
						       const char *format, va_list arguments)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, format, arguments) : 0;
}

static bool kernel_has(const char *name, uint32_t kind)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool found = btf && btf__find_by_name_kind(btf, name, kind) > 0;

	btf__free(btf);
	return found;
}

/* The verifier's own clock; -1 when its log has no such line. */
static long verifier_us(const char *text)
{
	static const char key[] = "verification time ";
	const char *at = strstr(text, key);

	return at ? strtol(at + strlen(key), NULL, 10) : -1;
}

static int print_row(struct bpf_program *program, const char *text)
{
	struct bpf_prog_info info = { 0 };
	uint32_t bytes = sizeof(info);
	int r;

	r = bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &bytes);
	if (r < 0)
		return r;
	printf("%-14s %10u %10ld %10u %10u\n", bpf_program__name(program), info.verified_insns,
	       verifier_us(text), info.xlated_prog_len / 8, info.jited_prog_len);
	return 0;
}

/* `whole`: one log for all, which is of the last that was loaded; NULL: the figures of each. */
static int ask_for_logs(struct trocar *skeleton, char *whole)
{
	struct bpf_program *program;
	size_t n = 0;
	int r;

	bpf_object__for_each_program(program, skeleton->obj)
	{
		if (n == PROGRAMS)
			return -E2BIG;
		r = bpf_program__set_log_level(program, whole ? LOG_WHOLE : LOG_STATS);
		if (r < 0)
			return r;
		r = bpf_program__set_log_buf(program, whole ? whole : logs[n],
					     whole ? LOG_WHOLE_BYTES : LOG_BYTES);
		if (r < 0)
			return r;
		n++;
	}
	return 0;
}

/*
 * Of the two bodies of `vmas`, the one that is wanted; the other one is not loaded. What finds a
 * process by its pid goes with the open-coded one.
 */
static int load(struct trocar *skeleton, bool open_coded, char *whole)
{
	int r;

	r = ask_for_logs(skeleton, whole);
	if (r < 0)
		return r;
	r = bpf_program__set_autoload(skeleton->progs.vmas_open, open_coded);
	if (r < 0)
		return r;
	r = bpf_program__set_autoload(skeleton->progs.vmas_tree, !open_coded);
	if (r < 0)
		return r;
	r = bpf_program__set_autoload(skeleton->progs.vmas_pid, open_coded);
	if (r < 0)
		return r;
	r = bpf_program__set_autoload(skeleton->progs.ranges_pid, open_coded);
	if (r < 0)
		return r;
	/* As the loader does it: a kernel without modules has no tracepoints of theirs. */
	if (!kernel_has("btf_trace_module_load", BTF_KIND_TYPEDEF)) {
		bpf_program__set_autoload(skeleton->progs.on_module_load, false);
		bpf_program__set_autoload(skeleton->progs.on_module_free, false);
	}
	skeleton->rodata->has_cast = open_coded;
	skeleton->rodata->has_near = true;
	return trocar__load(skeleton);
}

static int print_all(struct trocar *skeleton)
{
	struct bpf_program *program;
	size_t n = 0;
	int r;

	printf("%-14s %10s %10s %10s %10s\n", "program", "verified", "us", "xlated", "jited B");
	bpf_object__for_each_program(program, skeleton->obj)
	{
		const char *text = logs[n++];

		if (bpf_program__fd(program) < 0)
			continue;
		r = print_row(program, text);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Loads all once more, and prints how the log of the program ends that is refused. */
static void explain(bool open_coded)
{
	struct trocar *skeleton = trocar__open();
	char *whole = calloc(1, LOG_WHOLE_BYTES);
	size_t bytes;

	if (skeleton && whole && load(skeleton, open_coded, whole) < 0) {
		bytes = strlen(whole);
		fprintf(stderr, "%s\n",
			whole + (bytes > LOG_END_BYTES ? bytes - LOG_END_BYTES : 0));
	}
	trocar__destroy(skeleton);
	free(whole);
}

int main(void)
{
	bool open_coded = kernel_has("bpf_iter_task_vma_new", BTF_KIND_FUNC);
	struct trocar *skeleton;
	int r;

	libbpf_set_print(quiet);
	skeleton = trocar__open();
	if (!skeleton) {
		perror("verifier: the object does not open");
		return 1;
	}
	r = load(skeleton, open_coded, NULL);
	if (r == 0)
		r = print_all(skeleton);
	else
		explain(open_coded);
	if (r < 0)
		fprintf(stderr, "verifier: %s\n", strerror(-r));
	trocar__destroy(skeleton);
	return r < 0;
}
