/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * runtime_names.h: gives each code object that a walk meets a number, and copies its names and its
 * line table once, to a ring of their own. A frame carries the number alone.
 *
 * An object counts only if each member that is used has exactly the type that it must have
 * (runtime_facts.h has the addresses of the types). Under any lie about an address or a layout only
 * the names, the file and the line table of a code object can leave.
 */
#ifndef TROCAR_BPF_RUNTIMES_RUNTIME_NAMES_H
#define TROCAR_BPF_RUNTIMES_RUNTIME_NAMES_H

#include <stdbool.h>

#include "bpf/runtimes/python_layout.h"
#include "bpf/runtimes/runtime_walk.h"

#define RUNTIME_KNOWN	     8192 /* code objects with a number, of all processes */
#define RUNTIME_COPIES	     4	  /* code objects that one walk copies */
#define RUNTIME_COPIES_1S    64	  /* of one process in a second */
#define RUNTIME_COPIES_OWNER 256  /* of the watches of one owner in a second */
#define RUNTIME_COPIES_ALL   512  /* of all processes in a second */

/*
 * After so many new numbers (2 to this power) each name is copied again: the consumer keeps the
 * names of twice as many, so none that is in use is among those that it has evicted.
 */
#define RUNTIME_AGE_BITS   14
#define RUNTIME_STRING_MAX (1u << 20)

/* The code object of a process. A freed one may come back at its address with other members. */
struct runtime_known_key {
	__u64 start_ns;
	__u64 object;
	__u64 fold; /* of its members that name it, and of the consumer that has the names */
	__u32 tgid, image;
};

/* Private: the numbers. The least recently used are evicted first. */
__weak MAP(LRU_HASH, runtime_known, struct runtime_known_key, __u32, RUNTIME_KNOWN);

/* Private: the last number, and the copies of the present second. */
struct runtime_numbers {
	__u32 last;
	__u32 second, copied;
	__u32 pad;
};

__weak MAP(ARRAY, runtime_numbers, __u32, struct runtime_numbers, 1);

/* Private: the copies of the present second, by the slot that counts for an owner (slot.payer). */
struct runtime_owner {
	__u32 second, copied;
};

__weak MAP(ARRAY, runtime_owners, __u32, struct runtime_owner, SLOTS_DEFAULT);

/* Returns the copies of the owner of the watch of slot `index`, or NULL. */
static __always_inline struct runtime_owner *runtime_owner_of(__u32 index)
{
	const struct slot *slot = bpf_map_lookup_elem(&slots, &index);
	__u32 payer;

	if (!slot)
		return 0;
	payer = READ_WORD(slot->payer);
	return bpf_map_lookup_elem(&runtime_owners, &payer);
}

__weak RING_MAP(runtime_names, 512 * 1024);

#ifndef UNWIND_OTHER_TASK
#define RUNTIME_NAMED(name) tick_##name

#define RUNTIME_CACHE 512 /* numbers that a CPU remembers; a power of two: 32 KiB at most */

/* A number, as in `runtime_known`: to find it there takes as long as to read the code object. */
struct runtime_cached {
	struct runtime_known_key key;
	__u32 number, pad;
};

struct runtime_cache {
	struct runtime_cached entries[RUNTIME_CACHE];
};

/* Private. Ticks do not nest, so no entry is torn. */
MAP(PERCPU_ARRAY, runtime_caches, __u32, struct runtime_cache, 1);

/* Returns the place of the code object in the cache of this CPU, or NULL. */
static __always_inline struct runtime_cached *runtime_cache_at(__u64 object)
{
	struct runtime_cache *cache = map_single(&runtime_caches);
	__u64 at = (object >> 4) * 0x9e3779b97f4a7c15ull >> 32;

	asm volatile("" : "+r"(at)); /* as in want_name */
	return cache ? &cache->entries[at & (RUNTIME_CACHE - 1)] : 0;
}

/* Returns the number that the CPU remembers for the key; 0: none. */
static __always_inline __u32 runtime_cache_find(const struct runtime_known_key *key)
{
	const struct runtime_cached *c = runtime_cache_at(key->object);

	if (!c || c->key.object != key->object || c->key.fold != key->fold ||
	    c->key.start_ns != key->start_ns || c->key.tgid != key->tgid ||
	    c->key.image != key->image)
		return 0;
	return c->number;
}

static __always_inline void runtime_cache_put(const struct runtime_known_key *key, __u32 number)
{
	struct runtime_cached *c = runtime_cache_at(key->object);

	if (!c)
		return;
	c->key = *key;
	c->number = number;
}

/* Too large for the BPF stack. Ticks do not nest (stack.h). */
MAP(PERCPU_ARRAY, runtime_walks, __u32, struct runtime_walk, 1);

/* Returns the state of the running walk. */
static __always_inline struct runtime_walk *runtime_walk_get(void)
{
	return map_single(&runtime_walks);
}

