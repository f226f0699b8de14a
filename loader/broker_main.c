/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/broker_main.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>

#include "loader/accounts.h"
#include "loader/broker/broker_dispatch.h"
#include "loader/broker/broker_listen.h"
#include "loader/broker/broker_operations.h"
#include "loader/broker/broker_serve.h"
#include "loader/exit_status.h"
#include "policy/policy.h"
#include "shared/broker/broker.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"
#include "shared/tools/log.h"
#include "shared/tools/parse.h"

#define PARANOID_PATH  "/proc/sys/kernel/perf_event_paranoid"
#define PARANOID_BYTES 32

/*
 * Returns whether perf_event_open(2) needs CAP_SYS_ADMIN: it does at level 3 of
 * perf_event_paranoid, which the kernels of Debian and Android have. A level that cannot be read
 * counts as 3.
 */
static bool needs_admin(void)
{
	_cleanup_free_ char *text = NULL;
	uint64_t level;
	size_t bytes;

	if (io_read_file(AT_FDCWD, PARANOID_PATH, PARANOID_BYTES, &text, &bytes) < 0)
		return true;
	text[strcspn(text, "\n")] = '\0';
	if (strcmp(text, "-1") == 0)
		return false;
	return parse_u64(text, 0, 2, &level) < 0;
}

/* -EPERM: the bounding set stays as it is; the other sets are reduced, and no_new_privs holds. */
static int drop_capabilities(void)
{
	int r = 0;

	if (!needs_admin())
		r = policy_capabilities_drop(CAP_SYS_ADMIN);
	if (r < 0 && r != -EPERM)
		return r;
	r = policy_capabilities_keep(POLICY_BROKER, STAGE_SERVE);
	return r == -EPERM ? 0 : r;
}

/*
 * Unblocks the signals that main() has blocked. Each may end the broker, which has nothing to undo.
 * The broker does not wait for its workers.
 */
static void unblock_signals(void)
{
	sigset_t none;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
	signal(SIGALRM, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static int prepare_broker(const struct options *o, int *ret_listen_fd, uid_t *ret_uid)
{
	int r;

	unblock_signals();
	r = broker_listen_take(ret_listen_fd);
	if (r < 0) {
		log_error("broker: start it through its socket, %s (trocar-broker.socket, or "
			  "systemd-socket-activate --seqpacket): %s",
			  BROKER_SOCKET,
			  r == -ENOENT ? "no socket was passed by a service manager"
				       : "descriptor 3 is no listening SOCK_SEQPACKET socket");
		return r;
	}
	r = accounts_find_user(o->user, ret_uid);
	if (r < 0) {
		log_error("there is no user %s: name the consumer's (or its number) with --user",
			  o->user);
		return r;
	}
	r = drop_capabilities();
	if (r < 0)
		log_error("cannot drop capabilities: %s", strerror(-r));
	return r;
}

int broker_main(const struct options *o)
{
	struct broker_operations operations __attribute__((cleanup(broker_operations_done)));
	struct broker_serve serve = { .listen_fd = -1 };
	int r;

	broker_operations_init(o->bpf_dir, &serve.peer, &operations);
	r = prepare_broker(o, &serve.listen_fd, &serve.uid);
	if (r < 0)
		return r == -ENOENT && serve.listen_fd < 0 ? EXIT_USAGE : EXIT_FAILED;
	broker_dispatch_init(broker_operations_table, &operations, &serve.dispatch);
	broker_operations_start(&operations, &serve.dispatch);
	r = broker_serve(&serve);
	if (r < 0) {
		log_error("broker: the socket failed: %s", strerror(-r));
		return EXIT_FAILED;
	}
	return EXIT_FINE;
}
