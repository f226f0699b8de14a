/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The broker's request loop without the kernel behind it: messages as bytes, the real argument
 * checks, operations that open nothing. An input is a row of messages, each with a head of three
 * bytes: flags, how much time has passed, and the length. What must hold: every message has one
 * answer and one count; nothing runs before hello, nothing out of order, nothing with arguments out
 * of range; no more runs than the rate has.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loader/broker/broker_dispatch.h"
#include "loader/broker/broker_operations.h"
#include "shared/rules/rules.h"
#include "shared/tools/cpus.h"
#include "shared/tools/macro.h"

#define HEAD_BYTES 3

/* Flags of a message's head. */
#define ANCILLARY (1u << 0)
#define CUT	  (1u << 1)
#define OURS	  (1u << 2) /* magic and sequence as they should be: else hardly any input gets far */
#define RECONNECT (1u << 3)
#define FAILS	  (1u << 4) /* the operation is refused by the kernel */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static struct {
	struct broker_dispatch dispatch;
	struct broker_session session;
	uint64_t now_ns, runs;
	bool fails;
} f;

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void ran(struct broker_result *result, unsigned int descriptors)
{
	f.runs++;
	must(result->refusal == REFUSAL_NONE && result->count == 0);
	if (f.fails) {
		result->refusal = REFUSAL_KERNEL;
		result->error = -5;
		return;
	}
	for (unsigned int i = 0; i < descriptors; i++)
		result->fds[result->count++] = -1;
}

static void hello(void *context, const void *body, struct broker_result *result)
{
	must(context == &f && f.session.stage == BROKER_STAGE_NEW);
	ran(result, 0);
}

static void sampler(void *context, const void *body, struct broker_result *result)
{
	const struct broker_sampler_open *b = body;

	must(b->cpu < CPUS_MAX && b->hz >= 1 && b->hz <= 999 && b->divisor >= 1 &&
	     b->divisor <= DIVISOR_MAX);
	must(f.session.stage == BROKER_STAGE_READY);
	ran(result, 1);
}

static void attach(void *context, const void *body, struct broker_result *result)
{
	const struct broker_signal_attach *b = body;

	must(b->signal < SIGNAL_COUNT_ && f.session.stage == BROKER_STAGE_READY);
	ran(result, BROKER_DESCRIPTORS_MAX);
}

static void pressure(void *context, const void *body, struct broker_result *result)
{
	const struct broker_pressure_open *b = body;

	must(b->resource < RESOURCE_COUNT_ && f.session.stage == BROKER_STAGE_READY);
	ran(result, 1);
}

static void mapping(void *context, const void *body, struct broker_result *result)
{
	const struct broker_mapping_open *b = body;

	must(b->tgid >= 1 && b->tgid <= INT32_MAX && b->start < b->end);
	must(f.session.stage == BROKER_STAGE_READY);
	ran(result, 1);
}

static void jit_map(void *context, const void *body, struct broker_result *result)
{
	const struct broker_jit_map_open *b = body;

	must(b->tgid >= 1 && b->tgid <= INT32_MAX);
	must(f.session.stage == BROKER_STAGE_READY);
	ran(result, 1);
}

static void (*const runs[BROKER_COUNT_])(void *, const void *, struct broker_result *) = {
	[BROKER_HELLO] = hello,		 [BROKER_SAMPLER_OPEN] = sampler,
	[BROKER_SIGNAL_ATTACH] = attach, [BROKER_PRESSURE_OPEN] = pressure,
	[BROKER_MAPPING_OPEN] = mapping, [BROKER_JIT_MAP_OPEN] = jit_map,
};

static bool apart(void *context, const void *body)
{
	must(context == &f);
	return true;
}

/* The broker's own row, with an operation of ours: apart where all of it is. */
static struct broker_operation in_place(size_t request)
{
	const struct broker_operation *row = &broker_operations_table[request];

	return row->run ? (struct broker_operation){ row->check, .run = runs[request] }
			: (struct broker_operation){ row->check, apart, runs[request] };
}

