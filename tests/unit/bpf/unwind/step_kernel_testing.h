/* SPDX-License-Identifier: BSD-2-Clause */
/* step_kernel_testing.h: step.bpf.c loaded, with the pool of pool.h in its maps. */
#ifndef TROCAR_TESTS_UNIT_BPF_UNWIND_STEP_KERNEL_TESTING_H
#define TROCAR_TESTS_UNIT_BPF_UNWIND_STEP_KERNEL_TESTING_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/mman.h>

#include "tests/unit/bpf/unwind/step.skel.h"
#include "tests/unit/bpf/unwind/step_testing.h"
#include "tests/unit/consumer/unwind/testing/unwind_memory_testing.h"

static struct {
	struct step *skeleton;
	const struct step_walk *walk;
	int stats_fd;
	uint64_t runs, ns; /* counted before */
} step_kernel = { .stats_fd = -1 };

/* Copies into a map that can be mapped, as the consumer will. */
static inline int step_kernel_fill(const struct bpf_map *map, const void *from, size_t bytes)
{
	void *to = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	if (to == MAP_FAILED)
		return -1;
	memcpy(to, from, bytes);
	return munmap(to, bytes);
}

static inline int step_kernel_open(const struct step_module *modules, size_t count)
{
	struct step *s = step__open();

	if (!s)
		return -1;
	step_kernel.skeleton = s;
	if (bpf_map__set_max_entries(s->maps.unwind_pool, pool.count) < 0 || step__load(s) < 0)
		return -1;
	step_kernel.walk = mmap(NULL, sizeof(struct step_walk), PROT_READ, MAP_SHARED,
				bpf_map__fd(s->maps.walks), 0);
	if (step_kernel.walk == MAP_FAILED)
		return -1;
	step_kernel.stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	return step_kernel_fill(s->maps.unwind_pool, pool.elements, pool.count * sizeof(__u64)) ||
	       step_kernel_fill(s->maps.unwind_rules, pool.rules.rules,
				pool.rules.count * sizeof(struct unwind_rule)) ||
	       step_kernel_fill(s->maps.modules, modules, count * sizeof(*modules));
}

/* Walks the calling thread's stack from there; NULL when the kernel refuses. */
static inline const struct step_walk *step_kernel_walk(const struct unwind_frame *f)
{
	__u64 args[] = {
		f->pc, f->sp, f->fp, f->bounds.main, f->bounds.alternate, f->bounds.alternate_bytes
	};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args));

	if (bpf_prog_test_run_opts(bpf_program__fd(step_kernel.skeleton->progs.step_walk), &opts) <
	    0)
		return NULL;
	return step_kernel.walk;
}

static inline struct bpf_prog_info step_kernel_info(void)
{
	struct bpf_prog_info info = { 0 };
	__u32 bytes = sizeof(info);

	bpf_obj_get_info_by_fd(bpf_program__fd(step_kernel.skeleton->progs.step_walk), &info,
			       &bytes);
	return info;
}

static inline uint32_t step_kernel_verified(void)
{
	return step_kernel_info().verified_insns;
}

/* Runs and nanoseconds since the last call. */
static inline void step_kernel_stats(uint64_t *ret_runs, uint64_t *ret_ns)
{
	struct bpf_prog_info info = step_kernel_info();

	*ret_runs = info.run_cnt - step_kernel.runs;
	*ret_ns = info.run_time_ns - step_kernel.ns;
	step_kernel.runs = info.run_cnt;
	step_kernel.ns = info.run_time_ns;
}

static inline void step_kernel_close(void)
{
	if (step_kernel.stats_fd >= 0)
		close(step_kernel.stats_fd);
	step__destroy(step_kernel.skeleton);
}

#endif