/*
 * Reads memory of the walked process, at most RUNTIME_TABLE_BYTES. Returns 0, or another value if
 * the memory is not resident.
 */
static __always_inline long runtime_read(void *to, __u32 bytes, __u64 address)
{
	return bpf_probe_read_user(to, bytes, (const void *)address);
}
#else
/*
 * `looks` has global functions of its own, with names that differ; look_runtime.h defines the two
 * functions.
 */
#define RUNTIME_NAMED(name) look_##name

/* Without a cache, because its entries would be torn if one reader preempts another. */
static __always_inline __u32 runtime_cache_find(const struct runtime_known_key *key)
{
	return 0;
}

static __always_inline void runtime_cache_put(const struct runtime_known_key *key, __u32 number)
{
}

static __always_inline struct runtime_walk *runtime_walk_get(void);
static __always_inline long runtime_read(void *to, __u32 bytes, __u64 address);
#endif

static __always_inline const volatile struct python_layout *
runtime_layout(const struct runtime_walk *w)
{
	return &python_layouts[READ_WORD(w->facts.layout) & (PYTHON_LAYOUTS - 1)];
}

/* The members of a code object by their offset, which is a multiple of their size. */
static __always_inline __u64 code_word(const struct runtime_walk *w, __u32 offset)
{
	return w->code_words[offset / 8 & 31];
}

static __always_inline __u32 code_half(const struct runtime_walk *w, __u32 offset)
{
	return ((const __u32 *)w->code_words)[offset / 4 & 63];
}

