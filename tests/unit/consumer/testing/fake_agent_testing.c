/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/fake_agent_testing.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "consumer/discovery/process_events.h"
#include "consumer/discovery/rules_apply.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/io.h"

#define TEXT_MAX (64u << 20)

static int make_map(enum bpf_map_type type, size_t key, size_t value, uint32_t entries)
{
	LIBBPF_OPTS(bpf_map_create_opts, options,
		    .map_flags = type == BPF_MAP_TYPE_LPM_TRIE ? BPF_F_NO_PREALLOC : 0);

	return bpf_map_create(type, "unit", (uint32_t)key, (uint32_t)value, entries, &options);
}

static bool make_maps(struct pinned_maps *p)
{
	p->abi_fd = p->control_fd = p->slots_fd = -1;
	p->counters_fd =
		make_map(BPF_MAP_TYPE_PERCPU_ARRAY, 4, sizeof(struct slot_counters), FAKE_SLOTS);
	p->totals_fd = make_map(BPF_MAP_TYPE_PERCPU_ARRAY, 4, sizeof(struct totals), 1);
	p->watches_fd = make_map(BPF_MAP_TYPE_HASH, 8, sizeof(struct watch_entry),
				 FAKE_SLOTS * WATCH_CGROUPS);
	p->targets_fd = make_map(BPF_MAP_TYPE_HASH, sizeof(struct process_key),
				 sizeof(struct target), FAKE_PROCESSES);
	p->neighbours_fd = make_map(BPF_MAP_TYPE_HASH, 8, sizeof(struct neighbour), NEIGHBOURS_MAX);
	p->neighbour_cpus_fd = make_map(BPF_MAP_TYPE_PERCPU_HASH, 8, 8, NEIGHBOURS_MAX);
	p->asked_fd = make_map(BPF_MAP_TYPE_HASH, 4, sizeof(struct asked_process), FAKE_ASKED);
	for (int i = 0; i < 2; i++) {
		p->rules_fd[i] = make_map(BPF_MAP_TYPE_LPM_TRIE, sizeof(struct comm_key),
					  sizeof(struct rule_value), 128);
		p->cgroups_fd[i] = make_map(BPF_MAP_TYPE_LPM_TRIE, sizeof(struct cgroup_key),
					    sizeof(struct rule_value), 128);
	}
	return p->counters_fd >= 0 && p->totals_fd >= 0 && p->watches_fd >= 0 &&
	       p->targets_fd >= 0 && p->neighbours_fd >= 0 && p->neighbour_cpus_fd >= 0 &&
	       p->asked_fd >= 0 && p->rules_fd[1] >= 0 && p->cgroups_fd[1] >= 0;
}

