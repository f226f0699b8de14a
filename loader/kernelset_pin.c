/* SPDX-License-Identifier: BSD-2-Clause */
#include <bpf/libbpf.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include "bpf/trocar.skel.h"
#include "loader/attachments.h"
#include "loader/bpffs/pin_set.h"
#include "loader/kernelset.h"
#include "shared/tools/macro.h"

#define LINK_MODE 0600
#define ITER_MODE 0640

static int program_fd(const struct kernelset *set, const struct bpf_program *program)
{
	return bpf_program__fd(programs_find(&set->programs, program));
}

/*
 * Pins the maps and the programs. A program runs only after it is attached, and only root may open
 * its pin.
 */
static int pin_objects(const struct kernelset *set, const char *dir, gid_t gid,
		       const char **ret_what)
{
	const struct {
		const char *name;
		int fd;
		mode_t mode;
		gid_t gid;
	} list[] = {
#define PIN_MAP(name, mode, help) { #name, bpf_map__fd(set->skeleton->maps.name), mode, gid },
#define PIN_PROG(name, help)	  { #name, program_fd(set, set->skeleton->progs.name), LINK_MODE, 0 },
#include "shared/abi/pins.def"
	};
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(list); i++) {
		*ret_what = list[i].name;
		r = pin_set_put(dir, list[i].name, list[i].fd, list[i].mode, list[i].gid);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * Pins the links. No process opens a link: group and others get no access. An iterator is a link
 * that the consumer reads.
 */
static int pin_links(const struct kernelset *set, const char *dir, gid_t gid, const char **ret_what)
{
	struct attachment list[ATTACHMENTS];
	size_t n = attachments_list(set, list);
	int r;

	for (size_t i = 0; i < n; i++) {
		bool reads = bpf_program__expected_attach_type(list[i].program) == BPF_TRACE_ITER;

		*ret_what = list[i].name;
		r = pin_set_put(dir, list[i].name, bpf_link__fd(*list[i].link),
				reads ? ITER_MODE : LINK_MODE, reads ? gid : 0);
		if (r < 0)
			return r;
	}
	return 0;
}

int kernelset_pin(const struct kernelset *set, const char *dir, gid_t gid, const char **ret_what)
{
	char name[32];
	int r;

	r = pin_objects(set, dir, gid, ret_what);
	if (r < 0)
		return r;
	r = pin_links(set, dir, gid, ret_what);
	if (r < 0)
		return r;
	*ret_what = "sampler";
	for (size_t i = 0; i < set->samplers.count; i++) {
		snprintf(name, sizeof(name), "sampler_cpu%u", set->samplers.items[i].cpu);
		r = pin_set_put(dir, name, set->samplers.items[i].link_fd, LINK_MODE, 0);
		if (r < 0)
			return r;
	}
	return 0;
}
