/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/naming/frame_entry.h"

#include <string.h>

#include "shared/tools/macro.h"

/* Where an entry point with this name must be. */
enum place {
	AT_START,	   /* at the file's start (e_entry) */
	IN_C_LIBRARY,	   /* in the C library */
	IN_C_LIBRARY_ONLY, /* only in the C library: a program may use the name itself */
	IN_GO,
	IN_GCCGO,
	ANYWHERE, /* no other language has such names */
};

static const struct {
	const char *name;
	enum place place;
} entries[] = {
	{ "_start", AT_START },
	{ "__libc_start_main", IN_C_LIBRARY },
	{ "__libc_start_call_main", IN_C_LIBRARY },
	{ "libc_start_main_stage2", IN_C_LIBRARY_ONLY },
	{ "start_thread", IN_C_LIBRARY_ONLY },
	{ "clone", IN_C_LIBRARY_ONLY },
	{ "__clone", IN_C_LIBRARY },
	{ "clone3", IN_C_LIBRARY_ONLY },
	{ "__clone3", IN_C_LIBRARY },
	{ "thread_start", IN_C_LIBRARY_ONLY },
	{ "_dl_start_user", IN_C_LIBRARY_ONLY },
	{ "runtime.goexit", IN_GO },
	{ "runtime.mstart", IN_GO },
	{ "runtime.rt0_go", IN_GO },
	{ "runtime.clone", IN_GO },
	/* Both begin a new stack, in which the scheduler runs (topofstack in traceback.go). */
	{ "runtime.mcall", IN_GO },
	{ "runtime.morestack", IN_GO },
	{ "runtime.kickoff", IN_GCCGO }, /* goroutines */
	{ "*Fiber#run", ANYWHERE },	 /* Crystal's fibres */
};

bool frame_entry_is_named(const char *fn, const char *name)
{
	size_t bytes = strlen(name);

	return !strncmp(fn, name, bytes) && strchr("@.", fn[bytes]);
}

/* Returns whether `fn` is `name`, or `name` with a type (":Nil"), as Crystal writes it. */
static bool is_named(const char *fn, const char *name, enum place place)
{
	size_t bytes = strlen(name);

	return frame_entry_is_named(fn, name) ||
	       (place == ANYWHERE && !strncmp(fn, name, bytes) && fn[bytes] == ':');
}

/*
 * Returns whether the file has entry points there. C reserves names with two underscores for the C
 * library, so a static executable has no other function with such a name.
 */
static bool has_entries(const struct code_file *file, enum place place, uint64_t start)
{
	switch (place) {
	case AT_START:
		return file->entry == start;
	case IN_C_LIBRARY:
		return file->runtime == CODE_C_LIBRARY || file->runtime == CODE_STATIC;
	case IN_C_LIBRARY_ONLY:
		return file->runtime == CODE_C_LIBRARY;
	case IN_GO:
		return file->runtime == CODE_GO;
	case IN_GCCGO:
		return file->runtime == CODE_GCCGO;
	case ANYWHERE:
		return true;
	}
	return false;
}

/*
 * Returns whether a function without a name may be the C library's caller of main or of a thread's
 * function: in glibc and in musl these are located before the function that starts the process or
 * the thread. A chain that ends in another function of the library has lost its callers.
 */
static bool calls_main(const struct named_frame *f)
{
	return f->after && (frame_entry_is_named(f->after, "__libc_start_main") ||
			    frame_entry_is_named(f->after, "pthread_create"));
}

bool frame_entry_is(struct code_files *code, const struct module *m, const struct named_frame *f)
{
	const struct code_file *file;

	if (f->raw || (!f->fn && !calls_main(f)))
		return false;
	if (!f->fn) {
		file = code_files_get(code, m);
		return file && file->runtime == CODE_C_LIBRARY;
	}
	for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
		if (!is_named(f->fn, entries[i].name, entries[i].place))
			continue;
		file = code_files_get(code, m);
		return file && has_entries(file, entries[i].place, f->start);
	}
	return false;
}
