/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broker.h: what the consumer may ask of `trocar-loader broker`, as bytes. One SOCK_SEQPACKET
 * message is one request or one answer, of exactly the length that broker.def gives; all fields are
 * in the byte order of the machine. The strong side checks every field again; a message that is not
 * exactly right is refused, counted by reason (refusals.def) and answered, and one that is no
 * message of ours at all ends the connection.
 */
#ifndef TROCAR_SHARED_BROKER_BROKER_H
#define TROCAR_SHARED_BROKER_BROKER_H

#include <stddef.h>
#include <stdint.h>

#define BROKER_MAGIC	       0x6b72626fu /* "obrk" */
#define BROKER_SOCKET	       "/run/trocar/broker.sock"
#define BROKER_DESCRIPTORS_MAX 8
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
	uint32_t sequence; /* 1 for the first of a connection, then one more each */
	uint32_t pad;	   /* 0 */
};

struct broker_hello {
	uint32_t abi_version; /* ABI_VERSION of the consumer */
	uint32_t pad;
};

struct broker_sampler_open {
	uint32_t cpu;
	uint16_t hz;	  /* 1 to 999 */
	uint16_t divisor; /* it ticks once in so many of those: 1 to DIVISOR_MAX */
};

struct broker_signal_attach {
	uint32_t signal; /* enum signal */
	uint32_t pad;
};

struct broker_pressure_open {
	uint64_t cgroup_id; /* the root's stands for the whole system */
	uint32_t resource;  /* enum resource */
	uint32_t pad;
};

struct broker_mapping_open {
	uint64_t start_ns; /* of the process, as struct process_key has it */
	uint64_t start;	   /* of the mapping, as /proc/PID/map_files names it */
	uint64_t end;
	uint32_t tgid;
	uint32_t pad;
};

struct broker_jit_map_open {
	uint64_t start_ns; /* of the process, as struct process_key has it */
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
	uint32_t request;  /* as asked */
	uint32_t sequence; /* as asked */
	uint32_t refusal;  /* enum broker_refusal; NONE: granted */
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

/* The row of a request; NULL for a number that is none. */
const struct broker_row *broker_row(uint32_t request);

/* The JSON name of a refusal ("peer"), and its sentence; "unknown" for a number that is none. */
const char *broker_refusal_name(uint32_t refusal);
const char *broker_refusal_help(uint32_t refusal);

#endif
