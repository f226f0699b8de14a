/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/process/process_unwind.h"

#include <string.h>
#include <sys/epoll.h>

#include "consumer/io/turn.h"
#include "consumer/process/unwind_events.h"
#include "consumer/process/unwind_plan.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/*
 * Tables that are taken away at a time for one file's rows; a process without space then asks
 * again.
 */
#define TAKEN_AT_ONCE 16

/* Times between two checks of a runtime's file. */
#define RECHECK_FIRST_NS (100 * NSEC_PER_MSEC)
#define RECHECK_MAX_NS	 (10 * NSEC_PER_SEC)

/* How often a sampled process without a table asks for another process's table. */
#define ASK_EVERY_NS NSEC_PER_SEC

void process_unwind_init(struct process_unwind *u, const struct process_unwind_needs *needs)
{
	*u = (struct process_unwind){ .needs = *needs };
	unwind_tables_init(&u->tables, needs->pins, needs->targets, needs->shares, needs->cgroups);
	u->room = (struct unwind_room){
		.tables = &u->tables,
		.shares = needs->shares,
		.cgroups = needs->cgroups,
		.captured = needs->captured,
	};
}

int process_unwind_start(struct process_unwind *u)
{
	const struct pinned_maps *pins = u->needs.pins;
	const struct unwind_maps maps = {
		.pool_fd = pins->unwind_pool_fd,
		.pool_elements = pins->abi.unwind_rows,
		.rules = pins->unwind_rules,
		.files = pins->unwind_files,
	};
	int r;

	r = unwind_files_new(&maps, u->needs.symbols, &u->files);
	if (r < 0)
		return r;
	return unwind_tables_open(&u->tables, u->files);
}

bool process_unwind_has_rest(const struct process_unwind *u)
{
	return u->needs.processes->first_read || u->unfinished;
}

static void begin_waiting(struct process_unwind *u, struct process *p)
{
	struct unwind_state *s = &p->unwind;

	if (s->waiting)
		return;
	s->waiting = true;
	s->previous = NULL;
	s->next = u->first;
	if (u->first)
		u->first->unwind.previous = p;
	u->first = p;
}

static void end_waiting(struct process_unwind *u, struct process *p)
{
	struct unwind_state *s = &p->unwind;

	if (!s->waiting)
		return;
	s->waiting = false;
	*(s->previous ? &s->previous->unwind.next : &u->first) = s->next;
	if (s->next)
		s->next->unwind.previous = s->previous;
	s->previous = s->next = NULL;
}

static void drop_plan(struct process_unwind *u, struct process *p)
{
	unwind_plan_free(p->unwind.plan, u->files);
	p->unwind.plan = NULL;
	p->unwind.lacks_table = false;
	end_waiting(u, p);
}

/* Every plan is in the list of waiting plans, so freeing this list frees all plans. */
void process_unwind_done(struct process_unwind *u)
{
	while (u->first)
		drop_plan(u, u->first);
	unwind_tables_close(&u->tables);
	unwind_files_free(u->files);
	u->files = NULL;
}

/* Records that the plan of `p` must be made again when rows are free. */
static void note_starved(struct process_unwind *u, const struct process *p)
{
	for (size_t i = 0; i < u->starved_count; i++)
		if (u->starved[i].tgid == p->tgid && u->starved[i].start_ns == p->start_ns)
			return;
	if (u->starved_count < PROCESS_UNWIND_STARVED_MAX)
		u->starved[u->starved_count++] = process_key(p);
}

/*
 * Takes the table away. Returns how many bytes of its holder's rows are then unused by the holder's
 * tables.
 */
static uint64_t take_rows(struct process_unwind *u, const struct walk_table *t)
{
	struct owner *holder = shares_ref(t->holder);
	uint64_t before = holder->held[SHARE_ROWS];

	unwind_tables_withdraw(&u->tables, t->process);
	unwind_room_count(&u->room);
	before -= MIN(before, holder->held[SHARE_ROWS]);
	shares_put(u->needs.shares, holder);
	return before;
}

