/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/broker_client_testing.h"
#include "tests/unit/consumer/testing/own_time_testing.h"

#include "consumer/broker/broker_ask.h"
#include "consumer/io/loop.h"
#include "shared/tools/clock.h"

static uint64_t granted(struct broker_client *link, enum broker_request request)
{
	struct broker_client_counts counts;

	broker_client_counts(link, &counts);
	return counts.granted[request];
}

static void says_hello_and_brings_the_descriptor(void **state)
{
	struct fixture *f = *state;
	struct broker_request_header header;
	struct broker_sampler_open body;
	struct broker_hello hello;
	const char *why = NULL;
	int fd = -1;

	PLAY(f, { GOOD }, { GOOD, .descriptors = 1 });
	assert_true(broker_client_there(f->link, &why));
	assert_int_equal(broker_ask_sampler(f->link, 3, 97, 1, &fd, &why), 0);
	assert_true(is_device(fd));
	close(fd);
	assert_int_equal(granted(f->link, BROKER_HELLO), 1);
	assert_int_equal(granted(f->link, BROKER_SAMPLER_OPEN), 1);
	end(f);
	assert_int_equal(f->n_heard, 2);
	memcpy(&header, f->heard[0], sizeof(header));
	memcpy(&hello, f->heard[0] + sizeof(header), sizeof(hello));
	assert_int_equal(f->heard_bytes[0], broker_row(BROKER_HELLO)->bytes);
	assert_int_equal(header.magic, BROKER_MAGIC);
	assert_int_equal(header.sequence, 1);
	assert_int_equal(hello.abi_version, ABI_VERSION);
	memcpy(&header, f->heard[1], sizeof(header));
	memcpy(&body, f->heard[1] + sizeof(header), sizeof(body));
	assert_int_equal(f->heard_bytes[1], broker_row(BROKER_SAMPLER_OPEN)->bytes);
	assert_int_equal(header.request, BROKER_SAMPLER_OPEN);
	assert_int_equal(header.sequence, 2);
	assert_int_equal(header.pad, 0);
	assert_int_equal(body.cpu, 3);
	assert_int_equal(body.hz, 97);
}

static void each_request_has_its_bytes(void **state)
{
	struct process_key process = { .tgid = 42, .start_ns = 0x1122334455667788ULL };
	struct fixture *f = *state;
	struct broker_pressure_open pressure;
	struct broker_mapping_open mapping;
	struct broker_signal_attach attach;
	struct broker_jit_map_open map;
	int fd, fds[BROKER_DESCRIPTORS_MAX];
	size_t n = 0;

	PLAY(f, { GOOD }, { GOOD, .descriptors = 1 }, { GOOD, .descriptors = 1 },
	     { GOOD, .descriptors = 8 }, { GOOD, .descriptors = 1 });
	assert_int_equal(broker_ask_pressure(f->link, 1ULL << 40, RESOURCE_IO, &fd, NULL), 0);
	close(fd);
	assert_int_equal(broker_ask_mapping(f->link, &process, 0x1000, 0x3000, &fd, NULL), 0);
	close(fd);
	assert_int_equal(broker_ask_signal(f->link, SIGNAL_SWITCH, fds, &n, NULL), 0);
	assert_int_equal(n, 8);
	for (size_t i = 0; i < n; i++) {
		assert_true(is_device(fds[i]));
		close(fds[i]);
	}
	assert_int_equal(broker_ask_jit_map(f->link, &process, &fd, NULL), 0);
	close(fd);
	end(f);
	memcpy(&pressure, f->heard[1] + 16, sizeof(pressure));
	memcpy(&mapping, f->heard[2] + 16, sizeof(mapping));
	memcpy(&attach, f->heard[3] + 16, sizeof(attach));
	memcpy(&map, f->heard[4] + 16, sizeof(map));
	assert_true(pressure.cgroup_id == 1ULL << 40 && pressure.resource == RESOURCE_IO);
	assert_true(mapping.tgid == 42 && mapping.start_ns == process.start_ns &&
		    mapping.start == 0x1000 && mapping.end == 0x3000);
	assert_true(attach.signal == SIGNAL_SWITCH && !attach.pad);
	assert_true(map.tgid == 42 && map.start_ns == process.start_ns && !map.pad);
}

