/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/programs.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>

#include "bpf/trocar.skel.h"
#include "shared/tools/macro.h"

/*
 * Returns the half that loads the program. The programs that walk user stacks and the program of
 * the switches take as much verifier time as all others together.
 */
static size_t half_of(const struct trocar *set, const struct bpf_program *program)
{
	const struct bpf_program *const large[] = { set->progs.sampler, set->progs.lock_waking,
						    set->progs.looks, set->progs.account_switch };

	for (size_t i = 0; i < ARRAY_SIZE(large); i++)
		if (program == large[i])
			return 1;
	return 0;
}

static int choose_programs(const struct trocar *set, struct trocar *half, size_t number)
{
	struct bpf_program *theirs = NULL, *program;
	int r;

	bpf_object__for_each_program(program, set->obj)
	{
		theirs = bpf_object__next_program(half->obj, theirs);
		r = bpf_program__set_autoload(theirs, bpf_program__autoload(program) &&
							      half_of(set, program) == number);
		if (r < 0)
			return r;
	}
	return 0;
}

int programs_open(struct programs *p, struct trocar *set,
		  const struct bpf_object_open_opts *options)
{
	struct bpf_program *program;
	int r;

	for (size_t i = 0; i < PROGRAM_HALVES; i++) {
		p->halves[i] = trocar__open_opts(options);
		if (!p->halves[i])
			return -errno;
		r = choose_programs(set, p->halves[i], i);
		if (r < 0)
			return r;
	}
	bpf_object__for_each_program(program, set->obj)
	{
		r = bpf_program__set_autoload(program, false);
		if (r < 0)
			return r;
	}
	return 0;
}

static int use_maps(struct trocar *half, const struct trocar *set)
{
	struct bpf_map *theirs = NULL, *map;
	int r;

	bpf_object__for_each_map(map, set->obj)
	{
		theirs = bpf_object__next_map(half->obj, theirs);
		r = bpf_map__reuse_fd(theirs, bpf_map__fd(map));
		if (r < 0)
			return r;
	}
	return 0;
}

static void *load_second(void *context)
{
	struct programs *p = context;

	p->result = trocar__load(p->halves[1]);
	return NULL;
}

int programs_begin(struct programs *p, const struct trocar *set)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < PROGRAM_HALVES; i++)
		r = use_maps(p->halves[i], set);
	if (r < 0)
		return r;
	p->runs = pthread_create(&p->thread, NULL, load_second, p) == 0;
	if (!p->runs)
		load_second(p);
	return trocar__load(p->halves[0]);
}

int programs_end(struct programs *p)
{
	if (p->runs)
		pthread_join(p->thread, NULL);
	p->runs = false;
	return p->result;
}

struct bpf_program *programs_find(const struct programs *p, const struct bpf_program *program)
{
	for (size_t i = 0; i < PROGRAM_HALVES; i++) {
		struct bpf_program *found = bpf_object__find_program_by_name(
			p->halves[i]->obj, bpf_program__name(program));

		if (bpf_program__fd(found) >= 0)
			return found;
	}
	return NULL;
}

void programs_done(struct programs *p)
{
	programs_end(p);
	for (size_t i = 0; i < PROGRAM_HALVES; i++) {
		trocar__destroy(p->halves[i]);
		p->halves[i] = NULL;
	}
}