/*
 * Takes tables away from owners that must yield, after files of `p` with this many elements did not
 * fit into the pool.
 */
static void make_room(struct process_unwind *u, const struct process *p, uint32_t elements)
{
	struct owner *owner =
		shares_of_cgroup(u->needs.shares, u->needs.cgroups, p->cgroup_id, p->tgid);
	uint64_t bytes = 8 * (uint64_t)elements, freed = 0;
	bool retiring = unwind_room_retiring(&u->room);
	const struct walk_table *t;

	unwind_room_count(&u->room);
	for (int i = 0; i < TAKEN_AT_ONCE && freed < bytes; i++) {
		t = unwind_room_for_rows(&u->room, owner, bytes);
		if (!t)
			break;
		note_starved(u, p);
		if (retiring)
			break;
		freed += take_rows(u, t);
	}
	shares_put(u->needs.shares, owner);
}

/*
 * Called when no table is free for `p`. Takes another process's table only if `p` was sampled since
 * it lacks its own, once in ASK_EVERY_NS: among sleepers a table would change hands without
 * benefit, and each change costs.
 */
static void lack_table(struct process_unwind *u, struct process *p)
{
	const struct walk_table *yielding;
	struct unwind_state *s = &p->unwind;
	uint64_t now_ns = clock_mono_ns();

	if (!s->lacks_table) {
		s->lacks_table = true;
		s->sampled_ns = 0;
		/* It may be long until a table is free: take raw addresses in the meantime. */
		process_targets_set_mapped(u->needs.targets, p, true);
	}
	if (!s->sampled_ns || (s->asked_ns && now_ns - s->asked_ns < ASK_EVERY_NS))
		return;
	s->asked_ns = now_ns;
	yielding = unwind_room_for_table(&u->room, p);
	if (yielding)
		unwind_tables_withdraw(&u->tables, yielding->process);
}

/*
 * Publishes the table of a plan with settled files. True when the plan is done, with or without a
 * table.
 */
static bool conclude_plan(struct process_unwind *u, struct process *p)
{
	struct unwind_state *s = &p->unwind;
	bool left = s->left;
	uint32_t number;

	s->left = false;
	if (s->table && !s->unconfirmed && s->shape == unwind_plan_shape(s->plan)) {
		if (left)
			unwind_tables_notify_less(&u->tables, p);
		return true;
	}
	if (unwind_plan_foreign(s->plan)) {
		unwind_tables_withdraw(&u->tables, p);
		s->how = UNWIND_HOW_FP;
		s->image = p->maps.image;
		return true;
	}
	if (unwind_tables_find_free(&u->tables, &number) < 0) {
		lack_table(u, p);
		return false;
	}
	unwind_tables_publish(&u->tables, p, number);
	return true;
}

static void say_how(struct process_unwind *u, struct process *p)
{
	struct unwind_state *s = &p->unwind;

	if (!p->announced || s->how == s->said)
		return;
	s->said = s->how;
	unwind_events_say(u->needs.log, u->needs.budget, p, u->files);
}

/*
 * Makes the kernel side take raw addresses once the first table is published and no answer with
 * build-ids is due.
 */
static void show_mapped(struct process_unwind *u, const struct process *p)
{
	if (unwind_state_settled(&p->unwind, p->maps.image) && !p->build_ids_pending)
		process_targets_set_mapped(u->needs.targets, p, true);
}

/* Continues a plan as far as possible. */
static void advance_plan(struct process_unwind *u, struct process *p)
{
	uint32_t lacking;

	if (!unwind_plan_step(p->unwind.plan, u->files) || !conclude_plan(u, p)) {
		begin_waiting(u, p);
		return;
	}
	say_how(u, p);
	lacking = unwind_plan_lacking(p->unwind.plan);
	drop_plan(u, p);
	if (lacking)
		make_room(u, p, lacking);
	show_mapped(u, p);
}

