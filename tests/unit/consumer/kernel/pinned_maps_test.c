/* SPDX-License-Identifier: BSD-2-Clause */
/* Pins in a bpffs of the test's own: all there, one missing, of another build. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "consumer/kernel/pinned_maps.h"
#include "shared/abi/abi_hash.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define SLOTS	   4
#define ROWS	   32
#define TABLES	   2
#define RING_BYTES 4096

static char dir[64];

static bool is_mapped(const char *name)
{
	return !strcmp(name, "control") || !strcmp(name, "slots") ||
	       !strcmp(name, "accounts_near") || !strncmp(name, "unwind_", 7);
}

static int make(const char *name)
{
	LIBBPF_OPTS(bpf_map_create_opts, mapped, .map_flags = BPF_F_MMAPABLE);
	const struct {
		const char *name;
		enum bpf_map_type type;
		uint32_t key, value, entries;
	} rows[] = {
		{ "abi", BPF_MAP_TYPE_ARRAY, 4, sizeof(struct abi_header), 1 },
		{ "control", BPF_MAP_TYPE_ARRAY, 4, sizeof(struct control), 1 },
		{ "slots", BPF_MAP_TYPE_ARRAY, 4, sizeof(struct slot), SLOTS },
		{ "counters", BPF_MAP_TYPE_PERCPU_ARRAY, 4, sizeof(struct slot_counters), SLOTS },
		{ "switches", BPF_MAP_TYPE_PERCPU_ARRAY, 4, sizeof(struct slot_switches), SLOTS },
		{ "broker", BPF_MAP_TYPE_ARRAY, 4, sizeof(struct broker_counts), 1 },
		{ "totals", BPF_MAP_TYPE_PERCPU_ARRAY, 4, sizeof(struct totals), 1 },
		{ "unwind_pool", BPF_MAP_TYPE_ARRAY, 4, 8, ROWS },
		{ "unwind_rules", BPF_MAP_TYPE_ARRAY, 4, 8, UNWIND_RULES_MAX },
		{ "unwind_files", BPF_MAP_TYPE_ARRAY, 4, sizeof(struct unwind_file),
		  UNWIND_FILES_MAX },
		{ "unwind_process", BPF_MAP_TYPE_ARRAY, 4, sizeof(struct unwind_process), TABLES },
		{ "unwind_claims", BPF_MAP_TYPE_ARRAY, 4, sizeof(struct unwind_claims), 1 },
		{ "neighbours", BPF_MAP_TYPE_HASH, 8, sizeof(struct neighbour), NEIGHBOURS_MAX },
		{ "neighbour_cpus", BPF_MAP_TYPE_PERCPU_HASH, 8, 8, NEIGHBOURS_MAX },
		{ "accounts_near", BPF_MAP_TYPE_ARRAY, 4, sizeof(struct near_account),
		  ACCOUNTS_NEAR },
		{ "asked", BPF_MAP_TYPE_HASH, 4, sizeof(struct asked_process), ASKED_MAX },
		{ "samples", BPF_MAP_TYPE_RINGBUF, 0, 0, RING_BYTES },
		{ "events", BPF_MAP_TYPE_RINGBUF, 0, 0, RING_BYTES },
		{ "errors", BPF_MAP_TYPE_RINGBUF, 0, 0, RING_BYTES },
		{ "socket_looks", BPF_MAP_TYPE_RINGBUF, 0, 0, RING_BYTES },
		{ "runtime_names", BPF_MAP_TYPE_RINGBUF, 0, 0, RING_BYTES },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (!strcmp(rows[i].name, name))
			return bpf_map_create(rows[i].type, name, rows[i].key, rows[i].value,
					      rows[i].entries, is_mapped(name) ? &mapped : NULL);
	return bpf_map_create(BPF_MAP_TYPE_HASH, name, 8, 8, 4, NULL);
}

static void pin(const char *name)
{
	char path[128];
	int fd = make(name);

	assert_true(fd >= 0);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(bpf_obj_pin(fd, path), 0);
	close(fd);
}

static void unpin(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(unlink(path), 0);
}

static struct abi_header right_abi(void)
{
	return (struct abi_header){
		.magic = ABI_MAGIC,
		.version = ABI_VERSION,
		.hash = ABI_HASH,
		.unwind_rows = ROWS,
		.unwind_tables = TABLES,
		.slots = SLOTS,
		.cpus_possible = (uint32_t)libbpf_num_possible_cpus(),
	};
}

/* Writes over the pinned value of `name` at `key`. */
static void put(const char *name, uint32_t key, const void *value)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = bpf_obj_get(path);
	assert_true(fd >= 0);
	assert_int_equal(bpf_map_update_elem(fd, &key, value, BPF_ANY), 0);
	close(fd);
}

