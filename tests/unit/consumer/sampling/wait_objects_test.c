/* SPDX-License-Identifier: BSD-2-Clause */
/* What threads wait on: equality, idle waits, and the written form. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>

#include "consumer/sampling/wait_kind.h"
#include "consumer/sampling/wait_objects.h"
#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

static struct wait_objects objects;

static int setup(void **state)
{
	wait_objects_init(&objects);
	return 0;
}

static int teardown(void **state)
{
	wait_objects_done(&objects);
	return 0;
}

static struct look_on tcp(uint16_t local_port, uint16_t peer_port)
{
	return (struct look_on){
		.kind = LOOK_ON_SOCKET,
		.family = AF_INET,
		.protocol = IPPROTO_TCP,
		.state = TCP_ESTABLISHED,
		.local = { 10, 0, 0, 1 },
		.peer = { 10, 0, 0, 5 },
		.local_port = local_port,
		.peer_port = peer_port,
	};
}

static const char *written(const struct look_on *on)
{
	static char text[512];
	struct jsonw w;

	jsonw_init(&w, sizeof(text));
	wait_objects_write(on, &w);
	assert_int_equal(w.error, 0);
	memcpy(text, w.data, w.bytes);
	text[w.bytes] = 0;
	jsonw_done(&w);
	return text;
}

/* Two connections of clients to one service are one, to two services two. */
static void test_same(void **state)
{
	struct look_on a = tcp(40001, 5432), b = tcp(40002, 5432), c = tcp(40002, 6379);
	uint32_t number;

	a.number = 4;
	b.number = 5;
	number = wait_objects_add(&objects, &a);
	assert_int_equal(number, 1);
	assert_int_equal(wait_objects_add(&objects, &b), number);
	assert_int_equal(wait_objects_add(&objects, &c), 2);
	assert_string_equal(written(wait_objects_get(&objects, number)),
			    "\"on\":{\"what\":\"socket\",\"family\":\"inet\",\"protocol\":\"tcp\","
			    "\"local\":\"10.0.0.1\",\"peer\":\"10.0.0.5:5432\","
			    "\"state\":\"established\"}");
	assert_null(wait_objects_get(&objects, 0));
	assert_null(wait_objects_get(&objects, 3));
}

static void test_idle(void **state)
{
	const uint8_t socket = WAIT_BLOCKED + WAIT_SOCKET;
	struct look_on asks = tcp(40001, 5432), serves = tcp(5432, 40001);

	assert_true(wait_objects_is_idle(socket, &serves));
	assert_false(wait_objects_is_idle(socket, &asks));
	serves = *wait_objects_get(&objects, wait_objects_add(&objects, &serves));
	asks = *wait_objects_get(&objects, wait_objects_add(&objects, &asks));
	assert_true(wait_objects_is_idle(socket, &serves));
	assert_false(wait_objects_is_idle(socket, &asks));
	assert_false(wait_objects_is_idle(socket, NULL));
	assert_true(wait_objects_is_idle(WAIT_BLOCKED + WAIT_SLEEP, NULL));
	assert_true(wait_objects_is_idle(WAIT_BLOCKED + WAIT_IDLE, NULL));
	assert_false(wait_objects_is_idle(WAIT_BLOCKED + WAIT_LOCK, NULL));
	assert_false(wait_objects_is_idle(WAIT_FOR_CPU, NULL));
}

static void test_written(void **state)
{
	struct look_on on = {
		.kind = LOOK_ON_FILE, .device = 8u << 20 | 1, .inode = 77, .name = "journal"
	};

	assert_string_equal(written(&on), "\"on\":{\"what\":\"file\",\"name\":\"journal\","
					  "\"device\":\"8:1\",\"inode\":77}");
	on = (struct look_on){ .kind = LOOK_ON_FUTEX, .address = 0x7f00 };
	assert_string_equal(written(&on), "\"on\":{\"what\":\"futex\",\"address\":\"0x7f00\"}");
	on = (struct look_on){ .kind = LOOK_ON_CHILD, .number = -1 };
	assert_string_equal(written(&on), "\"on\":{\"what\":\"child\"}");
	on = (struct look_on){ .kind = LOOK_ON_SOCKET,
			       .family = AF_INET6,
			       .protocol = IPPROTO_UDP,
			       .local = { [15] = 1 },
			       .local_port = 53 };
	assert_string_equal(written(&on), "\"on\":{\"what\":\"socket\",\"family\":\"inet6\","
					  "\"protocol\":\"udp\",\"local\":\"[::1]:53\","
					  "\"peer\":\"::\"}");
}

