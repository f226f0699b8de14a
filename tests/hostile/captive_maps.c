/* SPDX-License-Identifier: BSD-2-Clause */
#include "captive.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shared/tools/macro.h"

#define PAGE	    4096u
#define NEAR_IDS    256 /* between the maps of one load */
#define KEY_BYTES   512
#define VALUE_BYTES (1u << 17)

static const char *const pins[] = {
#define PIN_MAP(name, mode, help) #name,
#include "shared/abi/pins.def"
};

/* What the design gives the consumer to write; no other may be, for any row of pins.def. */
static const char *const given[] = {
	"control",	    "slots",	     "watches",	       "targets",      "rules_a",
	"rules_b",	    "cgroups_a",     "cgroups_b",      "samples",      "events",
	"errors",	    "unwind_pool",   "unwind_rules",   "unwind_files", "unwind_process",
	"unwind_claims",    "neighbours",    "neighbour_cpus", "asked",	       "accounts",
	"queue_neighbours", "account_calls", "locks",	       "lock_wakers",  "block_open",
	"block_sums",	    "socket_looks",  "runtime_names",  "reclaim_open", "reclaim_sums",
	"long_waits",	    "accounts_near",
};

static const char *const closed[] = {
#define PIN_LINK(name, help) #name,
#define PIN_PROG(name, help) #name,
#include "shared/abi/pins.def"
};

static int open_pin(const struct captive *c, const char *name, bool write)
{
	struct bpf_obj_get_opts options;
	char path[CAPTIVE_PATH];

	memset(&options, 0, sizeof(options));
	options.sz = sizeof(options);
	options.file_flags = write ? 0 : BPF_F_RDONLY;
	snprintf(path, sizeof(path), "%s/%s", c->bpf_dir, name);
	return bpf_obj_get_opts(path, &options);
}

static void *map_shared(int fd, int protection, size_t bytes, off_t from)
{
	void *p = mmap(NULL, bytes, protection, MAP_SHARED, fd, from);

	return p == MAP_FAILED ? NULL : p;
}

/* Writable memory of a map, or the present part: an array, a ring's position of the reader. */
static void map_memory(struct captive_map *m)
{
	if (m->type == BPF_MAP_TYPE_RINGBUF) {
		m->memory_bytes = PAGE;
		m->data = map_shared(m->fd, PROT_READ, PAGE + 2 * (size_t)m->entries, PAGE);
	} else if (m->type == BPF_MAP_TYPE_ARRAY) {
		m->memory_bytes = (size_t)m->entries * ((m->value_bytes + 7) & ~7u);
	} else {
		return;
	}
	m->memory = map_shared(m->fd, PROT_READ | PROT_WRITE, m->memory_bytes, 0);
	if (m->data)
		m->position = *(const uint64_t *)m->memory;
}

static bool is_given(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(given); i++)
		if (!strcmp(given[i], name))
			return true;
	return false;
}

/* A pin that is not the consumer's to write must not be, in whichever way. */
static void check_mode(struct captive *c, const struct captive_map *m)
{
	if (is_given(m->name))
		return;
	if (m->writable)
		captive_leak(c, "the pin %s may be written", m->name);
	if (map_shared(m->fd, PROT_READ | PROT_WRITE, PAGE, 0))
		captive_leak(c, "the pin %s may be written as memory", m->name);
}

/* Links and programs may not be opened by any process. */
static void try_closed(struct captive *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(closed); i++)
		if (open_pin(c, closed[i], false) >= 0 || open_pin(c, closed[i], true) >= 0)
			captive_leak(c, "the pin %s may be opened", closed[i]);
}

/*
 * What has no pin is the kernel side's alone: rows of the kernel's stacks, ranges and rules that
 * were found. It was loaded with the pinned maps, so its ids are among theirs, or near.
 */
static void try_private(struct captive *c, uint32_t first, uint32_t last)
{
	static const char *const private[] = { "orc_areas",    "orc_rows",   "orc_places",
					       "orc_blocks",   "stack_code", "stack_cache",
					       "stack_scratch" };
	uint32_t id;

	for (size_t i = 0; i < ARRAY_SIZE(private); i++)
		if (open_pin(c, private[i], false) >= 0)
			captive_leak(c, "the private map %s has a pin", private[i]);
	if (bpf_map_get_next_id(0, &id) == 0)
		captive_leak(c, "the ids of maps may be listed, from %u on", id);
	for (id = first > NEAR_IDS ? first - NEAR_IDS : 1; id <= last + NEAR_IDS; id++)
		if (bpf_map_get_fd_by_id(id) >= 0)
			captive_leak(c, "map %u may be opened by its id", id);
}

int captive_maps_open(struct captive *c)
{
	uint32_t first = UINT32_MAX, last = 0;
	struct abi_header abi;

	for (size_t i = 0; i < ARRAY_SIZE(pins); i++) {
		struct captive_map *m = &c->maps[c->map_count];
		struct bpf_map_info info = {};
		uint32_t bytes = sizeof(info);

		if (c->map_count == CAPTIVE_MAPS)
			return -E2BIG;
		*m = (struct captive_map){ .name = pins[i] };
		m->fd = open_pin(c, pins[i], true);
		m->writable = m->fd >= 0;
		if (m->fd < 0)
			m->fd = open_pin(c, pins[i], false);
		if (m->fd < 0 || bpf_obj_get_info_by_fd(m->fd, &info, &bytes) < 0)
			return -errno;
		m->type = info.type;
		m->key_bytes = info.key_size;
		m->value_bytes = info.value_size;
		m->entries = info.max_entries;
		first = MIN(first, info.id);
		last = MAX(last, info.id);
		check_mode(c, m);
		if (m->writable)
			map_memory(m);
		c->map_count++;
	}
	try_closed(c);
	try_private(c, first, last);
	if (bpf_map_lookup_elem(captive_map(c, "abi")->fd, &(uint32_t){ 0 }, &abi) < 0)
		return -errno;
	c->hz = abi.hz;
	c->cpus = abi.cpus_possible;
	return 0;
}

