/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * symbols.h: finds the function name for a file and an offset. Processes and sessions share
 * modules, which are identified by path and struct file_identity. Only the symbolizer's own thread
 * reads files, in symbols_user; the drain never does. Files are foreign and may be hostile: every
 * read is bounded, the file must be a regular file with the expected inode, and its build-id is
 * checked. Danger: a network or FUSE file system that does not answer makes the symbolizer thread
 * wait, and no other thread, for as long as it likes. System calls: newfstatat, openat, fstat,
 * fstatfs, pread64, read, close, futex, memory.
 */
#ifndef TROCAR_CONSUMER_SYMBOLS_SYMBOLS_H
#define TROCAR_CONSUMER_SYMBOLS_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/abi/abi.h"
#include "shared/elf/elf_file.h"

#define SYMBOLS_MODULES_MAX  65536
#define SYMBOLS_MODULES_KEEP 4096 /* beyond so many, modules without a use are forgotten */
#define SYMBOLS_FORGET_MAX   4096 /* in one call, which holds the main loop up for some ms */
#define SYMBOLS_PATH_BYTES   4096 /* NUL included */
#define SYMBOLS_BUILD_ID_MAX 64
#define SYMBOLS_RETRY_NS     60000000000ULL /* least time between two attempts to read a file */
/*
 * Least times between two reads of ksyms for an unknown address: SYMBOLS_KERNEL_SOON_NS at first,
 * twice as long after each read that found nothing new, up to SYMBOLS_KERNEL_AGE_NS. After
 * SYMBOLS_KERNEL_AGE_NS an address in a module causes a read too, because another one may use it
 * now.
 */
#define SYMBOLS_KERNEL_SOON_NS 2000000000ULL
#define SYMBOLS_KERNEL_AGE_NS  60000000000ULL

#define MODULE_PLACES  4 /* places of a module that are kept, the last ones seen */
#define MODULE_ENTRIES 4 /* its functions of which it is known how they are entered */

/* Whether a call may end where a function begins. */
struct module_entry {
	uint64_t offset;
	bool known, has_call;
};

/* A mapping of a module. The broker needs it to open the file. */
struct module_place {
	struct process_key process;
	uint64_t start, end;
};

/*
 * One mapped file, or one of which only a build-id is known. Members above the line never change.
 */
struct module {
	struct file_identity identity; /* all 0: not a file, or only the build-id is known */
	char *path;	     /* as mapped; "" when only the build-id is known; "[vdso]", "[anon]" */
	bool anonymous;	     /* executable memory without a file */
	bool deleted;	     /* d_path appended " (deleted)", which path is without */
	struct module *next; /* next with the same hash; used by the table of modules */
	/* ---- main thread only */
	uint32_t holds;	      /* mappings that refer to it */
	uint64_t released_ns; /* when the last of them went, or the last frame by build-id came */
	/* ---- written by readers of mappings and samples; read under the table's lock */
	struct module_place places[MODULE_PLACES];
	uint32_t place_count;	 /* ever seen; the last is at (place_count - 1) % MODULE_PLACES */
	bool build_id_known;	 /* the kernel reported it: the file must have it */
	bool build_id_doubted;	 /* it then reported another, once */
	bool retired;		 /* it did so again: nothing new refers to this module */
	bool forgotten;		 /* nothing at all refers to it: symbols_sweep frees it */
	uint8_t build_id_misses; /* samples for which the kernel returned none */
	uint8_t build_id[SYMBOLS_BUILD_ID_MAX];
	uint8_t build_id_bytes; /* 0 when the file has none, or it was not read */
	bool identified;	/* build_id was read from the file */
	/* ---- written by the unwinder thread, read by any (symbols_rowless) */
	const char *rowless; /* why it has no rows; "": it has some; NULL: not known yet */
	/* ---- used by the symbolizer thread only */
	bool borrowed;		/* the last table came through the broker */
	bool asked;		/* the broker was asked for its build-id */
	bool listed;		/* build_ids_find finds it */
	bool taken;		/* symbols_sweep is about to free it */
	const char *unreadable; /* why the names are unknown, NULL when they are known */
	struct elf_symbols *symbols;
	struct elf_links *links; /* owned; of a file without a full symbol table: its debug file */
	bool nameless;		 /* a frame had to be left without a name */
	uint32_t looked;	 /* number of trims before the last look for a debug file */
	struct pretty *pretty;	 /* demangled names of `symbols` that were needed */
	bool loaded;
	struct module *resolved; /* of a module without a file: the file with its build-id */
	uint32_t resolved_at;	 /* when: by `changes` of build_ids.h */
	struct module_entry entries[MODULE_ENTRIES]; /* by the low bits of the offset */
	uint64_t digest;	      /* of its file's names (elf_digest.h); 0: not known */
	bool digested;		      /* that was tried */
	struct module *older, *newer; /* list of the modules with a table, by last use */
	struct module *same_id;	      /* next with the same hash of the build-id */
	uint64_t retry_ns; /* when an unreadable file may be tried again, CLOCK_MONOTONIC */
	uint32_t epoch;	   /* number of trims before its last use */
};