/* As in a sentence; an object with only a number is not named. */
static void test_words(void **state)
{
	struct look_on on = { .kind = LOOK_ON_FILE, .name = "journal" };
	char text[128] = "";

	wait_objects_say(&on, text, sizeof(text));
	assert_string_equal(text, " on the file journal");
	on = (struct look_on){ .kind = LOOK_ON_SOCKET,
			       .family = AF_INET,
			       .protocol = IPPROTO_TCP,
			       .peer = { 10, 0, 0, 5 },
			       .peer_port = 5432 };
	wait_objects_say(&on, text, sizeof(text));
	assert_string_equal(text, " on tcp to 10.0.0.5:5432");
	on.family = AF_UNIX;
	wait_objects_say(&on, text, sizeof(text));
	assert_string_equal(text, " on a unix socket");
	on.kind = LOOK_ON_PIPE;
	wait_objects_say(&on, text, sizeof(text));
	assert_string_equal(text, " on a pipe");
	assert_false(wait_objects_is_full_pipe(&on));
	on = (struct look_on){ .kind = LOOK_ON_SENDER, .number = 12, .name = "bash" };
	assert_true(wait_objects_say(&on, text, sizeof(text)) > 0);
	assert_string_equal(text, ", sent by bash (process 12)");
	assert_string_equal(written(&on),
			    "\"on\":{\"what\":\"sender\",\"name\":\"bash\",\"pid\":12}");
	on = (struct look_on){ .kind = LOOK_ON_PIPE, .state = 1, .inode = 7 };
	wait_objects_say(&on, text, sizeof(text));
	assert_string_equal(text, " on a full pipe");
	assert_true(wait_objects_is_full_pipe(&on));
	assert_string_equal(written(&on), "\"on\":{\"what\":\"pipe\",\"inode\":7,\"full\":true}");
	on = (struct look_on){ .kind = LOOK_ON_FUTEX, .address = 0x7f00 };
	assert_int_equal(wait_objects_say(&on, text, sizeof(text)), 0);
}

/* A connection with a question is another object than one without, and keeps how long it lasts. */
static void test_question(void **state)
{
	struct look_on plain = tcp(40000, 5432), asked = plain;
	uint32_t number;

	asked.asked = 1;
	asked.longest_ns = 3 * NSEC_PER_SEC;
	assert_false(wait_objects_is_unanswered(&plain));
	assert_true(wait_objects_is_unanswered(&asked) && !wait_objects_is_asked(&asked));
	number = wait_objects_add(&objects, &asked);
	assert_int_not_equal(wait_objects_add(&objects, &plain), number);
	wait_objects_lasts(&objects, number, 5 * NSEC_PER_SEC);
	asked.longest_ns = NSEC_PER_SEC;
	assert_int_equal(wait_objects_add(&objects, &asked), number);
	assert_int_equal(wait_objects_get(&objects, number)->longest_ns, 5 * NSEC_PER_SEC);
	assert_non_null(strstr(written(wait_objects_get(&objects, number)),
			       "\"state\":\"established\",\"longest_ms\":5000}"));
}

static struct look_on epoll(uint16_t peer_port, uint32_t asked)
{
	return (struct look_on){
		.kind = LOOK_ON_EPOLL,
		.number = (int32_t)asked,
		.inode = asked,
		.name = "[eventpoll]",
		.family = AF_INET,
		.protocol = IPPROTO_TCP,
		.peer = { 10, 0, 0, 7 },
		.peer_port = peer_port,
		.longest_ns = asked * 100 * NSEC_PER_MSEC,
		.items = 40,
		.sockets = 37,
		.asked = asked,
	};
}