static void a_refusal_has_its_sentence(void **state)
{
	struct fixture *f = *state;
	struct broker_client_counts counts;
	const char *why = NULL;
	int fd = -1;

	be_patient(f, 50);
	PLAY(f, { GOOD }, { GOOD, .refusal = REFUSAL_UNWATCHED },
	     { GOOD, .refusal = REFUSAL_KERNEL, .error = -EOPNOTSUPP },
	     { GOOD, .refusal = REFUSAL_GONE, .error = 7 }, { GOOD, .descriptors = 1 });
	assert_int_equal(broker_ask_pressure(f->link, 7, RESOURCE_CPU, &fd, &why), -EACCES);
	assert_string_equal(why, broker_refusal_help(REFUSAL_UNWATCHED));
	assert_int_equal(broker_ask_pressure(f->link, 7, RESOURCE_CPU, &fd, &why), -EOPNOTSUPP);
	assert_string_equal(why, broker_refusal_help(REFUSAL_KERNEL));
	/* what is no -errno is not handed on */
	assert_int_equal(broker_ask_pressure(f->link, 7, RESOURCE_CPU, &fd, &why), -EACCES);
	/* a refusal does not end the connection, and the broker is there all the time */
	assert_true(broker_client_there(f->link, &why));
	assert_int_equal(broker_ask_pressure(f->link, 7, RESOURCE_CPU, &fd, &why), 0);
	close(fd);
	broker_client_counts(f->link, &counts);
	assert_int_equal(counts.refused[REFUSAL_UNWATCHED], 1);
	assert_int_equal(counts.refused[REFUSAL_KERNEL], 1);
	assert_int_equal(counts.refused[REFUSAL_GONE], 1);
	assert_int_equal(counts.unreachable, 0);
	end(f);
	assert_int_equal(f->connections, 1);
}

/* A bad answer to the second message: nothing of it stays open, and the connection is gone. */
static void bad_answer(struct fixture *f, struct step step, const char *text)
{
	int before = count_open(), fd = -1;
	struct broker_client_counts counts;
	const char *why = NULL;

	be_patient(f, 50);
	PLAY(f, { GOOD }, step);
	assert_int_equal(broker_ask_sampler(f->link, 0, 97, 1, &fd, &why), -ENOTCONN);
	assert_int_equal(fd, -1);
	assert_non_null(strstr(why, text));
	why = NULL;
	assert_false(broker_client_there(f->link, &why));
	assert_non_null(strstr(why, text));
	/* and the next call fails at once, without an attempt */
	assert_int_equal(broker_ask_sampler(f->link, 0, 97, 1, &fd, &why), -ENOTCONN);
	broker_client_counts(f->link, &counts);
	assert_int_equal(counts.unreachable, 2);
	assert_int_equal(counts.granted[BROKER_SAMPLER_OPEN], 0);
	end(f);
	assert_int_equal(f->connections, 1);
	assert_int_equal(count_open(), before);
}

#define BAD(name, text, ...)                                            \
	static void name(void **state)                                  \
	{                                                               \
		bad_answer(*state, (struct step){ __VA_ARGS__ }, text); \
	}

BAD(too_short, "malformed", SHORT, .descriptors = 1)
BAD(too_long, "malformed", LONG, .descriptors = 1)
BAD(no_descriptor, "malformed", GOOD)
BAD(two_descriptors, "malformed", GOOD, .descriptors = 2)
BAD(more_than_fit, "malformed", GOOD, .descriptors = 12)
BAD(fewer_than_said, "malformed", LIAR, .descriptors = 1)
BAD(descriptor_with_a_refusal, "malformed", GOOD, .refusal = REFUSAL_GONE, .descriptors = 1)
BAD(no_such_refusal, "malformed", GOOD, .refusal = REFUSAL_COUNT_)
BAD(another_sequence, "malformed", OTHER_SEQ, .descriptors = 1)
BAD(another_request, "malformed", OTHER_REQUEST, .descriptors = 1)
BAD(another_magic, "malformed", OTHER_MAGIC, .descriptors = 1)
BAD(an_early_refusal_that_is_late, "malformed", EARLY, .refusal = REFUSAL_BUSY)

static void waits_no_longer_than_promised(void **state)
{
	struct fixture *f = *state;
	uint64_t began_ns = clock_mono_ns(), own_ns = own_time_ns();
	const char *why = NULL;
	int fd;

	PLAY(f, { GOOD }, { SILENT });
	assert_int_equal(broker_ask_sampler(f->link, 0, 97, 1, &fd, &why), -ENOTCONN);
	assert_non_null(strstr(why, "in time"));
	assert_true(clock_mono_ns() - began_ns >= BROKER_CLIENT_WAIT_MS * NSEC_PER_MSEC);
	assert_true(own_time_ns() - own_ns < 3 * BROKER_CLIENT_WAIT_MS * NSEC_PER_MSEC);
	assert_true(BROKER_CLIENT_WAIT_MS <= 100); /* of the main loop */
}

