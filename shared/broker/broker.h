/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broker.h: the messages between the consumer and `trocar-loader broker`, as bytes. One
 * SOCK_SEQPACKET message is one request or one answer, of exactly the length in broker.def; all
 * fields are in the machine's byte order. The broker checks every field. It refuses, counts by
 * reason (refusals.def) and answers a message with any wrong part. It also closes the connection
 * after a message that is shorter than a header or has another magic.
 */
#ifndef TROCAR_SHARED_BROKER_BROKER_H
#define TROCAR_SHARED_BROKER_BROKER_H

#include <stddef.h>
#include <stdint.h>

#define BROKER_MAGIC	       0x6b72626fu /* "obrk" */
#define BROKER_SOCKET	       "/run/trocar/broker.sock"
#define BROKER_DESCRIPTORS_MAX 32
#define BROKER_REQUEST_MAX     64 /* bytes of the longest request */

enum broker_refusal {
#define REFUSAL(id, json, help) REFUSAL_##id,
#include "shared/broker/refusals.def"
#undef REFUSAL
	REFUSAL_COUNT_
};

struct broker_request_header {
	uint32_t magic;	   /* BROKER_MAGIC */
	uint32_t request;  /* enum broker_request */
	uint32_t sequence; /* 1 for the first request of a connection, then counts up */
	uint32_t pad;	   /* 0 */
};

struct broker_hello {
	uint32_t abi_version; /* ABI_VERSION of the consumer */
	uint32_t pad;
};

struct broker_sampler_open {
	uint32_t cpu;
	uint16_t hz;	  /* 1 to 999 */
	uint16_t divisor; /* the event ticks at hz / divisor: 1 to DIVISOR_MAX */
};

struct broker_signal_attach {
	uint32_t signal; /* enum signal */
	uint32_t pad;
};

struct broker_pressure_open {
	uint64_t cgroup_id; /* the id of the root cgroup means the whole system */
	uint32_t resource;  /* enum resource */
	uint32_t pad;
};

struct broker_mapping_open {
	uint64_t start_ns; /* of the process, as in struct process_key */
	uint64_t start;	   /* of the mapping, as in /proc/PID/map_files */
	uint64_t end;
	uint32_t tgid;
	uint32_t pad;
};

struct broker_jit_map_open {
	uint64_t start_ns; /* of the process, as in struct process_key */
	uint32_t tgid;
	uint32_t pad;
};

enum broker_request {
#define BROKER(id, name, stage, body, descriptors, help) BROKER_##id,
#include "shared/broker/broker.def"
#undef BROKER
	BROKER_COUNT_
};

struct broker_answer {
	uint32_t magic;	   /* BROKER_MAGIC */
	uint32_t request;  /* of the request */
	uint32_t sequence; /* of the request */
	uint32_t refusal;  /* enum broker_refusal; REFUSAL_NONE: granted */
	int32_t error;	   /* -errno where the kernel refused, else 0 */
	uint32_t descriptors;
};

/* Stages of a connection. */
enum broker_stage {
	BROKER_STAGE_NEW,
	BROKER_STAGE_READY,
};

/* One row of broker.def. */
struct broker_row {
	const char *name;
	enum broker_stage stage;
	size_t bytes; /* of the whole request, header included */
	unsigned int descriptors;
	const char *help;
};

/* Returns the row of a request; NULL for an unknown number. */
const struct broker_row *broker_row(uint32_t request);

/* Returns the JSON name of a refusal ("peer"), or its sentence; "unknown" for an unknown number. */
const char *broker_refusal_name(uint32_t refusal);
const char *broker_refusal_help(uint32_t refusal);

#endif
