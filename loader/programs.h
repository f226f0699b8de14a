/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * programs.h: the programs of a set, loaded by two threads. Most of a load is the verifier's work,
 * and the kernel verifies each program by itself. libbpf loads the programs of an object one after
 * the other; so there are two objects of the same programs, each loads its half of them, and both
 * use the maps of a third one.
 */
#ifndef TROCAR_LOADER_PROGRAMS_H
#define TROCAR_LOADER_PROGRAMS_H

#include <pthread.h>
#include <stdbool.h>

struct bpf_object_open_opts;
struct bpf_program;
struct trocar;

#define PROGRAM_HALVES 2

/* All zeros: none. It stays in its place from programs_begin to programs_end. */
struct programs {
	struct trocar *halves[PROGRAM_HALVES]; /* owned */
	pthread_t thread;		       /* loads the second half, while it `runs` */
	bool runs;
	int result; /* of it */
};

/*
 * Opens the halves. Of the programs of `set` that are to be loaded each goes to one half, and `set`
 * itself loads none from then on: it has the maps. 0 or -errno; the caller calls programs_done in
 * any case.
 */
int programs_open(struct programs *p, struct trocar *set,
		  const struct bpf_object_open_opts *options);

/*
 * Loads the programs of the first half with the maps of `set`, which is loaded, and has a thread
 * load those of the second one; without room for a thread it loads both. 0 or -errno.
 */
int programs_begin(struct programs *p, const struct trocar *set);

/* Waits until the second half is loaded. 0 or -errno. */
int programs_end(struct programs *p);

/*
 * Returns the loaded program that has the name of `program`, which is one of the set's. NULL: this
 * kernel does not take it, and it was not loaded.
 */
struct bpf_program *programs_find(const struct programs *p, const struct bpf_program *program);

/*
 * Waits for the thread and closes the descriptors of the programs and maps: the kernel frees
 * objects that are not pinned.
 */
void programs_done(struct programs *p);

#endif
