/* SPDX-License-Identifier: BSD-2-Clause */
/* The dispatcher with operations that only record their run. */
#include "tests/unit/runner/unit.h"
#include <string.h>

#include "loader/broker/broker_dispatch.h"
#include "shared/tools/macro.h"

#define NOW_NS (1000 * NSEC_PER_SEC)

static unsigned int runs;
static bool fine;

static bool check(const void *body)
{
	return fine;
}

static void run(void *context, const void *body, struct broker_result *result)
{
	assert_ptr_equal(context, &runs);
	assert_int_equal((uintptr_t)body % sizeof(uint64_t), 0);
	runs++;
}

static void run_open(void *context, const void *body, struct broker_result *result)
{
	run(context, body, result);
	result->fds[result->count++] = 77;
}

static bool aside;

static bool apart_now(void *context, const void *body)
{
	assert_ptr_equal(context, &runs);
	return aside;
}

/* The rest of the dispatch uses the parsed values. */
static void work_count(void *context, const void *body, struct broker_result *result)
{
	run(context, body, result);
	result->counted = true;
}

static void run_counted(void *context, const void *body, struct broker_result *result)
{
	run(context, body, result);
	result->refusal = result->counted ? REFUSAL_NONE : REFUSAL_ATTACHED;
}

static const struct broker_operation operations[BROKER_COUNT_] = {
	[BROKER_HELLO] = { check, .run = run },
	[BROKER_SAMPLER_OPEN] = { check, .run = run_open },
	[BROKER_SIGNAL_ATTACH] = { check, apart_now, work_count, run_counted },
	[BROKER_PRESSURE_OPEN] = { check, .run = run_open },
	[BROKER_MAPPING_OPEN] = { check, apart_now, run_open },
	[BROKER_JIT_MAP_OPEN] = { check, apart_now, run_open },
};

static struct broker_dispatch d;
static struct broker_session session;
static struct broker_answer answer;
static struct broker_result result;

static int setup(void **state)
{
	runs = 0;
	fine = aside = true;
	broker_dispatch_init(operations, &runs, &d);
	session = (struct broker_session){ 0 };
	return 0;
}

/* A request of its right length, the body all zeros. */
static enum broker_verdict ask_at(uint32_t request, uint32_t sequence, uint64_t now_ns)
{
	struct broker_request_header header = { BROKER_MAGIC, request, sequence, 0 };
	uint8_t data[BROKER_REQUEST_MAX] = { 0 };
	const struct broker_message m = { .data = data, .bytes = broker_row(request)->bytes };

	memcpy(data, &header, sizeof(header));
	return broker_dispatch(&d, &session, &m, now_ns, &answer, &result);
}

static uint32_t ask(uint32_t request, uint32_t sequence)
{
	assert_int_equal(ask_at(request, sequence, NOW_NS), BROKER_ANSWERED);
	assert_int_equal(answer.request, request);
	assert_int_equal(answer.sequence, sequence);
	assert_int_equal(answer.magic, BROKER_MAGIC);
	return answer.refusal;
}

static void grants(void **state)
{
	assert_int_equal(ask(BROKER_HELLO, 1), REFUSAL_NONE);
	assert_int_equal(ask(BROKER_SAMPLER_OPEN, 2), REFUSAL_NONE);
	assert_int_equal(answer.descriptors, 1);
	assert_int_equal(result.fds[0], 77);
	assert_int_equal(runs, 2);
	assert_int_equal(d.own.granted[BROKER_HELLO], 1);
	assert_int_equal(d.own.granted[BROKER_SAMPLER_OPEN], 1);
}

static void stages(void **state)
{
	for (uint32_t r = 0; r < BROKER_COUNT_; r++)
		if (broker_row(r)->stage == BROKER_STAGE_READY)
			assert_int_equal(ask(r, session.sequence + 1), REFUSAL_STAGE);
	assert_int_equal(ask(BROKER_HELLO, session.sequence + 1), REFUSAL_NONE);
	assert_int_equal(ask(BROKER_HELLO, session.sequence + 1), REFUSAL_STAGE);
	assert_int_equal(runs, 1);
	session = (struct broker_session){ 0 };
	assert_int_equal(ask(BROKER_SAMPLER_OPEN, 1), REFUSAL_STAGE);
}

