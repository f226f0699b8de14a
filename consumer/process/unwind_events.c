/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/process/unwind_events.h"

#include "consumer/process/unwind_plan.h"
#include "consumer/unwind/store/unwind_end.h"
#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

static const char *const runtime_words[] = {
#define RUNTIME_STATE(id, word, help) word,
#include "shared/abi/runtime_states.def"
#undef RUNTIME_STATE
};

/* Modules without rows that one line names; the rest are counted. */
#define ROWLESS_MAX 16

/* Modules that one answer of the status method names. */
#define MODULES_MAX 256

static const char *const how_names[] = {
	[UNWIND_HOW_UNKNOWN] = NULL,
	[UNWIND_HOW_FP] = "fp",
	[UNWIND_HOW_TABLE] = "table",
	[UNWIND_HOW_MIXED] = "mixed",
};

static void write_rowless(const struct unwind_plan *plan, struct unwind_files *files,
			  struct jsonw *w)
{
	const struct module *module;
	size_t i;

	jsonw_array(w, "without_rows");
	for (i = 0; (module = unwind_plan_rowless(plan, i)) && i < ROWLESS_MAX; i++) {
		jsonw_object(w, NULL);
		jsonw_string(w, "module", module->path);
		jsonw_string(w, "reason", unwind_files_why(files, module));
		jsonw_object_end(w);
	}
	jsonw_array_end(w);
	while (unwind_plan_rowless(plan, i))
		i++;
	if (i > ROWLESS_MAX)
		jsonw_u64(w, "without_rows_omitted", i - ROWLESS_MAX);
}

void unwind_events_say(const struct event_log *log, struct event_budget *budget,
		       const struct process *p, struct unwind_files *files)
{
	const struct event_about about = { p->rule, p->cgroup_id, p->uid, NULL };
	const struct unwind_state *s = &p->unwind;
	struct event_subject subject;
	struct jsonw w;

	if (!event_budget_take(budget, &about, LINE_UNWIND))
		return;
	subject = event_log_subject(log, p->rule, p->cgroup_id);
	event_line_begin(log->lines, &w, "process.unwind", &subject);
	jsonw_u64(&w, "pid", p->tgid);
	jsonw_u64(&w, "start_ns", p->start_ns);
	jsonw_string(&w, "comm", p->comm);
	jsonw_string(&w, "unwind", how_names[s->how]);
	jsonw_u64(&w, "mappings", p->maps.count);
	jsonw_u64_nonzero(&w, "mappings_cut", s->cut);
	if (s->table && s->runtime && s->runtime < RUNTIME_STATES_)
		jsonw_string(&w, "runtime_frames", runtime_words[s->runtime]);
	jsonw_u64(&w, "ready_ms", (clock_mono_ns() - p->maps.read_ns) / NSEC_PER_MSEC);
	write_rowless(s->plan, files, &w);
	event_line_end(log->lines, &w);
}

static void write_module(const struct unwind_module *m, struct jsonw *w)
{
	jsonw_object(w, NULL);
	jsonw_string(w, "module", m->module->path);
	jsonw_u64(w, "rows", m->rows);
	jsonw_u64(w, "bytes", m->bytes);
	jsonw_u64(w, "compile_us", m->compile_ns / 1000);
	if (m->reason)
		jsonw_string(w, "reason", m->reason);
	else
		jsonw_u64(w, "unsupported_ppm", m->unsupported_ppm);
	jsonw_object_end(w);
}

/* Writes modules without rows first, because an operator can fix those. */
static void write_modules(struct unwind_files *files, struct jsonw *w)
{
	struct unwind_module m;
	size_t written = 0, omitted = 0;

	jsonw_array(w, "modules");
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; unwind_files_module(files, i, &m); i++) {
			if ((m.reason == NULL) != (pass == 1))
				continue;
			if (written == MODULES_MAX)
				omitted++;
			else
				write_module(&m, w);
			written += written < MODULES_MAX;
		}
	jsonw_array_end(w);
	jsonw_u64_nonzero(w, "modules_omitted", omitted);
}

static void write_ends(const struct totals *totals, struct jsonw *w)
{
	jsonw_object(w, "ends");
	for (int i = UNWIND_END_NONE + 1; i < UNWIND_END_COUNT_; i++)
		if (i != UNWIND_END_NO_PLACE &&
		    i != UNWIND_END_NO_POINTERS) /* a reason that only the consumer uses */
			jsonw_u64(w, unwind_end_word((enum unwind_end)i),
				  totals->unwind_stop_reasons[i]);
	jsonw_object_end(w);
}

/* How the kernel's own stacks were taken. */
static void write_kernel(const struct totals *totals, struct jsonw *w)
{
	jsonw_object(w, "kernel");
	jsonw_u64(w, "asked", totals->kernel_stacks_asked);
	jsonw_u64(w, "compared", totals->kernel_stacks_compared);
	jsonw_u64(w, "wrong", totals->kernel_stacks_wrong);
	jsonw_object_end(w);
}

/* The names of code objects of language runtimes. */
static void write_names(const struct totals *totals, const struct code_names_stats *names,
			struct jsonw *w)
{
	jsonw_object(w, "names");
	jsonw_u64(w, "count", names->count);
	jsonw_u64(w, "bytes", names->bytes);
	jsonw_u64(w, "added", names->added);
	jsonw_u64(w, "evicted", names->evicted);
	jsonw_u64(w, "refused", names->refused);
	jsonw_u64(w, "ring_full", totals->runtime_names_full);
	jsonw_object_end(w);
}

void unwind_events_write_status(const struct unwind_tables *tables, const struct totals *totals,
				const struct code_names_stats *names, struct jsonw *w)
{
	struct unwind_files_stats s;

	unwind_files_stats(tables->files, &s);
	jsonw_object(w, "unwind");
	jsonw_u64(w, "pool_bytes", (uint64_t)s.pool_elements * 8);
	jsonw_u64(w, "pool_used_bytes", (uint64_t)s.pool_used * 8);
	jsonw_u64(w, "files", s.files);
	jsonw_u64(w, "rows", s.rows);
	jsonw_u64(w, "rules", s.rules);
	jsonw_u64(w, "compiled", s.compiled);
	jsonw_u64(w, "compile_us", s.compile_ns / 1000);
	jsonw_u64(w, "evicted", s.evicted);
	jsonw_u64(w, "tables", tables->count);
	jsonw_u64(w, "tables_used", tables->live);
	jsonw_u64(w, "tables_published", tables->published);
	jsonw_u64(w, "tables_full", tables->full);
	jsonw_u64(w, "mappings_cut", tables->cut);
	jsonw_u64(w, "mappings_missed", tables->unconfirmed);
	jsonw_string(w, "grace", s.membarrier ? "membarrier" : "wait");
	jsonw_u64(w, "graces", s.graces);
	write_ends(totals, w);
	write_kernel(totals, w);
	write_names(totals, names, w);
	write_modules(tables->files, w);
	jsonw_object_end(w);
}
