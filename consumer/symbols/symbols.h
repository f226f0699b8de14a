/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * symbols.h: finds the function name for a file and an offset. Processes and sessions share
 * modules, which are identified by path and struct file_identity. Only the symbolizer's own thread
 * reads files, in symbols_user; the drain never does. Files are untrusted and may be hostile: every
 * read is bounded, the file must be a regular file with the expected inode, and its build-id is
 * checked. Danger: a network or FUSE file system that does not answer blocks the symbolizer thread,
 * and no other thread, without limit. System calls: newfstatat, openat, fstat, fstatfs, pread64,
 * read, close, futex, memory.
 */
#ifndef TROCAR_CONSUMER_SYMBOLS_SYMBOLS_H
#define TROCAR_CONSUMER_SYMBOLS_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/abi/abi.h"
#include "shared/elf/elf_file.h"

#define SYMBOLS_MODULES_MAX  65536
#define SYMBOLS_MODULES_KEEP 4096 /* above this number, unused modules are forgotten */
#define SYMBOLS_FORGET_MAX   4096 /* in one call, which delays the main loop by some ms */
#define SYMBOLS_PATH_BYTES   4096 /* NUL included */
#define SYMBOLS_BUILD_ID_MAX 64
#define SYMBOLS_RETRY_NS     60000000000ULL /* least time between two attempts to read a file */
/*
 * Least times between two reads of ksyms for an unknown address: SYMBOLS_KERNEL_SOON_NS at first,
 * doubled after each read that found nothing new, up to SYMBOLS_KERNEL_AGE_NS. After
 * SYMBOLS_KERNEL_AGE_NS an address in a module also causes a read, because another module may use
 * it now.
 */
#define SYMBOLS_KERNEL_SOON_NS 2000000000ULL
#define SYMBOLS_KERNEL_AGE_NS  60000000000ULL

#define MODULE_PLACES  4 /* the last places seen of a module */
#define MODULE_ENTRIES 4 /* functions of a module with a known way of entry */

/* Whether a call can end at the begin of a function. */
struct module_entry {
	uint64_t offset;
	bool known, has_call;
};

/* A mapping of a module. The broker needs it to open the file. */
struct module_place {
	struct process_key process;
	uint64_t start, end;
};

/* One mapped file, or one with only a known build-id. Members above the line never change. */
struct module {
	struct file_identity identity; /* all 0: no file, or only the build-id is known */
	char *path;	     /* as mapped; "" if only the build-id is known; "[vdso]", "[anon]" */
	bool anonymous;	     /* executable memory without a file */
	bool deleted;	     /* d_path appended " (deleted)", which path is without */
	struct module *next; /* next with the same hash; used by the table of modules */
	/* ---- main thread only */
	uint32_t holds;	      /* mappings that refer to it */
	uint64_t released_ns; /* last release of a mapping, or last frame by build-id */
	/* ---- written by readers of mappings and samples; read under the table's lock */
	struct module_place places[MODULE_PLACES];
	uint32_t place_count;	 /* ever seen; the last is at (place_count - 1) % MODULE_PLACES */
	bool build_id_known;	 /* the kernel reported it, so the file must have it */
	bool build_id_doubted;	 /* it then reported another, once */
	bool retired;		 /* it did so again: no new reference to this module is made */
	bool forgotten;		 /* nothing refers to it: symbols_sweep frees it */
	uint8_t build_id_misses; /* samples for which the kernel reported none */
	uint8_t build_id[SYMBOLS_BUILD_ID_MAX];
	uint8_t build_id_bytes; /* 0: the file has none, or it was not read */
	bool identified;	/* build_id was read from the file */
	/* ---- written by the unwinder thread, read by any (symbols_rowless) */
	const char *rowless; /* why it has no rows; "": it has rows; NULL: not known yet */
	/* ---- used by the symbolizer thread only */
	bool borrowed;		/* the last table came through the broker */
	bool asked;		/* the broker was asked for its build-id */
	bool listed;		/* build_ids_find finds it */
	bool taken;		/* symbols_sweep is about to free it */
	const char *unreadable; /* why the names are unknown; NULL: they are known */
	struct elf_symbols *symbols;
	struct elf_links *links; /* owned; the debug file of a file without a full symbol table */
	bool nameless;		 /* a frame was left without a name */
	bool interprets; /* it has an evaluation loop of a language runtime, which was replaced */
	uint32_t looked; /* number of trims before the last search for a debug file */
	struct pretty *pretty; /* demangled names of `symbols` that were needed */
	bool loaded;
	struct module *resolved; /* for a module without a file: the file with its build-id */
	uint32_t resolved_at;	 /* `changes` of build_ids.h at that time */
	struct module_entry entries[MODULE_ENTRIES]; /* indexed by the low bits of the offset */
	uint64_t digest;	      /* of its file's names (elf_digest.h); 0: unknown */
	bool digested;		      /* computing the digest was tried */
	struct module *older, *newer; /* list of the modules with a table, by last use */
	struct module *same_id;	      /* next with the same hash of the build-id */
	uint64_t retry_ns; /* when an unreadable file may be tried again, CLOCK_MONOTONIC */
	uint32_t epoch;	   /* number of trims before its last use */
};

