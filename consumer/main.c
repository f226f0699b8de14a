/* SPDX-License-Identifier: BSD-2-Clause */
/* The consumer: opens the pins of the loader, gives up every privilege, and drains the rings. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "consumer/agent/agent.h"
#include "consumer/agent/confine.h"
#include "consumer/broker/broker_ask.h"
#include "consumer/jit/perf_map_files.h"
#include "consumer/methods/method_session_stop.h"
#include "consumer/methods/methods.h"
#include "consumer/output/kept_lines.h"
#include "consumer/output/subscriptions.h"
#include "shared/tools/clock.h"
#include "shared/tools/log.h"
#include "shared/tools/memory.h"

enum exit_status {
	EXIT_FINE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_OTHER_ABI = 4,
	EXIT_RULES = 6,
	EXIT_LOST = 8
};

/* Opens a signalfd: the loop reads signals, and no code runs in a signal handler. */
static int open_signals(struct agent *a)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	a->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return a->signal_fd < 0 ? -errno : 0;
}

/* Raises the limit of descriptors to the hard limit: each watch needs three pressure files. */
static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static void watch_rules_file(struct agent *a)
{
	rules_file_init(&a->rules_file, a->options.rules);
	if (a->options.rules_watch)
		rules_file_watch(&a->rules_file);
}

/* Logs one step of the start if it failed: `what` names the step. Returns r. */
static int say_step(const char *what, int r)
{
	if (r < 0)
		log_error("%s: %s", what, strerror(-r));
	return r;
}

/* Passes lines to subscribers, and to the kept lines. Any thread. */
static void tap_lines(void *context, const char *data, size_t bytes, uint64_t lines)
{
	struct agent *a = context;

	subscriptions_put(a->subscriptions, data, bytes, lines);
	if (a->kept)
		kept_lines_put(a->kept, data, bytes, lines);
}

/* Drops the state of a client that has gone, however it ended. */
static void forget_client(void *context, uint64_t connection)
{
	struct agent *a = context;

	subscriptions_close(a->subscriptions, connection);
	method_session_stop_closed(&a->methods, connection);
}

/* Opens everything that needs a name, a path or a thread, before the lock-down. */
static int open_all(struct agent *a)
{
	int r;

	r = control_new(a->loop, a->options.socket, a->socket_group, confine_admin(&a->options),
			methods_table, &a->methods, &a->control);
	if (r < 0) {
		log_error("control socket %s: %s", a->options.socket, strerror(-r));
		return r;
	}
	r = confine_become(&a->options);
	if (r < 0)
		return r;
	control_set_user(a->control, geteuid());
	(void)pins_watch_open(&a->pins_watch,
			      a->options.bpf_dir); /* the next call has the reason */
	r = pinned_maps_open(a->options.bpf_dir, &a->pins);
	if (r < 0)
		return r;
	r = say_step("scope", scope_read(a->pins.scope_fd, &a->scope));
	if (r < 0)
		return r;
	r = say_step(a->options.output,
		     output_queue_new(a->options.output, a->options.queue_kib << 10, &a->output));
	if (r < 0)
		return r;
	r = say_step("subscriptions", subscriptions_new(&a->subscriptions));
	if (r < 0)
		return r;
	if (a->options.keep_kib)
		r = say_step("kept lines", kept_lines_new(a->options.keep_kib << 10, &a->kept));
	if (r < 0)
		return r;
	output_queue_tap(a->output, tap_lines, a);
	control_on_close(a->control, forget_client, a);
	r = say_step("cgroup2", cgroups_open(a->host.cgroup2, &a->cgroups));
	if (r < 0)
		return r;
	r = say_step("v1 cgroups", facts_reader_open(&a->facts, &a->cgroups));
	if (r < 0)
		return r;
	r = say_step(a->options.broker, broker_client_new(options_broker(&a->options),
							  BROKER_CLIENT_WAIT_MS, &a->broker));
	if (r == 0)
		r = say_step(a->options.broker,
			     broker_client_new(options_broker(&a->options),
					       BROKER_CLIENT_FILE_WAIT_MS, &a->files));
	if (r < 0)
		return r;
	r = say_step("pressure", pressure_follow_open(&a->pressure, a->loop, a->pins.abi.slots));
	if (r < 0)
		return r;
	r = say_step("symbols",
		     symbols_new(a->options.symbols_kib << 10, a->pins.ksyms_path, &a->symbols));
	if (r == 0)
		r = say_step("symbols", symbols_set_bpf_code(a->symbols, a->pins.bpf_code_path));
	if (r < 0)
		return r;
	watch_rules_file(a);
	return 0;
}

