/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/view/view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl/cli/command_exit.h"
#include "ctl/cli/text.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

/* Ticks of one rate differ by up to this factor, because a CPU may be late. */
#define RATE_TOLERANCE 1.2

static const char *const bys[] = { "session", "rule", "cgroup", "signal",
				   "phase",   "exe",  "comm",	"pid" };
enum { BY_SESSION, BY_RULE, BY_CGROUP, BY_SIGNAL, BY_PHASE, BY_EXE, BY_COMM, BY_PID };

_Static_assert(ARRAY_SIZE(bys) == VIEW_BY_MAX, "each key at most once");

/*
 * Takes the next word of a list with commas; false: there is no such key, or it is a repeated one.
 */
static bool take_by(struct view *v, const char *word, size_t bytes)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(bys); i++) {
		if (strlen(bys[i]) != bytes || strncmp(bys[i], word, bytes) != 0)
			continue;
		for (unsigned int k = 0; k < v->n_by; k++)
			if (v->by[k] == i)
				return false;
		v->by[v->n_by++] = i;
		return true;
	}
	return false;
}

static int parse_by(struct view *v, const struct options *options)
{
	const char *text = options->by;

	if (!strcmp(text, "none"))
		return 0;
	for (;;) {
		size_t bytes = strcspn(text, ",");

		if (!take_by(v, text, bytes)) {
			fprintf(options->err,
				"trocar: --by %.80s: want none, or each at most once with commas "
				"between: session, rule, cgroup, signal, phase, exe, comm, pid\n",
				options->by);
			return -EINVAL;
		}
		if (!text[bytes])
			return 0;
		text += bytes + 1;
	}
}

static unsigned int count_signals(const struct store *s)
{
	uint32_t first = STORE_NONE;

	for (uint32_t i = 0; i < s->keys.count; i++) {
		const struct store_key *key = store_key_get(s, i);

		if (first == STORE_NONE)
			first = key->signal;
		if (key->signal != first)
			return 2;
	}
	return s->keys.count ? 1 : 0;
}

static void put_first(struct view *v, unsigned int by)
{
	for (unsigned int i = 0; i < v->n_by; i++)
		if (v->by[i] == by)
			return;
	memmove(v->by + 1, v->by, v->n_by * sizeof(*v->by));
	v->by[0] = by;
	v->n_by++;
}

/* Returns the number of different rules of the shown sessions of a file: 0, 1, 2 for more. */
static unsigned int count_rules(const struct store *s, unsigned int file)
{
	uint32_t first = STORE_NONE;
	unsigned int n = 0;

	for (uint32_t i = 0; i < s->ids.count && n < 2; i++) {
		if (!(s->sessions[i].files & 1u << file) || (n && s->sessions[i].rule == first))
			continue;
		first = s->sessions[i].rule;
		n++;
	}
	return n;
}

int view_print(const struct options *options, struct input *input, enum view_unit unit,
	       int (*print)(const struct options *options, struct view *view))
{
	_cleanup_(view_done) struct view view = { 0 };
	int r = view_init(&view, options, input, unit);

	if (r == -EINVAL)
		return COMMAND_USAGE;
	if (r == 0)
		r = print(options, &view);
	return r < 0 ? input_fail(options, input, r) : input_status(input);
}

bool view_rates_differ(const struct view *v)
{
	const struct store *s = &v->input->store;
	double least = 0, most = 0;

	for (uint32_t i = 0; i < s->keys.count; i++) {
		double each = (double)s->values[i].weight_ns / (double)MAX(s->values[i].count, 1u);

		least = i ? MIN(least, each) : each;
		most = MAX(most, each);
	}
	return most > RATE_TOLERANCE * least;
}

static bool has_waits(const struct store *s)
{
	for (uint32_t i = 0; i < s->keys.count; i++)
		if (store_key_get(s, i)->state != STORE_RUNS)
			return true;
	return false;
}

/* An off-CPU sample and a tick stand for different times: only the times can be added up. */
static int choose_time(struct view *v, const struct options *options)
{
	if (options->count && v->unit != VIEW_NS) {
		fprintf(options->err,
			"trocar: --signal wall: want --count ns: on-CPU and off-CPU samples do not "
			"add up\n");
		return -EINVAL;
	}
	v->unit = VIEW_NS;
	return 0;
}

int view_init(struct view *v, const struct options *options, struct input *input,
	      enum view_unit unit)
{
	int r;

	*v = (struct view){ .input = input, .unit = unit };
	view_choose(v, STORE_NONE);
	view_only(v, STORE_NONE, false);
	labels_init(&v->labels, &input->store, options->offsets);
	if (options->count)
		v->unit = !strcmp(options->count, "ns") ? VIEW_NS : VIEW_COUNT;
	r = parse_by(v, options);
	if (r < 0)
		return r;
	v->signals = count_signals(&input->store);
	v->rules = MAX(count_rules(&input->store, 0), count_rules(&input->store, 1));
	v->waits = has_waits(&input->store);
	v->wall = input->select.wall;
	if (v->rules > 1)
		put_first(v, BY_RULE);
	return v->wall ? choose_time(v, options) : 0;
}

