/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/report/findings.h"

#include <stdlib.h>
#include <string.h>

#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

static const struct {
	const char *word;
	enum findings_time of;
	uint64_t least;
} rows[] = {
#define FINDING(id, word, of, least, helps) { word, FINDINGS_##of, least },
#include "shared/findings/findings.def"
#undef FINDING
};

static const char *const times[FINDINGS_TIMES] = { "waiting", "running", "session" };

/* Returns the total time that the finding explains a part of. */
static uint64_t whole_ns(const struct findings *all, const struct finding *f)
{
	return all->time_ns[rows[f->cause].of];
}

static uint64_t take_share(uint64_t part_ns, uint64_t of_ns)
{
	return of_ns ? MIN(part_ns, of_ns) * 1000 / of_ns : 0;
}

void findings_add(struct findings *all, const struct finding *f)
{
	if (!f->ns || take_share(f->ns, whole_ns(all, f)) < rows[f->cause].least)
		return;
	for (size_t i = 0; i < all->count; i++) {
		if (all->items[i].cause != f->cause)
			continue;
		if (all->items[i].ns < f->ns)
			all->items[i] = *f;
		return;
	}
	all->items[all->count++] = *f;
}

/* A wait on a pipe or for a process may be a wait for work if the writer or child is not known. */
static bool is_vague(const struct finding *f)
{
	return (f->cause == FINDING_PIPE || f->cause == FINDING_PROCESS) && !f->chain;
}

/*
 * Causes of waiting come first, then running code, then lasting states, each sorted by time;
 * findings without a culprit come last.
 */
static int by_time(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;

	if (is_vague(x) != is_vague(y))
		return is_vague(x) ? 1 : -1;
	if (rows[x->cause].of != rows[y->cause].of)
		return rows[x->cause].of < rows[y->cause].of ? -1 : 1;
	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	return (int)x->cause - (int)y->cause;
}

static void write_evidence(const struct finding *f, struct jsonw *w)
{
	const struct finding_evidence *e = &f->evidence;

	jsonw_array(w, "evidence");
	jsonw_object(w, NULL);
	jsonw_string(w, "type", e->type);
	if (e->signal)
		jsonw_string(w, "signal", e->signal);
	if (e->pid)
		jsonw_u64(w, "pid", e->pid);
	if (e->key)
		jsonw_string_n(w, e->key, e->value, strnlen(e->value, sizeof(e->value)));
	jsonw_object_end(w);
	if (f->chain) {
		jsonw_object(w, NULL);
		jsonw_string(w, "type", "chain");
		jsonw_u64(w, "chain", f->chain);
		jsonw_object_end(w);
	}
	jsonw_array_end(w);
}

static void write_finding(const struct findings *all, const struct finding *f, struct jsonw *w)
{
	jsonw_object(w, NULL);
	jsonw_string(w, "cause", rows[f->cause].word);
	jsonw_string(w, "of", times[rows[f->cause].of]);
	jsonw_u64(w, "explains_ms", f->ns / NSEC_PER_MSEC);
	jsonw_milli(w, "share", (int64_t)take_share(f->ns, whole_ns(all, f)));
	jsonw_bool(w, "certain", all->certain);
	jsonw_string_n(w, "says", f->says, strnlen(f->says, sizeof(f->says)));
	if (f->chain)
		jsonw_u64(w, "chain", f->chain);
	write_evidence(f, w);
	jsonw_object_end(w);
}

/*
 * Writes as many findings as fit into eleven sixteenths of the line, including the members before
 * them: findings come before all other evidence. Returns how many.
 */
static size_t write_list(const struct findings *all, struct jsonw *w)
{
	size_t n;

	jsonw_array(w, "findings");
	for (n = 0; n < MIN(all->count, (size_t)FINDINGS_MAX); n++) {
		struct jsonw_mark mark = jsonw_mark(w);

		write_finding(all, &all->items[n], w);
		if (jsonw_end(w) < 0 || w->bytes > w->max_bytes / 16 * 11) {
			jsonw_rewind(w, mark);
			break;
		}
	}
	jsonw_array_end(w);
	return n;
}

void findings_sort(struct findings *all)
{
	qsort(all->items, all->count, sizeof(*all->items), by_time);
}

void findings_write(const struct findings *all, struct jsonw *w)
{
	uint64_t left_ns = all->time_ns[FINDINGS_WAITING];
	size_t written;

	written = write_list(all, w);
	if (written < MIN(all->count, (size_t)FINDINGS_MAX))
		jsonw_u64(w, "findings_more", MIN(all->count, (size_t)FINDINGS_MAX) - written);
	for (size_t i = 0; i < written; i++)
		if (rows[all->items[i].cause].of == FINDINGS_WAITING)
			left_ns -= MIN(left_ns, all->items[i].ns);
	jsonw_u64(w, "waited_ms", all->time_ns[FINDINGS_WAITING] / NSEC_PER_MSEC);
	jsonw_milli(w, "unexplained", (int64_t)take_share(left_ns, all->time_ns[FINDINGS_WAITING]));
}
