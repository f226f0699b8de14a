/* SPDX-License-Identifier: BSD-2-Clause */
/* plugin.c: a plug-in with frames of another size in each build of it (ROOM). */
#include "../../workloads/workload.h"

static NAMED void plugin_leaf(volatile char *room)
{
	for (unsigned int i = 0; i < WORKLOAD_TURNS; i++)
		room[i % ROOM] = (char)i;
}

void plugin_work(void);

void plugin_work(void)
{
	volatile char room[ROOM];

	plugin_leaf(room);
	KEEP_FRAME();
}
