/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trocar-loader: it first restricts itself (hardening, capabilities, system-call filter), then
 * reads its command line, then runs one verb.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bpf/identity.h"
#include "loader/broker_main.h"
#include "loader/exit_status.h"
#include "loader/load.h"
#include "loader/options.h"
#include "loader/preflight/preflight.h"
#include "loader/unload.h"
#include "policy/policy.h"
#include "shared/abi/abi.h"
#include "shared/tools/log.h"
#include "shared/tools/macro.h"

static int run_check(const struct options *o)
{
	int r = preflight_report(o->json);

	if (r < 0)
		return EXIT_FAILED;
	return r ? EXIT_FINE : EXIT_NEEDS;
}

static int print_version(const struct options *o)
{
	printf("trocar-loader %s, ABI %u, kernel side " BPF_IDENTITY "\n", TROCAR_VERSION,
	       ABI_VERSION);
	return EXIT_FINE;
}

static int print_help(const struct options *o);

/* The verbs; `stage` decides which capabilities each keeps (policy/capabilities.def). */
static const struct verb {
	const char *name;
	enum policy_process process;
	uint32_t bit; /* bit of its options; 0: no options */
	enum policy_stage stage;
	int (*run)(const struct options *o);
	const char *help;
} verbs[] = {
	{ "check", POLICY_LOADER, FOR_CHECK, STAGE_CHECK, run_check,
	  "reports required kernel features, present and missing" },
	{ "load", POLICY_LOADER, FOR_LOAD, STAGE_CHECK, load_run,
	  "mounts, loads, attaches, pins, and leaves" },
	{ "unload", POLICY_LOADER, FOR_UNLOAD, STAGE_PIN, unload_run,
	  "removes every trace of a load" },
	{ "broker", POLICY_BROKER, FOR_BROKER, STAGE_CHECK, broker_main,
	  "opens files and events for the consumer; started by its socket" },
	{ "version", POLICY_LOADER, 0, STAGE_DONE, print_version, "prints the version" },
	{ "help", POLICY_LOADER, 0, STAGE_DONE, print_help, "prints this" },
};

static void print_usage(FILE *out)
{
	fputs("usage: trocar-loader VERB [OPTION]...\n", out);
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		fprintf(out, "\n  %-10s %s\n", verbs[i].name, verbs[i].help);
		options_help(verbs[i].bit, out);
	}
}

static int print_help(const struct options *o)
{
	print_usage(stdout);
	return EXIT_FINE;
}

static const struct verb *find_verb(const char *name)
{
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		name = "help";
	if (strcmp(name, "--version") == 0)
		name = "version";
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	return NULL;
}

/*
 * Without CAP_SETPCAP (not root, or a container) the bounding set stays as it is; no_new_privs
 * makes it useless. A verb that lacks a capability reports this itself.
 */
static int drop_capabilities(enum policy_process process, enum policy_stage stage)
{
	int r = policy_capabilities_keep(process, stage);

	return r == -EPERM ? 0 : r;
}

/* Restricts the process before it reads any argument except the verb. */
static int lock_down(enum policy_process process)
{
	int r;

	r = policy_harden();
	if (r < 0)
		return r;
	r = drop_capabilities(process, STAGE_CHECK);
	if (r < 0)
		return r;
	return policy_seccomp(process);
}

/*
 * Blocks signals, so that none ends a load between two steps, not even SIGPIPE of a closed stderr.
 * Ignored signals (nohup) stay ignored: if they were blocked, they would become pending and look
 * like an interruption.
 */
static void block_signals(sigset_t *ret_old)
{
	static const int blocked[] = { SIGINT,	SIGTERM, SIGHUP,  SIGQUIT, SIGPIPE,
				       SIGALRM, SIGUSR1, SIGUSR2, SIGTSTP };
	struct sigaction action;
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(blocked); i++)
		if (sigaction(blocked[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			sigaddset(&set, blocked[i]);
	sigprocmask(SIG_BLOCK, &set, ret_old);
}

static int run_verb(const struct verb *verb, int argc, char *const argv[])
{
	struct options o;
	char fault[OPTION_TABLE_FAULT_BYTES];
	int r;

	if (!verb) {
		print_usage(stderr);
		return EXIT_USAGE;
	}
	r = options_parse(verb->bit, argc - 2, argv + 2, &o, fault);
	if (r < 0) {
		log_error("%s: %s", verb->name, fault);
		return EXIT_USAGE;
	}
	r = drop_capabilities(verb->process, verb->stage);
	if (r < 0) {
		log_error("cannot drop capabilities: %s", strerror(-r));
		return EXIT_FAILED;
	}
	return verb->run(&o);
}

int main(int argc, char *argv[])
{
	const struct verb *verb = argc > 1 ? find_verb(argv[1]) : NULL;
	sigset_t old;
	int r, status;

	errno = 0;
	log_open("trocar-loader");
	block_signals(&old);
	r = lock_down(verb ? verb->process : POLICY_LOADER);
	if (r < 0) {
		log_error("cannot lock itself down: %s", strerror(-r));
		return EXIT_FAILED;
	}
	status = run_verb(verb, argc, argv);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		log_error("cannot write the output: %s", strerror(errno));
		status = status == EXIT_FINE ? EXIT_FAILED : status;
	}
	if (status != EXIT_FINE)
		sigprocmask(SIG_SETMASK, &old, NULL); /* a pending signal ends the process now */
	return status;
}