static void close_maps(struct pinned_maps *p)
{
	const int fds[] = { p->counters_fd,   p->totals_fd,	    p->watches_fd,  p->targets_fd,
			    p->neighbours_fd, p->neighbour_cpus_fd, p->rules_fd[0], p->rules_fd[1],
			    p->cgroups_fd[0], p->cgroups_fd[1],	    p->asked_fd };

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static struct ring ring_of(struct fake_ring *ring)
{
	return (struct ring){
		.fd = -1,
		.size = FAKE_RING_BYTES,
		.consumer_pos = &ring->consumer,
		.producer_pos = &ring->producer,
		.data = ring->data,
	};
}

static void fill_pins(struct fake *f)
{
	struct pinned_maps *p = &f->a.pins;

	p->abi = (struct abi_header){
		.hz = FAKE_HZ,
		.slots = FAKE_SLOTS,
		.rules = 128,
		.targets = FAKE_PROCESSES,
		.cpus_possible = (uint32_t)libbpf_num_possible_cpus(),
		.cpus_sampled = 1, /* nothing is to be asked of a broker */
		.vma_open_coded = 1,
	};
	p->control = &f->control;
	p->slots = f->slots;
	p->samples = ring_of(&f->samples);
	p->events = ring_of(&f->events);
	p->errors = ring_of(&f->errors);
	p->tasks_path = f->tasks;
	p->vmas_path = p->vmas_pid_path = p->watch_tree_path = f->vmas;
}

static void ignore(void *context, uint32_t events)
{
}

static void ignore_call(void *context)
{
}

static const struct schedule_calls no_calls = { ignore_call, ignore_call, ignore_call };

static void make_files(struct fake *f)
{
	strcpy(f->dir, "/tmp/trocar-unit-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->output, sizeof(f->output), "%s/lines", f->dir);
	snprintf(f->tasks, sizeof(f->tasks), "%s/tasks", f->dir);
	snprintf(f->vmas, sizeof(f->vmas), "%s/vmas", f->dir);
	fake_tasks(f, NULL, 0);
	close(open(f->vmas, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

struct fake *fake_new(void)
{
	struct fake *f = calloc(1, sizeof(*f));
	struct agent *a = &f->a;

	assert_non_null(f);
	if (!make_maps(&a->pins)) {
		close_maps(&a->pins);
		free(f);
		return NULL;
	}
	fill_pins(f);
	make_files(f);
	assert_int_equal(host_read(&a->host), 0);
	assert_int_equal(loop_new(&a->loop), 0);
	/* Set by the agent, and never due: the tests do the loop's work. */
	assert_int_equal(schedule_init(&a->schedule, a->loop, &no_calls, a), 0);
	shares_init(&a->shares);
	assert_int_equal(output_queue_new(f->output, 4u << 20, &a->output), 0);
	assert_int_equal(output_queue_start(a->output), 0);
	a->lines = (struct event_lines){ &a->host, a->output, 8192 };
	assert_int_equal(symbols_new(4u << 20, NULL, &a->symbols), 0);
	assert_int_equal(report_thread_new(&a->lines, a->symbols, &a->reporter), 0);
	assert_int_equal(cgroups_open(a->host.cgroup2, &a->cgroups), 0);
	assert_int_equal(facts_reader_open(&a->facts, &a->cgroups), 0);
	processes_init(&a->processes, FAKE_PROCESSES, symbols_perf_map_files(a->symbols));
	assert_int_equal(broker_client_new("", BROKER_CLIENT_WAIT_MS, &a->broker), 0);
	assert_int_equal(broker_client_new("", BROKER_CLIENT_FILE_WAIT_MS, &a->files), 0);
	a->options.lines_per_minute = FAKE_LINES;
	agent_wire(a);
	assert_int_equal(event_budget_listen(&a->budget, a->loop), 0);
	assert_int_equal(watches_init(&a->watches), 0);
	assert_int_equal(loop_timer(a->loop, ignore, a, &a->watches.linger_timer), 0);
	assert_int_equal(loop_timer(a->loop, ignore, a, &a->watches.tree_timer), 0);
	assert_int_equal(pressure_follow_open(&a->pressure, a->loop, a->pins.abi.slots), 0);
	recorder_init(&a->recorder, 1u << 20);
	fake_rules(f, "{\"version\":1,\"rules\":[]}");
	return f;
}

void fake_free(struct fake *f)
{
	struct agent *a = &f->a;

	for (size_t i = 0; i < SESSIONS_MAX; i++)
		if (a->sessions.running[i])
			session_end(&a->sessions, a->sessions.running[i]);
	triggers_step(&a->triggers, clock_mono_ns() + NSEC_PER_SEC);
	process_scan_stop(&a->discovery);
	watches_done(&a->watches);
	cooldowns_done(&a->triggers.cooldowns);
	report_thread_stop(a->reporter, 5000);
	mappings_queue_done(&a->queue);
	processes_done(&a->processes);
	recorder_done(&a->recorder);
	pressure_follow_done(&a->pressure);
	sampler_done(&a->sampler);
	signal_programs_done(&a->programs);
	accounts_hold_done_all(&a->accounts);
	long_wait_table_sweep_stop(&a->long_waits);
	broker_client_free(a->broker);
	broker_client_free(a->files);
	facts_reader_done(&a->facts);
	cgroups_done(&a->cgroups);
	ruleset_unref(a->active.set);
	symbols_free(a->symbols);
	output_queue_stop(a->output, 5000);
	output_queue_free(a->output);
	schedule_done(&a->schedule);
	event_budget_done(&a->budget);
	shares_done(&a->shares);
	loop_free(a->loop);
	free(a->pins.samples.bounce);
	free(a->pins.events.bounce);
	close_maps(&a->pins);
	unit_keep_lines(f->output);
	unlink(f->output);
	unlink(f->tasks);
	unlink(f->vmas);
	rmdir(f->dir);
	free(f);
}

/* A scan of many turns, on a machine that may be busy. */
/* Ends the looks for cgroups, and hands on the waiting processes. */
static void look_to_end(struct fake *f)
{
	while (f->a.cgroups.look.sought || f->a.cgroups.look.walk || f->a.discovery.waiting.first) {
		f->a.cgroups.look.due_ns = 0;
		path_wait_step(&f->a.discovery);
	}
}

static void continue_scan(struct fake *f)
{
	while (process_scan_runs(&f->a.discovery))
		assert_int_equal(process_scan_step(&f->a.discovery), 0);
	look_to_end(f);
}

void fake_rules(struct fake *f, const char *json)
{
	_cleanup_(rules_faults_done) struct rules_faults faults, warnings;
	struct applied applied;
	struct rules *rules;

	rules_faults_init(&faults);
	rules_faults_init(&warnings);
	if (rules_parse(json, strlen(json), &rules, &faults, &warnings) < 0)
		fail_msg("%s: %s", faults.items[0].pointer, faults.items[0].message);
	assert_int_equal(rules_apply_set(&f->a.discovery, rules, "file:/unit/rules.json", NULL,
					 &warnings, &applied),
			 0);
	continue_scan(f);
}

void fake_scan(struct fake *f)
{
	process_scan_ask(&f->a.discovery);
	continue_scan(f);
}

void fake_put(struct fake_ring *ring, const void *record, size_t bytes)
{
	uint32_t at = (uint32_t)(ring->producer % FAKE_RING_BYTES), header = (uint32_t)bytes;
	const uint8_t *from = record;

	assert_true(ring->producer - ring->consumer + bytes + 16 < FAKE_RING_BYTES);
	memcpy(ring->data + at, &header, sizeof(header));
	for (size_t i = 0; i < bytes; i++)
		ring->data[(at + 8 + i) % FAKE_RING_BYTES] = from[i];
	ring->producer += ALIGN_UP(bytes + 8, 8);
}

uint64_t fake_start_ns(uint32_t tgid)
{
	return 1000000000ULL + tgid;
}

void fake_drain_samples(struct fake *f)
{
	do
		drain_samples(&f->a.drain);
	while (f->a.pins.samples.cut);
}

void fake_drain_events(struct fake *f)
{
	do
		process_events_drain(&f->a.discovery);
	while (f->a.pins.events.cut);
	look_to_end(f);
}

void fake_event(struct fake *f, enum event_kind kind, uint32_t tgid, uint64_t cgroup_id,
		const char *comm)
{
	struct event e = {
		.time_ns = clock_mono_ns(),
		.start_ns = fake_start_ns(tgid),
		.cgroup_id = cgroup_id,
		.kind = kind,
		.tgid = tgid,
		.ppid = 1,
		.generation = f->a.active.set->generation,
		.flags = kind == EVENT_EXEC ? EVENT_NEW_IMAGE : 0,
	};

	snprintf(e.comm, sizeof(e.comm), "%s", comm);
	fake_put(&f->events, &e, sizeof(e));
	fake_drain_events(f);
}

void fake_cgroup_event(struct fake *f, enum event_kind kind, uint64_t cgroup_id, const char *path)
{
	size_t path_bytes = strlen(path) + 1;
	struct event *e = calloc(1, sizeof(*e) + path_bytes);

	assert_non_null(e);
	e->kind = kind;
	e->cgroup_id = cgroup_id;
	e->generation = f->a.active.set->generation;
	e->path_bytes = (uint16_t)path_bytes;
	memcpy(e->path, path, path_bytes);
	fake_put(&f->events, e, sizeof(*e) + path_bytes);
	free(e);
	fake_drain_events(f);
}

void fake_tasks(struct fake *f, const struct task_record *tasks, size_t count)
{
	FILE *file = fopen(f->tasks, "we");

	assert_non_null(file);
	if (count)
		assert_int_equal(fwrite(tasks, sizeof(*tasks), count, file), count);
	fclose(file);
}

void fake_counters(struct fake *f, uint32_t slot, struct slot_counters counters)
{
	uint32_t cpus = f->a.pins.abi.cpus_possible;
	struct slot_counters *each = calloc(cpus, sizeof(*each));

	assert_non_null(each);
	for (uint32_t i = 0; i < cpus; i++)
		each[i] = counters;
	assert_int_equal(bpf_map_update_elem(f->a.pins.counters_fd, &slot, each, BPF_ANY), 0);
	free(each);
}

/* Waits until all that was put is written. */
static void settle(struct fake *f)
{
	struct output_queue_stats stats;

	for (int i = 0; i < 5000; i++) {
		output_queue_stats(f->a.output, &stats);
		if (!stats.queued_bytes && !report_thread_queued(f->a.reporter))
			return;
		usleep(1000);
	}
	fail_msg("the output does not empty");
}

json_object *fake_lines(struct fake *f)
{
	_cleanup_free_ char *text = NULL;
	json_object *lines = json_object_new_array();
	char *save = NULL;
	size_t bytes;

	settle(f);
	assert_int_equal(io_read_file(AT_FDCWD, f->output, TEXT_MAX, &text, &bytes), 0);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		json_object *root = json_tokener_parse(line);

		if (!root)
			fail_msg("not JSON: %s", line);
		json_object_array_add(lines, root);
	}
	return lines;
}

const char *fake_text(json_object *line, const char *key)
{
	return json_object_get_string(json_object_object_get(line, key));
}

size_t fake_count(struct fake *f, const char *type)
{
	json_object *lines = fake_lines(f);
	size_t count = 0;

	for (size_t i = 0; i < json_object_array_length(lines); i++)
		count += !strcmp(fake_text(json_object_array_get_idx(lines, i), "type"), type);
	json_object_put(lines);
	return count;
}

json_object *fake_last(struct fake *f, const char *type)
{
	json_object *lines = fake_lines(f), *last = NULL;

	for (size_t i = 0; i < json_object_array_length(lines); i++)
		if (!strcmp(fake_text(json_object_array_get_idx(lines, i), "type"), type))
			last = json_object_array_get_idx(lines, i);
	json_object_get(last);
	json_object_put(lines);
	return last;
}

static bool move_in(const struct fake_cgroup *c)
{
	char file[4300], number[16];
	int n = snprintf(number, sizeof(number), "%d", c->pid), fd;
	bool moved;

	snprintf(file, sizeof(file), "%s/cgroup.procs", c->directory);
	fd = open(file, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	moved = write(fd, number, (size_t)n) == n;
	close(fd);
	return moved;
}

bool fake_cgroup_make(struct fake *f, const char *name, struct fake_cgroup *ret_cgroup)
{
	struct fake_cgroup c = {};
	struct stat st;

	snprintf(c.path, sizeof(c.path), "/trocar-unit-%d-%s", (int)getpid(), name);
	snprintf(c.directory, sizeof(c.directory), "%s%s", f->a.host.cgroup2, c.path);
	rmdir(c.directory); /* of a test with this number that was killed */
	if (mkdir(c.directory, 0755) < 0)
		return false;
	assert_int_equal(stat(c.directory, &st), 0);
	c.id = st.st_ino;
	c.pid = fork();
	assert_true(c.pid >= 0);
	if (!c.pid) {
		/*
		 * A failed test must leave no process behind, which would also hold its output
		 * open.
		 */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	if (!move_in(&c)) {
		fake_cgroup_remove(&c);
		return false;
	}
	*ret_cgroup = c;
	return true;
}

void fake_cgroup_empty(struct fake_cgroup *c)
{
	if (c->pid <= 0)
		return;
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	c->pid = 0;
}

void fake_cgroup_remove(struct fake_cgroup *c)
{
	fake_cgroup_empty(c);
	/* The kernel lets go of the last process a moment after waitpid. */
	for (int i = 0; i < 1000 && rmdir(c->directory) < 0 && errno == EBUSY; i++)
		usleep(1000);
}
