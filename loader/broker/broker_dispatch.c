/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/broker/broker_dispatch.h"

#include <string.h>

#include "policy/policy.h"
#include "shared/tools/macro.h"

#define TOKEN_NS (NSEC_PER_SEC / BROKER_RATE_S)
#define BURST_NS (BROKER_RATE_BURST * TOKEN_NS)

void broker_dispatch_init(const struct broker_operation *operations, void *context,
			  struct broker_dispatch *ret_dispatch)
{
	*ret_dispatch = (struct broker_dispatch){
		.operations = operations,
		.context = context,
	};
	ret_dispatch->counts = &ret_dispatch->own;
}

/*
 * The broker is the only writer; the relaxed store prevents torn values for readers of the mapped
 * counter.
 */
static void count_one(__u64 *counter)
{
	__atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
}

/*
 * A token bucket in time: it holds now_ns - filled_ns, a token costs TOKEN_NS, it is full at
 * BURST_NS.
 */
static bool take_token(struct broker_dispatch *d, uint64_t now_ns)
{
	if (now_ns - d->filled_ns > BURST_NS || now_ns < d->filled_ns)
		d->filled_ns = now_ns - MIN(now_ns, BURST_NS);
	if (now_ns - d->filled_ns < TOKEN_NS)
		return false;
	d->filled_ns += TOKEN_NS;
	return true;
}

/*
 * Checks length and magic. A message with a wrong one is not from the consumer, and its connection
 * is closed.
 */
static enum broker_refusal judge_message(const struct broker_message *m,
					 struct broker_request_header *header)
{
	if (m->bytes < sizeof(*header))
		return m->ancillary ? REFUSAL_DESCRIPTOR : REFUSAL_LENGTH;
	memcpy(header, m->data, sizeof(*header));
	return header->magic == BROKER_MAGIC ? REFUSAL_NONE : REFUSAL_VERSION;
}

/* Checks everything else that does not depend on the request's arguments. */
static enum broker_refusal judge_request(const struct broker_dispatch *d,
					 struct broker_session *session,
					 const struct broker_message *m,
					 const struct broker_request_header *header)
{
	const struct broker_row *row = broker_row(header->request);

	if (m->ancillary)
		return REFUSAL_DESCRIPTOR;
	if (!row || !policy_requests_allow(POLICY_CONSUMER, header->request))
		return REFUSAL_REQUEST;
	if (m->cut || m->bytes != row->bytes)
		return REFUSAL_LENGTH;
	if (header->sequence != session->sequence + 1)
		return REFUSAL_SEQUENCE;
	session->sequence = header->sequence;
	if (header->pad)
		return REFUSAL_ARGUMENT;
	if (row->stage != session->stage)
		return REFUSAL_STAGE;
	return d->over_rate ? REFUSAL_RATE : REFUSAL_NONE;
}

void broker_dispatch_work(const struct broker_dispatch *d, const struct broker_session *session,
			  struct broker_result *result)
{
	d->operations[session->request].work(d->context, &session->body, result);
}

static void run_request(const struct broker_dispatch *d, struct broker_session *session,
			struct broker_result *result)
{
	const struct broker_operation *operation = &d->operations[session->request];

	if (operation->run)
		operation->run(d->context, &session->body, result);
	if (session->request == BROKER_HELLO && result->refusal == REFUSAL_NONE)
		session->stage = BROKER_STAGE_READY;
}

/*
 * Stores the request in the session, checks its arguments, and runs it unless a worker must come
 * first.
 */
static enum broker_verdict take_request(const struct broker_dispatch *d,
					struct broker_session *session,
					const struct broker_message *m, uint32_t request,
					struct broker_result *result)
{
	const struct broker_operation *operation = &d->operations[request];
	size_t head = sizeof(struct broker_request_header);

	session->request = request;
	session->body = (union broker_body){ 0 };
	memcpy(session->body.bytes, (const uint8_t *)m->data + head, m->bytes - head);
	if (!operation->check(&session->body)) {
		result->refusal = REFUSAL_ARGUMENT;
		return BROKER_ANSWERED;
	}
	if (operation->apart && operation->apart(d->context, &session->body))
		return BROKER_APART;
	run_request(d, session, result);
	return BROKER_ANSWERED;
}

static void write_answer(struct broker_dispatch *d, uint32_t request, uint32_t sequence,
			 const struct broker_result *result, struct broker_answer *ret_answer)
{
	if (result->refusal == REFUSAL_NONE)
		count_one(&d->counts->granted[request]);
	else
		count_one(&d->counts->refused[result->refusal]);
	*ret_answer = (struct broker_answer){
		.magic = BROKER_MAGIC,
		.request = request,
		.sequence = sequence,
		.refusal = result->refusal,
		.error = result->error,
		.descriptors = result->count,
	};
}

enum broker_verdict broker_dispatch(struct broker_dispatch *d, struct broker_session *session,
				    const struct broker_message *m, uint64_t now_ns,
				    struct broker_answer *ret_answer,
				    struct broker_result *ret_result)
{
	struct broker_request_header header = { 0 };
	struct broker_result result = { .refusal = judge_message(m, &header) };
	enum broker_verdict verdict = BROKER_ANSWERED;

	d->over_rate = !take_token(d, now_ns);
	if (result.refusal != REFUSAL_NONE)
		verdict = BROKER_NOT_OURS;
	else
		result.refusal = judge_request(d, session, m, &header);
	if (result.refusal == REFUSAL_NONE)
		verdict = take_request(d, session, m, header.request, &result);
	if (verdict == BROKER_APART)
		return verdict;
	write_answer(d, header.request, header.sequence, &result, ret_answer);
	*ret_result = result;
	return verdict;
}

void broker_dispatch_end(struct broker_dispatch *d, struct broker_session *session,
			 struct broker_result *result, struct broker_answer *ret_answer)
{
	if (result->refusal == REFUSAL_NONE)
		run_request(d, session, result);
	write_answer(d, session->request, session->sequence, result, ret_answer);
}

void broker_dispatch_refuse(struct broker_dispatch *d, enum broker_refusal refusal,
			    struct broker_answer *ret_answer)
{
	count_one(&d->counts->refused[refusal]);
	*ret_answer = (struct broker_answer){ .magic = BROKER_MAGIC, .refusal = refusal };
}