struct code_names;
struct perf_map_files;
struct symbols;

struct symbols_stats {
	size_t modules;
	uint64_t modules_refused; /* beyond SYMBOLS_MODULES_MAX */
	size_t files_read;
	size_t files_borrowed; /* part of files_read: through the broker */
	size_t symbols;
	size_t bytes;	  /* heap of the tables */
	uint64_t unnamed; /* lookups without a name */
	uint64_t lookups;
};

/*
 * Makes a cache of at most max_bytes of tables of files, plus one more file; the least recently
 * used are evicted first. Tables used since the last symbols_trim stay, because the caller may hold
 * their strings: when they fill the cache, further files give "cache_full". So call symbols_trim
 * whenever no string is held, at least once per session. The kernel's table (about 5 MiB) is not
 * counted. ksyms_path is the pinned iterator, or NULL; it is copied. Returns 0 or -ENOMEM. Release
 * with symbols_free.
 */
int symbols_new(size_t max_bytes, const char *ksyms_path, struct symbols **ret_symbols);
void symbols_free(struct symbols *s);

/*
 * Finds or makes the module. Main thread. The pointer stays valid while the module is held
 * (symbols_hold), and then until the caller of symbols_forget lets it be freed. `path` is copied.
 * Returns 0; -ENOSPC beyond SYMBOLS_MODULES_MAX; -EINVAL (a path of SYMBOLS_PATH_BYTES or more);
 * -ENOMEM.
 */
int symbols_module(struct symbols *s, const struct file_identity *identity, const char *path,
		   bool anonymous, struct module **ret_module);

/* Like symbols_module, for a frame for which the kernel reported only the build-id (20 bytes). */
int symbols_module_by_build_id(struct symbols *s, const uint8_t build_id[BUILD_ID_BYTES],
			       struct module **ret_module);

/*
 * Holds a module for a reading of mappings, and releases it at `now_ns` (CLOCK_MONOTONIC). Main
 * thread.
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
 * Forgets modules without a holder, the longest unused first, if there are more than
 * SYMBOLS_MODULES_KEEP, and at most SYMBOLS_FORGET_MAX of them. They must have been released before
 * `before_ns`, with no other reference since, and is_used must return false. symbols_module no
 * longer finds them. The caller drops its own references to modules with `forgotten`, then makes
 * the symbolizer's thread call symbols_sweep. Returns their number. Main thread.
 */
size_t symbols_forget(struct symbols *s, uint64_t before_ns,
		      bool (*is_used)(void *context, const struct module *m), void *context);

/* Frees the forgotten modules; symbolizer thread, while it holds no string. */
void symbols_sweep(struct symbols *s);

/*
 * Returns why no rows could be compiled from the file's call frame information, a word of
 * process.unwind; "" if it has rows; NULL if unknown. Any thread.
 */
static inline const char *symbols_rowless(const struct module *m)
{
	return __atomic_load_n(&m->rowless, __ATOMIC_RELAXED);
}

/*
 * Records that `process` has the file mapped at [start, end); main thread. Keeps the last
 * MODULE_PLACES places of a module.
 */
void symbols_place(struct symbols *s, struct module *m, const struct process_key *process,
		   uint64_t start, uint64_t end);

/*
 * Stores the build-id that the kernel read from the mapped file (20 bytes, a shorter one padded
 * with zeros); an opened file must have it. Main thread. The first one stays until a file
 * contradicts it; then the next one counts. NULL: the kernel reported none.
 *
 * Returns false if the build-id contradicts the known one: another file has the identity of the
 * module now. The module is retired: symbols_module makes another one, so read all mappings again
 * that refer to it.
 */
bool symbols_learn_build_id(struct symbols *s, struct module *m,
			    const uint8_t build_id[BUILD_ID_BYTES]);

/*
 * Records that the kernel reported another build-id than the module's, in a sample that may be
 * older than the mapping. symbols_lacks_build_id is true until symbols_learn_build_id. Main thread.
 */
