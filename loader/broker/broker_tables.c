/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/broker/broker_tables.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "loader/bpffs/bpfdir.h"
#include "loader/bpffs/pin_set.h"
#include "shared/abi/abi_hash.h"
#include "shared/rules/rules.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define PATH_BYTES (BPFDIR_PATH_BYTES + 64)

/* The longest value of a map that is looked up here. */
#define VALUE_BYTES 64

static const struct {
	uint32_t signal;
	const char *program;
} probes[] = {
#define PROBE(program, signal, tracepoint, help) { SIGNAL_##signal, #program },
#include "shared/abi/probes.def"
#undef PROBE
};

_Static_assert(ARRAY_SIZE(probes) <= BROKER_DESCRIPTORS_MAX, "an answer has too few descriptors");
_Static_assert(sizeof(struct target) <= VALUE_BYTES, "a value is too long");

static int open_pin(const char *dir, const char *name, int *ret_fd)
{
	char path[PATH_BYTES];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = bpf_obj_get(path);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

static int map_counts(const char *dir, struct broker_counts **ret_counts)
{
	_cleanup_close_ int fd = -1;
	void *p;
	int r;

	r = open_pin(dir, "broker", &fd);
	if (r < 0)
		return r;
	p = mmap(NULL, sizeof(struct broker_counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	*ret_counts = p;
	return 0;
}

static int read_program_id(int program_fd, uint32_t *ret_id)
{
	struct bpf_prog_info info = { 0 };
	uint32_t bytes = sizeof(info);

	if (bpf_obj_get_info_by_fd(program_fd, &info, &bytes) < 0)
		return -errno;
	*ret_id = info.id;
	return 0;
}

static int open_probes(const char *dir, struct broker_tables *tables)
{
	for (size_t i = 0; i < ARRAY_SIZE(probes); i++) {
		struct broker_probe *probe = &tables->probes[i];
		int r;

		r = open_pin(dir, probes[i].program, &probe->fd);
		if (r < 0)
			return r;
		probe->signal = probes[i].signal;
		tables->n_probes++;
		r = read_program_id(probe->fd, &probe->id);
		if (r < 0)
			return r;
	}
	return 0;
}

static int open_pins(const char *dir, struct broker_tables *tables)
{
	int r;

	r = open_pin(dir, "sampler", &tables->sampler_fd);
	if (r == 0)
		r = open_pin(dir, "watches", &tables->watches_fd);
	if (r == 0)
		r = open_pin(dir, "targets", &tables->targets_fd);
	if (r == 0)
		r = open_probes(dir, tables);
	if (r == 0)
		r = map_counts(dir, &tables->counts);
	return r;
}

int broker_tables_open(const char *dir, struct broker_tables *ret_tables)
{
	struct broker_tables tables __attribute__((cleanup(broker_tables_close))) =
		BROKER_TABLES_NONE;
	struct abi_header abi;
	int r;

	r = pin_set_abi(dir, &abi);
	if (r < 0)
		return r;
	if (abi.magic != ABI_MAGIC || abi.version != ABI_VERSION || abi.hash != ABI_HASH)
		return -EPROTO;
	r = open_pins(dir, &tables);
	if (r < 0)
		return r;
	if (abi.scoped) {
		r = open_pin(dir, "scope", &tables.scope_fd);
		if (r < 0)
			return r;
	}
	tables.hz = abi.hz;
	*ret_tables = tables;
	tables = BROKER_TABLES_NONE;
	return 0;
}

void broker_tables_close(struct broker_tables *tables)
{
	cleanup_close(&tables->sampler_fd);
	cleanup_close(&tables->watches_fd);
	cleanup_close(&tables->targets_fd);
	cleanup_close(&tables->scope_fd);
	for (size_t i = 0; i < tables->n_probes; i++)
		cleanup_close(&tables->probes[i].fd);
	if (tables->counts)
		munmap(tables->counts, sizeof(*tables->counts));
	*tables = BROKER_TABLES_NONE;
}

bool broker_tables_has(int fd, const void *key)
{
	uint64_t value[VALUE_BYTES / sizeof(uint64_t)];

	return bpf_map_lookup_elem(fd, key, value) == 0;
}
