/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/unwind/store/unwind_files_internal.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "consumer/unwind/compile/unwind_compile.h"
#include "shared/tools/array.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"
#include "shared/tools/thread.h"

/* Longer than any tick runs; used if the kernel cannot report that all ticks have ended. */
#define GRACE_WAIT_NS (500 * NSEC_PER_MSEC)

/* ---- the unwinder thread */

static void tell_loop(struct unwind_files *f)
{
	uint64_t one = 1;

	if (write(f->fd, &one, sizeof(one)) < 0)
		return; /* the counter is full, so the loop wakes in any case */
}

/* Publishes new rules before the rows that refer to them. */
static void tell_rules(struct unwind_files *f)
{
	while (f->rules_told < f->rules.count) {
		f->maps.rules[f->rules_told] = f->rules.rules[f->rules_told];
		f->rules_told++;
	}
	__atomic_store_n(&f->stats.rules, f->rules.count, __ATOMIC_RELAXED);
}

/* Puts a table into the pool and holds *ret_build once, to prevent it from being given up. */
static int place_table(struct unwind_files *f, const struct unwind_layout *layout,
		       const struct unwind_table *t, uint64_t compile_ns,
		       struct unwind_build **ret_build)
{
	struct unwind_build *b;
	int r;

	pthread_mutex_lock(&f->lock);
	r = unwind_builds_add(&f->builds, layout, t, compile_ns, &b);
	if (r == 0) {
		f->stats.compiled++;
		f->stats.compile_ns += compile_ns;
	}
	pthread_mutex_unlock(&f->lock);
	if (r == -ENOSPC)
		f->lacking = unwind_builds_elements(t);
	if (r < 0)
		return r;
	r = unwind_builds_write(b, t, f->maps.pool_fd, &f->maps.files[b - f->builds.items]);
	if (r == 0) {
		*ret_build = b;
		return 0;
	}
	pthread_mutex_lock(&f->lock);
	unwind_builds_remove(&f->builds, b);
	pthread_mutex_unlock(&f->lock);
	return r;
}

static int compile_build(struct unwind_files *f, const struct elf_image *image,
			 const struct unwind_layout *layout, struct unwind_build **ret_build)
{
	_cleanup_(unwind_table_done) struct unwind_table table = { 0 };
	uint64_t begun_ns = clock_mono_ns();
	int r;

	r = unwind_compile(image, &f->rules, &table);
	if (r < 0)
		return r;
	tell_rules(f);
	return place_table(f, layout, &table, clock_mono_ns() - begun_ns, ret_build);
}

/* Finds or compiles the build of an opened file and holds it once. */
static int build_of(struct unwind_files *f, const struct module *m, const struct elf_image *image,
		    struct unwind_build **ret_build)
{
	struct unwind_layout layout;
	struct unwind_build *b;
	int r;

	r = unwind_file_layout(image, &layout);
	if (r < 0)
		return r;
	if (!symbols_is_build(f->symbols, m, layout.build_id, layout.build_id_bytes))
		return -ESTALE;
	pthread_mutex_lock(&f->lock);
	b = unwind_builds_find(&f->builds, &layout);
	if (b)
		unwind_builds_hold(&f->builds, b);
	pthread_mutex_unlock(&f->lock);
	if (!b)
		return compile_build(f, image, &layout, ret_build);
	*ret_build = b;
	return 0;
}

static void settle_file(struct unwind_files *f, struct wanted *w, const struct unwind_build *b,
			int error, const char *why)
{
	__atomic_store_n(&w->module->rowless, error ? why : "", __ATOMIC_RELAXED);
	if (error == 0) {
		w->state = READY;
		w->number = (uint32_t)(b - f->builds.items);
		w->epoch = b->epoch;
		w->reason = NULL;
		return;
	}
	w->state = FAILED;
	w->error = error;
	w->reason = why;
	w->failed_ns = clock_mono_ns();
	w->lacking = f->lacking;
	w->freed = f->freed;
	f->lacking = 0;
}

