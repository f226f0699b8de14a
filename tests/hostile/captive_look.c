/* SPDX-License-Identifier: BSD-2-Clause */
#include "captive.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ID_NONE	 0 /* BPF_STACK_BUILD_ID_EMPTY */
#define ID_VALID 1 /* BPF_STACK_BUILD_ID_VALID: an offset in a file, else an address */

void captive_leak(struct captive *c, const char *format, ...)
{
	va_list arguments;

	if (c->leaks++ >= CAPTIVE_LEAKS)
		return;
	va_start(arguments, format);
	printf("leak: ");
	vprintf(format, arguments);
	printf("\n");
	va_end(arguments);
}

static void look_at_word(struct captive *c, const char *where, const void *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	for (size_t i = 0; i < c->secret_count; i++)
		if (c->secrets[i] == word)
			captive_leak(c, "the secret %" PRIx64 " in %s", word, where);
}

void captive_look(struct captive *c, const char *where, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;

	c->bytes += n;
	for (size_t i = 0; i + sizeof(uint64_t) <= n; i++) {
		uint32_t head = at[i] | (uint32_t)at[i + 1] << 8;

		if (c->heads[head >> 3] & 1u << (head & 7))
			look_at_word(c, where, at + i);
	}
}

static const struct prey *prey_of(const struct captive *c, uint32_t pid)
{
	for (size_t i = 0; i < c->prey_count; i++)
		if (c->prey[i].pid == pid)
			return &c->prey[i];
	return NULL;
}

void captive_look_at_process(struct captive *c, const char *where, uint32_t pid)
{
	const struct prey *p = prey_of(c, pid);

	if (p && p->kind == PREY_OUTSIDE)
		captive_leak(c, "process %u, outside of the scope, in %s", pid, where);
}

static bool is_code(const struct prey *p, uint64_t address)
{
	for (size_t i = 0; i < p->range_count; i++)
		if (p->ranges[i].code && address >= p->ranges[i].start &&
		    address < p->ranges[i].end)
			return true;
	return false;
}

static void look_at_frame(struct captive *c, const struct prey *p, const struct sample *s,
			  unsigned int number, uint64_t address)
{
	if (!is_code(p, address))
		captive_leak(c, "frame %u of %u of process %u is %" PRIx64 ", no code%s", number,
			     s->user_frames, s->tgid, address,
			     s->flags & SAMPLE_UNWOUND ? ", by a table" : "");
}

/* Frames as the kernel resolved them: a file and an offset in it, or else an address. */
static size_t look_at_ids(struct captive *c, const struct prey *p, const struct sample *s,
			  const uint8_t *at, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		struct frame_build_id id;

		memcpy(&id, at + i * sizeof(id), sizeof(id));
		if (id.status != ID_NONE && id.status != ID_VALID)
			look_at_frame(c, p, s, i, id.offset_or_ip);
	}
	return count * sizeof(struct frame_build_id);
}

/* Every frame is one of code, for any tables; also those that the kernel resolved. */
void captive_look_at_sample(struct captive *c, const void *record, size_t n)
{
	struct sample s;
	const uint8_t *at = record, *end = at + n;
	const struct prey *p;
	bool ids;

	if (n < sizeof(s))
		return;
	memcpy(&s, record, sizeof(s));
	ids = s.flags & SAMPLE_BUILD_ID;
	c->samples++;
	c->unwound += (s.flags & SAMPLE_UNWOUND) != 0;
	c->frames += s.user_frames;
	captive_look_at_process(c, "a sample", s.tgid);
	p = prey_of(c, s.tgid);
	if (!p || p->kind != PREY_WATCHED)
		return;
	at += sizeof(s) + s.kernel_frames * sizeof(uint64_t);
	if (ids)
		at += look_at_ids(c, p, &s, at, s.user_frames);
	for (uint16_t i = 0; (!ids || s.flags & SAMPLE_ADDRESSES) && i < s.user_frames; i++) {
		uint64_t address;

		memcpy(&address, at, sizeof(address));
		look_at_frame(c, p, &s, i, SAMPLE_ADDRESS(address));
		at += sizeof(address);
	}
	if (s.flags & SAMPLE_LEAF_ID)
		at += look_at_ids(c, p, &s, at, 1);
	if (at > end)
		captive_leak(c, "a sample of process %u is longer than its record", s.tgid);
}