/* Requests a file from the broker that only processes which have it mapped can reach. */
static int borrow_mapping(void *context, const struct process_key *process, uint64_t start,
			  uint64_t end, int *ret_fd)
{
	return broker_ask_mapping(context, process, start, end, ret_fd, NULL);
}

static int borrow_jit_map(void *context, const struct process_key *process, int *ret_fd)
{
	return broker_ask_jit_map(context, process, ret_fd, NULL);
}

static int start_all(struct agent *a)
{
	int r;

	a->lines = (struct event_lines){
		.host = &a->host,
		.output = a->output,
		.max_bytes = a->options.max_line_bytes,
	};
	processes_init(&a->processes, 4 * (size_t)a->pins.abi.targets,
		       symbols_perf_map_files(a->symbols));
	recorder_init(&a->recorder, a->options.recorder_kib << 10);
	shares_init(&a->shares);
	a->confinement =
		(struct confinement){ &a->options, &a->host, a->output, &a->rules_file, &a->self };
	r = confine_files(&a->confinement);
	if (r < 0)
		return r;
	/* The threads start before the system-call filter, so the filter allows no clone(2). */
	r = say_step("output thread", output_queue_start(a->output));
	if (r < 0)
		return r;
	symbols_set_borrow(a->symbols, borrow_mapping, a->files);
	perf_map_files_set_borrow(symbols_perf_map_files(a->symbols), borrow_jit_map, a->files);
	r = say_step("symbolizer thread", report_thread_new(&a->lines, a->symbols, &a->reporter));
	if (r < 0)
		return r;
	r = say_step("threads for users' cgroups", cgroups_start(&a->cgroups));
	if (r < 0)
		return r;
	r = say_step("closing threads", psi_opener_start(&a->pressure.opener, a->broker));
	if (r < 0)
		return r;
	agent_wire(a);
	r = say_step("unwinder thread", process_unwind_start(&a->unwind));
	if (r < 0)
		return r;
	r = say_step("watches", watches_init(&a->watches));
	if (r < 0)
		return r;
	return confine_calls(&a->confinement);
}

/*
 * Reads only the environment, as in sd_notify(3). On failure it warns and continues: a service
 * manager that gets no message ends the service by itself, and variables that a shell passed on by
 * mistake must not keep the consumer from working.
 */
static void open_notify(struct agent *a)
{
	int r = service_notify_open(getenv("NOTIFY_SOCKET"), getenv("WATCHDOG_USEC"),
				    getenv("WATCHDOG_PID"), &a->notify);

	if (r < 0)
		log_warning("NOTIFY_SOCKET: %s, continuing without notifying the service manager",
			    strerror(-r));
}

/*
 * Reports the lines that the output did not accept at the end, here and in the next consumer's
 * agent.start.
 */
static bool report_left(struct agent *a, const struct output_queue_left *left)
{
	struct control *c = a->pins.control;

	if (!left->lines)
		return false;
	log_error("%s: %llu lines of %llu bytes were not written and are lost, the ends of %llu "
		  "sessions among them",
		  output_queue_name(a->output), (unsigned long long)left->lines,
		  (unsigned long long)left->bytes, (unsigned long long)left->sessions);
	if (c && a->started && !a->ousted) {
		c->lost_lines += left->lines;
		c->lost_bytes += left->bytes;
		c->lost_sessions += left->sessions;
	}
	return true;
}

