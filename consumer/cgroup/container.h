/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * container.h: what the path of a cgroup says of who runs there: container, pod, machine, unit. By
 * the names that runtimes give (container.def), and by nothing else: no socket of a runtime is
 * asked. A path is a claim: whoever may make a cgroup may name it so. Any thread.
 */
#ifndef TROCAR_CONSUMER_CGROUP_CONTAINER_H
#define TROCAR_CONSUMER_CGROUP_CONTAINER_H

#include <stdint.h>

#include "shared/json/jsonw.h"

enum container_runtime {
	RUNTIME_NONE, /* the path names no container */
#define RUNTIME(id, json) RUNTIME_##id,
#include "consumer/cgroup/container.def"
	RUNTIME_COUNT_
};

enum container_qos {
	QOS_NONE, /* no pod */
#define QOS(id, json) QOS_##id,
#include "consumer/cgroup/container.def"
	QOS_COUNT_
};

#define CONTAINER_ID_BYTES   64	 /* hex digits, of every runtime that has ids */
#define CONTAINER_HOST_BYTES 64	 /* of a machine's name, as of a host's */
#define CONTAINER_UNIT_BYTES 255 /* of a unit's name: UNIT_NAME_MAX of systemd less the NUL */

/* A part of the path it was found in; bytes 0: there is none. */
struct container_part {
	uint16_t at, bytes;
};

/*
 * Offsets hold for any copy of the path. Where containers are nested, everything is of the
 * innermost that has it: the container of the pod's, the pod around it, the machine around that.
 */
struct container {
	uint8_t runtime; /* enum container_runtime, of the innermost container or its monitor */
	uint8_t qos;	 /* enum container_qos, of the pod */
	struct container_part id;	 /* of the container the process is in */
	struct container_part monitored; /* id or name that the process only looks after */
	struct container_part pod;	 /* uid, with '_' for '-' where systemd names it */
	struct container_part machine;	 /* escaped as systemd does where the runtime is machined */
	struct container_part unit;	 /* innermost unit of systemd, as it is escaped */
};

/* Reads a path below the cgroup2 mount; NULL and paths beyond 64 KiB name nothing. */
struct container container_parse(const char *path);

/* Writes the keys of every line: "container_id" and "pod_uid", each where there is one. */
void container_write_ids(const struct container *c, const char *path, struct jsonw *w);

/* Writes the object "container" {runtime, machine, monitor_of, qos, unit}, unless all are absent.
 */
void container_write(const struct container *c, const char *path, struct jsonw *w);

#endif