/* Threads that wait for the same peer wait on the same object, with the largest counts. */
static void test_epoll(void **state)
{
	struct look_on few = epoll(8080, 3), many = epoll(8080, 12), other = epoll(8081, 1);
	uint32_t number = wait_objects_add(&objects, &few);
	char text[128] = "";

	many.others = 2;
	assert_int_equal(wait_objects_add(&objects, &many), number);
	assert_int_equal(wait_objects_add(&objects, &few), number);
	assert_int_not_equal(wait_objects_add(&objects, &other), number);
	wait_objects_say_peer(wait_objects_get(&objects, number), text, sizeof(text));
	assert_string_equal(
		text, "10.0.0.7:8080 (12 connections a thread, the longest for 1200 ms; 2 wait "
		      "for others)");
	wait_objects_lasts(&objects, number, 1900 * NSEC_PER_MSEC);
	wait_objects_lasts(&objects, number, 100 * NSEC_PER_MSEC);
	wait_objects_lasts(&objects, 0, 1);
	wait_objects_lasts(&objects, 77, 1);
	assert_string_equal(written(wait_objects_get(&objects, number)),
			    "\"on\":{\"what\":\"epoll\",\"peer\":\"10.0.0.7:8080\","
			    "\"asked\":12,\"others\":2,\"longest_ms\":1900,\"opened\":37,"
			    "\"items\":40,\"kinds\":{}}");
	wait_objects_say_peer(&other, text, sizeof(text));
	assert_string_equal(text, "10.0.0.7:8081 (1 connection a thread, the longest for 100 ms)");
}

/* An epoll is idle unless it waits for a peer; a record that names one of no internet does not. */
static void test_epoll_idle(void **state)
{
	const uint8_t idle = WAIT_BLOCKED + WAIT_IDLE, io = WAIT_BLOCKED + WAIT_IO;
	struct look_on asks = epoll(8080, 3), none = epoll(0, 3), broken = epoll(8080, 3);
	char text[128];

	broken.family = AF_NETLINK;
	none.cut = 1;
	assert_false(wait_objects_is_idle(idle, &asks));
	assert_int_equal(wait_objects_state(idle, &asks), WAIT_BLOCKED + WAIT_SOCKET);
	assert_int_equal(wait_objects_state(io, &asks), io);
	assert_int_equal(wait_objects_state(idle, NULL), idle);
	assert_true(wait_objects_is_idle(idle, &none));
	assert_true(wait_objects_is_idle(idle, &broken));
	assert_int_equal(wait_objects_say_peer(&broken, text, sizeof(text)), 0);
	assert_int_equal(wait_objects_add(&objects, &none), wait_objects_add(&objects, &broken));
	assert_string_equal(written(wait_objects_get(&objects, 1)),
			    "\"on\":{\"what\":\"epoll\",\"opened\":37,\"items\":40,"
			    "\"kinds\":{},\"cut\":true}");
}

static struct look_on local(enum look_end end, const char *path)
{
	struct look_on on = { .kind = LOOK_ON_SOCKET,
			      .family = AF_UNIX,
			      .end = (uint8_t)end,
			      .peer_pid = 81,
			      .peer_comm = "postgres" };

	snprintf(on.path, sizeof(on.path), "%s", path);
	return on;
}

/*
 * A unix socket is identified by its path and by the opener of the other end; clients of one are
 * alike.
 */