/* What runs apart is judged at once, and run, counted and answered when its time has come. */
static void apart(void **state)
{
	assert_int_equal(ask(BROKER_HELLO, 1), REFUSAL_NONE);
	fine = false;
	assert_int_equal(ask(BROKER_MAPPING_OPEN, 2), REFUSAL_ARGUMENT);
	fine = true;
	assert_int_equal(ask_at(BROKER_MAPPING_OPEN, 3, NOW_NS), BROKER_APART);
	assert_int_equal(runs, 1);
	assert_int_equal(d.own.granted[BROKER_MAPPING_OPEN], 0);
	result = (struct broker_result){ .refusal = REFUSAL_NONE };
	broker_dispatch_work(&d, &session, &result);
	assert_int_equal(runs, 2);
	assert_int_equal(result.fds[0], 77);
	broker_dispatch_end(&d, &session, &result, &answer);
	assert_int_equal(answer.request, BROKER_MAPPING_OPEN);
	assert_int_equal(answer.sequence, 3);
	assert_int_equal(answer.descriptors, 1);
	assert_int_equal(d.own.granted[BROKER_MAPPING_OPEN], 1);
	assert_int_equal(ask_at(BROKER_JIT_MAP_OPEN, 4, NOW_NS), BROKER_APART);
	result = (struct broker_result){ .refusal = REFUSAL_SLOW };
	broker_dispatch_end(&d, &session, &result, &answer);
	assert_int_equal(answer.refusal, REFUSAL_SLOW);
	assert_int_equal(answer.sequence, 4);
	assert_int_equal(d.own.refused[REFUSAL_SLOW], 1);
	assert_int_equal(runs, 2);
}

/* A request of which a part is done apart, where that is needed. */
static void apart_in_part(void **state)
{
	assert_int_equal(ask(BROKER_HELLO, 1), REFUSAL_NONE);
	assert_int_equal(ask_at(BROKER_SIGNAL_ATTACH, 2, NOW_NS), BROKER_APART);
	result = (struct broker_result){ .refusal = REFUSAL_NONE };
	broker_dispatch_work(&d, &session, &result);
	assert_int_equal(runs, 2);
	broker_dispatch_end(&d, &session, &result, &answer);
	assert_int_equal(runs, 3);
	assert_int_equal(answer.refusal, REFUSAL_NONE);
	assert_int_equal(ask_at(BROKER_SIGNAL_ATTACH, 3, NOW_NS), BROKER_APART);
	result = (struct broker_result){ .refusal = REFUSAL_GONE };
	broker_dispatch_end(&d, &session, &result, &answer);
	assert_int_equal(runs, 3);
	assert_int_equal(answer.refusal, REFUSAL_GONE);
	aside = false;
	assert_int_equal(ask(BROKER_SIGNAL_ATTACH, 4), REFUSAL_ATTACHED);
	assert_int_equal(runs, 4);
}

/* Two connections: each has its own stage and numbers, and the one bucket. */
static void connections(void **state)
{
	struct broker_session first;

	assert_int_equal(ask(BROKER_HELLO, 1), REFUSAL_NONE);
	assert_int_equal(ask(BROKER_SAMPLER_OPEN, 2), REFUSAL_NONE);
	first = session;
	session = (struct broker_session){ 0 };
	assert_int_equal(ask(BROKER_SAMPLER_OPEN, 1), REFUSAL_STAGE);
	assert_int_equal(ask(BROKER_HELLO, 2), REFUSAL_NONE);
	session = first;
	assert_int_equal(ask(BROKER_SAMPLER_OPEN, 3), REFUSAL_NONE);
}

