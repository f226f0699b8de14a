/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * symbols.h: from a file and an offset to a function name. Modules are shared between processes and
 * sessions and are kept by (device, inode, path); reading a file happens only in symbols_user,
 * which the symbolizer's own thread calls: never the drain. Files are foreign and hostile:
 * everything read from them is bounded, the file is a regular file of the expected inode, and its
 * build-id is checked. Danger: a network or FUSE file system that does not answer holds the
 * symbolizer thread, and no one else, for as long as it likes.
 * System calls: newfstatat, openat, fstat, fstatfs, pread64, read, close, futex, memory.
 */
#ifndef TROCAR_CONSUMER_SYMBOLS_H
#define TROCAR_CONSUMER_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/abi/abi.h"

#define SYMBOLS_MODULES_MAX  65536
#define SYMBOLS_PATH_BYTES   4096 /* NUL included */
#define SYMBOLS_BUILD_ID_MAX 64
#define SYMBOLS_RETRY_NS     60000000000ULL /* an unreadable file is tried again after this */
/* ksyms is read again for an unknown address after the first; twice as long after each time that
 * nothing had come; and for one in a module or a BPF program after the last: its place may have
 * been used again. */
#define SYMBOLS_KERNEL_SOON_NS 2000000000ULL
#define SYMBOLS_KERNEL_AGE_NS  60000000000ULL

#define MODULE_PLACES 4 /* where a module is mapped, the last ones seen */

/* A mapping of a module: what the broker needs to open the file behind it. */
struct module_place {
	struct process_key process;
	uint64_t start, end;
};

/* One mapped file, or one that only a build-id is known of. Fields above the line never change. */
struct module {
	uint64_t device; /* kernel's dev_t; 0 with inode 0 when only the build-id is known */
	uint64_t inode;
	char *path;	     /* as mapped; "" when only the build-id is known; "[vdso]", "[anon]" */
	bool anonymous;	     /* executable memory without a file */
	bool deleted;	     /* d_path said " (deleted)", which path is without */
	struct module *next; /* same hash; the table's own */
	/* ---- filled in by whoever reads mappings and samples, and read, under the table's lock */
	struct module_place places[MODULE_PLACES];
	uint32_t place_count; /* ever seen; the last stands at (place_count - 1) % MODULE_PLACES */
	bool build_id_known;  /* by the kernel: the file must have it */
	uint8_t build_id_misses; /* samples for which the kernel returned none */
	uint8_t build_id[SYMBOLS_BUILD_ID_MAX];
	uint8_t build_id_bytes; /* 0 when the file has none or was not read */
	bool identified;	/* build_id was read from the file */
	/* ---- the symbolizer thread's own */
	bool borrowed;		/* the last table came through the broker */
	bool asked;		/* the broker was asked for its build-id */
	bool listed;		/* stands among those found by build-id */
	const char *unreadable; /* why the file's names are not known, NULL when they are */
	struct elf_symbols *symbols;
	struct pretty *pretty; /* of `symbols`: demangled names that were asked for */
	bool loaded;
	struct module *resolved; /* of one known by build-id only: the file that has it, or NULL */
	struct module *older, *newer; /* those with a table, by last use */
	struct module *same_id;	      /* same hash of the build-id; the table's own */
	uint64_t retry_ns; /* when an unreadable file may be tried again, CLOCK_MONOTONIC */
	uint32_t epoch;	   /* trims at its last use */
};

struct jit_files;
struct symbols;

struct symbols_stats {
	size_t modules;
	size_t files_read;
	size_t files_borrowed; /* of them: through the broker */
	size_t symbols;
	size_t bytes;	  /* memory of tables */
	uint64_t unnamed; /* lookups without a name */
	uint64_t lookups;
};

/*
 * A cache that holds at most max_bytes of tables of files, and one more file (least recently used
 * go first). What was used since the last symbols_trim stays, because its strings may be held: when
 * that fills the cache, further files answer "cache_full". So trim as often as no string is held,
 * at least once per session. The kernel's table (about 5 MiB) comes on top. ksyms_path is the
 * pinned iterator, or NULL; copied. 0 or -ENOMEM.
 */
int symbols_new(size_t max_bytes, const char *ksyms_path, struct symbols **ret_symbols);
void symbols_free(struct symbols *s);

/*
 * Finds or makes the module; any thread; the pointer stays valid until symbols_free. Path is
 * copied. 0; -ENOSPC beyond SYMBOLS_MODULES_MAX; -EINVAL (a path of SYMBOLS_PATH_BYTES or more);
 * -ENOMEM.
 */
int symbols_module(struct symbols *s, uint64_t device, uint64_t inode, const char *path,
		   bool anonymous, struct module **ret_module);

/* The same for a frame of which the kernel told only the build-id (20 bytes). */
int symbols_module_by_build_id(struct symbols *s, const uint8_t build_id[BUILD_ID_BYTES],
			       struct module **ret_module);

