/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths of cgroups: anything; every part lies within the path, has its shape, and is written. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/cgroup/container.h"
#include "shared/json/jsonw.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check_part(const char *path, struct container_part part, size_t max_bytes)
{
	if (!part.bytes)
		return;
	if ((size_t)part.at + part.bytes > strlen(path) || part.bytes > max_bytes || !part.at ||
	    memchr(path + part.at, '/', part.bytes))
		abort();
}

static void check_id(const char *path, struct container_part id)
{
	if (id.bytes && (id.bytes != CONTAINER_ID_BYTES ||
			 strspn(path + id.at, "0123456789abcdef") < CONTAINER_ID_BYTES))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *path = malloc(bytes + 2);
	struct container c;
	struct jsonw w;

	if (!path)
		return 0;
	/* The kernel's paths begin so. */
	path[0] = '/';
	memcpy(path + 1, data, bytes);
	path[bytes + 1] = '\0';
	c = container_parse(path);
	if (c.runtime >= RUNTIME_COUNT_ || c.qos >= QOS_COUNT_ || !c.qos != !c.pod.bytes ||
	    (!c.runtime && (c.id.bytes || c.monitored.bytes || c.machine.bytes)))
		abort();
	check_part(path, c.id, CONTAINER_ID_BYTES);
	check_part(path, c.monitored, CONTAINER_HOST_BYTES);
	check_part(path, c.machine, 4 * CONTAINER_HOST_BYTES);
	check_part(path, c.pod, 36);
	check_part(path, c.unit, CONTAINER_UNIT_BYTES);
	check_id(path, c.id);
	jsonw_init(&w, 4096);
	jsonw_object(&w, NULL);
	container_write_ids(&c, path, &w);
	container_write(&c, path, &w);
	jsonw_object_end(&w);
	if (jsonw_end(&w) == -EMSGSIZE)
		abort();
	jsonw_done(&w);
	free(path);
	return 0;
}