static void test_unix(void **state)
{
	const uint8_t socket = WAIT_BLOCKED + WAIT_SOCKET;
	struct look_on asks = local(LOOK_END_OPENED, "/run/pg.sock"), more = asks,
		       serves = local(LOOK_END_SERVED, "/run/pg.sock"), other = serves,
		       pair = local(LOOK_END_UNKNOWN, ""), whole = asks;
	uint32_t number;
	char text[256] = "";

	assert_true(wait_objects_is_idle(socket, &serves));
	assert_false(wait_objects_is_idle(socket, &asks));
	assert_false(wait_objects_is_idle(socket, &pair));
	more.unread = 1;
	number = wait_objects_add(&objects, &asks);
	assert_int_equal(wait_objects_add(&objects, &more), number);
	assert_string_equal(written(wait_objects_get(&objects, number)),
			    "\"on\":{\"what\":\"socket\",\"family\":\"unix\",\"end\":\"opened\","
			    "\"path\":\"/run/pg.sock\",\"peer_pid\":81,"
			    "\"peer_comm\":\"postgres\",\"unread\":1}");
	other.peer_pid = 82;
	number = wait_objects_add(&objects, &serves);
	assert_int_equal(wait_objects_add(&objects, &other), number);
	serves = *wait_objects_get(&objects, number);
	assert_true(wait_objects_is_idle(socket, &serves));
	wait_objects_say(&asks, text, sizeof(text));
	assert_string_equal(text, " on the unix socket /run/pg.sock (postgres)");
	wait_objects_say(&pair, text, sizeof(text));
	assert_string_equal(text, " on a unix socket (postgres)");
	/* Nothing of the kernel side's bytes is taken to end by itself. */
	memset(whole.path, 'x', sizeof(whole.path));
	memset(whole.peer_comm, 'y', sizeof(whole.peer_comm));
	whole = *wait_objects_get(&objects, wait_objects_add(&objects, &whole));
	assert_int_equal(strlen(whole.path), LOOK_PATH_BYTES - 1);
	assert_int_equal(strlen(whole.peer_comm), COMM_BYTES - 1);
}

/*
 * Of one descriptor alone, and of several: the peer that the thread waits for, and the members of
 * the set.
 */
static void test_select(void **state)
{
	const uint8_t idle = WAIT_BLOCKED + WAIT_IDLE;
	struct look_on one = local(LOOK_END_OPENED, "/run/pg.sock"), many = one, alone;
	struct look_on udp = { .kind = LOOK_ON_POLL,
			       .family = AF_INET,
			       .protocol = IPPROTO_UDP,
			       .peer = { 10, 0, 0, 2 },
			       .peer_port = 53,
			       .items = 1,
			       .asked = 1,
			       .kinds = { [LOOK_MEMBER_UDP] = 1 } };
	uint32_t number;
	char text[256] = "";

	one.kind = many.kind = LOOK_ON_SELECT;
	one.items = one.asked = one.unix_opened = one.kinds[LOOK_MEMBER_UNIX] = 1;
	many.family = 0;
	many.items = 3;
	many.unix_opened = 2;
	many.kinds[LOOK_MEMBER_UNIX] = 2;
	many.kinds[LOOK_MEMBER_TIMER] = 1;
	assert_int_equal(wait_objects_state(idle, &one), WAIT_BLOCKED + WAIT_SOCKET);
	assert_int_equal(wait_objects_state(idle, &udp), WAIT_BLOCKED + WAIT_SOCKET);
	assert_int_equal(wait_objects_state(idle, &many), idle);
	assert_false(wait_objects_is_idle_set(&many));
	wait_objects_say_peer(&one, text, sizeof(text));
	assert_string_equal(text, "the unix socket /run/pg.sock (postgres)");
	wait_objects_say_peer(&udp, text, sizeof(text));
	assert_string_equal(text, "udp 10.0.0.2:53");
	number = wait_objects_add(&objects, &many);
	assert_int_not_equal(wait_objects_add(&objects, &one), number);
	alone = many;
	alone.kinds[LOOK_MEMBER_TIMER] = 0;
	assert_int_not_equal(wait_objects_add(&objects, &alone), number);
	assert_string_equal(written(wait_objects_get(&objects, number)),
			    "\"on\":{\"what\":\"select\",\"opened\":0,\"unix_opened\":2,"
			    "\"path\":\"/run/pg.sock\",\"peer_pid\":81,"
			    "\"peer_comm\":\"postgres\",\"items\":3,"
			    "\"kinds\":{\"unix\":2,\"timerfd\":1}}");
	number = wait_objects_add(&objects, &udp);
	wait_objects_lasts(&objects, number, 5 * NSEC_PER_SEC);
	assert_string_equal(written(wait_objects_get(&objects, number)),
			    "\"on\":{\"what\":\"poll\",\"peer\":\"10.0.0.2:53\","
			    "\"protocol\":\"udp\",\"asked\":1,\"opened\":0,\"items\":1,"
			    "\"kinds\":{\"udp\":1}}");
}