/* The answer comes after the wait, and another request follows: nothing of it stays open. */
/*
 * Asks for the sampler of a CPU until the late answer has arrived: until then nothing is sent.
 * Returns the last result.
 */
static int ask_when_late(struct fixture *f, uint32_t cpu, int *ret_fd)
{
	int r = -ENOTCONN;

	for (int i = 0; i < 200 && r == -ENOTCONN; i++) {
		usleep(50000);
		r = broker_ask_sampler(f->link, cpu, 97, 1, ret_fd, NULL);
	}
	return r;
}

static void a_late_answer_is_no_end(void **state)
{
	struct fixture *f = *state;
	int before, fd = -1;
	const char *why = NULL;

	PLAY(f, { GOOD }, { SLOW, .descriptors = 1 }, { GOOD, .descriptors = 1 });
	assert_int_equal(broker_client_greet(f->link, BROKER_CLIENT_GREET_MS, &why), 0);
	before = count_open();
	assert_int_equal(broker_ask_sampler(f->link, 0, 97, 1, &fd, &why), -ENOTCONN);
	assert_non_null(strstr(why, "in time"));
	assert_true(broker_client_waits(f->link));
	assert_int_equal(broker_ask_sampler(f->link, 0, 97, 1, &fd, &why), -ENOTCONN);
	assert_int_equal(ask_when_late(f, 1, &fd), 0);
	assert_false(broker_client_waits(f->link));
	assert_true(is_device(fd));
	close(fd);
	assert_int_equal(count_open(), before);
	assert_int_equal(granted(f->link, BROKER_SAMPLER_OPEN), 1);
	end(f);
	assert_int_equal(f->connections, 1);
}

/* Whoever asks for the very same gets it: a broker that is always late is of use all the same. */
static void a_late_answer_is_the_next_one(void **state)
{
	struct fixture *f = *state;
	int fd = -1;

	PLAY(f, { GOOD }, { SLOW, .descriptors = 1 }, { GOOD, .refusal = REFUSAL_RATE });
	assert_int_equal(broker_ask_sampler(f->link, 0, 97, 1, &fd, NULL), -ENOTCONN);
	assert_int_equal(ask_when_late(f, 0, &fd), 0);
	assert_true(is_device(fd));
	close(fd);
	assert_int_equal(broker_ask_sampler(f->link, 0, 97, 1, &fd, NULL), -EACCES);
}

/* The results for the loop: asks again, and ends the loop when it is granted. */
struct listener {
	struct fixture *f;
	struct loop *loop;
	unsigned int calls, granted, wanted;
};

static void ask_on(void *context)
{
	struct listener *l = context;
	int fd;

	l->calls++;
	while (l->granted < l->wanted && broker_ask_sampler(l->f->link, 0, 97, 1, &fd, NULL) == 0) {
		close(fd);
		l->granted++;
	}
	if (l->granted == l->wanted)
		loop_stop(l->loop);
}

static void listen_on(struct fixture *f, struct listener *l, unsigned int wanted)
{
	*l = (struct listener){ .f = f, .wanted = wanted };
	assert_int_equal(loop_new(&l->loop), 0);
	assert_int_equal(broker_client_listen(f->link, l->loop, ask_on, l), 0);
}

static void says_when_a_late_broker_is_there(void **state)
{
	struct fixture *f = *state;
	struct listener l;

	PLAY(f, { SLOW }, { GOOD, .descriptors = 1 }, { SLOW, .descriptors = 1 });
	listen_on(f, &l, 2);
	ask_on(&l);
	assert_int_equal(l.granted, 0);
	assert_int_equal(loop_run(l.loop), 0);
	assert_int_equal(l.granted, 2);
	assert_int_equal(l.calls, 3); /* ours, after hello, after the answer that was late */
	end(f);
	loop_free(l.loop);
	assert_int_equal(f->connections, 1);
}