void view_done(struct view *v)
{
	labels_done(&v->labels);
}

/* Makes the label that --by puts below a stack. */
static int make_label(struct view *v, unsigned int by, const struct store_key *key,
		      uint32_t *ret_label)
{
	const struct store_session *session = &v->input->store.sessions[key->session];
	char pid[32];

	switch (by) {
	case BY_SESSION:
		return labels_text(&v->labels, session->id, ret_label);
	case BY_RULE:
		return labels_text(&v->labels, session->rule, ret_label);
	case BY_CGROUP:
		return labels_text(&v->labels, session->cgroup, ret_label);
	case BY_SIGNAL:
		return labels_text(&v->labels, key->signal, ret_label);
	case BY_PHASE:
		return labels_plain(&v->labels, store_phase_word(key->phase), ret_label);
	case BY_EXE:
		return labels_text(&v->labels, key->exe, ret_label);
	case BY_COMM:
		return labels_text(&v->labels, key->comm, ret_label);
	default:
		snprintf(pid, sizeof(pid), "pid %" PRIu64, key->pid);
		return labels_plain(&v->labels, pid, ret_label);
	}
}

/* The members that distinguish paths and columns: keys with equal members here are added up. */
struct group {
	uint32_t stack, column, state, by[VIEW_BY_MAX];
};

struct groups {
	struct pool pool; /* of struct group */
	uint64_t *values;
	uint32_t space;
};

static void groups_done(struct groups *g)
{
	pool_done(&g->pool);
	free(g->values);
}

/* Returns whether a shown session has time or stacks of the phase. */
static bool has_phase(const struct view *v, enum store_phase phase)
{
	const struct store *s = &v->input->store;

	uint32_t from = v->session == STORE_NONE ? 0 : v->session;
	uint32_t to = v->session == STORE_NONE ? s->ids.count : v->session + 1;

	for (uint32_t i = from; i < to; i++)
		if (s->sessions[i].files && s->sessions[i].length_ms[phase])
			return true;
	for (uint32_t i = store_first(s, v->session); i != STORE_NONE;
	     i = store_next(s, v->session, i))
		if (store_key_get(s, i)->phase == phase)
			return true;
	return false;
}

void view_choose(struct view *v, uint32_t session)
{
	const char *asked = v->input->select.phase;
	bool onset;

	v->session = session;
	if (asked)
		onset = !strcmp(asked, store_phase_word(STORE_ONSET));
	else
		onset = !has_phase(v, STORE_BEFORE) && has_phase(v, STORE_ONSET);
	v->earlier = onset ? STORE_ONSET : STORE_BEFORE;
}

uint32_t view_find_signal(const struct view *v, const char *name)
{
	const struct store *s = &v->input->store;
	uint32_t number;

	if (pool_find(&s->texts, name, strlen(name), &number) < 0)
		return STORE_NONE;
	for (uint32_t i = store_first(s, v->session); i != STORE_NONE;
	     i = store_next(s, v->session, i))
		if (store_key_get(s, i)->signal == number)
			return number;
	return STORE_NONE;
}

void view_only(struct view *v, uint32_t signal, bool busy)
{
	v->signal = signal;
	v->busy = busy;
}

/* Returns the column of a phase and a file; negative: not shown. */
static int find_column(const struct view *v, const struct store_key *key, enum view_columns columns)
{
	switch (columns) {
	case VIEW_PHASES:
		return key->phase == STORE_DURING ? 1 : key->phase == v->earlier ? 0 : -1;
	case VIEW_FILES:
		return (int)key->file;
	default:
		return 0;
	}
}

int view_column(const struct view *v, const struct store_key *key, enum view_columns columns)
{
	if ((v->signal != STORE_NONE && v->signal != key->signal) ||
	    (v->busy && (key->state == STORE_WAITS_IDLE || key->state == STORE_WAITS_CONDITION)))
		return -1;
	return find_column(v, key, columns);
}

const char *view_phase(const struct view *v, unsigned int column)
{
	return store_phase_word(column ? STORE_DURING : v->earlier);
}

static int add_group(struct view *v, struct groups *g, uint32_t key_number,
		     enum view_columns columns)
{
	const struct store *s = &v->input->store;
	const struct store_key *key = store_key_get(s, key_number);
	const struct store_value *value = &s->values[key_number];
	int column = view_column(v, key, columns);
	struct group group = { .stack = key->stack,
			       .column = (unsigned int)column,
			       .state = key->state };
	uint32_t number;
	int r;

	if (column < 0)
		return 0;
	for (unsigned int i = 0; i < v->n_by; i++) {
		r = make_label(v, v->by[i], key, &group.by[i]);
		if (r < 0)
			return r;
	}
	r = pool_put(&g->pool, &group, sizeof(group), &number);
	if (r < 0)
		return r;
	r = pool_grow(g->pool.budget, (void **)&g->values, &g->space, number + 1,
		      sizeof(*g->values));
	if (r < 0)
		return r;
	g->values[number] =
		store_sum(g->values[number], v->unit == VIEW_NS ? value->weight_ns : value->count);
	return 0;
}

