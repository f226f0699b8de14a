/* SPDX-License-Identifier: BSD-2-Clause */
/* Frees modules without references. */
#include "consumer/symbols/symbols_internal.h"

size_t symbols_forget(struct symbols *s, uint64_t before_ns,
		      bool (*is_used)(void *context, const struct module *m), void *context)
{
	return modules_forget(&s->modules, SYMBOLS_MODULES_KEEP, before_ns, is_used, context);
}

/* Ends the references of modules without a file to files that are about to be freed. */
static void forget_resolved(struct symbols *s)
{
	struct module *m;

	for (size_t i = 0; (m = modules_at(&s->modules, i)); i++)
		if (m->resolved && m->resolved->taken)
			m->resolved = NULL;
}

void symbols_sweep(struct symbols *s)
{
	struct module *list = modules_take_forgotten(&s->modules, &s->identified), *next;

	if (!list)
		return;
	forget_resolved(s);
	for (struct module *m = list; m; m = next) {
		next = m->next;
		build_ids_remove(&s->ids, m);
		if (m->symbols)
			symbols_evict_table(s, m);
		modules_free(m);
	}
}
