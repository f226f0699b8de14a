/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/unwinding_lines.h"

#include "consumer/agent.h"
#include "consumer/unwind/unwind_end.h"
#include "shared/clock.h"

/* Modules without rows that one line names; the rest is counted. */
#define ROWLESS_MAX 16

/* Modules that one answer of the status method names. */
#define MODULES_MAX 256

const char *unwinding_name(enum unwinding_how how)
{
	static const char *const names[] = {
		[UNWINDING_UNKNOWN] = NULL,
		[UNWINDING_FP] = "fp",
		[UNWINDING_TABLE] = "table",
		[UNWINDING_MIXED] = "mixed",
	};

	return names[how];
}

static void write_rowless(struct agent *a, const struct process *p, struct jsonw *w)
{
	const struct module *module;
	size_t i;

	jsonw_array(w, "without_rows");
	for (i = 0; (module = unwinding_plan_rowless(p->unwind.plan, i)) && i < ROWLESS_MAX; i++) {
		jsonw_object(w, NULL);
		jsonw_string(w, "module", module->path);
		jsonw_string(w, "reason", unwind_files_why(a->unwinding.files, module));
		jsonw_object_end(w);
	}
	jsonw_array_end(w);
	while (unwinding_plan_rowless(p->unwind.plan, i))
		i++;
	if (i > ROWLESS_MAX)
		jsonw_u64(w, "without_rows_omitted", i - ROWLESS_MAX);
}

void unwinding_say(struct agent *a, struct process *p)
{
	const struct event_about about = { p->rule, p->cgroup_id, p->uid, NULL };
	struct unwinding_state *s = &p->unwind;
	struct line_subject subject;
	struct jsonw w;

	if (!p->announced || s->how == s->said)
		return;
	s->said = s->how;
	if (!event_budget_take(&a->budget, &about, LINE_UNWIND))
		return;
	subject = event_log_subject(&a->log, p->rule, p->cgroup_id);
	line_begin(&a->lines, &w, "process.unwind", &subject);
	jsonw_u64(&w, "pid", p->tgid);
	jsonw_u64(&w, "start_ns", p->start_ns);
	jsonw_string(&w, "comm", p->comm);
	jsonw_string(&w, "unwind", unwinding_name(s->how));
	jsonw_u64(&w, "mappings", p->maps.count);
	if (s->cut)
		jsonw_u64(&w, "mappings_cut", s->cut);
	jsonw_u64(&w, "ready_ms", (clock_mono_ns() - p->maps.read_ns) / NSEC_PER_MSEC);
	write_rowless(a, p, &w);
	line_end(&a->lines, &w);
}

static void write_module(const struct unwind_module *m, struct jsonw *w)
{
	jsonw_object(w, NULL);
	jsonw_string(w, "module", m->module->path);
	jsonw_u64(w, "rows", m->rows);
	jsonw_u64(w, "bytes", m->bytes);
	jsonw_u64(w, "compile_us", m->compile_ns / 1000);
	if (m->why)
		jsonw_string(w, "reason", m->why);
	else
		jsonw_u64(w, "unsupported_ppm", m->unsupported_ppm);
	jsonw_object_end(w);
}

/* Those without rows first: they are what an operator can do something about. */
static void write_modules(const struct unwinding *u, struct jsonw *w)
{
	struct unwind_module m;
	size_t written = 0, omitted = 0;

	jsonw_array(w, "modules");
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; unwind_files_module(u->files, i, &m); i++) {
			if ((m.why == NULL) != (pass == 1))
				continue;
			if (written == MODULES_MAX)
				omitted++;
			else
				write_module(&m, w);
			written += written < MODULES_MAX;
		}
	jsonw_array_end(w);
	if (omitted)
		jsonw_u64(w, "modules_omitted", omitted);
}

static void write_ends(const struct agent *a, struct jsonw *w)
{
	struct totals totals = { 0 };

	pins_totals(&a->pins, &totals);
	jsonw_object(w, "ends");
	for (int i = UNWIND_END_NONE + 1; i < UNWIND_END_COUNT_; i++)
		if (i != UNWIND_END_NO_PLACE &&
		    i != UNWIND_END_NO_POINTERS) /* the consumer's own */
			jsonw_u64(w, unwind_end_word((enum unwind_end)i), totals.unwind_ends[i]);
	jsonw_object_end(w);
}

void unwinding_write_status(const struct agent *a, struct jsonw *w)
{
	const struct unwinding *u = &a->unwinding;
	struct unwind_files_stats s;

	if (!u->files)
		return;
	unwind_files_stats(u->files, &s);
	jsonw_object(w, "unwind");
	jsonw_u64(w, "pool_bytes", (uint64_t)s.pool_elements * 8);
	jsonw_u64(w, "pool_used_bytes", (uint64_t)s.pool_used * 8);
	jsonw_u64(w, "files", s.files);
	jsonw_u64(w, "rows", s.rows);
	jsonw_u64(w, "rules", s.rules);
	jsonw_u64(w, "compiled", s.compiled);
	jsonw_u64(w, "compile_us", s.compile_ns / 1000);
	jsonw_u64(w, "evicted", s.evicted);
	jsonw_u64(w, "tables", u->table_count);
	jsonw_u64(w, "tables_used", u->live);
	jsonw_u64(w, "tables_published", u->published);
	jsonw_u64(w, "tables_full", u->full);
	jsonw_u64(w, "mappings_cut", u->cut);
	jsonw_u64(w, "mappings_missed", u->missed);
	jsonw_string(w, "grace", s.membarrier ? "membarrier" : "wait");
	jsonw_u64(w, "graces", s.graces);
	write_ends(a, w);
	write_modules(u, w);
	jsonw_object_end(w);
}
