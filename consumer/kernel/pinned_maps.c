/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/kernel/pinned_maps.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shared/abi/abi_hash.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/log.h"
#include "shared/tools/macro.h"

/* Plain maps: the name of the pin and the offset of its descriptor. */
static const struct {
	const char *name;
	size_t offset;
} map_rows[] = {
	{ "abi", offsetof(struct pinned_maps, abi_fd) },
	{ "control", offsetof(struct pinned_maps, control_fd) },
	{ "slots", offsetof(struct pinned_maps, slots_fd) },
	{ "counters", offsetof(struct pinned_maps, counters_fd) },
	{ "broker", offsetof(struct pinned_maps, broker_fd) },
	{ "totals", offsetof(struct pinned_maps, totals_fd) },
	{ "watches", offsetof(struct pinned_maps, watches_fd) },
	{ "targets", offsetof(struct pinned_maps, targets_fd) },
	{ "scope", offsetof(struct pinned_maps, scope_fd) },
	{ "neighbours", offsetof(struct pinned_maps, neighbours_fd) },
	{ "neighbour_cpus", offsetof(struct pinned_maps, neighbour_cpus_fd) },
	{ "asked", offsetof(struct pinned_maps, asked_fd) },
	{ "ends", offsetof(struct pinned_maps, ends_fd) },
	{ "rules_a", offsetof(struct pinned_maps, rules_fd[0]) },
	{ "rules_b", offsetof(struct pinned_maps, rules_fd[1]) },
	{ "cgroups_a", offsetof(struct pinned_maps, cgroups_fd[0]) },
	{ "cgroups_b", offsetof(struct pinned_maps, cgroups_fd[1]) },
	{ "unwind_pool", offsetof(struct pinned_maps, unwind_pool_fd) },
	{ "unwind_rules", offsetof(struct pinned_maps, unwind_rules_fd) },
	{ "unwind_files", offsetof(struct pinned_maps, unwind_files_fd) },
	{ "unwind_process", offsetof(struct pinned_maps, unwind_process_fd) },
	{ "unwind_claims", offsetof(struct pinned_maps, unwind_claims_fd) },
};

static const struct {
	const char *name;
	size_t offset;
} ring_rows[] = {
	{ "samples", offsetof(struct pinned_maps, samples) },
	{ "events", offsetof(struct pinned_maps, events) },
	{ "errors", offsetof(struct pinned_maps, errors) },
	{ "socket_looks", offsetof(struct pinned_maps, socket_looks) },
	{ "runtime_names", offsetof(struct pinned_maps, runtime_names) },
};

static const struct {
	const char *name;
	size_t offset;
} path_rows[] = {
	{ "tasks", offsetof(struct pinned_maps, tasks_path) },
	{ "vmas", offsetof(struct pinned_maps, vmas_path) },
	{ "vmas_pid", offsetof(struct pinned_maps, vmas_pid_path) },
	{ "ranges", offsetof(struct pinned_maps, ranges_path) },
	{ "ranges_pid", offsetof(struct pinned_maps, ranges_pid_path) },
	{ "ksyms", offsetof(struct pinned_maps, ksyms_path) },
	{ "bpf_code", offsetof(struct pinned_maps, bpf_code_path) },
	{ "watch_tree", offsetof(struct pinned_maps, watch_tree_path) },
	{ "looks", offsetof(struct pinned_maps, looks_path) },
	{ "account_threads", offsetof(struct pinned_maps, account_threads_path) },
	{ "lock_waits", offsetof(struct pinned_maps, lock_waits_path) },
	{ "sockets", offsetof(struct pinned_maps, sockets_path) },
	{ "other_ends", offsetof(struct pinned_maps, other_ends_path) },
};

/* The maps of pins.def, in the order of enum pinned_map. */
static const struct {
	const char *name;
	unsigned int mode;
} pin_rows[PINNED_MAP_COUNT_] = {
#define PIN_MAP(name, mode, help) { #name, mode },
#include "shared/abi/pins.def"
};

/*
 * Whether the pin has mode 0640 in pins.def: the consumer may only read it, and must open it
 * read-only.
 */
static bool is_read_only(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(pin_rows); i++)
		if (!strcmp(pin_rows[i].name, name))
			return !(pin_rows[i].mode & 0020);
	return false;
}

/* Whether only a signal reads the map: no member of struct pinned_maps has its name. */
static bool is_of_signal(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(map_rows); i++)
		if (!strcmp(map_rows[i].name, name))
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(ring_rows); i++)
		if (!strcmp(ring_rows[i].name, name))
			return false;
	return true;
}

#define LOSSES_WORDS_MAX 8