static void read_module(struct unwind_files *f, struct wanted *w)
{
	struct elf_image image = { .fd = -1 };
	const char *why = symbols_open(f->symbols, w->module, &image);
	struct unwind_build *b = NULL;
	int r = -EACCES;

	w->known = __atomic_load_n(&w->module->build_id_known, __ATOMIC_RELAXED);
	if (!why) {
		r = build_of(f, w->module, &image, &b);
		cleanup_close(&image.fd);
	}
	pthread_mutex_lock(&f->lock);
	settle_file(f, w, b, r, why ? why : unwind_file_why(r));
	if (b)
		b->holds--;
	pthread_mutex_unlock(&f->lock);
}

static void pass_grace(struct unwind_files *f)
{
	uint64_t asked = f->grace_asked;
	bool done;

	pthread_mutex_unlock(&f->lock);
	done = syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0;
	if (!done)
		nanosleep(&(struct timespec){ .tv_nsec = GRACE_WAIT_NS }, NULL);
	pthread_mutex_lock(&f->lock);
	f->grace_passed = asked;
	f->stats.graces++;
	f->stats.membarrier = done;
}

static void *run_unwinder(void *context)
{
	struct unwind_files *f = context;
	struct wanted *w;

	pthread_mutex_lock(&f->lock);
	while (!f->stopping) {
		if (f->grace_asked != f->grace_passed) {
			pass_grace(f);
		} else if (f->first) {
			w = f->first;
			f->first = w->next;
			pthread_mutex_unlock(&f->lock);
			read_module(f, w);
			pthread_mutex_lock(&f->lock);
		} else {
			pthread_cond_wait(&f->changed, &f->lock);
			continue;
		}
		tell_loop(f);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

/* ---- the main thread */

static int start_stores(struct unwind_files *f)
{
	int r = unwind_builds_init(&f->builds, f->maps.pool_elements);

	if (r == 0)
		r = unwind_rules_init(&f->rules);
	if (r < 0)
		return r;
	tell_rules(f);
	f->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (f->fd < 0)
		return -errno;
	return thread_start(&f->thread, NULL, "unwinder", run_unwinder, f);
}

static void release_all(struct unwind_files *f)
{
	for (size_t i = 0; i < f->module_count; i++)
		free(f->modules[i]);
	free(f->modules);
	idmap_done(&f->by_module);
	unwind_builds_done(&f->builds);
	unwind_rules_done(&f->rules);
	cleanup_close(&f->fd);
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->changed);
	free(f);
}

int unwind_files_new(const struct unwind_maps *maps, struct symbols *symbols,
		     struct unwind_files **ret_files)
{
	struct unwind_files *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	f->maps = *maps;
	f->symbols = symbols;
	f->fd = -1;
	f->stats.membarrier = true;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->changed, NULL);
	idmap_init(&f->by_module, SYMBOLS_MODULES_MAX);
	r = start_stores(f);
	if (r < 0) {
		release_all(f);
		return r;
	}
	*ret_files = f;
	return 0;
}

void unwind_files_free(struct unwind_files *f)
{
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	f->stopping = true;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->thread, NULL);
	release_all(f);
}

int unwind_files_fd(const struct unwind_files *f)
{
	return f->fd;
}

void unwind_files_news(struct unwind_files *f)
{
	uint64_t count;

	if (read(f->fd, &count, sizeof(count)) < 0)
		return; /* there may be nothing to read */
}

static int enlist_file(struct unwind_files *f, struct wanted *w)
{
	if (array_reserve(&f->modules, &f->module_space, f->module_count + 1,
			  sizeof(struct wanted *)) < 0)
		return -ENOMEM;
	f->modules[f->module_count++] = w;
	return 0;
}

/* Puts the file into the queue; call with the lock held. */
static void queue_file(struct unwind_files *f, struct wanted *w)
{
	w->state = WANTED;
	w->next = NULL;
	if (f->first)
		f->last->next = w;
	else
		f->first = w;
	f->last = w;
	pthread_cond_broadcast(&f->changed);
}

static int find_or_make_file(struct unwind_files *f, struct module *module,
			     struct wanted **ret_wanted)
{
	uint64_t key = (uintptr_t)module;
	struct wanted *w = idmap_get(&f->by_module, key);
	int r;

	if (w) {
		*ret_wanted = w;
		return 0;
	}
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->module = module;
	r = idmap_put(&f->by_module, key, w);
	if (r == 0)
		r = enlist_file(f, w);
	if (r < 0) {
		idmap_remove(&f->by_module, key);
		free(w);
		return r;
	}
	queue_file(f, w);
	*ret_wanted = w;
	return 0;
}

