/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Follows the agent's lines (subscribe), starts a session (session.start), and requests lines until
 * it has the session's end. From there the lines are handled as an event file. SIGINT, SIGTERM and
 * SIGHUP end the session early (session.stop): the lines so far are printed.
 */
#include "ctl/client/profile.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "ctl/cli/command_exit.h"
#include "ctl/cli/terminal.h"
#include "ctl/cli/text.h"
#include "ctl/client/calls.h"
#include "ctl/client/own_agent.h"
#include "ctl/client/profile_command.h"
#include "ctl/client/subscription.h"
#include "ctl/client/unit_cgroup.h"
#include "ctl/events/reader.h"
#include "ctl/render/flamegraph.h"
#include "ctl/render/folded.h"
#include "ctl/render/pprof.h"
#include "ctl/render/text_report.h"
#include "shared/files/cgroupfs.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"
#include "shared/tools/parse.h"

#define SECONDS_MAX 60 /* docs/control.md */
#define MEMORY_MIB  1024

struct profile {
	const struct options *options;
	struct subscription agent;
	struct options at_own; /* `options`, with the socket of the agent that it started */
	struct own_agent own;
	char program[PATH_MAX]; /* the file that is mostly captured; "": not known */
	uint64_t pid, seconds;	/* pid 0: a cgroup */
	char *session;		/* id of the session */
	uint64_t start_ns, lines;
	bool terminal, ended, stopped;
	struct input input;
};

static void profile_done(struct profile *p)
{
	subscription_done(&p->agent);
	free(p->session);
	input_done(&p->input);
	own_agent_done(&p->own);
}

static bool is_number(const char *word)
{
	return *word && word[strspn(word, "0123456789")] == '\0';
}

/* Checks that at most one form is selected by options; the default is folded stacks. */
static int check_form(const struct options *o)
{
	if (o->report + o->pprof + o->svg + o->jsonl > 1) {
		fprintf(o->err,
			"trocar: profile: want one of --report, --svg, --pprof and --jsonl\n");
		return -EINVAL;
	}
	if ((o->pprof || o->svg) && isatty(fileno(o->out))) {
		fputs("trocar: profile: --pprof and --svg write files: send them to one\n", o->err);
		return -EINVAL;
	}
	return 0;
}

/* Reads PID and SECONDS, or SECONDS with --cgroup; the default of SECONDS is SECONDS_MAX. */
static int take_arguments(struct profile *p, const char *const *arguments)
{
	const char *cgroup = p->options->cgroup, *pid = cgroup ? NULL : arguments[0];
	const char *const *rest = pid ? arguments + 1 : arguments, *seconds = rest[0];

	if ((!cgroup && !pid) || (seconds && rest[1])) {
		fprintf(p->options->err,
			"trocar: usage: trocar profile PID [SECONDS], or trocar "
			"profile --cgroup PATH [SECONDS], or trocar profile --unit UNIT "
			"[SECONDS], or trocar profile -- COMMAND [ARGUMENT...]\n");
		return -EINVAL;
	}
	p->seconds = SECONDS_MAX;
	if ((seconds && parse_u64(seconds, 1, SECONDS_MAX, &p->seconds) < 0) ||
	    (pid && parse_u64(pid, 1, OPTIONS_PID_MAX, &p->pid) < 0)) {
		fprintf(p->options->err,
			"trocar: profile: want a PID, and SECONDS from 1 to %d, or none: until "
			"Ctrl-C\n",
			SECONDS_MAX);
		return -EINVAL;
	}
	return check_form(p->options);
}

static bool has_cgroup(const char *cgroup)
{
	char mount[PATH_MAX], path[2 * PATH_MAX];
	enum cgroup_mode mode;

	if (cgroupfs_find_here(mount, sizeof(mount), &mode) < 0)
		return true; /* the agent may see more */
	snprintf(path, sizeof(path), "%s/%s", mount, cgroup);
	return access(path, F_OK) == 0 || errno != ENOENT;
}

/* Reports a wrong number or path before the first request to the agent. */
static int find_target(const struct profile *p)
{
	const char *cgroup = p->options->cgroup;

	if (p->pid && kill((pid_t)p->pid, 0) < 0 && errno == ESRCH)
		fprintf(p->options->err, "trocar: profile: there is no process %" PRIu64 "\n",
			p->pid);
	else if (cgroup && !has_cgroup(cgroup))
		fprintf(p->options->err, "trocar: profile: there is no cgroup %s\n", cgroup);
	else
		return COMMAND_FINE;
	return COMMAND_FAILED;
}

