/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * harness.h: the kernel side under test, alone: the skeleton loaded without loader and consumer,
 * its rings drained into memory, processes to watch and cgroups to put them in. Functions assert
 * (cmocka) where a failure is one of the test's surroundings; what the test is about is returned.
 */
#ifndef TROCAR_TESTS_BPF_HARNESS_H
#define TROCAR_TESTS_BPF_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

#include "bpf/trocar.skel.h"
#include "shared/abi/abi.h"

#define HARNESS_RECORDS 65536
#define HARNESS_CPUS	256
#define HARNESS_SKIP	77 /* meson: skipped */

/* Copies of a ring's records, in order. */
struct harness_ring {
	struct ring_buffer *ring;
	void *records[HARNESS_RECORDS]; /* owned */
	size_t bytes[HARNESS_RECORDS];
	size_t count;
};

struct harness {
	struct trocar *skel;
	struct control *control; /* mmapped */
	struct slot *slots;	 /* mmapped */
	struct harness_ring samples, events, errors;
	struct bpf_link *ticks[HARNESS_CPUS];
	char group[4096]; /* a cgroup2 directory of this test's own */
	const char *path; /* of it, below the mount: points into group */
	bool hybrid;
	struct bpf_program *vmas; /* the body that is loaded after harness_load_mappings */
	bool open_coded;	  /* it is vmas_open */
};

/* What differs between tests before the load; 0 is the default. */
struct harness_options {
	uint32_t samples_bytes;
	uint32_t events_bytes;
	uint32_t targets;
	uint32_t pool_elements; /* of unwind_pool */
	uint32_t neighbours;
	uint32_t accounts, queue_neighbours, account_calls;
	uint32_t locks, long_waits;
	uint32_t block_open, block_sums;
	uint32_t kernel_stack_checked;
	uint32_t socket_open, socket_sums;
	uint32_t socket_files, socket_pass_files, socket_pass_sockets;
	uint32_t reclaim_open, reclaim_sums;
	uint32_t watch_room; /* descendants of watched cgroups that get an entry */
	bool vmas_tree; /* load the body of vmas for old kernels, which is all that those have */
	bool scoped;	/* the scope is added by harness_scope */
	bool shared;	/* owners share the tables, as the loader has them do */
	bool modules;	/* load the programs that follow modules */
};

/*
 * What harness_new loads beside page_learn and tasks, by name or as fnmatch(3) has it: to verify
 * all takes a second. Once in a test's file; a test without it has everything.
 */
extern const char *const harness_programs[];
#define HARNESS_LOADS(...) const char *const harness_programs[] = { __VA_ARGS__, NULL }

/*
 * Loads; attaches nothing. Makes the test's own cgroup. One at a time: what a failed test left
 * behind, its processes and cgroups too, is cleared away first, and at exit.
 */
struct harness *harness_new(const struct harness_options *options);

/* Ends the test's processes as well. */
void harness_free(struct harness *h);

/*
 * From here on harness_new also loads the iterators over mappings, which take the verifier longer
 * than all else.
 */
void harness_load_mappings(void);

/* Attaches the seven discovery programs and turns them on. */
void harness_discover(struct harness *h);

/* Attaches the sampler on every online CPU; the heartbeat is set fresh for a minute. */
void harness_tick(struct harness *h, uint32_t hz);

/* Drains all three rings into memory. */
void harness_drain(struct harness *h);
void harness_forget(struct harness *h);

/* Events of `kind` from `tgid` (0: any); the first of them is *ret_first unless that is NULL. */
size_t harness_events(const struct harness *h, uint32_t kind, uint32_t tgid,
		      const struct event **ret_first);

/* Error records of `kind`. */
size_t harness_errors(const struct harness *h, uint32_t kind);

/* Adds a comm rule to trie `which`; exact includes the NUL. */
void harness_rule(struct harness *h, int which, const char *comm, bool exact, uint32_t rule,
		  uint32_t generation);
void harness_cgroup_rule(struct harness *h, int which, const char *prefix, uint32_t rule);

/* Adds a cgroup prefix to the scope. */
void harness_scope(struct harness *h, const char *prefix);

/*
 * Puts cgroup `id` into slot `slot` in `state`, and counts it as armed. Its descendants are entered
 * by harness_watch_tree.
 */
void harness_watch(struct harness *h, uint64_t id, uint32_t slot, uint32_t state, uint32_t flags);

void harness_watch_tree(const struct harness *h);

/* The entry of cgroup `id` in `watches`; false when there is none. */
bool harness_watched(const struct harness *h, uint64_t id, struct watch_entry *ret_entry);

struct slot_counters harness_counters(const struct harness *h, uint32_t slot);
struct totals harness_totals(const struct harness *h);
uint64_t harness_lost(const struct slot_counters *c);

/* The target entry of a living process; false when there is none. */
bool harness_target(const struct harness *h, pid_t pid, struct target *ret_target);
void harness_target_set(const struct harness *h, pid_t pid, uint32_t flags);

/* start_boottime of `pid` as the kernel keeps it, in ns, by way of the tasks iterator. */
uint64_t harness_start_ns(const struct harness *h, pid_t pid);

/* A directory below the test's cgroup, made; its id. ret_dir has room for 4096 bytes. */
uint64_t harness_group(struct harness *h, const char *name, char *ret_dir);
uint64_t harness_group_id(const char *dir);

/* A program of this name that runs `mode` ("sleep", "burn", "churn", "remap"; "exec": sleeps, and
 * burns in a new image after SIGUSR1) in the cgroup at `dir` (NULL: ours). */
pid_t harness_spawn(const char *name, const char *mode, const char *dir);
void harness_kill(pid_t pid);
void harness_kill_all(void);

/*
 * Runs `call`, which does not return, in a forked child of this image in the cgroup at `dir`: its
 * mappings are ours. Ended like one of harness_spawn.
 */
pid_t harness_start(void (*call)(void *context), void *context, const char *dir);

/* Runs `call` in a forked child and waits for it; returns the child's pid. It must return 0. */
pid_t harness_fork(int (*call)(void *context), void *context);

/* Attaches an iterator; NULL when the kernel refuses. The caller destroys it. */
struct bpf_link *harness_iterator(struct bpf_program *program);

/* Reads iterator `program` to its end; the caller frees *ret_bytes. */
size_t harness_read(struct bpf_program *program, char **ret_bytes);

void harness_sleep_ms(unsigned int ms);
uint64_t harness_now_ns(void);

/*
 * How long the threads of process 1 have run, in ns. There are kernels that run no tracing program
 * while one of them does (docs/decisions/0042): an interrupt that comes then is missed.
 */
uint64_t harness_process_1_ns(void);

/* The function in which a "burn" child spends its time. */
void harness_burn(void);

/*
 * First thing in main: runs the child's part when this is one, and leaves with HARNESS_SKIP and a
 * reason when BPF programs cannot be loaded here at all.
 */
void harness_main(int argc, char **argv);

/* Reads the time account of the thread, wherever it is. Returns whether it has one. */
bool harness_account(const struct harness *h, pid_t tid, struct thread_times *ret_times);

#endif
