/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * facts.h: the kernel's own counters of a cgroup at one moment: throttling, memory events,
 * refaults, swap, bytes to and from devices, pids, and the limits; and those of the whole machine
 * (facts.def lists all). Parses their texts; reads no file itself. Keeps plain numbers; any thread.
 */
#ifndef TROCAR_CONSUMER_FACTS_FACTS_H
#define TROCAR_CONSUMER_FACTS_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/abi/abi.h"

#define FACTS_DEVICES  6	  /* of one cgroup; the others are counted in devices_more */
#define FACTS_NO_LIMIT UINT64_MAX /* a limit that is "max" or -1 */

enum facts_source {
#define SOURCE(id, name, controller) FACTS_##id,
#include "consumer/facts/facts.def"
	FACTS_SOURCE_COUNT_,
};

enum facts_file {
#define FILE(id, source, where, shape, depth, name) FACTS_FILE_##id,
#include "consumer/facts/facts.def"
	FACTS_FILE_COUNT_,
};

enum fact {
#define FACT(id, source, kind, name, divisor) FACT_##id,
#include "consumer/facts/facts.def"
	FACT_COUNT_,
};

enum facts_where { FACTS_OWN, FACTS_V2, FACTS_V1, FACTS_HOST_WIDE };
enum facts_shape {
	FACTS_KEYED,
	FACTS_WORDS,
	FACTS_NESTED,
	FACTS_ROWS,
	FACTS_LIMIT,
	FACTS_PROCESSES
};
enum facts_depth { FACTS_CHEAP, FACTS_WHOLE, FACTS_LIMITS };
enum facts_kind { FACTS_COUNTER, FACTS_GAUGE, FACTS_BOUND };

/* A device's counters, and the limits of the same quantities. */
enum facts_device_count {
	FACTS_RBYTES,
	FACTS_WBYTES,
	FACTS_RIOS,
	FACTS_WIOS,
	FACTS_DEVICE_COUNTS,
};

struct facts_file_row {
	enum facts_source source;
	enum facts_where where;
	enum facts_shape shape;
	enum facts_depth depth;
	const char *name;
};

struct fact_row {
	enum facts_source source;
	enum facts_kind kind;
	const char *name;
	uint64_t divisor;
};

struct facts_device {
	uint32_t major, minor;
	uint64_t count[FACTS_DEVICE_COUNTS];
	uint64_t limit[FACTS_DEVICE_COUNTS]; /* per second; FACTS_NO_LIMIT: no limit */
};

/* One reading. All zero: no reading. */
struct facts {
	uint64_t time_ns; /* CLOCK_MONOTONIC, before the first file was read */
	uint64_t has;	  /* a bit for each fact that is in `value` */
	uint64_t value[FACT_COUNT_];
	int16_t error[FACTS_FILE_COUNT_]; /* -errno of files that could not be read */
	uint64_t files;			  /* a bit for each file that was read */
	char files_comm[COMM_BYTES]; /* name of the process FACT_FILES_PID; "": it is not known */
	uint32_t n_devices, devices_more;
	struct facts_device devices[FACTS_DEVICES];
};

_Static_assert(FACT_COUNT_ <= 64 && FACTS_FILE_COUNT_ <= 64, "each has a bit");

/* Return the rows of facts.def. */
const struct facts_file_row *facts_file(enum facts_file file);
const struct fact_row *facts_row(enum fact fact);
const char *facts_source_name(enum facts_source source);
/*
 * Returns the name of the source's controller in a v1 hierarchy; "" if the source is not a
 * cgroup's.
 */
const char *facts_source_controller(enum facts_source source);
/* Returns "rbytes", "wbytes", "rios" or "wios". */
const char *facts_device_count_name(enum facts_device_count count);

/* Returns whether a fact was read; sets *ret_value only then. */
bool facts_get(const struct facts *f, enum fact fact, uint64_t *ret_value);

/*
 * Returns a limit (a fact of kind BOUND), the CPU quota in thousandths of a percent of one CPU;
 * FACTS_NO_LIMIT if there is none or it was not read.
 */
uint64_t facts_limit(const struct facts *f, enum fact fact);

/* Replaces the values of one source in *f by those in `from`; does not change the errors. */
void facts_take_source(struct facts *f, const struct facts *from, enum facts_source source);

/*
 * Adds the values of `text`, the content of `file`. Skips unknown keys, because later kernels add
 * some. Fuzzed (tests/fuzz/consumer/facts.c).
 */
void facts_parse(struct facts *f, enum facts_file file, const char *text, size_t bytes);

/* Returns the device's numbers, or NULL. */
const struct facts_device *facts_device(const struct facts *f, uint32_t major, uint32_t minor);

#endif