/* Returns whether lines were lost. */
static bool release_all(struct agent *a)
{
	struct output_queue_left left = { 0 };
	bool lost;

	if (a->output)
		left = output_queue_stop(a->output, 3000);
	lost = report_left(a, &left);
	control_free(a->control);
	pressure_follow_done(&a->pressure);
	sampler_done(&a->sampler);
	signal_programs_done(&a->programs);
	accounts_hold_done_all(&a->accounts);
	long_wait_table_sweep_stop(&a->long_waits);
	process_unwind_done(&a->unwind);
	mappings_queue_done(&a->queue);
	processes_done(&a->processes);
	event_budget_done(&a->budget);
	schedule_done(&a->schedule);
	shares_done(&a->shares);
	recorder_done(&a->recorder);
	symbols_free(a->symbols);
	ruleset_unref(a->active.set);
	facts_reader_done(&a->facts);
	cgroups_done(&a->cgroups);
	pinned_maps_done(&a->pins);
	broker_client_free(a->broker);
	broker_client_free(a->files);
	output_queue_free(a->output);
	subscriptions_free(a->subscriptions);
	kept_lines_free(a->kept);
	service_notify_close(&a->notify);
	rules_file_done(&a->rules_file);
	pins_watch_done(&a->pins_watch);
	loop_free(a->loop);
	return lost;
}

static int run_agent(struct agent *a)
{
	int r;

	r = host_read(&a->host);
	if (r == -ENOENT)
		log_error("no cgroup2 is mounted (%s): nothing can be watched; boot with "
			  "systemd.unified_cgroup_hierarchy=1 or mount it",
			  cgroupfs_mode_name(a->host.cgroup_mode));
	if (r == -ENODATA)
		log_error("/proc/sys/kernel/random/boot_id is not there: mount /proc without "
			  "subset=pid, or give the container the whole of it");
	if (r < 0)
		return r == -ENOENT || r == -ENODATA ? r : say_step("host", r);
	r = say_step("signals", open_signals(a));
	if (r < 0)
		return r;
	open_notify(a);
	r = say_step("loop", loop_new(&a->loop));
	if (r < 0)
		return r;
	r = open_all(a);
	if (r < 0)
		return r;
	r = start_all(a);
	if (r < 0)
		return r;
	return agent_run(a);
}

/*
 * Returns the exit status. Faulty rules have their own status, because restarting does not repair
 * them: 6 means "not configured" in the LSB, and systemctl shows it as such.
 */
static int status_of(const struct agent *a, int r)
{
	if (r >= 0)
		return EXIT_FINE;
	if (r == -EPROTO)
		return EXIT_OTHER_ABI;
	return a->started && !a->active.set ? EXIT_RULES : EXIT_FAILED;
}

/* A full disk behind the standard output is a failure too. */
static int end_output(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return EXIT_FINE;
	log_error("cannot write the output: %s", strerror(errno));
	return EXIT_FAILED;
}

int main(int argc, char *argv[])
{
	static struct agent agent = { .signal_fd = -1,
				      .rules_file.fd = -1,
				      .pins_watch.fd = -1,
				      .cgroups.mount_fd = -1,
				      .notify = SERVICE_NOTIFY_NONE };
	struct agent *a = &agent;
	int r, status;

	log_open("trocar-consumer");
	memory_share_arena();
	if (options_parse(argc, argv, &a->options) < 0)
		return EXIT_USAGE;
	if (a->options.help) {
		options_help();
		return end_output();
	}
	if (a->options.version) {
		printf("trocar-consumer %s\n", TROCAR_VERSION);
		return end_output();
	}
	log_journal(a->options.journal);
	a->start_ns = clock_mono_ns();
	raise_descriptors();
	if (confine_socket_group(&a->options, &a->socket_group) < 0)
		return EXIT_FAILED;
	r = run_agent(a);
	status = status_of(a, r);
	agent_stop(a);
	return release_all(a) && status == EXIT_FINE ? EXIT_LOST : status;
}
