/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables that lie, in the form that the kernel side takes for whole and published ones. */
#include "captive.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shared/tools/macro.h"

#define ROWS 64 /* and as many rules behind those that every dictionary has */

static struct unwind_rule some_rule(struct captive *c)
{
	struct unwind_rule rule = {
		.cfa_offset = (int32_t)(captive_random(c, 24) * 8) - 16,
		.fp_offset = (int16_t)((int)(captive_random(c, 32) * 8) - 160),
		.cfa = (uint8_t)(captive_random(c, 4) ? UNWIND_CFA_SP + captive_random(c, 4)
						      : captive_random(c, 9)),
		.saved = UNWIND_SAVED(captive_random(c, 4) ? 0 : captive_random(c, 8),
				      captive_random(c, 8)),
	};

	if (captive_random(c, 16) == 0)
		rule.saved |= UNWIND_SAVED_EXACT;
	if (captive_random(c, 16) == 0)
		rule.cfa_offset = (int32_t)captive_word(c);
	if (captive_random(c, 4) == 0)
		rule.cfa_offset = UNWIND_HALVES((int)captive_random(c, 32) * 8 - 64,
						(int)captive_random(c, 16) * 8 - 64);
	return rule;
}

/* One file for all text: a row for each page of the index, of any of the rules. */
static void write_rows(struct captive *c, const struct captive_map *pool)
{
	struct unwind_rule *rules = (struct unwind_rule *)captive_map(c, "unwind_rules")->memory;
	struct unwind_file *files = (struct unwind_file *)captive_map(c, "unwind_files")->memory;
	uint64_t *elements = (uint64_t *)pool->memory;
	size_t pages = MIN(pool->memory_bytes / 8 - ROWS, (size_t)1 << 14);

	for (uint32_t i = 0; i < ROWS; i++) {
		rules[3 + i] = some_rule(c);
		elements[i] = (uint64_t)(3 + i) << 32;
	}
	for (size_t i = 0; i < pages; i++)
		elements[ROWS + i] = (uint64_t)UNWIND_PAGE(captive_random(c, ROWS), 1) << 32 |
				     UNWIND_PAGE(captive_random(c, ROWS), 1);
	files[0].place = (struct unwind_place){ .row_count = ROWS,
						.pages = ROWS,
						.page_count = (uint32_t)(2 * pages) };
}

/* Has `ranges` look at the claims. Which filling of the table it was; 0: it was refused. */
static uint64_t fill(struct captive *c)
{
	struct ranges_record record = { 0 };
	char path[CAPTIVE_PATH];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/ranges", c->bpf_dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, &record, sizeof(record));
	close(fd);
	return n == sizeof(record) ? record.table_generation : 0;
}

/* All its code, and sometimes other bytes. */
static void claim(struct captive *c, const struct prey *p, struct unwind_process *table)
{
	struct unwind_claims *claims =
		(struct unwind_claims *)captive_map(c, "unwind_claims")->memory;
	bool all = captive_random(c, 2);
	uint32_t n = 0;

	claims->start_ns = p->start_ns;
	for (size_t i = 0; i < p->range_count && n < UNWIND_RANGES; i++) {
		if (!p->ranges[i].code && !all)
			continue;
		claims->starts[n] = p->ranges[i].start;
		claims->inodes[n] = p->ranges[i].inode;
		table->mappings[n] = (struct unwind_mapping){
			.base = p->ranges[i].start,
			.kind = captive_random(c, 4) ? UNWIND_KIND_ROWS
						     : (uint32_t)captive_random(c, 5),
		};
		n++;
	}
	claims->count = n;
	claims->tgid = p->pid;
}

void captive_unwind(struct captive *c)
{
	struct captive_map *tables = captive_map(c, "unwind_process");
	uint32_t number = (uint32_t)captive_random(c, 4);
	struct unwind_process *table = (struct unwind_process *)tables->memory + number;
	const struct prey *p = captive_prey(c);
	struct process_key key = { .tgid = p->pid, .start_ns = p->start_ns };
	struct target target = { .flags = TARGET_MAPPED,
				 .rule = NO_SLOT,
				 .unwind = number + 1,
				 .image = (uint32_t)captive_random(c, 3) };

	write_rows(c, captive_map(c, "unwind_pool"));
	claim(c, p, table);
	((struct unwind_claims *)captive_map(c, "unwind_claims")->memory)->table = number;
	table->published = fill(c);
	if (table->published) {
		c->fills++;
		captive_look_at_process(c, "ranges", p->pid);
	}
	bpf_map_update_elem(captive_map(c, "targets")->fd, &key, &target, BPF_ANY);
}