static __always_inline __u64 runtime_mix(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

/*
 * Returns whether the limits of the walk and of the second allow one more copy. Two CPUs may both
 * begin a second; the limits are no exact ones.
 */
static __always_inline bool may_copy(struct runtime_walk *w, struct runtime_facts *facts,
				     struct runtime_numbers *numbers, struct runtime_owner *owner)
{
	if (!READ_WORD(w->copies))
		return false;
	w->copies--;
	if (READ_WORD(owner->second) != w->second) {
		owner->second = w->second;
		owner->copied = 0;
	}
	if (READ_WORD(facts->second) != w->second) {
		facts->second = w->second;
		facts->copied = 0;
	}
	if (READ_WORD(numbers->second) != w->second) {
		numbers->second = w->second;
		numbers->copied = 0;
	}
	return READ_WORD(facts->copied) < RUNTIME_COPIES_1S &&
	       READ_WORD(owner->copied) < RUNTIME_COPIES_OWNER &&
	       READ_WORD(numbers->copied) < RUNTIME_COPIES_ALL;
}

/* Reads the header of the object at `address`, which must be of the type. Returns 0 or -1. */
static __always_inline int read_object(struct runtime_walk *w, __u64 address, __u64 type)
{
	if (runtime_read(w->object_words, RUNTIME_OBJECT_BYTES, address))
		return -1;
	return w->object_words[1] == type && type ? 0 : -1;
}

/*
 * Copies the begin of the string at `address` to the name (0) or the file (1) of the record. A
 * global function, as the next one: the verifier checks it once. Returns 0 or -1.
 */
__noinline int RUNTIME_NAMED(runtime_copy_string)(__u64 address, __u32 is_file)
{
	struct runtime_walk *w = runtime_walk_get();
	const volatile struct python_layout *l;
	__u32 state, text, bytes;
	__u64 length, n;

	if (!w || read_object(w, address, w->facts.values[RUNTIME_SYMBOL_STRING]))
		return -1;
	l = runtime_layout(w);
	length = w->object_words[2];
	state = (__u32)w->object_words[4];
	text = state >> 2 & 7;
	/* A compact string of 1, 2 or 4 bytes for each character. */
	if (!(state & 1u << 5) || (text != 1 && text != 2 && text != 4) ||
	    length > RUNTIME_STRING_MAX)
		return -1;
	bytes = length * text;
	address += state & 1u << 6 ? l->ascii : l->other;
	if (state & 1u << 6)
		text = RUNTIME_TEXT_ASCII;
	n = bytes;
	if (is_file) {
		w->name.file_bytes = bytes;
		w->name.file_text = text;
		if (n > RUNTIME_FILE_BYTES)
			n = RUNTIME_FILE_BYTES;
		return n && runtime_read(w->name.file, n, address) ? -1 : 0;
	}
	w->name.name_bytes = bytes;
	w->name.name_text = text;
	if (n > RUNTIME_NAME_BYTES)
		n = RUNTIME_NAME_BYTES;
	return n && runtime_read(w->name.name, n, address) ? -1 : 0;
}

/* Copies the begin of the line table at `address`. Returns 0 or -1. */
__noinline int RUNTIME_NAMED(runtime_copy_table)(__u64 address)
{
	struct runtime_walk *w = runtime_walk_get();
	__u64 n;

	if (!w || read_object(w, address, w->facts.values[RUNTIME_SYMBOL_BYTES]))
		return -1;
	n = w->object_words[2];
	if (n > RUNTIME_STRING_MAX)
		return -1;
	w->name.table_bytes = n;
	if (n > RUNTIME_TABLE_BYTES)
		n = RUNTIME_TABLE_BYTES;
	return n && runtime_read(w->name.table, n, address + 32) ? -1 : 0;
}

/* Copies the names of the code object in `code_words`. Returns its new number, or 0. */
static __always_inline __u32 copy_names(void)
{
	struct runtime_walk *w = runtime_walk_get();
	struct runtime_numbers *numbers = map_single(&runtime_numbers);
	const volatile struct python_layout *l;
	__u64 n;

	if (!w || !numbers)
		return 0;
	l = runtime_layout(w);
	w->name.start_ns = w->facts.start_ns;
	w->name.tgid = w->facts.tgid;
	w->name.first_line = code_half(w, l->line);
	w->name.version = l->version;
	w->name.pad = 0;
	if (RUNTIME_NAMED(runtime_copy_string)(code_word(w, l->name), 0) ||
	    RUNTIME_NAMED(runtime_copy_string)(code_word(w, l->file), 1) ||
	    RUNTIME_NAMED(runtime_copy_table)(code_word(w, l->table)))
		return 0;
	w->name.number = __sync_fetch_and_add(&numbers->last, 1) + 1;
	n = READ_WORD(w->name.table_bytes);
	asm volatile("" : "+r"(n));
	if (n > RUNTIME_TABLE_BYTES)
		n = RUNTIME_TABLE_BYTES;
	if (bpf_ringbuf_output(&runtime_names, &w->name, sizeof(w->name) - RUNTIME_TABLE_BYTES + n,
			       BPF_RB_NO_WAKEUP)) {
		TOTALS_COUNT(runtime_names_full);
		w->delayed = 1;
		return 0;
	}
	return w->name.number;
}

/* Has a tick of process `tgid` copy the names of the code object. */
static __always_inline void want_name(struct runtime_facts *facts, __u64 object, __u32 tgid)
{
	__u64 at = object >> 4 ^ object >> 12;

	asm volatile("" : "+r"(at)); /* the mask comes last, as the verifier needs it */
	at &= RUNTIME_WANTED - 1;
	facts->wanted[at].tgid = tgid;
	facts->wanted[at].object = object;
	facts->has_wanted = 1;
}

/*
 * Returns the number of the code object at `object`, which is in `code_words`; 0: it has none yet.
 * `table` is the number of the table of its process.
 */
__noinline int RUNTIME_NAMED(runtime_number)(__u64 object, __u32 table)
{
	struct runtime_facts *facts = bpf_map_lookup_elem(&runtime_facts, &table);
	struct runtime_numbers *numbers = map_single(&runtime_numbers);
	const struct control *control = control_get();
	struct runtime_walk *w = runtime_walk_get();
	const volatile struct python_layout *l;
	struct runtime_known_key key = {};
	struct runtime_owner *owner;
	const __u32 *known;
	__u32 number, age;
	__u64 fold;

	if (!w || !facts || !numbers || !control)
		return 0;
	l = runtime_layout(w);
	key.start_ns = w->facts.start_ns;
	key.tgid = w->facts.tgid;
	key.image = w->facts.image;
	key.object = object;
	age = READ_WORD(numbers->last) >> RUNTIME_AGE_BITS;
	fold = runtime_mix(READ_WORD(control->owner), code_half(w, l->line));
	fold = runtime_mix(fold, code_word(w, l->name));
	fold = runtime_mix(fold, code_word(w, l->file));
	fold = runtime_mix(fold, code_word(w, l->table));
	key.fold = runtime_mix(fold, age);
	number = runtime_cache_find(&key);
	if (number)
		return (int)number;
	known = bpf_map_lookup_elem(&runtime_known, &key);
	if (known) {
		number = READ_WORD(*known);
		runtime_cache_put(&key, number);
		return (int)number;
	}
	owner = runtime_owner_of(w->slot);
	if (!owner)
		return 0;
	if (!may_copy(w, facts, numbers, owner)) {
		w->delayed = 1;
		if (READ_WORD(w->wants))
			want_name(facts, object, w->wants);
		/* The consumer still has the name of before. */
		key.fold = runtime_mix(fold, age - 1);
		known = bpf_map_lookup_elem(&runtime_known, &key);
		return known ? (int)READ_WORD(*known) : 0;
	}
	/* A code object that cannot be copied takes a part of the walk's limit, and no more. */
	number = copy_names();
	if (!number)
		return 0;
	facts->copied++;
	owner->copied++;
	numbers->copied++;
	bpf_map_update_elem(&runtime_known, &key, &number, BPF_ANY);
	return (int)number;
}

#endif