struct captive_map *captive_map(struct captive *c, const char *name)
{
	for (size_t i = 0; i < c->map_count; i++)
		if (!strcmp(c->maps[i].name, name))
			return &c->maps[i];
	fprintf(stderr, "captive: there is no map %s\n", name);
	abort();
}

static void lie_in_memory(struct captive *c, struct captive_map *m)
{
	for (uint64_t i = captive_random(c, 64) + 1; i > 0; i--) {
		size_t at = captive_random(c, m->memory_bytes / 8) * 8;
		uint64_t word = captive_word(c);

		/* Most parts of large maps are never read: rather the beginning. */
		if (captive_random(c, 2))
			at %= PAGE;
		memcpy(m->memory + at, &word, sizeof(word));
		c->writes++;
	}
}

/* A key that leads somewhere: a process or cgroup of the prey, or a short prefix. */
static void fill_key(struct captive *c, const struct captive_map *m, uint8_t *key)
{
	const struct prey *p = captive_prey(c);

	captive_fill(c, key, m->key_bytes);
	if (m->key_bytes == sizeof(struct process_key) && captive_random(c, 2))
		memcpy(key, &(struct process_key){ .tgid = p->pid, .start_ns = p->start_ns },
		       sizeof(struct process_key));
	else if (m->type == BPF_MAP_TYPE_HASH && m->key_bytes == 8 && captive_random(c, 2))
		memcpy(key, &p->cgroup_id, 8);
	else if (m->type == BPF_MAP_TYPE_LPM_TRIE)
		memcpy(key, &(uint32_t){ (uint32_t)captive_random(c, 130) }, 4);
	else if (m->key_bytes == 4)
		memcpy(key, &(uint32_t){ (uint32_t)captive_random(c, m->entries + 2) }, 4);
}

static void lie_in_element(struct captive *c, struct captive_map *m)
{
	static uint8_t key[KEY_BYTES], value[VALUE_BYTES];

	if (m->key_bytes > sizeof(key) || m->value_bytes > sizeof(value) || !m->key_bytes)
		return;
	fill_key(c, m, key);
	captive_fill(c, value, m->value_bytes);
	if (captive_random(c, 4))
		bpf_map_update_elem(m->fd, key, value, captive_random(c, 3));
	else
		bpf_map_delete_elem(m->fd, key);
	c->writes++;
}

void captive_lie(struct captive *c)
{
	struct captive_map *m = &c->maps[captive_random(c, c->map_count)];

	/* What is only to be read is tried as well. */
	if (m->memory && captive_random(c, 4))
		lie_in_memory(c, m);
	else
		lie_in_element(c, m);
}

static bool is_per_cpu(const struct captive_map *m)
{
	return m->type == BPF_MAP_TYPE_PERCPU_ARRAY || m->type == BPF_MAP_TYPE_PERCPU_HASH;
}

void captive_peek(struct captive *c)
{
	static uint8_t key[KEY_BYTES], value[VALUE_BYTES];
	const struct captive_map *m = &c->maps[captive_random(c, c->map_count)];
	size_t bytes = m->value_bytes;

	if (is_per_cpu(m))
		bytes = (bytes + 7) / 8 * 8 * c->cpus;
	if (m->key_bytes > sizeof(key) || bytes > sizeof(value) || !m->key_bytes)
		return;
	fill_key(c, m, key);
	if (captive_random(c, 2) && bpf_map_get_next_key(m->fd, key, key) < 0)
		return;
	c->reads++;
	captive_look(c, m->name, key, m->key_bytes);
	if (bpf_map_lookup_elem(m->fd, key, value) == 0)
		captive_look(c, m->name, value, bytes);
}

static void put(struct captive *c, const char *name, const void *key, const void *value)
{
	bpf_map_update_elem(captive_map(c, name)->fd, key, value, BPF_ANY);
	c->writes++;
}

void captive_arm(struct captive *c)
{
	struct control *control = (struct control *)captive_map(c, "control")->memory;
	struct slot *slots = (struct slot *)captive_map(c, "slots")->memory;
	struct rule_value rule = { .generation = control->generation };
	struct comm_key anybody = { .prefix_bits = 0 };
	struct cgroup_key anywhere = { .prefix_bits = 0 };

	control->heartbeat_ns = captive_now_ns();
	control->stale_ns = 60000000000;
	control->armed = control->events_on = control->divisor = 1;
	for (uint32_t i = 0; i < c->prey_count; i++) {
		const struct prey *p = &c->prey[i];
		struct process_key key = { .tgid = p->pid, .start_ns = p->start_ns };
		struct target target = { .flags = captive_random(c, 4),
					 .rule = NO_SLOT,
					 .unwind = (uint32_t)captive_random(c, 8),
					 .image = (uint32_t)captive_random(c, 4) };
		struct watch_entry entry = { .slot = i, .flags = (uint32_t)captive_random(c, 4) };

		slots[i].state = SLOT_CAPTURE;
		slots[i].flags = 0;
		slots[i].outer = (uint32_t)captive_random(c, 4);
		put(c, "watches", &p->cgroup_id, &entry);
		/* Rarely: it takes the process's table from it. */
		if (!captive_random(c, 16))
			put(c, "targets", &key, &target);
	}
	put(c, captive_random(c, 2) ? "rules_a" : "rules_b", &anybody, &rule);
	put(c, captive_random(c, 2) ? "cgroups_a" : "cgroups_b", &anywhere, &rule);
}
