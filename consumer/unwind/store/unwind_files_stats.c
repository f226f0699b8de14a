/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reports on compiled files: for the status method, and for the module that shares the pool among
 * owners.
 */
#include "consumer/unwind/store/unwind_files_internal.h"

const char *unwind_files_why(struct unwind_files *f, const struct module *module)
{
	const struct wanted *w;
	const char *why = NULL;

	if (module->anonymous)
		return "anonymous";
	pthread_mutex_lock(&f->lock);
	w = idmap_get(&f->by_module, (uintptr_t)module);
	if (w && w->state == FAILED)
		why = w->reason;
	pthread_mutex_unlock(&f->lock);
	return why ? why : "not_compiled";
}

void unwind_files_stats(struct unwind_files *f, struct unwind_files_stats *ret_stats)
{
	pthread_mutex_lock(&f->lock);
	*ret_stats = f->stats;
	ret_stats->modules = f->module_count;
	ret_stats->files = f->builds.count;
	ret_stats->rows = f->builds.rows;
	ret_stats->evicted = f->builds.evicted;
	ret_stats->pool_used = f->builds.pool.used;
	ret_stats->pool_elements = f->builds.pool.size;
	for (size_t i = 0; i < f->module_count; i++)
		ret_stats->failed += f->modules[i]->state == FAILED;
	pthread_mutex_unlock(&f->lock);
}

bool unwind_files_module(struct unwind_files *f, size_t i, struct unwind_module *ret_module)
{
	const struct wanted *w;
	const struct unwind_build *b;
	bool live;

	pthread_mutex_lock(&f->lock);
	w = i < f->module_count ? f->modules[i] : NULL;
	if (w) {
		b = &f->builds.items[w->number];
		live = w->state == READY && b->live && b->epoch == w->epoch;
		*ret_module = (struct unwind_module){
			.module = w->module,
			.reason = live		       ? NULL
				  : w->state == FAILED ? w->reason
						       : "not_compiled",
			.rows = live ? b->rows : 0,
			.bytes = live ? b->elements * 8 : 0,
			.compile_ns = live ? b->compile_ns : 0,
			.unsupported_ppm = live ? b->unsupported_ppm : 0,
		};
	}
	pthread_mutex_unlock(&f->lock);
	return w != NULL;
}

uint32_t unwind_files_elements(struct unwind_files *f, uint32_t number)
{
	const struct unwind_build *b = &f->builds.items[number];
	uint32_t elements;

	pthread_mutex_lock(&f->lock);
	elements = b->live ? b->elements : 0;
	pthread_mutex_unlock(&f->lock);
	return elements;
}

uint32_t unwind_files_lacking(struct unwind_files *f, const struct module *module)
{
	const struct wanted *w;
	uint32_t elements;

	pthread_mutex_lock(&f->lock);
	w = idmap_get(&f->by_module, (uintptr_t)module);
	elements = w && w->state == FAILED ? w->lacking : 0;
	pthread_mutex_unlock(&f->lock);
	return elements;
}