static void put_abi(struct abi_header abi)
{
	put("abi", 0, &abi);
}

static int setup(void **state)
{
	dir[0] = 0;
	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 0;
	strcpy(dir, "/tmp/trocar-pins-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	if (mount("bpf", dir, "bpf", 0, NULL) < 0) {
		rmdir(dir);
		dir[0] = 0;
		return 0;
	}
#define PIN_MAP(name, mode, help) pin(#name);
#include "shared/abi/pins.def"
	put_abi(right_abi());
	return 0;
}

static int teardown(void **state)
{
	if (!dir[0])
		return 0;
	umount2(dir, MNT_DETACH);
	return rmdir(dir);
}

static size_t open_descriptors(void)
{
	DIR *all = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(all);
	while (readdir(all))
		n++;
	closedir(all);
	return n;
}

/* The unwinder's small maps as memory, to their last element; the large ones by their descriptors.
 */
static void test_words_of_unwind(struct pinned_maps *pins)
{
	struct bpf_map_info info = { 0 };
	uint32_t bytes = sizeof(info);

	pins->unwind_rules[UNWIND_RULES_MAX - 1].cfa = 1;
	pins->unwind_files[UNWIND_FILES_MAX - 1].place.rows = 1;
	pins->unwind_claims->count = 1;
	assert_int_equal(bpf_obj_get_info_by_fd(pins->unwind_process_fd, &info, &bytes), 0);
	assert_int_equal(info.max_entries, TABLES);
	assert_int_equal(bpf_obj_get_info_by_fd(pins->unwind_pool_fd, &info, &bytes), 0);
	assert_int_equal(info.max_entries, ROWS);
}

static void test_open(void **state)
{
	size_t before = open_descriptors();
	char path[128];
	struct pinned_maps pins;
	uint32_t zero = 0;

	if (!dir[0])
		skip();
	assert_int_equal(pinned_maps_open(dir, &pins), 0);
	assert_int_equal(pins.abi.slots, SLOTS);
	assert_int_equal(pins.samples.size, RING_BYTES);
	assert_int_equal(pins.errors.size, RING_BYTES);
	snprintf(path, sizeof(path), "%s/vmas", dir);
	assert_string_equal(pins.vmas_path, path);
	/* The words are the maps', both ways. */
	pins.control->generation = 7;
	pins.slots[SLOTS - 1].state = 2;
	for (uint32_t i = 0; i < SLOTS; i++) {
		struct slot slot;

		assert_int_equal(bpf_map_lookup_elem(pins.slots_fd, &i, &slot), 0);
		assert_int_equal(slot.state, i == SLOTS - 1 ? 2 : 0);
	}
	test_words_of_unwind(&pins);
	/* What the consumer only reads was opened so. */
	assert_true(bpf_map_update_elem(pins.abi_fd, &zero, &pins.abi, BPF_ANY) < 0);
	assert_int_equal(errno, EPERM);
	pinned_maps_done(&pins);
	assert_int_equal(open_descriptors(), before);
	pinned_maps_done(&pins);
}

/* Of each pin: without it nothing is left open, and the caller's struct is as before. */
static void test_missing(void **state)
{
	static const char *const names[] = {
#define PIN_MAP(name, mode, help) #name,
#include "shared/abi/pins.def"
	};
	size_t before = open_descriptors();
	struct pinned_maps pins, untouched;

	if (!dir[0])
		skip();
	memset(&pins, 0xa5, sizeof(pins));
	memcpy(&untouched, &pins, sizeof(pins));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		unpin(names[i]);
		if (pinned_maps_open(dir, &pins) != -ENOENT)
			fail_msg("without %s", names[i]);
		assert_memory_equal(&pins, &untouched, sizeof(pins));
		assert_int_equal(open_descriptors(), before);
		pin(names[i]);
		if (i == 0)
			put_abi(right_abi());
	}
	assert_int_equal(pinned_maps_open("/nonexistent/trocar", &pins), -ENOENT);
}