/* Sends a request about the session. 0, also if it is refused; else the value of client_ask. */
static int ask_of_session(struct profile *p, const char *method)
{
	_cleanup_(client_answer_done) struct client_answer answer = { 0 };
	_cleanup_(jsonw_done) struct jsonw params;

	jsonw_init(&params, CLIENT_REQUEST_BYTES);
	jsonw_object(&params, NULL);
	jsonw_string(&params, "session", p->session);
	jsonw_object_end(&params);
	return client_ask(p->agent.fd, method, &params, &answer);
}

/*
 * Ties the session to this connection: if the command is killed, no session is left that would hold
 * others back. An agent without this method refuses it, and the session runs for its full time.
 */
static void tie_session(struct profile *p)
{
	(void)ask_of_session(p, "session.tie");
}

static int start_session(struct profile *p)
{
	_cleanup_(client_answer_done) struct client_answer answer = { 0 };
	_cleanup_(jsonw_done) struct jsonw params;
	const struct json_node *session;
	int status;

	jsonw_init(&params, CLIENT_REQUEST_BYTES);
	jsonw_object(&params, NULL);
	if (p->pid)
		jsonw_u64(&params, "pid", p->pid);
	else
		jsonw_string(&params, "cgroup", p->options->cgroup);
	jsonw_u64(&params, "during_ms", p->seconds * MSEC_PER_SEC);
	jsonw_object_end(&params);
	status = subscription_ask(&p->agent, "session.start", &params, &answer);
	if (status != COMMAND_FINE)
		return status;
	session = subscription_member(answer.result, "session", JSON_STRING);
	if (!session)
		return calls_explain(p->options, -EPROTO);
	p->session = strdup(session->text);
	p->start_ns = clock_mono_ns();
	if (!p->session)
		return calls_explain(p->options, -ENOMEM);
	tie_session(p);
	return COMMAND_FINE;
}

static bool is_of_session(const struct profile *p, const struct json_node *node)
{
	const struct json_node *session = subscription_member(node, "session", JSON_STRING);

	return session && !strcmp(session->text, p->session);
}

/* Reads a line; lines of other sessions are not selected. */
static int take_line(void *context, const struct client_answer *answer,
		     const struct json_node *node)
{
	struct profile *p = context;
	struct lines_line line = {
		.text = answer->line + node->offset,
		.bytes = node->extent,
		.whole = true,
	};

	if (p->options->jsonl && is_of_session(p, node))
		fprintf(p->options->out, "%.*s\n", (int)node->extent, line.text);
	return reader_line(&p->input.reader, &line, ++p->lines);
}

/* Requests lines once; *ret_more: more lines are available at once. */
static int follow_lines(struct profile *p, bool *ret_more)
{
	int r, status = subscription_lines(&p->agent, take_line, p, ret_more, &r);

	for (uint32_t i = 0; i < p->input.store.ids.count; i++)
		p->ended |= p->input.store.sessions[i].files &&
			    p->input.store.sessions[i].end != STORE_NONE;
	return r < 0 ? input_fail(p->options, &p->input, r) : status;
}

/* Prints one line on a terminal, which is overwritten; without a terminal nothing. */
static void say_progress(const struct profile *p)
{
	uint64_t s = (clock_mono_ns() - p->start_ns) / NSEC_PER_SEC;

	if (!p->terminal)
		return;
	if (p->stopped || s >= p->seconds)
		fprintf(p->options->err, "\r\033[Kcaptured, naming the stacks ");
	else
		fprintf(p->options->err,
			"\rcapturing: %" PRIu64 " of %" PRIu64 " s, Ctrl-C ends it ", s,
			p->seconds);
	fflush(p->options->err);
}

static volatile sig_atomic_t interrupted;

static void note_signal(int number)
{
	interrupted = number;
}

static void change_signals(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(how, &set, NULL);
}