/*
 * Notes that `process` has the file mapped at [start, end); main thread. Of a module the last
 * MODULE_PLACES are kept.
 */
void symbols_place(struct symbols *s, struct module *m, const struct process_key *process,
		   uint64_t start, uint64_t end);

/*
 * Notes the build-id that the kernel read from the mapped file (20 bytes, a shorter one filled up
 * with zeros): the file that is opened must have it. Main thread. The first one told stays, until a
 * file contradicts it: then the next one told counts. NULL: the kernel told none.
 */
void symbols_learn_build_id(struct symbols *s, struct module *m,
			    const uint8_t build_id[BUILD_ID_BYTES]);

/*
 * Copies the build-id that is known of the module by now, which either thread may be learning, into
 * `id`; its bytes, 0 when none is known. Any thread.
 */
uint8_t symbols_build_id(struct symbols *s, const struct module *m,
			 uint8_t id[SYMBOLS_BUILD_ID_MAX]);

/* Whether the kernel told this build-id of the module. Any thread. */
bool symbols_is(struct symbols *s, const struct module *m, const uint8_t build_id[BUILD_ID_BYTES]);

#define SYMBOLS_BUILD_ID_MISSES_MAX                                            \
	3 /* the kernel may be unable to tell at one moment and not at another \
	   */

/* Whether the kernel should be asked for the build-id: it is of a file and not known. Main thread.
 */
static inline bool symbols_lacks_build_id(const struct module *m)
{
	return m->inode != 0 && !m->anonymous &&
	       !__atomic_load_n(&m->build_id_known, __ATOMIC_RELAXED) &&
	       m->build_id_misses < SYMBOLS_BUILD_ID_MISSES_MAX;
}

/*
 * Opens the file behind a mapping that this process may not reach by itself; 0 with a descriptor
 * that is the caller's, or -errno. Called from the symbolizer's thread.
 */
typedef int (*symbols_borrow)(void *context, const struct process_key *process, uint64_t start,
			      uint64_t end, int *ret_fd);

/* Sets how such files are opened; before the symbolizer's thread looks anything up. */
void symbols_set_borrow(struct symbols *s, symbols_borrow borrow, void *context);

struct elf_image;

/*
 * Opens the file that `m` stands for, at the host's path or else through the broker; not for names.
 * NULL with *ret_image (image.fd is the caller's to close), else why not, a word of reasons.def.
 * Any thread, after symbols_set_borrow.
 */
const char *symbols_open(struct symbols *s, const struct module *m, struct elf_image *ret_image);

/* False when the kernel told another build-id of the module than this one. Any thread. */
bool symbols_is_build(struct symbols *s, const struct module *m, const uint8_t *id, uint8_t bytes);

/* The perf maps that are held open, for whoever sees processes come and go (jit_files.h). */
struct jit_files *symbols_jit_files(struct symbols *s);

/* What a lookup yields; strings live until the next symbols_trim (`why` for good: reasons.def). */
struct symbol_name {
	const char *fn;	 /* demangled; NULL when not known */
	const char *raw; /* as the symbol table has it, NULL when that is fn */
	const char *why; /* when fn is NULL: the reason, a stable word such as "no_symbol" */
	uint64_t offset_in_fn;
};

/*
 * Names the function at file offset `offset` of `m`; reads the file on first use. Symbolizer thread
 * only. `caller` is true for return addresses (the call stands before offset). 0 or -ENOENT with
 * ret_name->why set.
 */
int symbols_user(struct symbols *s, struct module *m, uint64_t offset, bool caller,
		 struct symbol_name *ret_name);

/*
 * Names code at `address` of executable memory without a file, by the perf map of the process
 * (jit_map.h). Symbolizer thread only. Results as symbols_user.
 */
int symbols_jit(struct symbols *s, const struct process_key *process, uint64_t address,
		struct symbol_name *ret_name);

/*
 * Names a kernel address from the ksyms iterator: read on first use, again for an address that it
 * does not know (a module or BPF program that came since), at most once between two trims and not
 * more often than SYMBOLS_KERNEL_SOON_NS.
 * *ret_module is "" for the kernel itself, else "[module]" without brackets. Symbolizer thread
 * only.
 */
int symbols_kernel(struct symbols *s, uint64_t address, struct symbol_name *ret_name,
		   const char **ret_module);

/*
 * Ends the life of all strings given out and gives memory above the bound back; symbolizer thread,
 * between sessions or lines.
 */
void symbols_trim(struct symbols *s);

/* Gives the kernel's table back too (idle for a while); symbolizer thread. */
void symbols_trim_kernel(struct symbols *s);

/* Any thread. */
void symbols_stats(struct symbols *s, struct symbols_stats *ret_stats);

#endif