/* Another version, another magic, and another build of the same version. */
static void test_other_build(void **state)
{
	struct abi_header abi = right_abi();
	struct pinned_maps pins;

	if (!dir[0])
		skip();
	abi.version++;
	put_abi(abi);
	assert_int_equal(pinned_maps_open(dir, &pins), -EPROTO);
	abi = right_abi();
	abi.magic ^= 1;
	put_abi(abi);
	assert_int_equal(pinned_maps_open(dir, &pins), -EPROTO);
	abi = right_abi();
	abi.hash ^= 1;
	put_abi(abi);
	assert_int_equal(pinned_maps_open(dir, &pins), -EPROTO);
	put_abi(right_abi());
}

/* Sums over CPUs of the totals; each CPU's own of a slot. */
static void test_counts(void **state)
{
	uint32_t cpus = (uint32_t)libbpf_num_possible_cpus();
	_cleanup_free_ struct slot_counters *counters = calloc(cpus, sizeof(*counters));
	_cleanup_free_ struct totals *each = calloc(cpus, sizeof(*each));
	struct totals totals;
	struct pinned_maps pins;

	if (!dir[0])
		skip();
	assert_true(each && counters);
	for (uint32_t i = 0; i < cpus; i++) {
		each[i] = (struct totals){ .events = i + 1, .ticks_watched = 1ULL << 40 };
		counters[i].attempted = 100 + i;
	}
	put("totals", 0, each);
	put("counters", 2, counters);
	assert_int_equal(pinned_maps_open(dir, &pins), 0);
	assert_int_equal(pinned_maps_totals(&pins, &totals), 0);
	assert_int_equal(totals.events, cpus * (cpus + 1) / 2);
	assert_int_equal(totals.ticks_watched, (uint64_t)cpus << 40);
	assert_int_equal(totals.events_lost, 0);
	memset(counters, 0xa5, cpus * sizeof(*counters));
	assert_int_equal(pinned_maps_counters(&pins, 2, counters), 0);
	for (uint32_t i = 0; i < cpus; i++)
		assert_int_equal(counters[i].attempted, 100 + i);
	assert_int_equal(pinned_maps_counters(&pins, SLOTS, counters), -ENOENT);
	pinned_maps_done(&pins);
}

/* Switches are summed over the CPUs, slot by slot; the broker's counts are one element. */
static void test_broker_counts(void **state)
{
	uint32_t cpus = (uint32_t)libbpf_num_possible_cpus();
	_cleanup_free_ struct slot_switches *each = calloc(cpus, sizeof(*each));
	struct broker_counts counts = { .starts = 3, .granted = { 1, 2 } }, read;
	struct slot_switches switches;
	struct pinned_maps pins;

	if (!dir[0])
		skip();
	assert_non_null(each);
	for (uint32_t i = 0; i < cpus; i++)
		each[i] = (struct slot_switches){ .voluntary = 1ULL << 40, .involuntary = i };
	put("switches", 1, each);
	put("broker", 0, &counts);
	assert_int_equal(pinned_maps_open(dir, &pins), 0);
	assert_int_equal(
		pinned_maps_signal(&pins, PINNED_MAP_switches, 1, 2, (uint64_t *)&switches), 0);
	assert_int_equal(switches.voluntary, (uint64_t)cpus << 40);
	assert_int_equal(switches.involuntary, cpus * (cpus - 1) / 2);
	assert_int_equal(
		pinned_maps_signal(&pins, PINNED_MAP_switches, 0, 2, (uint64_t *)&switches), 0);
	assert_int_equal(switches.voluntary, 0);
	assert_int_equal(
		pinned_maps_signal(&pins, PINNED_MAP_switches, SLOTS, 2, (uint64_t *)&switches),
		-ENOENT);
	assert_int_equal(pinned_maps_broker(&pins, &read), 0);
	assert_memory_equal(&read, &counts, sizeof(read));
	pinned_maps_done(&pins);
}

UNIT_TESTS(pinned_maps)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open),	      cmocka_unit_test(test_missing),
		cmocka_unit_test(test_other_build),   cmocka_unit_test(test_counts),
		cmocka_unit_test(test_broker_counts),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
