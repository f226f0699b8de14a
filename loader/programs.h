/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * programs.h: loads the programs of a set by two threads. Most of the time of a load is the
 * verifier's, and the kernel verifies each program independently. libbpf loads the programs of an
 * object one after the other. So there are two objects with the same programs: each loads one half
 * of them, and both use the maps of a third object.
 */
#ifndef TROCAR_LOADER_PROGRAMS_H
#define TROCAR_LOADER_PROGRAMS_H

#include <pthread.h>
#include <stdbool.h>

struct bpf_object_open_opts;
struct bpf_program;
struct trocar;

#define PROGRAM_HALVES 2

/* All zeros: none. Must not be moved from programs_begin to programs_end. */
struct programs {
	struct trocar *halves[PROGRAM_HALVES]; /* owned */
	pthread_t thread;		       /* loads the second half, while it `runs` */
	bool runs;
	int result; /* of the thread */
};

/*
 * Opens the halves. Assigns each program of `set` that is to be loaded to one half. From then on
 * `set` itself loads no program, only the maps. 0 or -errno; the caller calls programs_done in any
 * case.
 */
int programs_open(struct programs *p, struct trocar *set,
		  const struct bpf_object_open_opts *options);

/*
 * Loads the programs of the first half with the maps of `set`, which is loaded, and starts a thread
 * that loads the programs of the second half. If no thread can be started, it loads both halves. 0
 * or -errno.
 */
int programs_begin(struct programs *p, const struct trocar *set);

/* Waits until the second half is loaded. 0 or -errno. */
int programs_end(struct programs *p);

/*
 * Returns the loaded program with the name of `program`, a program of the set. NULL: it was not
 * loaded, because this kernel does not accept it.
 */
struct bpf_program *programs_find(const struct programs *p, const struct bpf_program *program);

/*
 * Waits for the thread and closes the descriptors of the programs and maps: the kernel frees
 * objects that are not pinned.
 */
void programs_done(struct programs *p);

#endif