static int open_pin(const char *dir, const char *name)
{
	struct bpf_obj_get_opts options;
	_cleanup_free_ char *path = NULL;
	int fd;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return -ENOMEM;
	/* Clears the padding too: libbpf checks it, and LIBBPF_OPTS may leave it as it was. */
	memset(&options, 0, sizeof(options));
	options.sz = sizeof(options);
	options.file_flags = is_read_only(name) ? BPF_F_RDONLY : 0;
	fd = bpf_obj_get_opts(path, &options);
	if (fd == -ENOENT)
		log_error("%s: not there; run `trocar-loader load` as root first", path);
	else if (fd == -EACCES || fd == -EPERM)
		log_error("%s: permission denied; the consumer's group must be the --group of "
			  "`trocar-loader load`, and the kernel 6.1 or newer",
			  path);
	else if (fd < 0)
		log_error("%s: cannot open the pin: %s", path, strerror(-fd));
	return fd;
}

static int check_abi(const char *dir, int fd, struct abi_header *ret_abi)
{
	/*
	 * Has space for the header of a newer loader, because the kernel writes the map's own value
	 * size.
	 */
	struct bpf_map_info info = {};
	uint32_t zero = 0, info_bytes = sizeof(info);
	union {
		struct abi_header abi;
		uint8_t room[1024];
	} value = {};

	if (bpf_obj_get_info_by_fd(fd, &info, &info_bytes) < 0)
		return -errno;
	if (info.value_size > sizeof(value) || bpf_map_lookup_elem(fd, &zero, &value) < 0)
		return -EPROTO;
	if (value.abi.magic != ABI_MAGIC || value.abi.version != ABI_VERSION ||
	    value.abi.hash != ABI_HASH) {
		log_error(
			"%s/abi: loaded by another version (ABI %u-%08x, this consumer is %u-%08x); "
			"run `trocar-loader load --replace` of this version",
			dir, value.abi.version, value.abi.hash, ABI_VERSION, ABI_HASH);
		return -EPROTO;
	}
	*ret_abi = value.abi;
	return 0;
}

static int open_ring(const char *dir, const char *name, struct ring *ret_ring)
{
	_cleanup_close_ int fd = open_pin(dir, name);
	struct bpf_map_info info = {};
	uint32_t bytes = sizeof(info);
	int r;

	if (fd < 0)
		return fd;
	if (bpf_obj_get_info_by_fd(fd, &info, &bytes) < 0)
		return -errno;
	r = ring_open(fd, info.max_entries, ret_ring);
	if (r < 0) {
		log_error("%s/%s: cannot map the ring: %s", dir, name, strerror(-r));
		return r;
	}
	TAKE_FD(fd);
	return 0;
}

/*
 * Maps that the consumer reads and writes as memory: the location of the pointer, and the size in
 * bytes.
 */
struct words {
	int fd;
	void **at;
	size_t bytes;
};

#define WORDS 6

static void list_words(struct pinned_maps *p, struct words list[WORDS])
{
	const struct words words[WORDS] = {
		{ p->control_fd, (void **)&p->control, sizeof(struct control) },
		{ p->slots_fd, (void **)&p->slots, p->abi.slots * sizeof(struct slot) },
		{ p->unwind_rules_fd, (void **)&p->unwind_rules,
		  UNWIND_RULES_MAX * sizeof(struct unwind_rule) },
		{ p->unwind_files_fd, (void **)&p->unwind_files,
		  UNWIND_FILES_MAX * sizeof(struct unwind_file) },
		{ p->unwind_claims_fd, (void **)&p->unwind_claims, sizeof(struct unwind_claims) },
		{ p->signal_fd[PINNED_MAP_accounts_near], (void **)&p->accounts_near,
		  ACCOUNTS_NEAR * sizeof(struct near_account) },
	};

	memcpy(list, words, sizeof(words));
}

static int map_words(struct pinned_maps *pins)
{
	struct words list[WORDS];

	list_words(pins, list);
	for (size_t i = 0; i < WORDS; i++) {
		void *p = mmap(NULL, list[i].bytes, PROT_READ | PROT_WRITE, MAP_SHARED, list[i].fd,
			       0);

		if (p == MAP_FAILED)
			return -errno;
		*list[i].at = p;
	}
	return 0;
}

static int open_all(const char *dir, struct pinned_maps *pins)
{
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(map_rows); i++) {
		int *fd = (int *)((char *)pins + map_rows[i].offset);

		r = open_pin(dir, map_rows[i].name);
		if (r < 0)
			return r;
		*fd = r;
		if (i == 0) {
			r = check_abi(dir, r, &pins->abi);
			if (r < 0)
				return r;
		}
	}
	for (size_t i = 0; i < PINNED_MAP_COUNT_; i++) {
		r = is_of_signal(pin_rows[i].name) ? open_pin(dir, pin_rows[i].name) : 0;
		if (r < 0)
			return r;
		pins->signal_fd[i] = r;
	}
	for (size_t i = 0; i < ARRAY_SIZE(ring_rows); i++) {
		r = open_ring(dir, ring_rows[i].name,
			      (struct ring *)((char *)pins + ring_rows[i].offset));
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < ARRAY_SIZE(path_rows); i++)
		if (asprintf((char **)((char *)pins + path_rows[i].offset), "%s/%s", dir,
			     path_rows[i].name) < 0)
			return -ENOMEM;
	r = map_words(pins);
	if (r < 0)
		log_error("%s: cannot map the control words: %s", dir, strerror(-r));
	return r;
}

