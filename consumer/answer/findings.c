/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/answer/findings.h"

#include <stdlib.h>
#include <string.h>

#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

static const struct {
	const char *word;
	enum findings_time of;
	enum findings_resource resource;
	uint64_t least;
	enum findings_level level;
	const char *proof;
} rows[] = {
#define FINDING(id, word, of, resource, least, level, proof, helps) \
	{ word, FINDINGS_##of, FINDINGS_##resource, least, FINDINGS_##level, proof },
#include "shared/findings/findings.def"
#undef FINDING
};

static const char *const times[FINDINGS_TIMES] = { "waiting", "running", "session" };

/* Returns the total time that the finding explains a part of. */
static uint64_t whole_ns(const struct findings *all, const struct finding *f)
{
	return all->time_ns[f->of];
}

static uint64_t take_share(uint64_t part_ns, uint64_t of_ns)
{
	return of_ns ? MIN(part_ns, of_ns) * 1000 / of_ns : 0;
}

struct finding *findings_get(struct findings *all, enum finding_cause cause)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->items[i].cause == cause)
			return &all->items[i];
	return NULL;
}

enum findings_resource findings_resource_of(const struct finding *f)
{
	return rows[f->cause].resource;
}

static bool is_enough(const struct findings *all, const struct finding *f)
{
	return f->ns && take_share(f->ns, whole_ns(all, f)) >= rows[f->cause].least;
}

void findings_add(struct findings *all, const struct finding *f)
{
	struct finding *before = findings_get(all, f->cause);
	struct finding one = *f;

	one.of = f->lasts ? FINDINGS_SESSION : rows[f->cause].of;
	if (!is_enough(all, &one))
		return;
	if (!before)
		all->items[all->count++] = one;
	else if (before->ns < f->ns)
		*before = one;
}

/*
 * Returns how little a finding knows of a culprit. A wait on a pipe or for a process may be a wait
 * for work if the writer or child is not known; a wait in a new place names only the place.
 */
static int vagueness_of(const struct finding *f)
{
	if (f->cause == FINDING_CHANGED_WAIT)
		return 2;
	return (f->cause == FINDING_PIPE || f->cause == FINDING_PROCESS) && !f->chain;
}

/* A state that lasts as long as threads wait is often the same thing: then the threads come first.
 */
static uint64_t weight_of(const struct finding *f)
{
	return f->of == FINDINGS_SESSION ? f->ns - f->ns / 8 : f->ns;
}

/*
 * The root of the symptom comes first, findings without a culprit last. The others are sorted by
 * time: a second of a thread that waits weighs as much as a second of a state that lasts.
 */
static int by_time(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;

	if (x->is_root != y->is_root)
		return x->is_root ? -1 : 1;
	if (vagueness_of(x) != vagueness_of(y))
		return vagueness_of(x) - vagueness_of(y);
	if (weight_of(x) != weight_of(y))
		return weight_of(x) < weight_of(y) ? 1 : -1;
	return (int)x->cause - (int)y->cause;
}

enum findings_level findings_level_of(const struct finding *f, const char **ret_proof)
{
	*ret_proof = f->proof ? f->proof : rows[f->cause].proof;
	return f->proof ? f->level : rows[f->cause].level;
}

const char *findings_level_name(enum findings_level level)
{
	return level == FINDINGS_CERTAIN ? "certain" : "likely";
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
	const char *proof;
	enum findings_level level = findings_level_of(f, &proof);

	jsonw_object(w, NULL);
	jsonw_string(w, "cause", rows[f->cause].word);
	jsonw_string(w, "of", times[f->of]);
	jsonw_u64(w, "explains_ms", f->ns / NSEC_PER_MSEC);
	if (f->of == FINDINGS_WAITING)
		jsonw_milli(w, "share", (int64_t)take_share(f->ns, whole_ns(all, f)));
	jsonw_string(w, "level", findings_level_name(level));
	jsonw_string(w, "proof", proof);
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
	uint64_t left_ns = all->time_ns[FINDINGS_WAITING];
	size_t n = 0;

	qsort(all->items, all->count, sizeof(*all->items), by_time);
	for (size_t i = 0; i < all->count; i++) {
		struct finding *f = &all->items[i];

		if (f->of == FINDINGS_WAITING) {
			/* A failing disk is no matter of time: its last nanosecond stays. */
			f->ns = MIN(f->ns, MAX(left_ns, (uint64_t)1));
			left_ns -= MIN(f->ns, left_ns);
		}
		if (is_enough(all, f))
			all->items[n++] = *f;
	}
	all->count = n;
}

unsigned int findings_explained_pct(const struct findings *all)
{
	uint64_t explained_ns = 0, of_ns = all->time_ns[FINDINGS_WAITING];

	for (size_t i = 0; i < all->count; i++) {
		explained_ns += all->items[i].ns;
		of_ns += all->items[i].of == FINDINGS_WAITING ? 0 : all->items[i].ns;
	}
	return of_ns ? (unsigned int)(MIN(explained_ns, of_ns) * 100 / of_ns) : 100;
}

void findings_write(const struct findings *all, struct jsonw *w)
{
	uint64_t left_ns = all->time_ns[FINDINGS_WAITING];
	size_t written;

	written = write_list(all, w);
	if (written < MIN(all->count, (size_t)FINDINGS_MAX))
		jsonw_u64(w, "findings_more", MIN(all->count, (size_t)FINDINGS_MAX) - written);
	for (size_t i = 0; i < written; i++)
		if (all->items[i].of == FINDINGS_WAITING)
			left_ns -= MIN(left_ns, all->items[i].ns);
	jsonw_u64(w, "waited_ms", all->time_ns[FINDINGS_WAITING] / NSEC_PER_MSEC);
	jsonw_milli(w, "unexplained", (int64_t)take_share(left_ns, all->time_ns[FINDINGS_WAITING]));
}
