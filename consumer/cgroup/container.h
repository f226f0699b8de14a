/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * container.h: reads the container and unit from the path of a cgroup: container, pod, machine,
 * unit. It uses the names that runtimes give (container.def) and asks no runtime's socket. A path
 * proves nothing: the user that makes a cgroup chooses its name. Any thread.
 */
#ifndef TROCAR_CONSUMER_CGROUP_CONTAINER_H
#define TROCAR_CONSUMER_CGROUP_CONTAINER_H

#include <stdint.h>

struct jsonw;

enum container_runtime {
	RUNTIME_NONE, /* the path names no container */
#define RUNTIME(id, json) RUNTIME_##id,
#include "consumer/cgroup/container.def"
	RUNTIME_COUNT_
};

enum container_qos {
	QOS_NONE, /* the path names no pod */
#define QOS(id, json) QOS_##id,
#include "consumer/cgroup/container.def"
	QOS_COUNT_
};

#define CONTAINER_ID_BYTES   64	 /* hex digits; the same for all runtimes with ids */
#define CONTAINER_HOST_BYTES 64	 /* a machine's name is as long as a host's */
#define CONTAINER_UNIT_BYTES 255 /* UNIT_NAME_MAX of systemd less the NUL */

/* A part of the path that container_parse read; bytes 0: absent. */
struct container_part {
	uint16_t at, bytes;
};

/*
 * The parts that a path names. Offsets are valid for any copy of the path. With nested containers,
 * each member describes the innermost one that has it: the innermost container, the pod around it,
 * the machine around that.
 */
struct container {
	uint8_t runtime; /* enum container_runtime, of the innermost container or its monitor */
	uint8_t qos;	 /* enum container_qos, of the pod */
	struct container_part id;	 /* of the container the process is in */
	struct container_part monitored; /* id or name that the process only monitors */
	struct container_part pod;	 /* uid, with '_' instead of '-' if systemd names it */
	struct container_part machine;	 /* escaped as by systemd if the runtime is machined */
	struct container_part unit;	 /* innermost unit of systemd, in its escaped form */
};

/* Reads a path below the cgroup2 mount; NULL and paths beyond 64 KiB give no parts. */
struct container container_parse(const char *path);

/* Writes the keys "container_id" and "pod_uid" of a line, each if the path has one. */
void container_write_ids(const struct container *c, const char *path, struct jsonw *w);

/*
 * Writes the object "container" {runtime, machine, monitor_of, qos, unit}, unless all its keys are
 * absent.
 */
void container_write(const struct container *c, const char *path, struct jsonw *w);

#endif
