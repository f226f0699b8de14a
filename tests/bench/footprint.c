/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * footprint OBJECT: how many cache lines the code of the sampler in OBJECT (a trocar.bpf.o) takes
 * on this kernel, by function of its JITed image, and which maps it uses, with the bytes of a
 * value. At a tick none of them is in a cache: the fewer are met, the less a sample costs.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>

#include "shared/tools/macro.h"
#include "tests/bench/tool.h"

#define LINE	  64u
#define FUNCS_MAX 64
#define MAPS_MAX  64

static struct {
	uint32_t lengths[FUNCS_MAX], maps[MAPS_MAX];
	struct bpf_func_info infos[FUNCS_MAX];
} b;

static int load(const char *path)
{
	struct bpf_object *object = bpf_object__open_file(path, NULL);
	struct bpf_program *program;

	if (!object)
		tool_die("%s", path);
	bpf_object__for_each_program(program, object)
		bpf_program__set_autoload(program, !strcmp(bpf_program__name(program), "sampler"));
	if (bpf_object__load(object) < 0)
		tool_die("load of %s", path);
	return bpf_program__fd(bpf_object__find_program_by_name(object, "sampler"));
}

static void print_functions(const struct bpf_prog_info *info)
{
	struct btf *btf = btf__load_from_kernel_by_id(info->btf_id);

	if (!btf)
		tool_die("BTF %u", info->btf_id);
	printf("\"functions\":{");
	for (uint32_t i = 0; i < MIN(info->nr_jited_func_lens, info->nr_func_info); i++) {
		const struct btf_type *type = btf__type_by_id(btf, b.infos[i].type_id);

		printf("%s\"%s\":{\"bytes\":%u,\"lines\":%u}", i ? "," : "",
		       btf__name_by_offset(btf, type->name_off), b.lengths[i],
		       (b.lengths[i] + LINE - 1) / LINE);
	}
	printf("}");
	btf__free(btf);
}

static void print_maps(const struct bpf_prog_info *info)
{
	printf(",\"maps\":{");
	for (uint32_t i = 0; i < MIN(info->nr_map_ids, (uint32_t)MAPS_MAX); i++) {
		struct bpf_map_info map = {};
		uint32_t bytes = sizeof(map);
		int fd = bpf_map_get_fd_by_id(b.maps[i]);

		if (fd < 0 || bpf_obj_get_info_by_fd(fd, &map, &bytes) < 0)
			tool_die("map %u", b.maps[i]);
		printf("%s\"%s\":%u", i ? "," : "", map.name, map.value_size);
	}
	printf("}");
}

int main(int argc, char **argv)
{
	struct bpf_prog_info info = {
		.nr_jited_func_lens = FUNCS_MAX,
		.jited_func_lens = (uintptr_t)b.lengths,
		.nr_func_info = FUNCS_MAX,
		.func_info = (uintptr_t)b.infos,
		.func_info_rec_size = sizeof(b.infos[0]),
		.nr_map_ids = MAPS_MAX,
		.map_ids = (uintptr_t)b.maps,
	};
	uint32_t bytes = sizeof(info);

	if (argc != 2)
		tool_die("usage: footprint OBJECT");
	if (bpf_obj_get_info_by_fd(load(argv[1]), &info, &bytes) < 0)
		tool_die("bpf_obj_get_info_by_fd");
	printf("{\"verified\":%u,\"bytes\":%u,", info.verified_insns, info.jited_prog_len);
	print_functions(&info);
	print_maps(&info);
	printf("}\n");
	return 0;
}