static enum rule_unwind wanted_by(const struct process *p)
{
	return p->rule ? p->rule->unwind : RULE_UNWIND_AUTO;
}

/* Makes or renews the table of `p` from its mappings. */
static void make_plan(struct process_unwind *u, struct process *p)
{
	if (!u->files || !process_is_needed(p))
		return;
	mappings_reread_young(u->needs.reread, p);
	drop_plan(u, p);
	p->unwind.by = wanted_by(p);
	p->unwind.plan = unwind_plan_new(&p->maps, p->unwind.by);
	if (p->unwind.plan)
		advance_plan(u, p);
}

/*
 * Whether news may help `p`. A process that lacks only a table continues if it was sampled since,
 * or if tables are free: the cost of news does not grow with the number of sleepers that wait.
 */
static bool may_advance(const struct process *p, bool sampled, uint32_t room)
{
	const struct unwind_state *s = &p->unwind;

	if (s->lacks_table)
		return s->sampled_ns || (!sampled && room);
	return !sampled;
}

/*
 * Continues the waiting plans, each once per round, until the time is over. Sampled processes come
 * first, so that they get a table that became free.
 */
static void advance_waiting(struct process_unwind *u, uint64_t until_ns)
{
	uint32_t room = unwind_tables_count_free(&u->tables);
	struct process *p, *next;

	u->unfinished = true;
	for (int sampled = 1; sampled >= 0; sampled--)
		for (p = u->first; p; p = next) {
			next = p->unwind.next;
			if (p->unwind.round == u->round || !may_advance(p, sampled, room))
				continue;
			p->unwind.round = u->round;
			advance_plan(u, p);
			if (p->unwind.lacks_table)
				room = 0;
			if (clock_mono_ns() >= until_ns)
				return;
		}
	u->unfinished = false;
}

void process_unwind_step(struct process_unwind *u)
{
	uint64_t until_ns = turn_until_ns();
	struct process *p;

	while ((p = process_take_read(u->needs.processes))) {
		if (!process_is_needed(p))
			continue;
		make_plan(u, p);
		if (!u->files) {
			p->unwind.how = UNWIND_HOW_FP;
			p->unwind.image = p->maps.image;
		}
		show_mapped(u, p);
		if (clock_mono_ns() >= until_ns)
			return;
	}
	if (u->hungry && !u->unfinished)
		u->round++;
	if (u->hungry || u->unfinished)
		advance_waiting(u, until_ns);
	u->hungry = false;
}

bool process_unwind_settle(struct process_unwind *u)
{
	bool more = mappings_reread_settle(u->needs.reread);

	process_unwind_step(u);
	return more;
}

void process_unwind_unmapped(struct process_unwind *u, struct process *p, uint64_t time_ns)
{
	mappings_reread_unmapped(u->needs.reread, p, time_ns);
	process_unwind_step(u);
}

void process_unwind_matched(struct process_unwind *u, struct process *p)
{
	if (p->maps.count && p->unwind.by != wanted_by(p))
		make_plan(u, p);
}

/*
 * A plan that was concluded before process.match was written has written nothing, and is gone.
 * Concludes one more plan at once, because all files are settled.
 */
void process_unwind_announced(struct process_unwind *u, struct process *p)
{
	const struct unwind_state *s = &p->unwind;

	if (!s->plan && s->how != s->said)
		make_plan(u, p);
}

/* Records that a process without a table is sampled: the next step requests a table. */
static void note_sampled(struct process_unwind *u, struct process *p, uint64_t time_ns)
{
	struct unwind_state *s = &p->unwind;

	s->sampled_ns = time_ns;
	u->hungry = u->hungry || !s->asked_ns || time_ns > s->asked_ns + ASK_EVERY_NS;
}

