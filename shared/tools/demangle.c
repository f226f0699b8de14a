/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/tools/demangle.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#undef ARRAY_SIZE /* libiberty defines it too */
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

/* The output of take_part, and the jump out of the demangler when it is full. */
struct sink {
	char *text;
	size_t bytes, room; /* `room` excludes the NUL */
	jmp_buf full;
};

/*
 * The structure of a mangled name, without the text of its identifiers: the number of references to
 * its own parts, and whether it has packs and conversions.
 */
struct shape {
	size_t references;
	bool packs, conversions;
};

static bool is_ascii(const char *part, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (!isascii((unsigned char)part[i]))
			return false;
	return true;
}

static void take_part(const char *part, size_t bytes, void *context)
{
	struct sink *s = context;
	size_t n = MIN(bytes, s->room - s->bytes);

	if (n > 0) /* for 0 bytes `part` may be NULL */
		memcpy(s->text + s->bytes, part, n);
	s->bytes += n;
	/*
	 * longjmp(3) is the only way to stop the demangler. With a callback the C++ demangler has
	 * all its memory on the stack. The Rust demangler has, too, except for an identifier that
	 * is not ASCII: it decodes that one on the heap, passes it as one part and then frees it
	 * (libiberty: cp-demangle.c, rust-demangle.c). So the jump waits for an ASCII part; all
	 * text between such identifiers is ASCII.
	 */
	if (n < bytes && is_ascii(part, bytes))
		longjmp(s->full, 1);
}

/* Skips an identifier: its length in digits, then that many bytes. */
static const char *skip_identifier(const char *at, const char *end)
{
	size_t length = 0;

	while (at < end && isdigit((unsigned char)*at) && length < DEMANGLE_IN_MAX)
		length = length * 10 + (size_t)(*at++ - '0');
	return (size_t)(end - at) < length ? end : at + length;
}

/*
 * Skips a reference such as "S_", "S1A_" or "T_" and counts it. Skips one letter if there is none
 * at `at`.
 */
static const char *skip_reference(const char *at, const char *end, size_t *references)
{
	const char *i = at + 1;

	while (i < end && (isdigit((unsigned char)*i) || isupper((unsigned char)*i)))
		i++;
	if (i == end || *i != '_')
		return at + 1;
	++*references;
	return i + 1;
}

static struct shape shape_of(const char *name, size_t bytes)
{
	const char *end = name + bytes;
	struct shape shape = { 0 };

	for (const char *at = name; at < end;) {
		if (isdigit((unsigned char)*at)) {
			at = skip_identifier(at, end);
			continue;
		}
		if (*at == 'T' || *at == 'S') {
			at = skip_reference(at, end, &shape.references);
			continue;
		}
		if (*at == 'J' || strncmp(at, "Dp", 2) == 0 || strncmp(at, "sp", 2) == 0 ||
		    strncmp(at, "sZ", 2) == 0 || strncmp(at, "sP", 2) == 0)
			shape.packs = true;
		if (strncmp(at, "cv", 2) == 0)
			shape.conversions = true;
		at++;
	}
	return shape;
}

static bool cpp_is_bounded(const char *name, size_t bytes)
{
	struct shape shape = shape_of(name, bytes);

	return (!shape.packs || shape.references <= DEMANGLE_PACK_REFERENCES) &&
	       (!shape.conversions || shape.references <= DEMANGLE_CONVERSION_REFERENCES);
}

/* Tries the Rust demangler first, because it refuses C++ names, and then the C++ demangler. */
static bool by_callback(const char *name, size_t bytes, struct sink *s)
{
	if (setjmp(s->full) != 0)
		return true; /* cut at the limit: a success */
	if (rust_demangle_callback(name, DMGL_NO_OPTS, take_part, s))
		return true;
	s->bytes = 0;
	return name[1] == 'Z' && cpp_is_bounded(name, bytes) &&
	       cplus_demangle_v3_callback(name, DMGL_NO_OPTS, take_part, s);
}

static size_t count_letter(const char *name, char letter)
{
	size_t n = 0;

	for (; *name; name++)
		n += *name == letter;
	return n;
}

static bool by_copy(const char *name, struct sink *s)
{
	_cleanup_free_ char *text = NULL;

	if (count_letter(name, 'Q') > DEMANGLE_D_REFERENCES)
		return false;
	text = dlang_demangle(name, DMGL_NO_OPTS);
	if (!text)
		return false;
	s->bytes = strnlen(text, s->room);
	memcpy(s->text, text, s->bytes);
	return true;
}

/*
 * Returns the length of the symbol's name without its version or "@plt". *ret_tail is "@plt" or "".
 */
static size_t split_version(const char *raw, size_t bytes, const char **ret_tail)
{
	const char *at = memchr(raw, '@', bytes), *version;

	*ret_tail = "";
	if (!at || at == raw)
		return bytes;
	if (strcmp(at, "@plt") == 0) {
		*ret_tail = at;
		return (size_t)(at - raw);
	}
	version = at + (at[1] == '@' ? 2 : 1);
	for (const char *c = version; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '.' && *c != '_')
			return bytes;
	return *version ? (size_t)(at - raw) : bytes;
}

bool demangle(const char *raw, char text[DEMANGLE_OUT_BYTES])
{
	size_t bytes = strnlen(raw, DEMANGLE_IN_MAX), kept;
	char name[DEMANGLE_IN_MAX];
	struct sink s = { .text = text };
	const char *tail;
	bool changed = false;

	if (bytes < 3 || bytes == DEMANGLE_IN_MAX)
		return false;
	kept = split_version(raw, bytes, &tail);
	memcpy(name, raw, kept);
	name[kept] = '\0';
	s.room = DEMANGLE_OUT_BYTES - 1 - strlen(tail);
	if (name[0] == '_' && (name[1] == 'Z' || name[1] == 'R'))
		changed = by_callback(name, kept, &s);
	else if (name[0] == '_' && name[1] == 'D')
		changed = by_copy(name, &s);
	if (!changed || s.bytes == 0) {
		if (kept == bytes || *tail || kept > s.room)
			return false;
		memcpy(text, name, kept);
		s.bytes = kept;
	}
	memcpy(text + s.bytes, tail, strlen(tail) + 1);
	return true;
}
