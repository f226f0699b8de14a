/* SPDX-License-Identifier: BSD-2-Clause */
/* What is known of an asker, and its own process counted; attackers are tests/broker's. */
#include "tests/unit/runner/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/broker/broker_peer.h"
#include "loader/broker/broker_rights.h"
#include "shared/tools/macro.h"

static void numbers(void **state)
{
	static const char text[] = "pos:\t0\nscm_fds: 3\nprog_id:\t77\nother_prog_id:\t8\nlast:\t5";

	assert_int_equal(broker_peer_number(text, "scm_fds: "), 3);
	assert_int_equal(broker_peer_number(text, "prog_id:\t"), 77);
	assert_int_equal(broker_peer_number(text, "pos:\t"), 0);
	assert_int_equal(broker_peer_number(text, "last:\t"), 5);
	assert_int_equal(broker_peer_number(text, "id:\t"), 0);
	assert_int_equal(broker_peer_number("prog_id:\tx\n", "prog_id:\t"), 0);
	assert_int_equal(broker_peer_number("prog_id:\t99999999999999999999\n", "prog_id:\t"), 0);
	assert_int_equal(broker_peer_number("", "prog_id:\t"), 0);
}

static void mappings(void **state)
{
	assert_int_equal(broker_peer_mapped(""), 0);
	assert_int_equal(broker_peer_mapped("1-2 rw-s 0 00:10 1   anon_inode:[perf_event]\n"
					    "2-3 r--p 0 fe:00 2   /tmp/anon_inode:[perf_event]\n"
					    "3-4 rw-s 0 00:10 1   anon_inode:[perf_event]\n"
					    "4-5 rw-p 0 00:00 0\n"),
			 2);
}

static int event(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.disabled = 1,
		.exclude_kernel = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Of this process: a descriptor, a mapping without one, and one in a message on its way. */
static void counts_wherever_they_are(void **state)
{
	struct broker_peer peer;
	struct broker_holdings held;
	struct broker_result message = { .count = 1 };
	int first = event(), second = event(), pair[2];
	void *page;

	if (first < 0) {
		print_message("skipped: perf_event_open: %s\n", strerror(errno));
		skip();
	}
	assert_int_equal(broker_peer_open(getpid(), &peer), 0);
	assert_int_equal(broker_peer_count(&peer, NULL, 0, &held), 0);
	assert_int_equal(held.events, 2);
	assert_int_equal(held.links + held.own + held.flying, 0);
	page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_SHARED, first,
		    0);
	assert_ptr_not_equal(page, MAP_FAILED);
	close(first);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	message.fds[0] = second;
	assert_int_equal(broker_rights_send(pair[0], "x", 1, &message), 0);
	close(second);
	assert_int_equal(broker_peer_count(&peer, NULL, 0, &held), 0);
	assert_int_equal(held.events, 1);
	assert_int_equal(held.flying, 1);
	munmap(page, (size_t)sysconf(_SC_PAGESIZE));
	close(pair[1]);
	assert_int_equal(broker_peer_count(&peer, NULL, 0, &held), 0);
	assert_int_equal(held.events + held.flying, 0);
	close(pair[0]);
	broker_peer_close(&peer);
}

static void one_that_has_ended(void **state)
{
	struct broker_holdings held;
	struct broker_peer peer;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	assert_int_equal(broker_peer_open(pid, &peer), 0);
	while (waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT) < 0)
		;
	assert_int_equal(broker_peer_count(&peer, NULL, 0, &held), -ESRCH); /* not reaped yet */
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(broker_peer_count(&peer, NULL, 0, &held), -ESRCH);
	broker_peer_close(&peer);
	assert_int_equal(broker_peer_open(pid, &peer), -ESRCH);
}

/* Some counts in a row wait for nothing; of a long time counts take a quarter. */
static void rests(void **state)
{
	const uint64_t ms = 1000000, credit_ns = 100 * ms;
	struct broker_peer peer = BROKER_PEER_NONE;
	struct broker_holdings none = { 0 };
	uint64_t at = 1000000 * ms, counted_ns = 0;

	for (int i = 0; i < 6; i++, at += 4 * ms) {
		assert_true(peer.rest_ns <= at);
		broker_peer_end(&peer, &none, &none, at, at + 4 * ms);
	}
	assert_true(peer.rest_ns <= at);
	for (int i = 0; i < 1000; i++) {
		at = peer.rest_ns > at ? peer.rest_ns : at;
		broker_peer_end(&peer, &none, &none, at, at + 7 * ms);
		at += 7 * ms;
		counted_ns += 7 * ms;
	}
	assert_in_range(at - 1000000 * ms, 4 * counted_ns - credit_ns, 4 * counted_ns + credit_ns);
	/* A peer that was not counted for long has no more than the one credit. */
	at += 3600 * 1000 * ms;
	broker_peer_end(&peer, &none, &none, at, at + 26 * ms);
	assert_int_equal(peer.rest_ns, at + 4 * 26 * ms - credit_ns);
}