/* Puts "[lock]" above the frames. */
static int put_state(struct view *v, const struct group *group, struct tree_step *step)
{
	char text[64];

	snprintf(text, sizeof(text), "[%s]", store_state_word(group->state));
	step->kind = TREE_STATE;
	return labels_plain(&v->labels, text, &step->label);
}

/* Writes the labels below the stack, then the frames from the root, then the labels above. */
static int make_path(struct view *v, const struct group *group, struct tree_step *path,
		     uint32_t *ret_n)
{
	const struct store *s = &v->input->store;
	const uint32_t *frames;
	uint32_t n, at = 0;
	int r = 0;

	for (; at < v->n_by; at++)
		path[at] = (struct tree_step){ group->by[at], TREE_BY };
	frames = store_frames(s, group->stack, &n);
	if (!n) {
		path[at].kind = STORE_USER;
		r = labels_plain(&v->labels, "[no frames]", &path[at++].label);
	}
	while (r == 0 && n--) {
		path[at].kind = store_frame_get(s, frames[n])->kind;
		r = labels_frame(&v->labels, frames[n], &path[at++].label);
	}
	if (r == 0 && v->leaf_states)
		r = put_state(v, group, &path[at++]);
	*ret_n = at;
	return r;
}

static int fill_tree(struct view *v, const struct groups *g, struct tree *tree)
{
	struct tree_step path[TREE_PATH_MAX];

	for (uint32_t i = 0; i < g->pool.count; i++) {
		size_t bytes;
		const struct group *group = pool_get(&g->pool, i, &bytes);
		uint32_t n;
		int r = make_path(v, group, path, &n);

		if (r == 0)
			r = tree_add(
				tree, path, n,
				&(struct tree_value){ g->values[i], group->column, group->state });
		if (r < 0)
			return r;
	}
	return 0;
}

int view_fill(struct view *v, enum view_columns columns, struct tree *tree)
{
	_cleanup_(groups_done) struct groups groups = { 0 };
	const struct store *s = &v->input->store;
	int r = 0;

	pool_init(&groups.pool, &v->input->store.budget);
	for (uint32_t i = store_first(s, v->session); r == 0 && i != STORE_NONE;
	     i = store_next(s, v->session, i))
		r = add_group(v, &groups, i, columns);
	return r < 0 ? r : fill_tree(v, &groups, tree);
}

double view_seconds(const struct view *v, enum view_columns columns, unsigned int column)
{
	const struct store *s = &v->input->store;
	const char *asked = v->input->select.phase;
	uint32_t from = v->session == STORE_NONE ? 0 : v->session;
	uint32_t to = v->session == STORE_NONE ? s->ids.count : v->session + 1;
	uint64_t ms = 0;

	for (uint32_t i = from; i < to; i++) {
		const struct store_session *session = &s->sessions[i];

		if (!session->files || (columns == VIEW_FILES && !(session->files & 1u << column)))
			continue;
		for (unsigned int p = 0; p < STORE_PHASE_COUNT_; p++) {
			const struct store_key of_phase = { .phase = p };

			if ((columns == VIEW_PHASES &&
			     find_column(v, &of_phase, columns) != (int)column) ||
			    (asked && strcmp(asked, store_phase_word(p)) != 0))
				continue;
			/* A session may have no time before or onset; a running one has no end. */
			if (!session->length_ms[p] &&
			    (p == STORE_DURING ||
			     (p == STORE_BEFORE && session->end == STORE_NONE)))
				return 0;
			ms = store_sum(ms, session->length_ms[p]);
		}
	}
	return (double)ms / MSEC_PER_SEC;
}

static char *make_title(const struct view *v, const struct store_session *session)
{
	_cleanup_free_ char *id = NULL, *cgroup = NULL;
	char *title = NULL;

	if (session->headline != STORE_NONE)
		return store_tame(&v->input->store, session->headline);
	id = store_tame(&v->input->store, session->id);
	cgroup = store_tame(&v->input->store, session->cgroup);
	if (!id || !cgroup ||
	    asprintf(&title, "%s: session %s, which has no end here", cgroup, id) < 0)
		return NULL;
	return title;
}

/* Makes "7 sessions of the rule api", because several sessions have no common headline. */
static char *make_title_of_all(const struct view *v, const struct store_session *first, uint64_t n)
{
	_cleanup_free_ char *rule = v->rules > 1 ? NULL : store_tame(&v->input->store, first->rule);
	char *title = NULL;
	int r = v->rules > 1 ? asprintf(&title, "%" PRIu64 " sessions of several rules", n)
			     : asprintf(&title, "%" PRIu64 " sessions of the rule %s", n,
					rule ? rule : "-");

	return r < 0 ? NULL : title;
}

char *view_title(const struct view *v)
{
	const struct store *s = &v->input->store;
	const struct store_session *first = NULL;
	uint64_t n = 0;

	for (uint32_t i = 0; i < s->ids.count; i++) {
		if (!s->sessions[i].files)
			continue;
		first = first ? first : &s->sessions[i];
		n++;
	}
	if (!first)
		return strdup("no session is selected");
	return n == 1 ? make_title(v, first) : make_title_of_all(v, first, n);
}
