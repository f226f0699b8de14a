/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/jit/perf_map_names.h"

#include <stdlib.h>

#include "consumer/jit/perf_map.h"
#include "consumer/jit/perf_map_read.h"
#include "shared/tools/cleanup.h"

struct jit_process {
	struct process_key key;
	struct jit_map *map; /* NULL: `reason` has the cause */
	enum reason reason;
};

void perf_map_names_begin(struct jit *j, uint64_t began_ns)
{
	j->began_ns = began_ns;
}

void perf_map_names_done(struct jit *j)
{
	for (size_t i = 0; i < j->count; i++)
		perf_map_free(j->processes[i].map);
	free(j->processes);
	*j = (struct jit){ 0 };
}

static struct jit_process *find_process(struct jit *j, const struct process_key *key)
{
	for (size_t i = 0; i < j->count; i++)
		if (j->processes[i].key.tgid == key->tgid &&
		    j->processes[i].key.start_ns == key->start_ns)
			return &j->processes[i];
	return NULL;
}

static enum reason read_map(const struct jit *j, struct perf_map_files *files,
			    const struct process_key *key, struct jit_map **ret_map)
{
	struct perf_map_age age = { .began_ns = j->began_ns };
	_cleanup_close_ int owned = -1;
	int fd = -1;
	enum reason reason = perf_map_files_open(files, key, &fd, &owned);

	if (reason != REASON_NONE)
		return reason;
	age.mark_count = perf_map_files_marks(files, key, age.marks);
	return perf_map_read_load(fd, key, &age, ret_map);
}

static enum reason add_process(struct jit *j, struct perf_map_files *files,
			       const struct process_key *key, size_t max_bytes,
			       struct jit_process **ret_process)
{
	struct jit_process *p;

	if (!j->processes)
		j->processes = calloc(JIT_PROCESSES_MAX, sizeof(*j->processes));
	if (!j->processes)
		return REASON_NO_MEMORY;
	if (j->count == JIT_PROCESSES_MAX || j->bytes > max_bytes)
		return REASON_CACHE_FULL;
	p = &j->processes[j->count++];
	*p = (struct jit_process){ .key = *key };
	p->reason = read_map(j, files, key, &p->map);
	if (p->map)
		j->bytes += perf_map_bytes(p->map);
	*ret_process = p;
	return REASON_NONE;
}

enum reason perf_map_names_find(struct jit *j, struct perf_map_files *files,
				const struct process_key *process, uint64_t address,
				size_t max_bytes, const char **ret_fn, uint64_t *ret_start)
{
	struct jit_process *p = find_process(j, process);
	enum reason reason;

	if (!p) {
		reason = add_process(j, files, process, max_bytes, &p);
		if (reason != REASON_NONE)
			return reason;
	}
	return p->map ? perf_map_find(p->map, address, ret_fn, ret_start) : p->reason;
}
