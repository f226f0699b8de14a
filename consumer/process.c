/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/process.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/agent.h"
#include "consumer/binding.h"
#include "consumer/symbols/jit_files.h"
#include "shared/clock.h"
#include "shared/macro.h"

/* A process with unknown addresses (JIT, fresh dlopen) is not asked more often than this. */
#define MAP_EVERY_NS (100 * NSEC_PER_MSEC)

/*
 * One that has a new image is, and a young one: it may have been met before its execve(2), or amid
 * it, when nothing is mapped, and live for moments.
 */
#define MAP_IMAGE_NS (5 * NSEC_PER_MSEC)
#define MAP_YOUNG_NS NSEC_PER_SEC

/* Finalizer of splitmix64: spreads (tgid, start) over the table; never 0. */
static uint64_t process_id(uint32_t tgid, uint64_t start_ns)
{
	uint64_t x = start_ns ^ ((uint64_t)tgid << 42);

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	x ^= x >> 31;
	return x ? x : 1;
}

void processes_init(struct processes *p, size_t max)
{
	idmap_init(&p->by_id, max);
	p->gone = 0;
}

static struct process_key key_of(const struct process *p)
{
	return (struct process_key){ .tgid = p->tgid, .start_ns = p->start_ns };
}

static void drop(struct agent *a, struct process *p)
{
	idmap_remove(&a->processes.by_id, p->id);
	if (p->gone_ns)
		a->processes.gone--;
	unwinding_leave(a, p);
	mappings_done(&p->maps);
	mappings_done(&p->before);
	free(p);
}

void processes_done(struct agent *a)
{
	struct process *p;
	uint64_t id;

	idmap_for_each (&a->processes.by_id, i, id, p) {
		unwinding_leave(a, p);
		mappings_done(&p->maps);
		mappings_done(&p->before);
		free(p);
	}
	idmap_done(&a->processes.by_id);
}

struct process *process_find(struct agent *a, uint32_t tgid, uint64_t start_ns)
{
	struct process *p = idmap_get(&a->processes.by_id, process_id(tgid, start_ns));

	return p && p->tgid == tgid && p->start_ns == start_ns ? p : NULL;
}

/* Frees those that have lingered for longer than that. */
static void sweep(struct agent *a, uint64_t now_ns, uint64_t linger_ns)
{
	struct process *p, **old;
	size_t n = 0;
	uint64_t id;

	if (!a->processes.gone)
		return;
	old = calloc(a->processes.gone, sizeof(struct process *));
	if (!old)
		return;
	idmap_for_each (&a->processes.by_id, i, id, p)
		if (p->gone_ns && now_ns - p->gone_ns > linger_ns && n < a->processes.gone)
			old[n++] = p;
	while (n)
		drop(a, old[--n]);
	free(old);
}

void processes_sweep(struct agent *a, uint64_t now_ns)
{
	bool crowded = a->processes.gone > PROCESS_GONE_MAX;

	sweep(a, now_ns, (crowded ? PROCESS_LINGER_MS / 8 : PROCESS_LINGER_MS) * NSEC_PER_MSEC);
}

/* A full table is no reason not to see a start: those that have gone make room. */
static int put(struct agent *a, struct process *p)
{
	int r = idmap_put(&a->processes.by_id, p->id, p);

	if (r != -ENOSPC || !a->processes.gone)
		return r;
	sweep(a, clock_mono_ns(), 0);
	return idmap_put(&a->processes.by_id, p->id, p);
}