static bool may_retry(const struct unwind_files *f, const struct wanted *w)
{
	return clock_mono_ns() - w->failed_ns > UNWIND_RETRY_NS ||
	       (w->lacking && w->freed != f->freed) ||
	       (!w->known && __atomic_load_n(&w->module->build_id_known, __ATOMIC_RELAXED));
}

/* Call with the lock held. */
static int hold_file(struct unwind_files *f, struct module *module, uint32_t *ret_number)
{
	struct wanted *w;
	struct unwind_build *b;
	int r;

	r = find_or_make_file(f, module, &w);
	if (r < 0)
		return r;
	if (w->state == FAILED && !may_retry(f, w))
		return w->error;
	b = &f->builds.items[w->number];
	if (w->state == READY && b->live && b->epoch == w->epoch) {
		unwind_builds_hold(&f->builds, b);
		*ret_number = w->number;
		return 0;
	}
	if (w->state != WANTED)
		queue_file(f, w);
	return -EAGAIN;
}

int unwind_files_hold(struct unwind_files *f, struct module *module, uint32_t *ret_number)
{
	int r;

	pthread_mutex_lock(&f->lock);
	r = hold_file(f, module, ret_number);
	pthread_mutex_unlock(&f->lock);
	return r;
}

bool unwind_files_is_pending(struct unwind_files *f, const struct module *module)
{
	const struct wanted *w;
	bool pending;

	pthread_mutex_lock(&f->lock);
	w = idmap_get(&f->by_module, (uintptr_t)module);
	pending = w && w->state == WANTED;
	pthread_mutex_unlock(&f->lock);
	return pending;
}

void unwind_files_forget(struct unwind_files *f)
{
	size_t kept = 0;

	pthread_mutex_lock(&f->lock);
	for (size_t i = 0; i < f->module_count; i++) {
		struct wanted *w = f->modules[i];

		if (!w->module->forgotten) {
			f->modules[kept++] = w;
			continue;
		}
		idmap_remove(&f->by_module, (uintptr_t)w->module);
		free(w);
	}
	f->module_count = kept;
	pthread_mutex_unlock(&f->lock);
}

void unwind_files_release(struct unwind_files *f, uint32_t number)
{
	pthread_mutex_lock(&f->lock);
	f->builds.items[number].holds--;
	pthread_mutex_unlock(&f->lock);
}

void unwind_files_retry(struct unwind_files *f)
{
	pthread_mutex_lock(&f->lock);
	f->freed++;
	pthread_mutex_unlock(&f->lock);
}

int unwind_files_base(struct unwind_files *f, uint32_t number, uint64_t start, uint64_t offset,
		      uint64_t *ret_base)
{
	const struct unwind_build *build = &f->builds.items[number];
	uint64_t bias;
	int r;

	pthread_mutex_lock(&f->lock);
	r = unwind_file_bias(&build->layout, start, offset, &bias);
	if (r == 0)
		*ret_base = bias + build->table_base;
	pthread_mutex_unlock(&f->lock);
	return r;
}

bool unwind_files_claim(struct unwind_files *f, uint32_t number, uint64_t start, uint64_t offset,
			struct runtime_claim *claim)
{
	const struct unwind_layout *layout = &f->builds.items[number].layout;
	uint64_t bias;
	bool is_runtime;

	pthread_mutex_lock(&f->lock);
	is_runtime = layout->runtime.indices[RUNTIME_SYMBOL_STATE] &&
		     unwind_file_bias(layout, start, offset, &bias) == 0;
	if (is_runtime) {
		claim->start = bias + layout->runtime.first;
		memcpy(claim->symbols, layout->runtime.indices, sizeof(claim->symbols));
	}
	pthread_mutex_unlock(&f->lock);
	return is_runtime;
}

uint64_t unwind_files_grace(struct unwind_files *f)
{
	uint64_t asked;

	pthread_mutex_lock(&f->lock);
	asked = ++f->grace_asked;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	return asked;
}

uint64_t unwind_files_graced(struct unwind_files *f)
{
	uint64_t passed;

	pthread_mutex_lock(&f->lock);
	passed = f->grace_passed;
	pthread_mutex_unlock(&f->lock);
	return passed;
}
