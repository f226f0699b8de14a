/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/report/module_advice.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "shared/elf/reason.h"
#include "shared/tools/macro.h"

#define NAME_MAX_BYTES 128 /* of a module's name, or its path in a command, in a sentence */
#define REMEDY_BYTES   (SUMMARY_ADVICE_BYTES - NAME_MAX_BYTES - 64)

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/*
 * Writes the name of Debian's package of debug symbols for a library: "libfoo.so.1" is in libfoo1,
 * "libfoo2.so.1" in libfoo2-1 (Debian Policy 8.1). False if `base` has no such form.
 */
static bool debug_package(const char *base, char *package, size_t space)
{
	const char *so = strstr(base, ".so.");
	size_t name = so ? (size_t)(so - base) : 0, version;

	if (strncmp(base, "lib", 3) != 0 || name < 4 || name > NAME_MAX_BYTES)
		return false;
	version = strspn(so + 4, "0123456789");
	if (version == 0)
		return false;
	/* glibc's packages alone are named differently. */
	snprintf(package, space, "%.*s%s%.*s-%s", (int)name, base,
		 isdigit((unsigned char)base[name - 1]) ? "-" : "", (int)version, so + 4,
		 name == 4 && base[3] == 'c' ? "dbg" : "dbgsym");
	for (char *c = package; *c; c++)
		*c = *c == '_' ? '-' : (char)tolower((unsigned char)*c);
	return true;
}

/* Whether a shell takes the path for one word, and there is room for it in a sentence. */
static bool is_plain(const char *path)
{
	return strlen(path) < NAME_MAX_BYTES &&
	       path[strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				 "/._+-")] == '\0';
}

/* Packages have what is below these. */
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

/* Commands of Debian, whose archive debian-debug has the packages -dbgsym, and of Fedora. */
static void write_remedy(const char *module, char *text, size_t space)
{
	char package[2 * NAME_MAX_BYTES];

	if (!is_packaged(module))
		snprintf(text, space, "install its debug symbols, or build it without strip");
	else if (debug_package(base_name(module), package, sizeof(package)))
		snprintf(text, space, "apt install %.140s%s, or dnf debuginfo-install %s", package,
			 strstr(package, "-dbgsym") ? " (from debian-debug)" : "", module);
	else
		snprintf(text, space,
			 "apt install $(dpkg -S %s | cut -d: -f1)-dbgsym (from debian-debug), or "
			 "dnf debuginfo-install %s",
			 module, module);
}

bool module_advice(const char *module, const char *why, bool broken,
		   char text[SUMMARY_ADVICE_BYTES])
{
	const char *base = base_name(module);
	bool stripped = why && strcmp(why, reason_word(REASON_STRIPPED)) == 0,
	     file = *module == '/';
	char what[REMEDY_BYTES];

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