/* The stage stays when hello is refused by its arguments. */
static void hello_that_is_refused(void **state)
{
	fine = false;
	assert_int_equal(ask(BROKER_HELLO, 1), REFUSAL_ARGUMENT);
	fine = true;
	assert_int_equal(ask(BROKER_SAMPLER_OPEN, 2), REFUSAL_STAGE);
	assert_int_equal(ask(BROKER_HELLO, 3), REFUSAL_NONE);
}

static void sequences(void **state)
{
	assert_int_equal(ask(BROKER_HELLO, 0), REFUSAL_SEQUENCE);
	assert_int_equal(ask(BROKER_HELLO, 2), REFUSAL_SEQUENCE);
	assert_int_equal(ask(BROKER_HELLO, 1), REFUSAL_NONE);
	assert_int_equal(ask(BROKER_SAMPLER_OPEN, 1), REFUSAL_SEQUENCE);
	assert_int_equal(ask(BROKER_SAMPLER_OPEN, 2), REFUSAL_NONE);
	session.sequence = UINT32_MAX;
	assert_int_equal(ask(BROKER_SAMPLER_OPEN, 0), REFUSAL_NONE);
	assert_int_equal(d.own.refused[REFUSAL_SEQUENCE], 3);
}

/* No message is looked into further than it reaches. */
static void lengths(void **state)
{
	const struct broker_request_header header = { BROKER_MAGIC, BROKER_MAPPING_OPEN, 1, 0 };
	size_t whole = broker_row(BROKER_MAPPING_OPEN)->bytes;

	for (size_t bytes = 0; bytes <= BROKER_REQUEST_MAX; bytes++) {
		uint8_t data[BROKER_REQUEST_MAX] = { 0 };
		struct broker_message m = { .data = data, .bytes = bytes };
		enum broker_verdict verdict;

		memcpy(data, &header, MIN(bytes, sizeof(header)));
		verdict = broker_dispatch(&d, &session, &m, NOW_NS, &answer, &result);
		assert_int_equal(verdict,
				 bytes >= sizeof(header) ? BROKER_ANSWERED : BROKER_NOT_OURS);
		assert_int_equal(answer.refusal, bytes == whole ? REFUSAL_STAGE : REFUSAL_LENGTH);
	}
	assert_int_equal(runs, 0);
}

static void ancillary_and_cut(void **state)
{
	struct broker_request_header header = { BROKER_MAGIC, BROKER_HELLO, 1, 0 };
	uint8_t data[BROKER_REQUEST_MAX] = { 0 };
	struct broker_message m = { .data = data, .bytes = broker_row(BROKER_HELLO)->bytes };

	memcpy(data, &header, sizeof(header));
	m.ancillary = true;
	assert_int_equal(broker_dispatch(&d, &session, &m, NOW_NS, &answer, &result),
			 BROKER_ANSWERED);
	assert_int_equal(answer.refusal, REFUSAL_DESCRIPTOR);
	m.ancillary = false;
	m.cut = true;
	assert_int_equal(broker_dispatch(&d, &session, &m, NOW_NS, &answer, &result),
			 BROKER_ANSWERED);
	assert_int_equal(answer.refusal, REFUSAL_LENGTH);
	m.cut = false;
	header.magic++;
	memcpy(data, &header, sizeof(header));
	assert_int_equal(broker_dispatch(&d, &session, &m, NOW_NS, &answer, &result),
			 BROKER_NOT_OURS);
	assert_int_equal(answer.refusal, REFUSAL_VERSION);
	assert_int_equal(runs, 0);
}

static void requests_that_are_none(void **state)
{
	static const uint32_t numbers[] = { BROKER_COUNT_, 1000, UINT32_MAX };

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		struct broker_request_header header = { BROKER_MAGIC, numbers[i], 1, 0 };
		const struct broker_message m = { .data = &header, .bytes = sizeof(header) };

		assert_int_equal(broker_dispatch(&d, &session, &m, NOW_NS, &answer, &result),
				 BROKER_ANSWERED);
		assert_int_equal(answer.refusal, REFUSAL_REQUEST);
	}
}