/* Each answer is in time, all of them together delay a caller no longer than one may. */
static void many_waits_are_one(void **state)
{
	struct fixture *f = *state;
	struct listener l;

	be_patient(f, 10);
	PLAY(f, { GOOD }, { TARDY, .descriptors = 1 }, { TARDY, .descriptors = 1 },
	     { TARDY, .descriptors = 1 }, { TARDY, .descriptors = 1 }, { TARDY, .descriptors = 1 },
	     { TARDY, .descriptors = 1 }, { TARDY, .descriptors = 1 }, { TARDY, .descriptors = 1 },
	     { TARDY, .descriptors = 1 });
	listen_on(f, &l, 4);
	ask_on(&l);
	/* Four answers take longer than one may. */
	assert_true(l.granted >= 1 && l.granted < 4);
	assert_true(broker_client_waits(f->link));
	assert_int_equal(loop_run(l.loop), 0);
	assert_int_equal(l.granted, 4);
	end(f);
	loop_free(l.loop);
}

/* It takes its time to start: its answer to hello is not lost, and no caller waits for it twice. */
static void a_slow_start_is_no_end(void **state)
{
	struct fixture *f = *state;
	uint64_t began_ns;
	const char *why = NULL;
	int fd;

	PLAY(f, { SLOW }, { GOOD, .descriptors = 1 });
	assert_int_equal(broker_client_greet(f->link, BROKER_CLIENT_WAIT_MS, &why), -ENOTCONN);
	assert_non_null(strstr(why, "in time"));
	began_ns = own_time_ns();
	assert_int_equal(broker_ask_sampler(f->link, 0, 97, 1, &fd, &why), -ENOTCONN);
	assert_true(own_time_ns() - began_ns < BROKER_CLIENT_WAIT_MS * NSEC_PER_MSEC / 2);
	for (int i = 0; i < 300 && broker_ask_sampler(f->link, 0, 97, 1, &fd, &why) < 0; i++)
		usleep(100000);
	close(fd);
	assert_true(broker_client_there(f->link, &why));
	end(f);
	assert_int_equal(f->connections, 1);
}

/* As broker_ask_sampler, until a broker that has no CPU at the moment answers. */
static int ask_patiently(struct fixture *f, uint32_t cpu, int *ret_fd)
{
	int r = broker_ask_sampler(f->link, cpu, 97, 1, ret_fd, NULL);

	for (int i = 0; i < 300 && r == -ENOTCONN; i++) {
		usleep(100000);
		r = broker_ask_sampler(f->link, cpu, 97, 1, ret_fd, NULL);
	}
	return r;
}

/* It leaves when idle: the next request finds the end of the connection and makes a new one. */
static void comes_again_after_the_broker_left(void **state)
{
	struct fixture *f = *state;
	struct broker_request_header header;
	int fd;

	PLAY(f, { GOOD }, { GOOD, .descriptors = 1, .leave = true }, { GOOD },
	     { GOOD, .descriptors = 1 });
	assert_int_equal(ask_patiently(f, 0, &fd), 0);
	close(fd);
	usleep(20000);
	assert_int_equal(ask_patiently(f, 1, &fd), 0);
	close(fd);
	end(f);
	assert_int_equal(f->connections, 2);
	memcpy(&header, f->heard[2], sizeof(header));
	assert_int_equal(header.sequence, 1);
}

/* It leaves just when it is asked: the request is asked again, once. */
static void asks_again_when_it_left_meanwhile(void **state)
{
	struct fixture *f = *state;
	int fd;

	PLAY(f, { GOOD }, { GOOD, .descriptors = 1 }, { HANG_UP }, { GOOD },
	     { GOOD, .descriptors = 1 });
	assert_int_equal(ask_patiently(f, 0, &fd), 0);
	close(fd);
	assert_int_equal(ask_patiently(f, 0, &fd), 0);
	close(fd);
	end(f);
	assert_int_equal(f->connections, 2);
}

static void does_not_ask_for_ever(void **state)
{
	struct fixture *f = *state;
	const char *why = NULL;
	int fd;

	PLAY(f, { GOOD }, { GOOD, .descriptors = 1 }, { HANG_UP }, { GOOD }, { HANG_UP }, { GOOD },
	     { GOOD, .descriptors = 1 });
	assert_int_equal(broker_ask_sampler(f->link, 0, 97, 1, &fd, NULL), 0);
	close(fd);
	assert_int_equal(broker_ask_sampler(f->link, 0, 97, 1, &fd, &why), -ENOTCONN);
	assert_non_null(strstr(why, "ended the connection"));
	end(f);
	assert_int_equal(f->connections, 2);
}

