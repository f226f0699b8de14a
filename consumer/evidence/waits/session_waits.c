/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/waits/session_waits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/evidence/waits/look_coverage.h"
#include "consumer/sampling/wait_objects.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define NAME_MAX_BYTES 256 /* of a name in session.end */

int session_waits_init(struct session_waits *s)
{
	*s = (struct session_waits){ .rows = calloc(SESSION_WAITS_ROWS, sizeof(*s->rows)) };
	idmap_init(&s->by_hash, SESSION_WAITS_ROWS);
	wait_places_init(&s->places);
	return s->rows ? 0 : -ENOMEM;
}

void session_waits_done(struct session_waits *s)
{
	idmap_done(&s->by_hash);
	wait_places_done(&s->places);
	free(s->rows);
	free(s->row_of);
	s->rows = NULL;
	s->row_of = NULL;
}

void session_waits_set_phases(struct session_waits *s, const struct session_result *r)
{
	const struct signal *offcpu = r->signals[SIGNAL_OFFCPU];
	const struct look_coverage *looks = look_coverage_of(r->signals);
	uint64_t calm_ms = r->pre_ms - MIN(r->pre_ms, r->onset_ms);

	s->during_ms = (r->stop_ns - r->start_ns) / NSEC_PER_MSEC;
	if (!looks || !offcpu->taken->phase[PHASE_BEFORE].attempted)
		return;
	s->calm_ms = MIN(calm_ms, looks->calm_ns / NSEC_PER_MSEC);
	s->calm_passes = looks->calm_passes;
}

static uint64_t key_of(const struct known_wait *wait)
{
	const char *fn = wait->frame && wait->frame->fn ? wait->frame->fn : "";
	uint64_t key = idmap_text_key(fn) * 0x9e3779b97f4a7c15ULL +
		       (wait->state * 2u + wait->idle) * 2u + wait->condition;

	/* Applications use the same name for many functions. */
	if (wait->frame && wait->frame->module && frame_name_is_runtime(wait->frame))
		key ^= idmap_text_key(wait->frame->module) * 0xff51afd7ed558ccdULL;
	return key ? key : 1;
}

/* Returns the row of the function and state, creating it if needed; NULL without space. */
static struct session_wait *row_of(struct session_waits *s, const struct known_wait *wait)
{
	uint64_t key = key_of(wait);
	struct session_wait *row = idmap_get(&s->by_hash, key);

	if (row || s->count >= SESSION_WAITS_ROWS)
		return row;
	row = &s->rows[s->count];
	if (idmap_put(&s->by_hash, key, row) < 0)
		return NULL;
	s->count++;
	*row = (struct session_wait){ .state = wait->state,
				      .idle = wait->idle,
				      .condition = wait->condition };
	if (wait->frame) {
		row->fn = wait->frame->fn;
		row->module = wait->frame->module;
	}
	return row;
}

/* Counts the time behind the holder of the row's first stack. Call before its weight is added. */
static void note_holder(struct session_wait *row, const struct stack *stack,
			const struct known_wait *wait)
{
	uint32_t holder = wait->on && wait_objects_is_lock(wait->on) ? wait->on->peer_pid : 0;

	if (!row->weight_ns)
		row->holder = holder;
	if (holder && holder == row->holder)
		row->held_ns += stack->weight_ns;
}

bool session_waits_has_holder(const struct session_wait *row)
{
	return row->on && row->holder && row->on->peer_pid == row->holder &&
	       row->held_ns * 10 >= row->weight_ns * 9;
}

int session_waits_say_on(const struct session_wait *row, char *text, size_t space)
{
	return session_waits_has_holder(row) ? wait_objects_say(row->on, text, space)
					     : wait_objects_say_object(row->on, text, space);
}

/* Adds the waits before the stall to the row, scaled to the length of during. */
static void add_calm(struct session_waits *s, const struct stack *stack,
		     const struct known_wait *wait)
{
	struct session_wait *row = idmap_get(&s->by_hash, key_of(wait));

	if (row && s->calm_ms)
		row->calm_ns += (uint64_t)((double)stack->weight_ns * (double)s->during_ms /
					   (double)s->calm_ms);
}