void symbols_doubt_build_id(struct module *m);

/*
 * Copies the build-id of the module, if it is known, into `id`; either thread may be setting it.
 * Returns its bytes; 0 if unknown. Any thread.
 */
uint8_t symbols_build_id(struct symbols *s, const struct module *m,
			 uint8_t id[SYMBOLS_BUILD_ID_MAX]);

/* Returns whether the kernel reported this build-id for the module. Any thread. */
bool symbols_is(struct symbols *s, const struct module *m, const uint8_t build_id[BUILD_ID_BYTES]);

/* The kernel may fail to find a build-id at one time and find it at another. */
#define SYMBOLS_BUILD_ID_MISSES_MAX 3

/*
 * Returns whether to ask the kernel for the build-id: the module is a file, and its build-id is
 * unknown or in doubt. Main thread.
 */
static inline bool symbols_lacks_build_id(const struct module *m)
{
	return m->identity.inode != 0 && !m->anonymous &&
	       (m->build_id_doubted || !__atomic_load_n(&m->build_id_known, __ATOMIC_RELAXED)) &&
	       m->build_id_misses < SYMBOLS_BUILD_ID_MISSES_MAX;
}

/*
 * Opens the file of a mapping that the consumer may not be able to open itself. Returns 0 with a
 * descriptor that the caller closes, or -errno. Called on the symbolizer's thread.
 */
typedef int (*symbols_borrow)(void *context, const struct process_key *process, uint64_t start,
			      uint64_t end, int *ret_fd);

/* Sets the function that opens such files; call before the symbolizer's thread makes a lookup. */
void symbols_set_borrow(struct symbols *s, symbols_borrow borrow, void *context);

/*
 * Sets the path of the pinned iterator bpf_code, which is copied. Without it no BPF program has a
 * name. Call before the symbolizer's thread makes a lookup. Returns 0 or -ENOMEM.
 */
int symbols_set_bpf_code(struct symbols *s, const char *path);

struct elf_image;

/*
 * Opens the file of `m`, at the host's path or else through the broker, for other uses than names.
 * Returns NULL and sets *ret_image (the caller closes image.fd), or returns the reason, a word of
 * reasons.def. Any thread, after symbols_set_borrow.
 */
const char *symbols_open(struct symbols *s, const struct module *m, struct elf_image *ret_image);

/* Returns false if the kernel reported another build-id for the module. Any thread. */
bool symbols_is_build(struct symbols *s, const struct module *m, const uint8_t *id, uint8_t bytes);

/* Returns the open perf maps, for modules that see processes start and end (perf_map_files.h). */
struct perf_map_files *symbols_perf_map_files(struct symbols *s);

/* Returns the names of the code objects of runtimes; code_names_add may be called on it. */
struct code_names *symbols_code_names(struct symbols *s);

/* The result of a lookup. Strings live until the next symbols_trim, `reason` forever (reasons.def).
 */
struct symbol_name {
	const char *fn;	    /* demangled; NULL: unknown */
	const char *raw;    /* as in the symbol table; NULL: equal to fn */
	const char *reason; /* with fn NULL: the reason, a stable word such as "no_symbol" */
	const char *after;  /* with "no_symbol": the next function of the file; NULL: none */
	uint64_t offset_in_fn;
};

/*
 * Names the function at file offset `offset` of `m`; reads the file on first use. Symbolizer thread
 * only. `caller` is true for return addresses (the call is before offset). Returns 0, or -ENOENT
 * with ret_name->why set.
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
 * address that is not in it (of a newer module or BPF program), at most once between two trims and
 * not more often than SYMBOLS_KERNEL_SOON_NS. A BPF program has a name only if it was loaded before
 * symbols_set_since's time and still is, because another one may have used its address. Code that
 * ksyms does not list, such as classic BPF, has none. *ret_module is "" for the kernel itself, else
 * the module's name without brackets. Symbolizer thread only.
 */
int symbols_kernel(struct symbols *s, uint64_t address, struct symbol_name *ret_name,
		   const char **ret_module);

/*
 * Invalidates all strings that were returned and frees memory above the limit; symbolizer thread,
 * between sessions or lines.
 */
void symbols_trim(struct symbols *s);

/*
 * Like symbols_trim, and also frees the kernel's table (after some idle time); symbolizer thread.
 */
void symbols_trim_kernel(struct symbols *s);

/* Copies the statistics. Any thread. */
void symbols_stats(struct symbols *s, struct symbols_stats *ret_stats);

#endif