/* Timers of one clock are one object: it has the rest of the last one. */
static void test_timers(void **state)
{
	struct look_on on = { .kind = LOOK_ON_TIMER, .number = CLOCK_MONOTONIC };
	uint32_t number = wait_objects_add(&objects, &on);

	assert_string_equal(written(wait_objects_get(&objects, number)),
			    "\"on\":{\"what\":\"timer\",\"clock\":\"monotonic\"}");
	on.state = 1;
	on.longest_ns = 3 * NSEC_PER_SEC;
	assert_int_equal(wait_objects_add(&objects, &on), number);
	on.longest_ns = 2 * NSEC_PER_SEC;
	assert_int_equal(wait_objects_add(&objects, &on), number);
	assert_string_equal(written(wait_objects_get(&objects, number)),
			    "\"on\":{\"what\":\"timer\",\"clock\":\"monotonic\",\"left_ms\":3000}");
	on.number = CLOCK_TAI;
	assert_int_not_equal(wait_objects_add(&objects, &on), number);
	on = (struct look_on){ .kind = LOOK_ON_TIMER, .number = -14 };
	assert_string_equal(written(&on), "\"on\":{\"what\":\"timer\",\"clock\":\"-14\"}");
	assert_true(wait_objects_is_idle(WAIT_BLOCKED + WAIT_SLEEP, &on));
	on = (struct look_on){ .kind = LOOK_ON_SEMAPHORES, .number = 7 };
	assert_string_equal(written(wait_objects_get(&objects, wait_objects_add(&objects, &on))),
			    "\"on\":{\"what\":\"semaphores\",\"id\":7}");
}

/* The table is bounded, and counts refused objects; nonsense is nothing. */
static void test_full(void **state)
{
	struct look_on on = { .kind = LOOK_ON_PIPE };

	for (uint64_t i = 0; i < WAIT_OBJECTS_MAX + 3; i++) {
		on.inode = i;
		assert_int_equal(wait_objects_add(&objects, &on), i < WAIT_OBJECTS_MAX ? i + 1 : 0);
	}
	assert_int_equal(objects.left_out, 3);
	/* One that has its number by the hash of another: it is not that one. */
	objects.items[0].name[0] ^= 1;
	on.inode = 0;
	assert_int_equal(wait_objects_add(&objects, &on), 0);
	assert_int_equal(objects.left_out, 4);
	on.kind = LOOK_ON_COUNT_;
	assert_int_equal(wait_objects_add(&objects, &on), 0);
	on.kind = LOOK_ON_NOTHING;
	assert_int_equal(wait_objects_add(&objects, &on), 0);
}

/* A lock has its kind and its holder, of which it keeps four; other objects have none. */
static void test_locks(void **state)
{
	struct look_on on = { .kind = LOOK_ON_FUTEX,
			      .address = 0xabc,
			      .state = LOOK_LOCK_MUTEX,
			      .peer_pid = 12,
			      .peer_comm = "worker" };
	char text[128];

	assert_int_equal(wait_objects_add(&objects, &on), 1);
	assert_int_equal(wait_objects_add(&objects, &on), 1);
	assert_string_equal(written(wait_objects_get(&objects, 1)),
			    "\"on\":{\"what\":\"futex\",\"address\":\"0xabc\",\"lock\":\"mutex\","
			    "\"holder\":{\"tid\":12,\"comm\":\"worker\"}}");
	assert_true(wait_objects_say(wait_objects_get(&objects, 1), text, sizeof(text)) > 0);
	assert_string_equal(text, " held by worker (thread 12)");
	for (uint32_t i = 1; i < 2 * WAIT_OBJECTS_HOLDERS; i++) {
		on.peer_pid = 12 + i;
		assert_int_equal(wait_objects_add(&objects, &on),
				 MIN(i, (uint32_t)WAIT_OBJECTS_HOLDERS) + 1);
	}
	assert_int_equal(objects.items[WAIT_OBJECTS_HOLDERS].peer_pid, 0);
	assert_int_equal(objects.items[WAIT_OBJECTS_HOLDERS].peer_comm[0], 0);
	on.state = LOOK_LOCK_EVENT;
	on.peer_pid = 12;
	assert_string_equal(written(wait_objects_get(&objects, wait_objects_add(&objects, &on))),
			    "\"on\":{\"what\":\"futex\",\"address\":\"0xabc\",\"lock\":\"event\"}");
}