/* Records the row of the stack with this number. Without memory it has none. */
static void note_row(struct session_waits *s, uint32_t number, const struct session_wait *row)
{
	size_t space = MAX((size_t)number + 1, 2 * s->row_of_space);
	uint32_t *larger;

	if (number >= s->row_of_space) {
		larger = reallocarray(s->row_of, space, sizeof(*larger));
		if (!larger)
			return;
		memset(larger + s->row_of_space, 0, (space - s->row_of_space) * sizeof(*larger));
		s->row_of = larger;
		s->row_of_space = space;
	}
	s->row_of[number] = (uint32_t)(row - s->rows) + 1;
}

static int compare_pairs(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

void session_waits_count_threads(struct session_waits *s, const struct stack_table *stacks)
{
	_cleanup_free_ uint64_t *pairs = NULL;
	const struct stack *stack;
	uint64_t key;
	size_t n = 0;

	pairs = calloc(MAX(stacks->threads.count, (size_t)1), sizeof(*pairs));
	if (!pairs)
		return;
	idmap_for_each (&stacks->threads, i, key, stack)
		if (stack->number < s->row_of_space && s->row_of[stack->number])
			pairs[n++] = (uint64_t)s->row_of[stack->number] << 32 | (uint32_t)key;
	qsort(pairs, n, sizeof(*pairs), compare_pairs);
	for (size_t i = 1; i < n; i++)
		s->rows[(pairs[i] >> 32) - 1].threads -= pairs[i] == pairs[i - 1];
}

void session_waits_add(struct session_waits *s, const struct stack *stack,
		       const struct known_wait *wait)
{
	struct session_wait *row;

	if (stack->phase == PHASE_ONSET)
		s->onset_ns[wait->state] += stack->weight_ns;
	if (stack->phase == PHASE_BEFORE)
		add_calm(s, stack, wait);
	if (stack->phase != PHASE_DURING)
		return;
	wait_places_add(&s->places, stack, wait);
	row = row_of(s, wait);
	s->state_ns[wait->state] += stack->weight_ns;
	if (wait->state != stack->wait)
		s->moved_ns[wait->state] += stack->weight_ns;
	if (wait->condition)
		s->condition_ns += stack->weight_ns;
	if (!row)
		return;
	note_holder(row, stack, wait);
	row->weight_ns += stack->weight_ns;
	row->threads += stack->threads;
	note_row(s, stack->number, row);
	if (stack->weight_ns < row->heaviest_ns)
		return;
	row->heaviest_ns = stack->weight_ns;
	row->line = wait->frame ? wait->frame->line : 0;
	memcpy(row->callers, wait->callers, sizeof(row->callers));
	row->on = wait->on;
}

/* Returns the state of a thread in a wait that counts as pressure of `resource`. */
static uint8_t state_of(enum resource resource)
{
	switch (resource) {
	case RESOURCE_IO:
		return WAIT_BLOCKED + WAIT_IO;
	case RESOURCE_MEMORY:
		return WAIT_BLOCKED + WAIT_MEMORY;
	default:
		return WAIT_FOR_CPU;
	}
}

const struct session_wait *session_waits_row(const struct session_waits *s,
					     const struct stack *stack)
{
	uint32_t row = stack->number < s->row_of_space ? s->row_of[stack->number] : 0;

	return row ? &s->rows[row - 1] : NULL;
}

uint64_t session_waits_of(const struct session_waits *s, enum resource resource)
{
	return s->onset_ns[state_of(resource)] + s->state_ns[state_of(resource)];
}

/* Words for the wait of a thread in this state. */
static const char *say_state(uint8_t state)
{
	static const char *const words[] = {
		[WAIT_FOR_CPU] = "a CPU",
		[WAIT_BLOCKED + WAIT_IO] = "io",
		[WAIT_BLOCKED + WAIT_MEMORY] = "memory",
		[WAIT_BLOCKED + WAIT_LOCK] = "a lock",
		[WAIT_BLOCKED + WAIT_SLEEP] = "a time",
		[WAIT_BLOCKED + WAIT_IDLE] = "work",
		[WAIT_BLOCKED + WAIT_PIPE] = "a pipe",
		[WAIT_BLOCKED + WAIT_SOCKET] = "a socket",
		[WAIT_BLOCKED + WAIT_CHILD] = "a child process",
		[WAIT_BLOCKED + WAIT_FAULT] = "a page",
		[WAIT_BLOCKED + WAIT_OTHER] = "something else",
		[WAIT_BLOCKED + WAIT_STOPPED] = "a signal to go on (SIGCONT)",
		[WAIT_BLOCKED + WAIT_TRACED] = "the tracer that stopped it",
		[WAIT_BLOCKED + WAIT_FROZEN] = "the end of a freeze (cgroup.freeze)",
	};

	_Static_assert(ARRAY_SIZE(words) == WAIT_BLOCKED + WAIT_KIND_COUNT_,
		       "a kind of wait has no words");
	return words[state];
}

static uint64_t growth_ns(const struct session_wait *row)
{
	return row->weight_ns - MIN(row->weight_ns, row->calm_ns);
}

static bool is_more(const struct session_wait *row, const struct session_wait *than)
{
	uint64_t x = growth_ns(row), y = growth_ns(than);

	return x > y || (x == y && row->weight_ns > than->weight_ns);
}

/* Returns the wanted row that has grown most or, if none has grown, the heaviest. NULL: none. */
static const struct session_wait *
find_top_row(const struct session_waits *s,
	     bool (*wanted)(const struct session_wait *row, uint8_t state), uint8_t state)
{
	const struct session_wait *top = NULL;

	for (size_t i = 0; i < s->count; i++)
		if (wanted(&s->rows[i], state) && (!top || is_more(&s->rows[i], top)))
			top = &s->rows[i];
	return top;
}

static bool has_state(const struct session_wait *row, uint8_t state)
{
	return row->state == state;
}

static bool is_plain(const struct session_wait *row, uint8_t state)
{
	(void)state;
	return row->state >= WAIT_BLOCKED && !row->idle && !row->condition;
}

static bool is_condition(const struct session_wait *row, uint8_t state)
{
	(void)state;
	return row->condition;
}

static bool is_idle(const struct session_wait *row, uint8_t state)
{
	return row->state == state && row->idle;
}

/* In epoll, except a process that waits for its children's signals. */
static bool is_idle_on_something(const struct session_wait *row, uint8_t state)
{
	return is_idle(row, state) && row->on;
}

/* Returns the heaviest row for `resource` (see session_waits_clause); NULL: none. */
static const struct session_wait *find_top(const struct session_waits *s, enum resource resource)
{
	const struct session_wait *plain, *condition;

	if (resource != RESOURCE_COUNT_)
		return find_top_row(s, has_state, state_of(resource));
	plain = find_top_row(s, is_plain, 0);
	condition = find_top_row(s, is_condition, 0);
	if (!plain || !condition)
		return plain ? plain : condition;
	return plain->weight_ns * 10 >= condition->weight_ns / MAX(condition->threads, 1ULL)
		       ? plain
		       : condition;
}

/* The states are the parts of a time account. */
_Static_assert((int)ACCOUNT_QUEUE == WAIT_FOR_CPU && (int)ACCOUNT_IO == WAIT_BLOCKED,
	       "a state is not a part of a time account");

int session_waits_say_place(const struct session_wait *row, char *text, size_t space)
{
	size_t n = (size_t)snprintf(text, space, "%.200s", row->fn ? row->fn : "unnamed code");

	if (n < space)
		n += (size_t)frame_name_say_line(row->module, row->line, text + n, space - n);
	for (int i = 0; i < KNOWN_WAIT_CALLERS && row->callers[i] && n < space; i++)
		n += (size_t)snprintf(text + n, space - n, "%s%.100s", i ? ", " : " (called by ",
				      row->callers[i]);
	if (row->callers[0] && n < space)
		n += (size_t)snprintf(text + n, space - n, ")");
	if (row->on && n < space)
		n += (size_t)session_waits_say_on(row, text + n, space - n);
	return (int)n;
}

/* Returns the sampled time of the row's kind of wait; for locks without condition variables. */
static uint64_t looked_ns(const struct session_waits *s, const struct session_wait *row)
{
	if (row->condition)
		return s->condition_ns;
	if (row->state == WAIT_BLOCKED + WAIT_LOCK)
		return s->state_ns[row->state] - s->condition_ns;
	return s->state_ns[row->state];
}

/* Whether this wait is known to the accounts, which identify a wait only by its system call. */
static bool is_exact(const struct session_waits *s, const struct session_wait *row,
		     const uint64_t *part_ns)
{
	return part_ns && part_ns[row->state] >= NSEC_PER_MSEC && !s->moved_ns[row->state] &&
	       looked_ns(s, row) == s->state_ns[row->state];
}

/* Writes the peer that most epolls waited for. Returns the length. */
static int say_asked(const struct session_wait *row, char *text, size_t space)
{
	int n = snprintf(text, space, "; its threads waited %llu ms for answers of ",
			 (unsigned long long)(row->weight_ns / NSEC_PER_MSEC));

	if ((size_t)n < space)
		n += wait_objects_say_peer(row->on, text + n, space - (size_t)n);
	if ((size_t)n < space)
		n += snprintf(text + n, space - (size_t)n, " in ");
	return (size_t)n >= space ? n
				  : n + session_waits_say_place(row, text + n, space - (size_t)n);
}

int session_waits_clause(const struct session_waits *s, enum resource resource,
			 const uint64_t *part_ns, char *text, size_t space)
{
	const struct session_wait *top = find_top(s, resource);
	uint64_t ns;
	bool exact;
	int n;

	if (!top || s->state_ns[top->state] < NSEC_PER_MSEC)
		return 0;
	if (top->on && wait_objects_is_asked(top->on))
		return say_asked(top, text, space);
	exact = is_exact(s, top, part_ns);
	ns = exact ? part_ns[top->state] : looked_ns(s, top);
	n = snprintf(text, space, "; its threads waited %llu ms for %s, ",
		     (unsigned long long)(ns / NSEC_PER_MSEC),
		     top->condition ? "work or another thread" : say_state(top->state));
	if ((size_t)n >= space)
		return n;
	if (exact && top->weight_ns * 2 > looked_ns(s, top))
		n += snprintf(text + n, space - (size_t)n, "most of it in ");
	else if (exact && top->weight_ns * 100 >= looked_ns(s, top))
		n += snprintf(text + n, space - (size_t)n, "%llu %% of it in ",
			      (unsigned long long)(top->weight_ns * 100 / looked_ns(s, top)));
	else
		n += snprintf(text + n, space - (size_t)n, "%llu ms of it in ",
			      (unsigned long long)(top->weight_ns / NSEC_PER_MSEC));
	return (size_t)n >= space ? n
				  : n + session_waits_say_place(top, text + n, space - (size_t)n);
}

int session_waits_idle_clause(const struct session_waits *s, char *text, size_t space)
{
	const uint8_t state = WAIT_BLOCKED + WAIT_IDLE;
	const struct session_wait *top = find_top_row(s, is_idle_on_something, state);
	char unix_says[256] = "the peer is not known";
	bool known;

	if (!top)
		top = find_top_row(s, is_idle, state);
	if (!top || s->state_ns[state] < NSEC_PER_MSEC)
		return 0;
	known = top->on && wait_objects_is_idle_set(top->on);
	if (top->on && top->on->unix_opened)
		snprintf(unix_says, sizeof(unix_says),
			 "the peer is not known; %u unix connections were opened there, one to "
			 "%.108s",
			 top->on->unix_opened, top->on->path);
	return snprintf(
		text, space, "; its threads waited %llu ms for %s, %llu ms of it in %.200s: %s",
		(unsigned long long)(s->state_ns[state] / NSEC_PER_MSEC),
		known ? "work" : "work or answers",
		(unsigned long long)(top->weight_ns / NSEC_PER_MSEC),
		top->fn ? top->fn : "unnamed code",
		known ? "no TCP connection that was opened there waits for an answer" : unix_says);
}

static bool is_wait_of(const struct session_wait *row, uint8_t state)
{
	return row->state == state && !row->idle && !row->condition;
}

const struct session_wait *session_waits_top(const struct session_waits *s, uint8_t state)
{
	return find_top_row(s, is_wait_of, state);
}

int session_waits_place(const struct session_waits *s, uint8_t state, uint64_t of_ns, char *text,
			size_t space)
{
	const struct session_wait *top = session_waits_top(s, state);
	uint64_t pct = 0;
	int n;

	of_ns = MIN(of_ns, s->state_ns[state]);
	if (top && top->weight_ns)
		pct = top->weight_ns * 100 / MAX(of_ns, top->weight_ns);

	if (!pct)
		return 0;
	n = snprintf(text, space, ", %llu %% of it ", (unsigned long long)pct);
	if (top->on && wait_objects_is_asked(top->on) && (size_t)n < space) {
		n += snprintf(text + n, space - (size_t)n, "for answers of ");
		if ((size_t)n < space)
			n += wait_objects_say_peer(top->on, text + n, space - (size_t)n);
		if ((size_t)n < space)
			n += snprintf(text + n, space - (size_t)n, " ");
	}
	if ((size_t)n < space)
		n += snprintf(text + n, space - (size_t)n, "in ");
	return (size_t)n >= space ? n
				  : n + session_waits_say_place(top, text + n, space - (size_t)n);
}

/* Ranks waits for something first, then waits on condition variables, then waits for work. */
static int rank_of(const struct session_wait *row)
{
	return row->idle ? 2 : row->condition;
}

static int by_weight(const void *a, const void *b)
{
	const struct session_wait *x = a, *y = b;

	if (rank_of(x) != rank_of(y))
		return rank_of(x) - rank_of(y);
	if (x->weight_ns != y->weight_ns)
		return x->weight_ns < y->weight_ns ? 1 : -1;
	return x->state - y->state;
}

static void put_text(struct jsonw *w, const char *key, const char *text)
{
	if (text)
		jsonw_string_n(w, key, text, strnlen(text, NAME_MAX_BYTES));
	else
		jsonw_null(w, key);
}

static void write_callers(const struct session_wait *row, struct jsonw *w)
{
	if (!row->callers[0])
		return;
	jsonw_array(w, "callers");
	for (int i = 0; i < KNOWN_WAIT_CALLERS && row->callers[i]; i++)
		jsonw_string_n(w, NULL, row->callers[i], strnlen(row->callers[i], NAME_MAX_BYTES));
	jsonw_array_end(w);
}

static void write_row(const struct session_wait *row, bool calm, struct jsonw *w)
{
	jsonw_object(w, NULL);
	put_text(w, "fn", row->fn);
	put_text(w, "module", row->module);
	jsonw_u64_nonzero(w, "line", (uint64_t)row->line);
	jsonw_string(w, "state", row->state == WAIT_FOR_CPU ? "runnable" : "blocked");
	if (row->state >= WAIT_BLOCKED)
		jsonw_string(w, "wait", wait_kind_name(row->state));
	jsonw_bool(w, "idle", row->idle);
	if (row->condition)
		jsonw_bool(w, "condition", true);
	if (row->on)
		wait_objects_write(row->on, w);
	write_callers(row, w);
	jsonw_u64(w, "weight_ms", row->weight_ns / NSEC_PER_MSEC);
	if (calm)
		jsonw_u64(w, "calm_ms", row->calm_ns / NSEC_PER_MSEC);
	jsonw_u64(w, "threads", row->threads);
	jsonw_object_end(w);
}

void session_waits_write(struct session_waits *s, struct jsonw *w)
{
	struct jsonw_mark begin = jsonw_mark(w);
	size_t after = MIN((size_t)SESSION_WAITS_AFTER_BYTES, w->max_bytes);
	size_t i, most = MIN(w->max_bytes / 8 * 7, w->max_bytes - after);

	if (!s->count)
		return;
	/* The rows move, so by_hash is invalid from here on. */
	qsort(s->rows, s->count, sizeof(*s->rows), by_weight);
	jsonw_array(w, "waits");
	for (i = 0; i < MIN(s->count, (size_t)SESSION_WAITS_TOP); i++) {
		struct jsonw_mark mark = jsonw_mark(w);

		write_row(&s->rows[i], s->calm_ms > 0, w);
		if (jsonw_end(w) == 0 && w->bytes <= most)
			continue;
		jsonw_rewind(w, mark);
		break;
	}
	jsonw_array_end(w);
	if (!i)
		jsonw_rewind(w, begin);
}
