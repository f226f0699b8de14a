/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * map_macros.h: declares maps, and finds the element of a map with only one. `__weak` before a
 * macro marks a map that several object files define (maps.h). `kind` is the name of an enum
 * bpf_map_type without its prefix.
 */
#ifndef TROCAR_BPF_MAPS_MAP_MACROS_H
#define TROCAR_BPF_MAPS_MAP_MACROS_H

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

/* Declares map `name` of `size` elements. */
#define MAP(kind, name, key_type, value_type, size) \
	struct {                                    \
		__uint(type, BPF_MAP_TYPE_##kind);  \
		__uint(max_entries, size);          \
		__type(key, key_type);              \
		__type(value, value_type);          \
	} name SEC(".maps")

/* As MAP, with BPF_F_ flags. */
#define MAP_FLAGS(kind, flags, name, key_type, value_type, size) \
	struct {                                                 \
		__uint(type, BPF_MAP_TYPE_##kind);               \
		__uint(map_flags, flags);                        \
		__uint(max_entries, size);                       \
		__type(key, key_type);                           \
		__type(value, value_type);                       \
	} name SEC(".maps")

/* Declares a ring buffer of `bytes` bytes. */
#define RING_MAP(name, bytes)                       \
	struct {                                    \
		__uint(type, BPF_MAP_TYPE_RINGBUF); \
		__uint(max_entries, bytes);         \
	} name SEC(".maps")

/* Declares a map with an element per thread, which is freed with the thread. */
#define TASK_MAP(name, value_type)                       \
	struct {                                         \
		__uint(type, BPF_MAP_TYPE_TASK_STORAGE); \
		__uint(map_flags, BPF_F_NO_PREALLOC);    \
		__type(key, int);                        \
		__type(value, value_type);               \
	} name SEC(".maps")

/* Returns the element of an array map with one element. NULL only for the verifier. */
static __always_inline void *map_single(void *map)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(map, &zero);
}

/*
 * Returns the element of a TASK_MAP for the current thread, and creates it if it is missing. NULL
 * if the kernel has no memory for it.
 */
static __always_inline void *map_of_thread(void *map)
{
	return bpf_task_storage_get(map, bpf_get_current_task_btf(), 0,
				    BPF_LOCAL_STORAGE_GET_F_CREATE);
}

#endif
