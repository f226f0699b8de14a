/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/attachments.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "bpf/trocar.skel.h"
#include "shared/files/cgroupfs.h"
#include "shared/tools/cleanup.h"

/*
 * For pins with two bodies, chooses the one that this kernel can load: `vmas` vmas_open instead of
 * vmas_tree on newer kernels; `vmas_pid` and `ranges_pid` the walk over all tasks on older ones.
 */
static void choose_body(const struct kernelset *set, struct attachment *a)
{
	struct trocar *s = set->skeleton;

	if (set->vma_open_coded && a->program == s->progs.vmas_tree) {
		a->program = s->progs.vmas_open;
		a->link = &s->links.vmas_open;
	} else if (!set->vma_open_coded && a->program == s->progs.vmas_pid) {
		a->program = s->progs.vmas_tree;
	} else if (!set->vma_open_coded && a->program == s->progs.ranges_pid) {
		a->program = s->progs.ranges;
	}
}

size_t attachments_list(const struct kernelset *set, struct attachment ret_list[ATTACHMENTS])
{
	struct trocar *s = set->skeleton;
	size_t n = 0, loaded = 0;

#define PIN_LINK(name_, help) \
	ret_list[n++] = (struct attachment){ #name_, s->progs.name_, &s->links.name_ };
#define PIN_ITER(name_, help) \
	ret_list[n++] = (struct attachment){ #name_, s->progs.name_, &s->links.name_ };
#define vmas vmas_tree /* choose_body replaces it if the kernel has the iterator */
#include "shared/abi/pins.def"
#undef vmas
	for (size_t i = 0; i < n; i++) {
		choose_body(set, &ret_list[i]);
		ret_list[i].program = programs_find(&set->programs, ret_list[i].program);
		if (ret_list[i].program)
			ret_list[loaded++] = ret_list[i];
	}
	return loaded;
}

/* Opens the top of the mounted cgroup2 hierarchy; -1: none is mounted. */
static int open_hierarchy(void)
{
	enum cgroup_mode mode;
	char mount[PATH_MAX];

	if (cgroupfs_find_here(mount, sizeof(mount), &mode) < 0)
		return -1;
	return open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/*
 * Attaches the iterator over cgroups. Without a given top the kernel uses the top of our cgroup
 * namespace (bpf_iter_attach_cgroup, kernel/bpf/cgroup_iter.c), which in a pod is only the
 * container.
 */
static struct bpf_link *attach_tree(const struct bpf_program *program)
{
	_cleanup_close_ int top = open_hierarchy();
	union bpf_iter_link_info tree = {
		.cgroup.order = BPF_CGROUP_ITER_DESCENDANTS_PRE,
		.cgroup.cgroup_fd = top < 0 ? 0 : (uint32_t)top,
	};
	struct bpf_iter_attach_opts options;

	/* Clears the padding too: libbpf checks it, and LIBBPF_OPTS may leave it uninitialised. */
	memset(&options, 0, sizeof(options));
	options.sz = sizeof(options);
	options.link_info = &tree;
	options.link_info_len = sizeof(tree);
	return bpf_program__attach_iter(program, &options);
}

struct bpf_link *attachment_make(const struct kernelset *set, const struct attachment *a)
{
	if (a->program == programs_find(&set->programs, set->skeleton->progs.watch_tree))
		return attach_tree(a->program);
	return bpf_program__attach(a->program);
}