/* What is given is known without another count; a count subtracts closed descriptors. */
static void bounds(void **state)
{
	struct broker_peer peer = BROKER_PEER_NONE;
	struct broker_holdings mark = peer.given, held = { .events = 2 };

	assert_false(broker_peer_may_sample(&peer, 4));
	broker_peer_end(&peer, &mark, &held, 100, 110);
	assert_int_equal(peer.rest_ns, 0);
	assert_true(broker_peer_may_sample(&peer, 4));
	assert_false(broker_peer_may_sample(&peer, 2));
	broker_peer_gave(&peer, 9, BROKER_SAMPLER_OPEN, 1);
	broker_peer_gave(&peer, 9, BROKER_MAPPING_OPEN, 1);
	assert_true(broker_peer_may_sample(&peer, 4));
	broker_peer_gave(&peer, 9, BROKER_SAMPLER_OPEN, 1);
	assert_false(broker_peer_may_sample(&peer, 4));
	/* Given while it was counted: perhaps not seen. */
	mark = peer.given;
	broker_peer_gave(&peer, 9, BROKER_SAMPLER_OPEN, 1);
	held.events = 3;
	broker_peer_end(&peer, &mark, &held, 200, 210);
	assert_false(broker_peer_may_sample(&peer, 4));
	assert_true(broker_peer_may_sample(&peer, 5));
	/* A count that fails leaves nothing known. */
	broker_peer_end(&peer, &mark, NULL, 300, 310);
	assert_false(broker_peer_may_sample(&peer, 100));
}

static void attachments(void **state)
{
	struct broker_peer peer = BROKER_PEER_NONE;
	struct broker_holdings mark = peer.given, held = { 0 };

	assert_false(broker_peer_may_attach(&peer, true, 1, 1));
	broker_peer_end(&peer, &mark, &held, 100, 110);
	assert_true(broker_peer_may_attach(&peer, true, 1, 1));
	broker_peer_gave(&peer, 9, BROKER_SIGNAL_ATTACH, 1);
	assert_false(broker_peer_may_attach(&peer, false, 1, 2));
	assert_false(broker_peer_may_attach(&peer, true, 1, 1));
	mark = peer.given;
	held = (struct broker_holdings){ .links = 1 };
	broker_peer_end(&peer, &mark, &held, 200, 210);
	assert_true(broker_peer_may_attach(&peer, true, 1, 2)); /* another signal's */
	assert_false(broker_peer_may_attach(&peer, false, 1, 2));
	held = (struct broker_holdings){ .links = 1, .own = 1 };
	broker_peer_end(&peer, &mark, &held, 300, 310);
	assert_false(broker_peer_may_attach(&peer, true, 1, 2));
	held = (struct broker_holdings){ .flying = 1 };
	broker_peer_end(&peer, &mark, &held, 400, 410);
	assert_false(broker_peer_may_attach(&peer, true, 1, 2));
}

/* A message that is not received: a file is no event, an event is one wherever it is. */
static void messages_on_a_connection(void **state)
{
	struct broker_peer peer = BROKER_PEER_NONE;
	struct broker_holdings held = { .flying = 1 };
	char byte;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	peer.wires[0].fd = pair[0];
	assert_int_equal(send(pair[0], "x", 1, 0), 1);
	broker_peer_gave(&peer, pair[0], BROKER_MAPPING_OPEN, 1);
	broker_peer_end(&peer, &peer.given, &held, 0, 0);
	assert_int_equal(peer.held.flying, 0);
	broker_peer_gave(&peer, pair[0], BROKER_SAMPLER_OPEN, 1);
	held.flying = 0; /* out of sight */
	broker_peer_end(&peer, &peer.given, &held, 0, 0);
	assert_int_equal(peer.held.flying, 1);
	assert_int_equal(recv(pair[1], &byte, 1, 0), 1);
	broker_peer_end(&peer, &peer.given, &held, 0, 0);
	assert_int_equal(peer.held.flying, 0);
	close(pair[0]);
	close(pair[1]);
}

UNIT_TESTS(broker_peer)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(mappings),
		cmocka_unit_test(counts_wherever_they_are),
		cmocka_unit_test(one_that_has_ended),
		cmocka_unit_test(rests),
		cmocka_unit_test(bounds),
		cmocka_unit_test(attachments),
		cmocka_unit_test(messages_on_a_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
