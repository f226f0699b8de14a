/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/naming/module_advice.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "consumer/unwind/store/unwind_file.h"
#include "shared/elf/reason.h"
#include "shared/tools/macro.h"

#define NAME_MAX_BYTES 128 /* of a module's name, or its path in a command, in a sentence */
#define REMEDY_BYTES   (SUMMARY_ADVICE_BYTES - NAME_MAX_BYTES - 64)

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Only glibc's package of debug symbols is named differently. */
static bool is_glibc(const char *base)
{
	static const char *const files[] = { "libc.so.",       "libm.so.",  "libmvec.so.",
					     "libpthread.so.", "libdl.so.", "librt.so.",
					     "libresolv.so.",  "ld-linux" };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (!strncmp(base, files[i], strlen(files[i])))
			return true;
	return false;
}

/* Whether a shell takes the path as one word, and a sentence has space for it. */
static bool is_plain(const char *path)
{
	return strlen(path) < NAME_MAX_BYTES &&
	       path[strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				 "/._+-")] == '\0';
}

/* Packages own the files below these paths. */
static bool is_packaged(const char *path)
{
	static const char *const folders[] = { "/usr/bin/",   "/usr/sbin/",    "/usr/lib/",
					       "/usr/lib64/", "/usr/libexec/", "/bin/",
					       "/sbin/",      "/lib/",	       "/lib64/" };

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
		if (!strncmp(path, folders[i], strlen(folders[i])))
			return is_plain(path);
	return false;
}

/*
 * Commands for Debian, with the -dbgsym packages of the archive debian-debug, and for Fedora.
 * Debian packages may have the path without its /usr, and only dpkg knows their names:
 * libcrypto.so.3 is in libssl3.
 */
static void write_remedy(const char *module, char *text, size_t space)
{
	const char *path = !strncmp(module, "/usr/", 5) ? module + 4 : module;

	if (!is_packaged(module))
		snprintf(text, space, "install its debug symbols, or build it without strip");
	else if (is_glibc(base_name(module)))
		snprintf(text, space, "apt install libc6-dbg, or dnf debuginfo-install %s", module);
	else
		snprintf(
			text, space,
			"apt install $(dpkg -S '*%s' | cut -d: -f1)-dbgsym (from debian-debug), or "
			"dnf debuginfo-install %s",
			path, module);
}

/*
 * Writes why stacks end in the file, if the reason is not a lack of frame pointers: then another
 * build would not help. Returns false if that is the reason.
 */
static bool say_ended(const char *base, const char *rowless, char text[SUMMARY_ADVICE_BYTES])
{
	const char *help;

	if (!rowless || !strcmp(rowless, unwind_file_why(-ENODATA)))
		return false;
	help = *rowless
		       ? unwind_file_help(rowless)
		       : "at code that its call frame information leaves out: assembly, or where a "
			 "fibre begins";
	if (!help)
		return false;
	snprintf(text, SUMMARY_ADVICE_BYTES, "stacks end in %.*s%s %s", NAME_MAX_BYTES, base,
		 *rowless ? ":" : ",", help);
	return true;
}

bool module_advice(const char *module, const char *why, bool broken, const char *rowless,
		   char text[SUMMARY_ADVICE_BYTES])
{
	const char *base = base_name(module);
	bool stripped = why && strcmp(why, reason_word(REASON_STRIPPED)) == 0,
	     file = *module == '/';
	char what[REMEDY_BYTES];

	if (file && broken && say_ended(base, rowless, text))
		return true;
	write_remedy(module, what, sizeof(what));
	if (file && stripped && broken)
		snprintf(text, SUMMARY_ADVICE_BYTES,
			 "%.*s was built without frame pointers and without symbols: %s",
			 NAME_MAX_BYTES, base, what);
	else if (file && (stripped || (why && strcmp(why, reason_word(REASON_NO_SYMBOL)) == 0)))
		snprintf(text, SUMMARY_ADVICE_BYTES, "%.*s has %s: %s", NAME_MAX_BYTES, base,
			 stripped ? "no symbols" : "not all of its symbols", what);
	else if (why && reason_help(why))
		snprintf(text, SUMMARY_ADVICE_BYTES, "%.*s: %s", NAME_MAX_BYTES, base,
			 reason_help(why));
	else if (file && broken)
		snprintf(text, SUMMARY_ADVICE_BYTES,
			 "stacks end in %.*s, which was built without frame pointers: "
			 "-fno-omit-frame-pointer keeps them",
			 NAME_MAX_BYTES, base);
	else
		return false;
	return true;
}
