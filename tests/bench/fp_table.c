/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/fp_table.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/trocar.skel.h"
#include "tests/bench/tool.h"

static void *memory(const struct bpf_map *map)
{
	size_t bytes = (size_t)bpf_map__max_entries(map) * ((bpf_map__value_size(map) + 7) & ~7u);
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	if (p == MAP_FAILED)
		tool_die("mmap of %s", bpf_map__name(map));
	return p;
}

/* The executable mappings of a process, in their order. */
static void claim(struct unwind_claims *claims, uint32_t pid)
{
	char path[64], row[4096];
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	maps = fopen(path, "re");
	if (!maps)
		tool_die("%s", path);
	claims->count = 0;
	while (fgets(row, sizeof(row), maps) && claims->count < UNWIND_RANGES) {
		uint64_t start, inode;
		char mode[5];

		if (sscanf(row, "%" SCNx64 "-%*x %4s %*x %*x:%*x %" SCNu64, &start, mode, &inode) !=
			    3 ||
		    mode[2] != 'x')
			continue;
		claims->starts[claims->count] = start;
		claims->inodes[claims->count++] = inode;
	}
	fclose(maps);
}

static uint64_t fill(struct trocar *skel)
{
	struct bpf_link *link = bpf_program__attach_iter(skel->progs.ranges, NULL);
	int fd = link ? bpf_iter_create(bpf_link__fd(link)) : -1;
	struct ranges_record record = {};

	if (fd < 0 || read(fd, &record, sizeof(record)) != sizeof(record) ||
	    !record.table_generation)
		tool_die("the iterator ranges");
	close(fd);
	bpf_link__destroy(link);
	return record.table_generation;
}

void fp_table_make(struct trocar *skel, const struct process_key *key, uint32_t number)
{
	static struct unwind_claims *claims;
	static struct unwind_process *tables;

	if (!claims) {
		claims = memory(skel->maps.unwind_claims);
		tables = memory(skel->maps.unwind_process);
	}
	tables[number].published = 0;
	claim(claims, key->tgid);
	claims->tgid = key->tgid;
	claims->start_ns = key->start_ns;
	claims->table = number;
	for (uint32_t i = 0; i < claims->count; i++)
		tables[number].mappings[i] = (struct unwind_mapping){ .kind = UNWIND_KIND_FP };
	tables[number].published = fill(skel);
}