static uint64_t counted(void)
{
	const struct broker_counts *c = &f.dispatch.own;
	uint64_t sum = 0;

	for (size_t i = 0; i < ARRAY_SIZE(c->granted); i++)
		sum += c->granted[i];
	for (size_t i = 0; i < ARRAY_SIZE(c->refused); i++)
		sum += c->refused[i];
	return sum;
}

static void give_header(uint8_t *data, size_t bytes)
{
	struct broker_request_header header;

	if (bytes < sizeof(header))
		return;
	memcpy(&header, data, sizeof(header));
	header.magic = BROKER_MAGIC;
	header.sequence = f.session.sequence + 1;
	memcpy(data, &header, sizeof(header));
}

/* What runs apart in the broker: judged by now, neither run nor counted yet. */
static void finish(uint64_t before, uint64_t runs_before, struct broker_answer *answer,
		   struct broker_result *result)
{
	must(f.session.stage == BROKER_STAGE_READY);
	must(counted() == before && f.runs == runs_before);
	*result = (struct broker_result){ .refusal = REFUSAL_NONE };
	broker_dispatch_work(&f.dispatch, &f.session, result);
	broker_dispatch_end(&f.dispatch, &f.session, result, answer);
}

static void one(const struct broker_message *m)
{
	uint64_t before = counted(), runs_before = f.runs;
	uint32_t sequence = f.session.sequence;
	struct broker_result result;
	struct broker_answer answer;
	enum broker_verdict verdict;

	verdict = broker_dispatch(&f.dispatch, &f.session, m, f.now_ns, &answer, &result);
	if (verdict == BROKER_APART)
		finish(before, runs_before, &answer, &result);
	must(counted() == before + 1 && f.runs - runs_before <= 1);
	must(answer.magic == BROKER_MAGIC && answer.refusal < REFUSAL_COUNT_);
	must(answer.refusal == (uint32_t)result.refusal && answer.descriptors == result.count);
	must(f.session.sequence == sequence || f.session.sequence == sequence + 1);
	if (answer.refusal != REFUSAL_NONE)
		must(result.count == 0);
	else
		must(verdict != BROKER_NOT_OURS && f.runs == runs_before + 1 && !m->ancillary &&
		     !m->cut && m->bytes == broker_row(answer.request)->bytes &&
		     result.count == broker_row(answer.request)->descriptors);
	if (verdict == BROKER_NOT_OURS)
		f.session = (struct broker_session){ 0 };
}

static size_t next(const uint8_t *data, size_t bytes)
{
	size_t length = MIN((size_t)data[2], bytes - HEAD_BYTES);
	uint8_t room[256];
	struct broker_message m = {
		.data = room,
		.bytes = MIN(length, (size_t)BROKER_REQUEST_MAX),
		.cut = data[0] & CUT || length > BROKER_REQUEST_MAX,
		.ancillary = data[0] & ANCILLARY,
	};

	memcpy(room, data + HEAD_BYTES, length);
	if (data[0] & RECONNECT)
		f.session = (struct broker_session){ 0 };
	if (data[0] & OURS)
		give_header(room, m.bytes);
	f.fails = data[0] & FAILS;
	f.now_ns += 1ULL << (data[1] & 31);
	one(&m);
	return HEAD_BYTES + length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct broker_operation operations[BROKER_COUNT_];
	uint64_t began_ns = NSEC_PER_SEC * 1000;

	for (size_t i = 0; i < BROKER_COUNT_; i++)
		operations[i] = in_place(i);
	f.now_ns = began_ns;
	f.runs = 0;
	broker_dispatch_init(operations, &f, &f.dispatch);
	f.session = (struct broker_session){ 0 };
	while (bytes >= HEAD_BYTES) {
		size_t used = next(data, bytes);

		data += used;
		bytes -= used;
	}
	must(f.runs <=
	     BROKER_RATE_BURST + (f.now_ns - began_ns) / (NSEC_PER_SEC / BROKER_RATE_S) + 1);
	return 0;
}