/* A wait for a lock of the kernel is one for a lock, whatever the system call. */
static void test_kernel_locks(void **state)
{
	struct look_on file = { .kind = LOOK_ON_FILE,
				.name = "db",
				.state = LOOK_LOCK_FILE,
				.peer_pid = 9,
				.peer_comm = "cron" };
	struct look_on memory = { .kind = LOOK_ON_MMAP_LOCK, .state = LOOK_LOCK_READERS };
	char text[128];

	assert_int_equal(wait_objects_state(WAIT_BLOCKED + WAIT_FAULT, &memory),
			 WAIT_BLOCKED + WAIT_LOCK);
	assert_int_equal(wait_objects_state(WAIT_BLOCKED + WAIT_IO, &file),
			 WAIT_BLOCKED + WAIT_LOCK);
	assert_int_equal(wait_objects_state(WAIT_FOR_CPU, &memory), WAIT_FOR_CPU);
	assert_true(wait_objects_say(&file, text, sizeof(text)) > 0);
	assert_string_equal(text, " on the file db held by cron (process 9)");
	assert_string_equal(written(&memory),
			    "\"on\":{\"what\":\"mmap_lock\",\"lock\":\"readers\"}");
	file.state = LOOK_LOCK_UNKNOWN;
	assert_int_equal(wait_objects_state(WAIT_BLOCKED + WAIT_IO, &file), WAIT_BLOCKED + WAIT_IO);
}

/* The process at the other end: its key, and its words. */
static void test_ends(void **state)
{
	const struct end_process reader = { .tgid = 12, .flags = LOOK_STOPPED, .comm = "logger" };
	struct look_on on = { .kind = LOOK_ON_PIPE, .state = 1, .inode = 7, .device = 9 };
	struct end_key key;
	uint32_t number = wait_objects_add(&objects, &on);
	char text[128];

	assert_true(wait_objects_end_key(&on, &key));
	assert_int_equal(key.kind, END_READER);
	assert_int_equal(key.inode, 7);
	assert_int_equal(key.device, 9);
	on.state = 0;
	assert_true(wait_objects_end_key(&on, &key));
	assert_int_equal(key.kind, END_WRITER);
	wait_objects_set_end(&objects, number, &reader, 3);
	assert_true(wait_objects_say(wait_objects_get(&objects, number), text, sizeof(text)) > 0);
	assert_string_equal(text, " on a full pipe that leads to logger, process 12 and 2 more, "
				  "stopped by a signal");
	assert_string_equal(
		written(wait_objects_get(&objects, number)),
		"\"on\":{\"what\":\"pipe\",\"inode\":7,\"full\":true,\"peer_pid\":12,"
		"\"peer_comm\":\"logger\",\"peer_processes\":3,\"peer_halt\":\"stopped\"}");
	assert_true(wait_objects_is_held_up(wait_objects_get(&objects, number)));
	assert_true(wait_objects_has_process(wait_objects_get(&objects, number)));
	on = tcp(40000, 5432);
	on.family = AF_INET6;
	memset(on.peer, 0, sizeof(on.peer));
	memcpy(on.peer + 10, (const uint8_t[]){ 255, 255, 127, 0, 0, 1 }, 6);
	on.net = 4026531840u;
	assert_true(wait_objects_end_key(&on, &key));
	assert_int_equal(key.kind, END_TCP);
	assert_int_equal(key.family, AF_INET);
	assert_memory_equal(key.address, ((const uint8_t[16]){ 127, 0, 0, 1 }), 16);
	assert_int_equal(key.port, 5432);
	assert_int_equal(key.net, 4026531840u);
	on = (struct look_on){ .kind = LOOK_ON_FUTEX };
	assert_false(wait_objects_end_key(&on, &key));
}