const struct walk_table *process_unwind_table(struct process_unwind *u, const struct sample *record)
{
	return record->flags & SAMPLE_UNWOUND
		       ? unwind_tables_find(&u->tables, record->table_generation)
		       : NULL;
}

/*
 * Returns whether the table of a process with a runtime has to be made again, because a page of
 * its file was not in memory when the kernel side checked it. Less and less often: only another
 * process with the file may bring the page.
 */
static bool wants_recheck(struct unwind_state *s, uint64_t time_ns)
{
	if (!s->table || s->runtime != RUNTIME_STATE_NOT_RESIDENT || time_ns < s->recheck_ns)
		return false;
	s->recheck_every_ns =
		MIN(2 * MAX(s->recheck_every_ns, RECHECK_FIRST_NS / 2), RECHECK_MAX_NS);
	s->recheck_ns = time_ns + s->recheck_every_ns;
	return true;
}

bool process_unwind_sampled(struct process_unwind *u, struct process *p,
			    const struct sample *record, const struct walk_table **ret_table)
{
	struct unwind_state *s = &p->unwind;
	const struct walk_table *table = process_unwind_table(u, record);
	bool refused = false;

	if (record->flags & SAMPLE_UNWOUND) {
		if (table && table->process)
			table->process->unwind.used_ns = record->time_ns;
		if (s->table)
			s->used_ns = record->time_ns;
	} else if (!(record->flags & SAMPLE_BUILD_ID)) {
		refused = s->table && record->time_ns > s->published_ns;
	}
	if (s->waiting && s->lacks_table)
		note_sampled(u, p, record->time_ns);
	refused = refused || wants_recheck(s, record->time_ns);
	if (refused)
		s->shape = 0;
	*ret_table = table;
	return refused;
}

void process_unwind_leave(struct process_unwind *u, struct process *p)
{
	if (!u->files)
		return;
	drop_plan(u, p);
	unwind_tables_leave(&u->tables, p);
}

/* Makes the plans again that lacked space for their files, now that tables are free. */
static void retry_starved(struct process_unwind *u)
{
	struct process_key starved[PROCESS_UNWIND_STARVED_MAX];
	size_t count = u->starved_count;
	struct process *p;

	memcpy(starved, u->starved, count * sizeof(*starved));
	u->starved_count = 0;
	if (count)
		unwind_files_retry(u->files);
	for (size_t i = 0; i < count; i++) {
		p = process_find(u->needs.processes, starved[i].tgid, starved[i].start_ns);
		if (p)
			make_plan(u, p);
	}
}

void process_unwind_news(struct process_unwind *u)
{
	unwind_files_news(u->files);
	if (unwind_tables_reclaim(&u->tables))
		retry_starved(u);
	u->round++;
	advance_waiting(u, turn_until_ns());
	if (u->unfinished)
		schedule_drain_soon(u->needs.schedule);
}

static bool is_file_pending(void *context, const struct module *m)
{
	struct unwind_files *files = context;

	return files && unwind_files_is_pending(files, m);
}

size_t process_unwind_forget(struct process_unwind *u, uint64_t before_ns)
{
	size_t forgotten = symbols_forget(u->needs.symbols, before_ns, is_file_pending, u->files);

	if (forgotten && u->files)
		unwind_files_forget(u->files);
	return forgotten;
}

static void on_news(void *context, uint32_t events)
{
	process_unwind_news(context);
}

int process_unwind_listen(struct process_unwind *u, struct loop *loop)
{
	return loop_add(loop, unwind_files_fd(u->files), EPOLLIN, on_news, u, &u->source);
}

void process_unwind_write_status(const struct process_unwind *u, struct jsonw *w)
{
	struct totals totals = { 0 };
	struct code_names_stats names;

	if (!u->files)
		return;
	pinned_maps_totals(u->needs.pins, &totals);
	code_names_stats(symbols_code_names(u->needs.symbols), &names);
	unwind_events_write_status(&u->tables, &totals, &names, w);
}