int process_get(struct agent *a, uint32_t tgid, uint64_t start_ns, struct process **ret_process)
{
	struct process *p = process_find(a, tgid, start_ns);
	int r;

	if (p) {
		*ret_process = p;
		return 0;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	*p = (struct process){
		.id = process_id(tgid, start_ns),
		.tgid = tgid,
		.start_ns = start_ns,
		.uid = UID_UNKNOWN,
		.seen_ns = clock_mono_ns(),
	};
	if (idmap_get(&a->processes.by_id, p->id)) {
		free(p);
		return -EEXIST;
	}
	r = put(a, p);
	if (r < 0) {
		free(p);
		return r;
	}
	*ret_process = p;
	return 0;
}

static void say_exit(struct agent *a, const struct process *p)
{
	const struct event_about about = { p->rule, p->cgroup_id, p->uid, NULL };
	struct line_subject subject;
	struct jsonw w;

	if (!event_budget_take(&a->budget, &about, LINE_EXIT))
		return;
	subject = event_log_subject(&a->log, p->rule, p->cgroup_id);
	line_begin(&a->lines, &w, "process.exit", &subject);
	jsonw_u64(&w, "pid", p->tgid);
	jsonw_u64(&w, "start_ns", p->start_ns);
	jsonw_string(&w, "comm", p->comm);
	jsonw_u64(&w, "lived_ms", (clock_boot_ns() - p->start_ns) / NSEC_PER_MSEC);
	line_end(&a->lines, &w);
}

void process_gone(struct agent *a, struct process *p)
{
	struct process_key key = key_of(p);

	if (p->gone_ns)
		return;
	p->gone_ns = clock_mono_ns();
	a->processes.gone++;
	if (p->compiled)
		jit_files_leave(symbols_jit_files(a->symbols), &key);
	if (p->announced)
		say_exit(a, p);
	else if (p->left_out)
		event_budget_leave_out(&a->budget, p->rule, LINE_EXIT);
	unwinding_leave(a, p);
	binding_leave(p);
}

void process_exec(struct process *p, uint64_t time_ns)
{
	if (p->maps.count && p->maps.read_ns < time_ns) {
		mappings_done(&p->before);
		p->before = p->maps;
		p->maps = (struct mappings){};
	}
	p->exec_ns = time_ns;
	p->tried_ns = 0;
	p->unwind.shape = 0;
}

/*
 * The number of the image decides. Not every exec is told by an event, and what is told comes after
 * samples of the new image; where programs lie at fixed addresses, a frame in the wrong mappings
 * has a name all the same.
 */
const struct mappings *process_maps_at(const struct process *p, uint64_t time_ns, uint32_t image)
{
	static const struct mappings none;
	const struct mappings *first = time_ns < p->exec_ns ? &p->before : &p->maps;
	const struct mappings *other = first == &p->maps ? &p->before : &p->maps;

	if (first->count && first->image == image)
		return first;
	if (other->count && other->image == image)
		return other;
	return first->count ? &none : first;
}

/*
 * Read, change, write. The kernel side writes the same entry at exec: when that falls between read
 * and write, raw addresses of the new image come for a moment; they are unknown in the old
 * mappings, which makes the drain read them again (design section 3).
 */
static int set_mapped(struct agent *a, const struct process *p, bool mapped)
{
	struct process_key key = key_of(p);
	struct target target;

	if (bpf_map_lookup_elem(a->pins.targets_fd, &key, &target) < 0)
		return -errno;
	target.flags &= ~TARGET_MAPPED;
	if (mapped)
		target.flags |= TARGET_MAPPED;
	target.image = p->maps.image;
	return bpf_map_update_elem(a->pins.targets_fd, &key, &target, BPF_EXIST) < 0 ? -errno : 0;
}

void process_mapped(struct agent *a, const struct process *p)
{
	set_mapped(a, p, true);
}

int process_set_unwind(struct agent *a, const struct process *p)
{
	struct process_key key = { .tgid = p->tgid, .start_ns = p->start_ns };
	struct target target;

	if (bpf_map_lookup_elem(a->pins.targets_fd, &key, &target) < 0)
		return -errno;
	target.unwind = p->unwind.table;
	return bpf_map_update_elem(a->pins.targets_fd, &key, &target, BPF_EXIST) < 0 ? -errno : 0;
}

void process_ask_ids(struct agent *a, struct process *p)
{
	uint64_t now = clock_mono_ns();

	if (p->gone_ns || (p->asked_ns && now - p->asked_ns < MAP_EVERY_NS))
		return;
	p->asked_ns = now;
	p->asking = set_mapped(a, p, false) == 0;
}

bool process_asked_ids(struct agent *a, struct process *p, uint64_t time_ns)
{
	bool asked = p->asking && p->maps.count && time_ns >= p->exec_ns;

	if (!asked)
		return false;
	p->asking = false;
	if (!unwinding_waits(a, p))
		set_mapped(a, p, true);
	return true;
}

/* Its perf map is opened while it lives, by the symbolizer's thread. */
static void meet_compiled(struct agent *a, struct process *p)
{
	struct process_key key = key_of(p);

	p->compiled = true;
	jit_files_meet(symbols_jit_files(a->symbols), &key);
}

/* What was read last goes, unless it is of another image than `fresh`: its samples may be to come.
 */
static void keep_before(struct process *p, const struct mappings *fresh)
{
	if (!p->maps.count || p->maps.image == fresh->image) {
		mappings_done(&p->maps);
		return;
	}
	mappings_done(&p->before);
	p->before = p->maps;
	p->maps = (struct mappings){};
}

bool process_map(struct agent *a, struct process *p, uint64_t not_before_ns)
{
	static const struct mappings none;
	struct mappings fresh = {};
	uint64_t now;
	int r;

	if (p->maps.count && p->maps.read_ns >= not_before_ns)
		return true;
	now = clock_mono_ns();
	if (p->gone_ns || (p->tried_ns && now - p->tried_ns < MAP_EVERY_NS))
		return p->maps.count;
	p->tried_ns = now;
	r = mappings_read(a->pins.vmas_path, a->pins.control, p->tgid, p->start_ns, a->symbols,
			  &fresh);
	if (r < 0 && r != -EOVERFLOW)
		return p->maps.count;
	mappings_carry(p->maps.image == fresh.image ? &p->maps : &none, &fresh);
	keep_before(p, &fresh);
	p->maps = fresh;
	if (p->maps.compiled)
		meet_compiled(a, p);
	unwinding_follow(a, p);
	if (!unwinding_waits(a, p))
		process_mapped(a, p);
	return true;
}

bool process_map_image(struct agent *a, struct process *p, uint64_t time_ns)
{
	uint64_t now = clock_mono_ns();

	if ((p->maps.count || now - p->seen_ns < MAP_YOUNG_NS) && p->tried_ns < time_ns &&
	    now - p->tried_ns >= MAP_IMAGE_NS)
		p->tried_ns = 0;
	return process_map(a, p, time_ns);
}

int process_target(struct agent *a, const struct process *p)
{
	struct process_key key = key_of(p);
	struct target target = { .rule = NO_SLOT };
	bool matched = p->rule || p->requested;

	if (bpf_map_lookup_elem(a->pins.targets_fd, &key, &target) < 0 && !matched)
		return 0;
	target.flags &= ~(TARGET_MATCHED | TARGET_TOLD);
	/* Without one of its own it may have inherited one, which it keeps. */
	if (p->unwind.table)
		target.unwind = p->unwind.table;
	if (matched)
		target.flags |= TARGET_MATCHED | TARGET_TOLD;
	if (p->rule && a->active.set) {
		target.rule = (uint32_t)(p->rule - a->active.set->rules->rules);
		target.generation = a->active.set->generation;
	}
	return bpf_map_update_elem(a->pins.targets_fd, &key, &target, BPF_ANY) < 0 ? -errno : 0;
}