static void refused_hello(struct fixture *f, enum manner manner, uint32_t refusal)
{
	struct broker_client_counts counts;
	const char *why = NULL;

	PLAY(f, { manner, .refusal = refusal, .leave = true });
	assert_int_equal(broker_client_greet(f->link, BROKER_CLIENT_WAIT_MS, &why), -ENOTCONN);
	assert_string_equal(why, broker_refusal_help(refusal));
	broker_client_counts(f->link, &counts);
	assert_int_equal(counts.refused[refusal], 1);
	assert_false(broker_client_there(f->link, &why));
}

static void another_version_is_no_broker(void **state)
{
	refused_hello(*state, GOOD, REFUSAL_VERSION);
}

static void busy_before_hello_is_understood(void **state)
{
	refused_hello(*state, EARLY, REFUSAL_BUSY);
}

static void nobody_listens(void **state)
{
	struct fixture *f = *state;
	struct broker_client_counts counts;
	struct broker_client *none;
	const char *why = NULL;
	int fd;

	assert_int_equal(
		broker_client_new("/tmp/link-nowhere/socket", BROKER_CLIENT_WAIT_MS, &none), 0);
	assert_int_equal(broker_ask_sampler(none, 0, 97, 1, &fd, &why), -ENOTCONN);
	assert_non_null(strstr(why, "there is no broker's socket"));
	broker_client_counts(none, &counts);
	assert_int_equal(counts.unreachable, 1);
	broker_client_free(none);
	assert_int_equal(broker_client_new("", BROKER_CLIENT_WAIT_MS, &none), 0);
	assert_false(broker_client_there(none, &why));
	assert_int_equal(broker_client_greet(none, BROKER_CLIENT_WAIT_MS, &why), -ENOTCONN);
	assert_non_null(strstr(why, "--broker none"));
	broker_client_free(none);
	shutdown(f->listener_fd, SHUT_RDWR);
	close(f->listener_fd);
	f->listener_fd = -1;
	assert_int_equal(broker_client_greet(f->link, BROKER_CLIENT_WAIT_MS, &why), -ENOTCONN);
	assert_non_null(strstr(why, "not listening"));
}

static void a_path_that_is_no_address(void **state)
{
	char path[200];
	struct broker_client *none;

	memset(path, 'a', sizeof(path) - 1);
	path[sizeof(path) - 1] = 0;
	assert_int_equal(broker_client_new(path, BROKER_CLIENT_WAIT_MS, &none), -ENAMETOOLONG);
}

/* Two threads at once: each gets its own answer. */
static void *ask_twice(void *context)
{
	struct broker_client *link = context;

	for (int i = 0; i < 2; i++) {
		int fd = -1;

		if (broker_ask_sampler(link, 0, 97, 1, &fd, NULL) == 0)
			close(fd);
	}
	return NULL;
}

static void serves_two_threads(void **state)
{
	struct fixture *f = *state;
	pthread_t other;

	PLAY(f, { GOOD }, { GOOD, .descriptors = 1 }, { GOOD, .descriptors = 1 },
	     { GOOD, .descriptors = 1 }, { GOOD, .descriptors = 1 });
	assert_int_equal(pthread_create(&other, NULL, ask_twice, f->link), 0);
	ask_twice(f->link);
	pthread_join(other, NULL);
	assert_int_equal(granted(f->link, BROKER_SAMPLER_OPEN), 4);
	assert_int_equal(granted(f->link, BROKER_HELLO), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

UNIT_TESTS(broker_client)
{
	const struct CMUnitTest tests[] = {
		TEST(says_hello_and_brings_the_descriptor),
		TEST(each_request_has_its_bytes),
		TEST(a_refusal_has_its_sentence),
		TEST(too_short),
		TEST(too_long),
		TEST(no_descriptor),
		TEST(two_descriptors),
		TEST(more_than_fit),
		TEST(fewer_than_said),
		TEST(descriptor_with_a_refusal),
		TEST(no_such_refusal),
		TEST(another_sequence),
		TEST(another_request),
		TEST(another_magic),
		TEST(an_early_refusal_that_is_late),
		TEST(waits_no_longer_than_promised),
		TEST(a_late_answer_is_no_end),
		TEST(a_late_answer_is_the_next_one),
		TEST(says_when_a_late_broker_is_there),
		TEST(many_waits_are_one),
		TEST(a_slow_start_is_no_end),
		TEST(comes_again_after_the_broker_left),
		TEST(asks_again_when_it_left_meanwhile),
		TEST(does_not_ask_for_ever),
		TEST(another_version_is_no_broker),
		TEST(busy_before_hello_is_understood),
		TEST(nobody_listens),
		TEST(a_path_that_is_no_address),
		TEST(serves_two_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