struct perf_map_files;
struct symbols;

struct symbols_stats {
	size_t modules;
	uint64_t modules_refused; /* beyond SYMBOLS_MODULES_MAX */
	size_t files_read;
	size_t files_borrowed; /* of those, read through the broker */
	size_t symbols;
	size_t bytes;	  /* heap of the tables */
	uint64_t unnamed; /* lookups without a name */
	uint64_t lookups;
};

/*
 * Makes a cache of at most max_bytes of tables of files, and one more file; the least recently used
 * go first. Tables used since the last symbols_trim stay, because the caller may hold their
 * strings: when they fill the cache, further files give "cache_full". So call symbols_trim whenever
 * no string is held, at least once per session. The kernel's table (about 5 MiB) is not counted.
 * ksyms_path is the pinned iterator, or NULL; copied. 0 or -ENOMEM.
 */
int symbols_new(size_t max_bytes, const char *ksyms_path, struct symbols **ret_symbols);
void symbols_free(struct symbols *s);

/*
 * Finds or makes the module. Main thread; the pointer stays valid while the module is held
 * (symbols_hold), and after that as long as the caller of symbols_forget allows. `path` is copied.
 * 0; -ENOSPC beyond SYMBOLS_MODULES_MAX; -EINVAL (a path of SYMBOLS_PATH_BYTES or more); -ENOMEM.
 */
int symbols_module(struct symbols *s, const struct file_identity *identity, const char *path,
		   bool anonymous, struct module **ret_module);

/* As symbols_module, for a frame of which the kernel reported only the build-id (20 bytes). */
int symbols_module_by_build_id(struct symbols *s, const uint8_t build_id[BUILD_ID_BYTES],
			       struct module **ret_module);

/*
 * Holds a module that a reading of mappings refers to, and releases it at `now_ns`
 * (CLOCK_MONOTONIC). Main thread.
 */
static inline void symbols_hold(struct module *m)
{
	m->holds++;
}

static inline void symbols_release(struct module *m, uint64_t now_ns)
{
	m->holds--;
	m->released_ns = now_ns;
}

/*
 * Forgets modules without a holder, the longest unused first, when there are more than
 * SYMBOLS_MODULES_KEEP, and at most SYMBOLS_FORGET_MAX of them: those released before `before_ns`,
 * since when nothing else refers to them either, and for which is_used returns false.
 * symbols_module finds them no more; the caller drops its own references to modules with
 * `forgotten`, then makes the symbolizer's thread call symbols_sweep. Returns how many. Main
 * thread.
 */
size_t symbols_forget(struct symbols *s, uint64_t before_ns,
		      bool (*is_used)(void *context, const struct module *m), void *context);

/* Frees the forgotten modules; symbolizer thread, while it holds no string. */
void symbols_sweep(struct symbols *s);

/*
 * Returns why no rows could be compiled from the file's call frame information, a word of
 * process.unwind; "" when it has rows; NULL when that is not known. Any thread.
 */
static inline const char *symbols_rowless(const struct module *m)
{
	return __atomic_load_n(&m->rowless, __ATOMIC_RELAXED);
}

/*
 * Adds that `process` has the file mapped at [start, end); main thread. Keeps the last
 * MODULE_PLACES of a module.
 */
void symbols_place(struct symbols *s, struct module *m, const struct process_key *process,
		   uint64_t start, uint64_t end);

/*
 * Stores the build-id that the kernel read from the mapped file (20 bytes, a shorter one filled up
 * with zeros): the file that is opened must have it. Main thread. The first one stays until a file
 * contradicts it; then the next one counts. NULL: the kernel reported none.
 *
 * False when the build-id contradicts the known one: another file has the identity of the module
 * now. The module is retired: symbols_module makes another one, so read all mappings again that
 * refer to it.
 */
bool symbols_learn_build_id(struct symbols *s, struct module *m,
			    const uint8_t build_id[BUILD_ID_BYTES]);

/*
 * Notes that the kernel reported another build-id than the module's, in a sample that may be older
 * than the mapping. symbols_lacks_build_id is true until symbols_learn_build_id. Main thread.
 */
void symbols_doubt_build_id(struct module *m);

/*
 * Copies the build-id of the module, if one is known by now, into `id`; either thread may be
 * setting it. Returns its bytes, 0 when none is known. Any thread.
 */
uint8_t symbols_build_id(struct symbols *s, const struct module *m,
			 uint8_t id[SYMBOLS_BUILD_ID_MAX]);

