/* SPDX-License-Identifier: BSD-2-Clause */
#include "captive.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shared/tools/macro.h"

#define ITERATOR_BYTES (1u << 20)

/*
 * The processes in an iterator's records. `tasks` also has when one of the prey began: a key needs
 * it.
 */
static void take_tasks(struct captive *c, const uint8_t *bytes, size_t n)
{
	struct task_record record;

	for (size_t at = 0; at + sizeof(record) <= n; at += sizeof(record)) {
		memcpy(&record, bytes + at, sizeof(record));
		if (!record.tgid)
			continue;
		captive_look_at_process(c, "tasks", record.tgid);
		for (size_t i = 0; i < c->prey_count; i++)
			if (c->prey[i].pid == record.tgid)
				c->prey[i].start_ns = record.start_ns;
	}
}

static void take_vmas(struct captive *c, const uint8_t *bytes, size_t n)
{
	struct mapping_record record;

	for (size_t at = 0; at + sizeof(record) <= n; at += sizeof(record) + record.path_bytes) {
		memcpy(&record, bytes + at, sizeof(record));
		captive_look_at_process(c, "vmas", record.tgid);
	}
}

/* Nothing in it has the owner of the ranges, but only the claimed process gets an answer. */
static void take_ranges(struct captive *c, const uint8_t *bytes, size_t n)
{
	const struct unwind_claims *claims =
		(const struct unwind_claims *)captive_map(c, "unwind_claims")->memory;

	if (n > 0)
		captive_look_at_process(c, "ranges", claims->tgid);
}

static void take_vmas_pid(struct captive *c, const uint8_t *bytes, size_t n)
{
	take_vmas(c, bytes, n);
}

static void take_ranges_pid(struct captive *c, const uint8_t *bytes, size_t n)
{
	take_ranges(c, bytes, n);
}

static void take_account_threads(struct captive *c, const uint8_t *bytes, size_t n)
{
	struct account_record record;

	for (size_t at = 0; at + sizeof(record) <= n; at += sizeof(record)) {
		memcpy(&record, bytes + at, sizeof(record));
		if (record.head.tid)
			captive_look_at_process(c, "account_threads", record.head.account.tgid);
	}
}

static void take_lock_waits(struct captive *c, const uint8_t *bytes, size_t n)
{
	struct lock_record record;

	for (size_t at = 0; at + sizeof(record) <= n; at += sizeof(record)) {
		memcpy(&record, bytes + at, sizeof(record));
		captive_look_at_process(c, "lock_waits", record.lock.tgid);
	}
}

static void take_watch_tree(struct captive *c, const uint8_t *bytes, size_t n)
{
}

/* Frames of reported threads are searched with all other words. */
static void take_looks(struct captive *c, const uint8_t *bytes, size_t n)
{
	struct look_record record;

	for (size_t at = 0; at + sizeof(record.head) <= n; at += record.head.bytes) {
		memcpy(&record.head, bytes + at, sizeof(record.head));
		if (record.head.bytes < sizeof(record.head))
			return;
		if (record.head.bytes > n - at || record.head.flags & LOOK_PAUSE ||
		    record.head.bytes < sizeof(record))
			continue;
		memcpy(&record, bytes + at, sizeof(record));
		captive_look_at_process(c, "looks", record.sample.tgid);
	}
}

/* Its records come through the ring `socket_looks` (captive_maps.c). */
static void take_sockets(struct captive *c, const uint8_t *bytes, size_t n)
{
}

/* It finds processes for the map `ends` (captive_maps.c). */
static void take_other_ends(struct captive *c, const uint8_t *bytes, size_t n)
{
}

static void take_ksyms(struct captive *c, const uint8_t *bytes, size_t n)
{
}

/* Addresses of the kernel's own code and times. */
static void take_bpf_code(struct captive *c, const uint8_t *bytes, size_t n)
{
}

static const struct iterator {
	const char *name;
	void (*take)(struct captive *c, const uint8_t *bytes, size_t n);
	uint64_t one_in; /* of the times that it comes up it is read */
} iterators[] = {
#define PIN_ITER(name, help) { #name, take_##name, sizeof(#name) == sizeof("ksyms") ? 20 : 1 },
#include "shared/abi/pins.def"
};

void captive_iterate(struct captive *c)
{
	static uint8_t bytes[ITERATOR_BYTES];
	const struct iterator *it = &iterators[captive_random(c, ARRAY_SIZE(iterators))];
	struct control *control = (struct control *)captive_map(c, "control")->memory;
	char path[CAPTIVE_PATH];
	size_t n = 0;
	ssize_t r;
	int fd;

	if (captive_random(c, it->one_in))
		return;
	control->vma_tgid = captive_random(c, 2) ? captive_prey(c)->pid : 0;
	control->vma_from = captive_random(c, 4) ? 0 : captive_word(c);
	control->scan_trie = (uint32_t)captive_random(c, 3);
	snprintf(path, sizeof(path), "%s/%s", c->bpf_dir, it->name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	while (n < sizeof(bytes) && (r = read(fd, bytes + n, sizeof(bytes) - n)) > 0)
		n += (size_t)r;
	close(fd);
	c->reads++;
	it->take(c, bytes, n);
	captive_look(c, it->name, bytes, n);
}