int pinned_maps_open(const char *dir, struct pinned_maps *ret_pins)
{
	struct pinned_maps pins = {};
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(map_rows); i++)
		*(int *)((char *)&pins + map_rows[i].offset) = -1;
	r = open_all(dir, &pins);
	if (r < 0) {
		pinned_maps_done(&pins);
		return r;
	}
	*ret_pins = pins;
	return 0;
}

void pinned_maps_done(struct pinned_maps *pins)
{
	struct words list[WORDS];

	for (size_t i = 0; i < ARRAY_SIZE(ring_rows); i++)
		ring_done((struct ring *)((char *)pins + ring_rows[i].offset));
	list_words(pins, list);
	for (size_t i = 0; i < WORDS; i++) {
		if (*list[i].at)
			munmap(*list[i].at, list[i].bytes);
		*list[i].at = NULL;
	}
	for (size_t i = 0; i < ARRAY_SIZE(map_rows); i++) {
		int *fd = (int *)((char *)pins + map_rows[i].offset);

		if (*fd >= 0)
			close(*fd);
		*fd = -1;
	}
	for (size_t i = 0; i < PINNED_MAP_COUNT_; i++) {
		if (pins->signal_fd[i] > 0)
			close(pins->signal_fd[i]);
		pins->signal_fd[i] = 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(path_rows); i++)
		free(*(char **)((char *)pins + path_rows[i].offset));
	pins->tasks_path = pins->ksyms_path = pins->bpf_code_path = NULL;
	pins->vmas_path = pins->vmas_pid_path = NULL;
	pins->ranges_path = pins->ranges_pid_path = NULL;
	pins->watch_tree_path = pins->looks_path = pins->account_threads_path = NULL;
	pins->lock_waits_path = pins->sockets_path = pins->other_ends_path = NULL;
}

int pinned_maps_counters(const struct pinned_maps *pins, uint32_t slot,
			 struct slot_counters *counters)
{
	return bpf_map_lookup_elem(pins->counters_fd, &slot, counters) < 0 ? -errno : 0;
}

/* Adds up the per-CPU values of one element of `words` counters. */
static int sum_cpus(const struct pinned_maps *pins, int fd, uint32_t key, size_t words,
		    uint64_t *ret_sum)
{
	_cleanup_free_ uint64_t *each = calloc(pins->abi.cpus_possible, words * sizeof(*each));

	if (!each)
		return -ENOMEM;
	if (bpf_map_lookup_elem(fd, &key, each) < 0)
		return -errno;
	memset(ret_sum, 0, words * sizeof(*ret_sum));
	for (size_t i = 0; i < pins->abi.cpus_possible * words; i++)
		ret_sum[i % words] += each[i];
	return 0;
}

int pinned_maps_slot(const struct pinned_maps *pins, uint32_t slot,
		     struct slot_counters *ret_counters)
{
	return sum_cpus(pins, pins->counters_fd, slot, sizeof(*ret_counters) / sizeof(uint64_t),
			(uint64_t *)ret_counters);
}

int pinned_maps_signal(const struct pinned_maps *pins, enum pinned_map map, uint32_t slot,
		       size_t words, uint64_t *ret_sums)
{
	return sum_cpus(pins, pins->signal_fd[map], slot, words, ret_sums);
}

int pinned_maps_losses(const struct pinned_maps *pins, enum pinned_map map, uint32_t slot,
		       size_t words, uint64_t *ret_sums)
{
	uint64_t others[LOSSES_WORDS_MAX] = { 0 };
	int r;

	if (words > LOSSES_WORDS_MAX)
		return -EINVAL;
	r = pinned_maps_signal(pins, map, LOSSES_OF(slot), words, ret_sums);
	if (r == 0)
		r = pinned_maps_signal(pins, map, LOSSES_OF(NO_SLOT), words, others);
	for (size_t i = 0; r == 0 && i < words; i++)
		ret_sums[i] += others[i];
	return r;
}

int pinned_maps_broker(const struct pinned_maps *pins, struct broker_counts *ret_counts)
{
	uint32_t zero = 0;

	return bpf_map_lookup_elem(pins->broker_fd, &zero, ret_counts) < 0 ? -errno : 0;
}

int pinned_maps_totals(const struct pinned_maps *pins, struct totals *ret_totals)
{
	return sum_cpus(pins, pins->totals_fd, 0, sizeof(*ret_totals) / sizeof(uint64_t),
			(uint64_t *)ret_totals);
}