/* Whether the kernel reported this build-id for the module. Any thread. */
bool symbols_is(struct symbols *s, const struct module *m, const uint8_t build_id[BUILD_ID_BYTES]);

/* The kernel may not find the build-id at one moment and find it at another. */
#define SYMBOLS_BUILD_ID_MISSES_MAX 3

/*
 * Whether to ask the kernel for the build-id: the module is a file and its build-id is not known,
 * or in doubt. Main thread.
 */
static inline bool symbols_lacks_build_id(const struct module *m)
{
	return m->identity.inode != 0 && !m->anonymous &&
	       (m->build_id_doubted || !__atomic_load_n(&m->build_id_known, __ATOMIC_RELAXED)) &&
	       m->build_id_misses < SYMBOLS_BUILD_ID_MISSES_MAX;
}

/*
 * Opens the file behind a mapping that the consumer may not reach itself. 0 with a descriptor that
 * the caller closes, or -errno. Called on the symbolizer's thread.
 */
typedef int (*symbols_borrow)(void *context, const struct process_key *process, uint64_t start,
			      uint64_t end, int *ret_fd);

/* Sets how such files are opened; call before the symbolizer's thread looks anything up. */
void symbols_set_borrow(struct symbols *s, symbols_borrow borrow, void *context);

/*
 * Sets the path of the pinned iterator bpf_code, which is copied: without it no BPF program has a
 * name. Call before the symbolizer's thread looks anything up. 0 or -ENOMEM.
 */
int symbols_set_bpf_code(struct symbols *s, const char *path);

struct elf_image;

/*
 * Opens the file that `m` stands for, at the host's path or else through the broker, for other uses
 * than names. NULL with *ret_image (the caller closes image.fd), else why not, a word of
 * reasons.def. Any thread, after symbols_set_borrow.
 */
const char *symbols_open(struct symbols *s, const struct module *m, struct elf_image *ret_image);

/* Returns false when the kernel reported another build-id for the module. Any thread. */
bool symbols_is_build(struct symbols *s, const struct module *m, const uint8_t *id, uint8_t bytes);

/*
 * Returns the perf maps that are held open, for modules that see processes come and go
 * (perf_map_files.h).
 */
struct perf_map_files *symbols_perf_map_files(struct symbols *s);

/*
 * The result of a lookup. Strings live until the next symbols_trim (`why` for good: reasons.def).
 */
struct symbol_name {
	const char *fn;	 /* demangled; NULL when not known */
	const char *raw; /* as the symbol table has it, NULL when that is fn */
	const char *why; /* when fn is NULL: the reason, a stable word such as "no_symbol" */
	const char
		*after; /* with "no_symbol": the next function of the file; NULL: there is none */
	uint64_t offset_in_fn;
};

/*
 * Names the function at file offset `offset` of `m`; reads the file on first use. Symbolizer thread
 * only. `caller` is true for return addresses (the call is before offset). 0 or -ENOENT with
 * ret_name->why set.
 */
int symbols_user(struct symbols *s, struct module *m, uint64_t offset, bool caller,
		 struct symbol_name *ret_name);

/*
 * Names code at `address` of executable memory without a file, by the perf map of the process
 * (perf_map.h). Symbolizer thread only. Results as symbols_user.
 */
int symbols_jit(struct symbols *s, const struct process_key *process, uint64_t address,
		struct symbol_name *ret_name);

/*
 * Sets the time of the first sample with frames that symbols_kernel and symbols_jit name next
 * (CLOCK_MONOTONIC). Symbolizer thread.
 */
void symbols_set_since(struct symbols *s, uint64_t since_ns);

/*
 * Names a kernel address from the ksyms iterator. Reads ksyms on first use, and again for an
 * address that is not in it (of a module or BPF program that came later), at most once between two
 * trims and not more often than SYMBOLS_KERNEL_SOON_NS. A BPF program has a name only if it was
 * loaded before symbols_set_since's time and is still: another one may have used its place. Code
 * that ksyms does not list, such as classic BPF, has none. *ret_module is "" for the kernel itself,
 * else "[module]" without brackets. Symbolizer thread only.
 */
int symbols_kernel(struct symbols *s, uint64_t address, struct symbol_name *ret_name,
		   const char **ret_module);

/*
 * Ends the life of all strings that were returned and frees memory above the bound; symbolizer
 * thread, between sessions or lines.
 */
void symbols_trim(struct symbols *s);

/* As symbols_trim, and frees the kernel's table too (after some idle time); symbolizer thread. */
void symbols_trim_kernel(struct symbols *s);

/* Copies the statistics. Any thread. */
void symbols_stats(struct symbols *s, struct symbols_stats *ret_stats);

#endif
