/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * modules.h: the table of modules under symbols.h: identifies files without reading their contents.
 * Any thread, under its own lock; only the main thread makes and forgets modules.
 */
#ifndef TROCAR_CONSUMER_SYMBOLS_MODULES_H
#define TROCAR_CONSUMER_SYMBOLS_MODULES_H

#include <pthread.h>

#include "consumer/symbols/symbols.h"
#include "shared/tools/idmap.h"

struct modules {
	pthread_mutex_t lock;
	struct idmap by_file;  /* hash of identity and path -> chain by `next` */
	struct idmap by_id;    /* hash of a build-id -> chain of modules without a file */
	struct module **items; /* owned, in the order of their creation */
	size_t count, space;
	size_t forgotten; /* of `items` */
	uint64_t refused; /* modules refused because the table was full */
	uint64_t seed;	  /* of the hash: paths are untrusted, and chains must stay short */
};

void modules_init(struct modules *t);

/* Frees every module with its table. */
void modules_done(struct modules *t);

/* Contracts of symbols_module and symbols_module_by_build_id. */
int modules_file(struct modules *t, const struct file_identity *identity, const char *path,
		 bool anonymous, struct module **ret_module);
int modules_build_id(struct modules *t, const uint8_t id[BUILD_ID_BYTES],
		     struct module **ret_module);

/*
 * Forgets modules as symbols_forget does, until `keep` are left or SYMBOLS_FORGET_MAX are
 * forgotten. They stay in `items` until modules_take_forgotten.
 */
size_t modules_forget(struct modules *t, size_t keep, uint64_t before_ns,
		      bool (*is_used)(void *context, const struct module *m), void *context);

/*
 * Removes the forgotten modules from `items`. Returns them as a list by `next`, for the caller to
 * free. Adjusts *place, an index into `items`, so that it still refers to the same module.
 */
struct module *modules_take_forgotten(struct modules *t, size_t *place);

/* Frees a module with its table; NULL is allowed. */
void modules_free(struct module *m);

/* Returns the i-th module, the oldest first, or NULL if there are fewer. */
struct module *modules_at(struct modules *t, size_t i);

/* Contracts of symbols_place and symbols_learn_build_id. */
void modules_place(struct modules *t, struct module *m, const struct module_place *place);
bool modules_learn_build_id(struct modules *t, struct module *m, const uint8_t *build_id);

/* Contracts of symbols_build_id and symbols_is. */
uint8_t modules_id_of(struct modules *t, const struct module *m, uint8_t id[SYMBOLS_BUILD_ID_MAX]);
bool modules_is(struct modules *t, const struct module *m, const uint8_t build_id[BUILD_ID_BYTES]);

/* Returns whether any build-id of the module is known. */
bool modules_has_id(struct modules *t, const struct module *m);

/* Returns whether the kernel reported for `file` the build-id that `m` has. */
bool modules_same_build_id(struct modules *t, const struct module *file, const struct module *m);

/* Returns false if the kernel reported another build-id for the module. */
bool modules_may_be(struct modules *t, const struct module *m, const uint8_t *build_id,
		    uint8_t bytes);

/* Returns the length of a build-id that the kernel padded with zeros to BUILD_ID_BYTES. */
uint8_t modules_build_id_bytes(const uint8_t id[BUILD_ID_BYTES]);

#endif