/* How many of `n` requests at one moment are not refused for the rate. */
static unsigned int served(unsigned int n, uint64_t now_ns)
{
	unsigned int before = runs;

	for (unsigned int i = 0; i < n; i++) {
		assert_int_equal(ask_at(BROKER_SAMPLER_OPEN, session.sequence + 1, now_ns),
				 BROKER_ANSWERED);
		assert_true(answer.refusal == REFUSAL_NONE || answer.refusal == REFUSAL_RATE);
	}
	return runs - before;
}

static void rate(void **state)
{
	assert_int_equal(ask(BROKER_HELLO, 1), REFUSAL_NONE);
	assert_int_equal(served(2 * BROKER_RATE_BURST, NOW_NS), BROKER_RATE_BURST - 1);
	assert_int_equal(d.own.refused[REFUSAL_RATE], BROKER_RATE_BURST + 1);
	assert_int_equal(served(100, NOW_NS + NSEC_PER_SEC / BROKER_RATE_S - 1), 0);
	assert_true(d.over_rate);
	/* What is refused for another reason has its price, too. */
	assert_int_equal(ask_at(BROKER_SAMPLER_OPEN, session.sequence, NOW_NS), BROKER_ANSWERED);
	assert_int_equal(answer.refusal, REFUSAL_SEQUENCE);
	assert_true(d.over_rate);
	assert_int_equal(served(100, NOW_NS + NSEC_PER_SEC / BROKER_RATE_S), 1);
	assert_int_equal(served(5000, NOW_NS + NSEC_PER_SEC), BROKER_RATE_S - 1);
	/* Another connection has the same bucket, and an age of silence fills it only once. */
	session = (struct broker_session){ 0 };
	assert_int_equal(ask_at(BROKER_HELLO, 1, NOW_NS + NSEC_PER_SEC), BROKER_ANSWERED);
	assert_int_equal(answer.refusal, REFUSAL_RATE);
	assert_int_equal(ask_at(BROKER_HELLO, 2, NOW_NS + 3600 * NSEC_PER_SEC), BROKER_ANSWERED);
	assert_false(d.over_rate);
	assert_int_equal(served(9000, NOW_NS + 3600 * NSEC_PER_SEC), BROKER_RATE_BURST - 1);
}

/* Right after boot the clock has less on it than a full bucket. */
static void rate_at_boot(void **state)
{
	assert_int_equal(ask_at(BROKER_HELLO, 1, NSEC_PER_SEC / 2), BROKER_ANSWERED);
	assert_int_equal(answer.refusal, REFUSAL_NONE);
	assert_int_equal(served(9000, NSEC_PER_SEC / 2), BROKER_RATE_S / 2 - 1);
}

static void refuses_connections(void **state)
{
	broker_dispatch_refuse(&d, REFUSAL_BUSY, &answer);
	assert_int_equal(answer.refusal, REFUSAL_BUSY);
	assert_int_equal(answer.sequence, 0);
	assert_int_equal(d.own.refused[REFUSAL_BUSY], 1);
}

UNIT_TESTS(broker_dispatch)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(grants, setup),
		cmocka_unit_test_setup(stages, setup),
		cmocka_unit_test_setup(apart, setup),
		cmocka_unit_test_setup(apart_in_part, setup),
		cmocka_unit_test_setup(connections, setup),
		cmocka_unit_test_setup(hello_that_is_refused, setup),
		cmocka_unit_test_setup(sequences, setup),
		cmocka_unit_test_setup(lengths, setup),
		cmocka_unit_test_setup(ancillary_and_cut, setup),
		cmocka_unit_test_setup(requests_that_are_none, setup),
		cmocka_unit_test_setup(rate, setup),
		cmocka_unit_test_setup(rate_at_boot, setup),
		cmocka_unit_test_setup(refuses_connections, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