/* A lock of flock(2) belongs to an open file; one of fcntl(2) to the process that is named. */
static void test_lock_ends(void **state)
{
	const struct end_process heir = { .tgid = 12, .comm = "sleep" };
	struct look_on on = {
		.kind = LOOK_ON_FILE, .state = LOOK_LOCK_FILE, .name = "job.lock", .address = 4711
	};
	uint32_t number = wait_objects_add(&objects, &on);
	struct end_key key;
	char text[128];

	assert_true(wait_objects_end_key(&on, &key));
	assert_int_equal(key.kind, END_LOCK);
	assert_int_equal(key.inode, 4711);
	wait_objects_set_end(&objects, number, &heir, 1);
	wait_objects_say(wait_objects_get(&objects, number), text, sizeof(text));
	assert_string_equal(text, " on the file job.lock held by sleep (process 12)");
	assert_null(strstr(written(wait_objects_get(&objects, number)), "peer_pid"));
	on.address = 0;
	assert_false(wait_objects_end_key(&on, &key));
	on.peer_pid = 7;
	number = wait_objects_add(&objects, &on);
	wait_objects_set_end(&objects, number, &heir, 1);
	assert_int_equal(wait_objects_get(&objects, number)->peer_pid, 7);
}

/* The process of the set's unix socket is not that of the TCP peer that it waits for. */
static void test_ends_of_sets(void **state)
{
	const struct end_process server = { .tgid = 12, .comm = "postgres" };
	struct look_on on = { .kind = LOOK_ON_EPOLL,
			      .family = AF_INET,
			      .protocol = IPPROTO_TCP,
			      .peer = { 10, 0, 0, 5 },
			      .peer_port = 5432,
			      .asked = 2,
			      .sockets = 2,
			      .unix_opened = 1,
			      .peer_pid = 99,
			      .peer_comm = "logger",
			      .path = "/run/log.sock" };
	uint32_t number = wait_objects_add(&objects, &on);
	char text[160];

	wait_objects_say_peer(wait_objects_get(&objects, number), text, sizeof(text));
	assert_string_equal(text, "10.0.0.5:5432 (2 connections a thread, the longest for 0 ms)");
	wait_objects_set_end(&objects, number, &server, 1);
	wait_objects_say_peer(wait_objects_get(&objects, number), text, sizeof(text));
	assert_string_equal(text, "10.0.0.5:5432 (postgres, process 12; 2 connections a thread, "
				  "the longest for 0 ms)");
	assert_null(strstr(written(wait_objects_get(&objects, number)), "log"));
}

/* Children that one thread starts in turn are not an object each. */
static void test_children(void **state)
{
	struct look_on on = { .kind = LOOK_ON_CHILD, .peer_comm = "job" };
	char text[64];

	for (int i = 1; i <= 100; i++) {
		on.number = (int)(on.peer_pid = (uint32_t)i);
		assert_true(wait_objects_add(&objects, &on));
	}
	assert_in_range(objects.count, 2, 2 * WAIT_OBJECTS_HOLDERS);
	wait_objects_say(&objects.items[0], text, sizeof(text));
	assert_string_equal(text, " for job, process 1");
}

UNIT_TESTS(wait_objects)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_same, setup, teardown),
		cmocka_unit_test_setup_teardown(test_idle, setup, teardown),
		cmocka_unit_test_setup_teardown(test_timers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_written, setup, teardown),
		cmocka_unit_test_setup_teardown(test_words, setup, teardown),
		cmocka_unit_test_setup_teardown(test_question, setup, teardown),
		cmocka_unit_test_setup_teardown(test_epoll, setup, teardown),
		cmocka_unit_test_setup_teardown(test_epoll_idle, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unix, setup, teardown),
		cmocka_unit_test_setup_teardown(test_select, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_locks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kernel_locks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ends_of_sets, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lock_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_children, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