/* Delivers SIGINT, SIGTERM and SIGHUP only in pauses, so that they interrupt no call. */
static void take_signals(void)
{
	const struct sigaction action = { .sa_handler = note_signal };

	change_signals(SIG_BLOCK);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

/* Lets a second Ctrl-C end the command, but not SIGTERM, which ends the session. */
static void let_interrupt(void)
{
	const struct sigaction action = { .sa_handler = SIG_DFL };

	sigaction(SIGINT, &action, NULL);
	change_signals(SIG_UNBLOCK);
}

/* Ends the session, unless it has ended by itself. Its lines and its end arrive as usual. */
static int stop_session(struct profile *p)
{
	int r;

	p->stopped = true;
	let_interrupt();
	r = ask_of_session(p, "session.stop");
	return r < 0 ? calls_explain(p->options, r) : COMMAND_FINE;
}

/* Waits until the next request is due. */
static int pause_or_stop(struct profile *p)
{
	if (!p->stopped)
		change_signals(SIG_UNBLOCK);
	subscription_pause();
	if (!p->stopped)
		change_signals(SIG_BLOCK);
	return interrupted && !p->stopped ? stop_session(p) : COMMAND_FINE;
}

static int wait_for_end(struct profile *p)
{
	uint64_t deadline_ns = p->start_ns + p->seconds * NSEC_PER_SEC + SUBSCRIPTION_LATE_NS;
	int status = COMMAND_FINE;

	while (!p->ended && status == COMMAND_FINE) {
		bool more = false;

		say_progress(p);
		status = follow_lines(p, &more);
		if (more || p->ended || status != COMMAND_FINE)
			continue;
		if (clock_mono_ns() > deadline_ns) {
			fprintf(p->options->err, "%strocar: the session has not ended in time\n",
				p->terminal ? "\r\033[K" : "");
			return COMMAND_FAILED;
		}
		status = pause_or_stop(p);
	}
	if (p->terminal)
		fputs("\r\033[K", p->options->err);
	return status;
}

static void say_samples(const struct profile *p, const struct view *view)
{
	const struct store *s = &p->input.store;
	_cleanup_free_ char *title = view_title(view);
	uint64_t samples = 0;

	for (uint32_t i = 0; i < s->keys.count; i++)
		samples = store_sum(samples, s->values[i].count);
	fprintf(p->options->err, "session %s, %" PRIu64 " sample%s%s: %s\n", p->session, samples,
		text_s(samples), p->pid ? " of the process" : "", title ? title : "-");
}

/* Prints the numbers of captured and lost samples. */
static void say_account(struct profile *p, const struct view *view)
{
	const struct store *s = &p->input.store;

	if (!p->options->report && !p->options->jsonl)
		say_samples(p, view);
	for (uint32_t i = 0; i < s->ids.count; i++)
		if (s->sessions[i].files && s->sessions[i].verdict != STORE_NONE &&
		    strcmp(pool_text(&s->texts, s->sessions[i].verdict), "complete") != 0)
			fprintf(p->options->err, "its samples are not complete: see session.end "
						 "in the agent's lines\n");
	if (p->agent.omitted)
		fprintf(p->options->err, "%" PRIu64 " line%s came too fast and %s missing here\n",
			p->agent.omitted, text_s(p->agent.omitted),
			p->agent.omitted == 1 ? "is" : "are");
}

/* Prints in the selected form. 0, -errno. */
static int print_form(const struct options *o, struct view *view)
{
	if (o->report)
		return text_report_write(view, o->full, o->top, o->out);
	if (o->svg)
		return flamegraph_draw(view, o->title, o->inverted, o->out);
	if (o->pprof)
		return pprof_write(view, o->out);
	return o->jsonl ? 0 : folded_view(o, view);
}

static bool is_folded(const struct options *o)
{
	return !o->report && !o->svg && !o->pprof && !o->jsonl;
}

/* Returns whether an option of folded stacks is given: --by, --count, --offsets or --annotate. */
static bool has_folded(const struct options *o)
{
	return (o->by && strcmp(o->by, OPTIONS_BY) != 0) || o->count || o->offsets || o->annotate;
}

static int print_stacks(struct profile *p)
{
	_cleanup_(view_done) struct view view = { 0 };
	int r = view_init(&view, p->options, &p->input,
			  is_folded(p->options) ? VIEW_COUNT : VIEW_NS);

	if (r < 0)
		return r == -EINVAL ? COMMAND_USAGE : input_fail(p->options, &p->input, r);
	r = print_form(p->options, &view);
	if (r < 0)
		return input_fail(p->options, &p->input, r);
	say_account(p, &view);
	return p->agent.omitted ? COMMAND_FAILED : input_status(&p->input);
}

/* Selects the lines: for a report the whole session, for a profile only CPU time during it. */
static struct select choose_lines(const struct profile *p)
{
	struct select s = { .session = p->session, .until_ns = UINT64_MAX };

	if (p->options->report)
		return s;
	s.signal = "oncpu";
	s.phase = "during";
	s.has_pid = p->pid > 0;
	s.pid = p->pid;
	return s;
}

/* Connects to the running agent; if there is none, starts one if that is allowed. */
static int connect_agent(struct profile *p)
{
	int status;

	p->agent.fd = client_open(calls_socket(p->options));
	if (p->agent.fd >= 0) {
		p->agent.options = p->options;
		return COMMAND_FINE;
	}
	if (!own_agent_fits(p->options, p->agent.fd)) {
		status = calls_explain(p->options, p->agent.fd);
		if (geteuid() != 0 && !p->options->socket)
			fprintf(p->options->err, "trocar: profile: as root it starts an agent "
						 "where none runs\n");
		return status;
	}
	status = own_agent_start(p->options, p->program, &p->own);
	if (status != COMMAND_FINE)
		return status;
	p->at_own = *p->options;
	p->at_own.socket = p->own.socket;
	p->options = &p->at_own;
	return subscription_connect(&p->agent, p->options);
}

/* Does the work that does not need the agent, so that a wrong argument costs no capture. */
static int prepare_profile(struct profile *p)
{
	_cleanup_(view_done) struct view view = { 0 };

	pool_seed();
	if (store_init(&p->input.store, (uint64_t)MEMORY_MIB << 20) < 0)
		return calls_explain(p->options, -ENOMEM);
	p->input.store.native = p->options->native;
	if (view_init(&view, p->options, &p->input, VIEW_COUNT) < 0)
		return COMMAND_USAGE;
	if (reader_init(&p->input.reader, &p->input.store, &p->input.select, p->options->err) < 0)
		return calls_explain(p->options, -ENOMEM);
	p->terminal = isatty(fileno(p->options->err));
	return connect_agent(p);
}

static int capture_session(struct profile *p, int started_fd)
{
	int status = prepare_profile(p);

	if (status == COMMAND_FINE)
		status = subscription_begin(&p->agent);
	take_signals();
	if (status == COMMAND_FINE)
		status = start_session(p);
	if (status != COMMAND_FINE)
		return status;
	if (started_fd >= 0 && write(started_fd, "", 1) != 1)
		return calls_explain(p->options, -errno);
	p->input.select = choose_lines(p);
	status = wait_for_end(p);
	return status == COMMAND_FINE ? print_stacks(p) : status;
}

static int capture_cgroup(const struct options *options, const char *cgroup, const char *program,
			  int started_fd)
{
	struct options own = *options;
	_cleanup_(profile_done) struct profile p = {
		.options = &own,
		.agent = { .fd = -1 },
		.own = OWN_AGENT_NONE,
		.seconds = SECONDS_MAX,
	};

	own.cgroup = cgroup;
	snprintf(p.program, sizeof(p.program), "%s", program);
	return capture_session(&p, started_fd);
}

static int capture_pid_or_cgroup(const struct options *options, const char *const *arguments)
{
	_cleanup_(profile_done) struct profile p = {
		.options = options,
		.agent = { .fd = -1 },
		.own = OWN_AGENT_NONE,
	};
	int status;

	if (take_arguments(&p, arguments) < 0)
		return COMMAND_USAGE;
	status = find_target(&p);
	if (p.pid)
		snprintf(p.program, sizeof(p.program), "/proc/%" PRIu64 "/exe", p.pid);
	return status == COMMAND_FINE ? capture_session(&p, -1) : status;
}

int profile_call(const struct options *options, const char *const *arguments)
{
	struct unit_cgroup unit;
	int status = unit_cgroup_resolve(options, &unit);

	if (status != COMMAND_FINE)
		return status;
	/* A person at a terminal reads the answer, other programs read the stacks. */
	if (terminal_get()->is_one && is_folded(&unit.options) && !has_folded(options))
		unit.options.report = true;
	options = &unit.options;
	if (options->cgroup || !arguments[0] || is_number(arguments[0]))
		return capture_pid_or_cgroup(options, arguments);
	if (!profile_command_given(options, arguments))
		return COMMAND_USAGE;
	return check_form(options) < 0 ? COMMAND_USAGE
				       : profile_command_run(options, arguments, capture_cgroup);
}
