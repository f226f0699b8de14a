/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * module_file.h: opens the file of a module: first at its path on the host; if that is not the
 * mapped file (a container, a chroot, removed, replaced) or may not be read, through the broker,
 * from a process that has it mapped. Symbolizer thread only.
 */
#ifndef TROCAR_CONSUMER_SYMBOLS_MODULE_FILE_H
#define TROCAR_CONSUMER_SYMBOLS_MODULE_FILE_H

#include <pthread.h>

#include "consumer/symbols/symbols.h"
#include "shared/elf/elf_symbols.h"
#include "shared/elf/reason.h"

/* How to open files that are not available at the host's path; borrow NULL: not at all. */
struct module_file {
	symbols_borrow borrow;
	void *context;
	pthread_mutex_t *lock; /* protects the places in the modules' table */
};

/*
 * Opens the file at the host's path, or the vDSO of this process. Returns REASON_NONE and sets
 * *ret_image, or returns the reason.
 */
enum reason module_file_open(const struct module *m, struct elf_image *ret_image);

/* Returns whether the broker may help after module_file_open returned `reason`. */
bool module_file_may_borrow(const struct module_file *f, const struct module *m,
			    enum reason reason);

/*
 * Opens the file through the broker. Returns REASON_NONE and sets *ret_image, or returns `host`,
 * the reason why the host's path failed, because the operator can change that.
 */
enum reason module_file_borrow(const struct module_file *f, const struct module *m,
			       enum reason host, struct elf_image *ret_image);

/* Tries module_file_open, then module_file_borrow. Any thread, after f->borrow is set. */
enum reason module_file_open_any(const struct module_file *f, const struct module *m,
				 struct elf_image *ret_image);

#endif
