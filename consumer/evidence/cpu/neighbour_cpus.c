/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/cpu/neighbour_cpus.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/kernel/map_batch.h"
#include "shared/abi/abi.h"
#include "shared/tools/array.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define KEPT_PARTS 20 /* a CPU counts if it has one part in KEPT_PARTS */

struct place {
	uint64_t id;
	uint32_t row;
};

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* Sorts the rows by id. */
static int sort_rows(const uint64_t *ids, const uint64_t *ns, struct neighbour_cpus *r)
{
	_cleanup_free_ struct place *places = calloc(r->count, sizeof(*places));

	r->ids = calloc(r->count, sizeof(*r->ids));
	r->ns = calloc((size_t)r->count * r->cpus, sizeof(*r->ns));
	if (!places || !r->ids || !r->ns)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->count; i++)
		places[i] = (struct place){ ids[i], i };
	qsort(places, r->count, sizeof(*places), compare_places);
	for (uint32_t i = 0; i < r->count; i++) {
		r->ids[i] = places[i].id;
		memcpy(r->ns + (size_t)i * r->cpus, ns + (size_t)places[i].row * r->cpus,
		       r->cpus * sizeof(*ns));
	}
	return 0;
}

int neighbour_cpus_read(int fd, uint32_t cpus, struct neighbour_cpus *ret_reading)
{
	const struct map_sizes sizes = { sizeof(uint64_t), cpus * sizeof(uint64_t),
					 NEIGHBOURS_MAX };
	_cleanup_free_ uint64_t *ids = NULL, *ns = NULL;
	struct neighbour_cpus reading = { .cpus = cpus };
	uint32_t count;
	int r = map_batch_read(fd, &sizes, &ids, &ns, &count);

	if (r < 0)
		return r;
	reading.count = count;
	r = count ? sort_rows(ids, ns, &reading) : 0;
	if (r < 0)
		neighbour_cpus_done(&reading);
	else
		*ret_reading = reading;
	return r;
}

bool neighbour_cpus_empty(int fd, const struct neighbour_cpus *reading)
{
	uint32_t count = reading->count;

	return !count || bpf_map_delete_batch(fd, reading->ids, &count, NULL) == 0;
}

const uint64_t *neighbour_cpus_find(const struct neighbour_cpus *reading, uint64_t cgroup_id)
{
	size_t at = LOWER_BOUND(i, 0, reading->count, reading->ids[i] < cgroup_id);

	return at < reading->count && reading->ids[at] == cgroup_id
		       ? reading->ns + at * reading->cpus
		       : NULL;
}

void neighbour_cpus_subtract(struct neighbour_cpus *reading, const struct neighbour_cpus *before)
{
	for (uint32_t i = 0; i < reading->count; i++) {
		const uint64_t *then = neighbour_cpus_find(before, reading->ids[i]);
		uint64_t *now = reading->ns + (size_t)i * reading->cpus;

		for (uint32_t cpu = 0; then && cpu < reading->cpus; cpu++)
			if (now[cpu] >= then[cpu])
				now[cpu] -= then[cpu];
	}
}

size_t neighbour_cpus_keep(uint64_t *own_ns, uint32_t cpus)
{
	uint64_t all_ns = 0;
	size_t kept = 0;

	for (uint32_t cpu = 0; cpu < cpus; cpu++)
		all_ns += own_ns[cpu];
	for (uint32_t cpu = 0; cpu < cpus; cpu++) {
		if (own_ns[cpu] * KEPT_PARTS < all_ns)
			own_ns[cpu] = 0;
		kept += own_ns[cpu] > 0;
	}
	return kept;
}

void neighbour_cpus_done(struct neighbour_cpus *reading)
{
	free(TAKE_PTR(reading->ids));
	free(TAKE_PTR(reading->ns));
	reading->count = 0;
}
