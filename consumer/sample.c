/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/sample.h"

#include <string.h>

#include "consumer/agent.h"
#include "consumer/process.h"

static char unknown_path[] = "[unknown]";
struct module sample_unknown = { .path = unknown_path, .anonymous = true, .loaded = true };

bool sample_valid(const void *record, size_t bytes, uint32_t slots, uint32_t cpus)
{
	const struct sample *s = record;
	size_t user_bytes;

	if (bytes < sizeof(*s))
		return false;
	if (s->kernel_frames > STACK_FRAMES || s->user_frames > STACK_FRAMES)
		return false;
	user_bytes = s->flags & SAMPLE_BUILD_ID ? sizeof(struct frame_build_id) : sizeof(uint64_t);
	if (s->flags & SAMPLE_BUILD_ID && s->flags & SAMPLE_ADDRESSES)
		user_bytes += sizeof(uint64_t);
	if (bytes < sizeof(*s) + s->kernel_frames * sizeof(uint64_t) + s->user_frames * user_bytes +
			    (s->flags & SAMPLE_LEAF_ID ? sizeof(struct frame_build_id) : 0))
		return false;
	if (s->flags & SAMPLE_UNWOUND && s->user_end >= UNWIND_END_COUNT_)
		return false;
	return s->slot < slots && s->cpu < cpus;
}

/* Resolves one raw address; false when no mapping that was read holds it. */
static bool resolve(const struct mappings *maps, uint64_t address, struct frame *ret_frame)
{
	const struct mapping *m = mappings_find(maps, address);

	if (!m) {
		*ret_frame = (struct frame){ .module = &sample_unknown, .offset = address };
		return false;
	}
	*ret_frame = (struct frame){ .module = m->module, .offset = mapping_offset(m, address) };
	return true;
}

/*
 * An address that is in no executable mapping is no return address: code without frame pointers
 * uses that register for data. The chain ends before it; the leaf stays, it is where the program
 * was.
 */
static void cut(struct hit *h, const struct frame *frames)
{
	for (uint16_t i = 1; i < h->user_frames; i++)
		if (frames[i].module == &sample_unknown) {
			h->user_frames = i;
			h->flags |= HIT_CUT;
		}
}

/* Whether the kernel has not told the build-id of some frame's file yet. */
static bool some_untold(const struct hit *h)
{
	const struct frame *frames = h->frames + h->kernel_frames;

	/* Of a stack that is unwound the answer tells the leaf's alone. */
	if (h->flags & SAMPLE_UNWOUND)
		return h->user_frames > 0 && symbols_untold(frames[0].module);
	for (uint16_t i = 0; i < h->user_frames; i++)
		if (symbols_untold(frames[i].module))
			return true;
	return false;
}

/*
 * In whose mappings the stack was walked; NULL when that is not known any more. A child's first
 * ones are its parent's: by the time its own can be read it may be another image, or gone.
 */
static const struct process *walked_in(struct agent *a, const struct process *p,
				       const struct sample *s)
{
	if (s->flags & SAMPLE_UNWOUND && s->inherited)
		return unwinding_ancestor(a, s->inherited, s->time_ns);
	return p;
}

static void decode_raw(struct agent *a, struct process *p, const struct mappings *maps,
		       uint32_t image, const uint64_t *addresses, struct hit *h)
{
	struct frame *frames = h->frames + h->kernel_frames;
	bool again = false;

	for (uint16_t i = 0; i < h->user_frames; i++)
		if (!resolve(maps, addresses[i], &frames[i]))
			again = true;
	/* Something was mapped since (dlopen, a new image): read once more, at most every 100 ms.
	 */
	if (again && maps == &p->maps && maps->read_ns <= h->time_ns &&
	    process_map(a, p, h->time_ns)) {
		maps = process_maps_at(p, h->time_ns, image);
		for (uint16_t i = 0; i < h->user_frames; i++)
			resolve(maps, addresses[i], &frames[i]);
	}
	if (again)
		cut(h, frames);
	if (some_untold(h))
		process_ask_ids(a, p);
}

/*
 * One frame that the kernel resolved. With its address it is known which mapping has which
 * build-id: that is kept, for the frames that come without.
 */
static void decode_build_id(struct agent *a, const struct frame_build_id *id,
			    const struct mapping *m, struct frame *ret_frame)
{
	/* For an address below a mapping the kernel tells that one's file (find_vma). */
	bool told = id->status == 1 && id->offset_or_ip <= INT64_MAX;
	struct module *module;

	if (m && symbols_untold(m->module))
		symbols_told(a->symbols, m->module, told ? id->build_id : NULL);
	if (told && m && symbols_is(a->symbols, m->module, id->build_id))
		*ret_frame = (struct frame){ m->module, id->offset_or_ip };
	else if (told && symbols_module_by_build_id(a->symbols, id->build_id, &module) == 0)
		*ret_frame = (struct frame){ module, id->offset_or_ip };
	else
		*ret_frame = (struct frame){ &sample_unknown, id->offset_or_ip };
}

/* `addresses` is NULL when the sample came without them. */
static void decode_build_ids(struct agent *a, const struct frame_build_id *ids,
			     const uint64_t *addresses, const struct mappings *maps, struct hit *h)
{
	struct frame *frames = h->frames + h->kernel_frames;

	for (uint16_t i = 0; i < h->user_frames; i++) {
		uint64_t address = addresses ? addresses[i] : 0;
		const struct mapping *m = addresses ? mappings_find(maps, address) : NULL;

		/* The kernel tells the file of data, too: no return address, if all code is known.
		 */
		if (addresses && !m && maps->count && maps->read_ns >= h->time_ns) {
			frames[i] = (struct frame){ &sample_unknown, address };
			continue;
		}
		if (m && ids[i].status == 1 && mapping_offset(m, address) != ids[i].offset_or_ip)
			m = NULL; /* something else was mapped there when the sample was taken */
		decode_build_id(a, &ids[i], m, &frames[i]);
		if (ids[i].status != 1)
			resolve(maps, ids[i].offset_or_ip, &frames[i]);
	}
	cut(h, frames);
}

/* Without a place for the process nothing of it is known: addresses as they are. */
static void decode_unknown(const struct sample *s, const uint8_t *user, struct hit *h)
{
	struct frame *frames = h->frames + h->kernel_frames;
	const struct frame_build_id *ids = (const struct frame_build_id *)user;
	const uint64_t *addresses = (const uint64_t *)user;

	for (uint16_t i = 0; i < h->user_frames; i++)
		frames[i] = (struct frame){
			.module = &sample_unknown,
			.offset = s->flags & SAMPLE_BUILD_ID ? ids[i].offset_or_ip : addresses[i],
		};
	cut(h, frames);
}

static void decode_by_kernel(struct agent *a, struct process *p, const struct sample *s,
			     const uint8_t *user, struct hit *h)
{
	const struct frame_build_id *ids = (const struct frame_build_id *)user;

	/* The kernel side does not know it as mapped: fresh, or it has a new image, or we asked. */
	if (!process_asked_ids(a, p, s->time_ns))
		process_map_image(a, p, s->time_ns);
	decode_build_ids(a, ids,
			 s->flags & SAMPLE_ADDRESSES ? (const uint64_t *)(ids + h->user_frames)
						     : NULL,
			 process_maps_at(p, s->time_ns, s->image), h);
}

/* The build-id of the leaf's file, behind a stack that was unwound. */
static void take_leaf_id(struct agent *a, struct process *p, const struct mappings *maps,
			 const uint64_t *addresses, const struct hit *h)
{
	const struct frame_build_id *id =
		(const struct frame_build_id *)(addresses + h->user_frames);
	const struct mapping *m = h->user_frames ? mappings_find(maps, addresses[0]) : NULL;

	process_asked_ids(a, p, h->time_ns);
	if (!m || !symbols_untold(m->module))
		return;
	if (id->status == 1 && mapping_offset(m, addresses[0]) != id->offset_or_ip)
		return; /* something else was mapped there when the sample was taken */
	symbols_told(a->symbols, m->module, id->status == 1 ? id->build_id : NULL);
}

static bool is_later(uint32_t image, uint32_t than)
{
	return (int32_t)(image - than) > 0;
}

static void decode_by_mappings(struct agent *a, struct process *p, const struct sample *s,
			       const uint64_t *user, struct hit *h)
{
	static const struct mappings none;
	const struct mappings *maps;
	const struct process *in;

	process_map(a, p, p->maps.count && is_later(s->image, p->maps.image) ? s->time_ns : 0);
	in = walked_in(a, p, s);
	maps = in ? process_maps_at(in, s->time_ns, s->image) : &none;
	if (h->flags & SAMPLE_LEAF_ID)
		take_leaf_id(a, p, maps, user, h);
	unwinding_sample(a, p, h->flags & SAMPLE_UNWOUND, h->time_ns);
	if (in)
		h->user_end = unwinding_end(in, h->user_end);
	decode_raw(a, p, maps, s->image, user, h);
}

struct process *sample_decode(struct agent *a, const struct sample *s, struct hit *h)
{
	const uint8_t *body = (const uint8_t *)(s + 1);
	const uint64_t *kernel = (const uint64_t *)body;
	const uint8_t *user = body + s->kernel_frames * sizeof(uint64_t);
	struct process *p;

	*h = (struct hit){
		.time_ns = s->time_ns,
		.start_ns = s->start_ns,
		.tgid = s->tgid,
		.tid = s->tid,
		.slot = s->slot,
		.epoch = s->epoch,
		.seq = s->seq,
		.cpu = s->cpu,
		.flags = s->flags,
		.kernel_frames = s->kernel_frames,
		.user_frames = s->user_frames,
		.user_error = s->user_error,
		.image = s->image,
		.user_end = s->flags & SAMPLE_UNWOUND ? s->user_end : 0,
	};
	memcpy(h->comm, s->comm, sizeof(h->comm) - 1);
	for (uint16_t i = 0; i < s->kernel_frames; i++)
		h->frames[i] = (struct frame){ .offset = kernel[i] };
	if (s->flags & SAMPLE_KTHREAD)
		h->user_frames = 0;
	if (process_get(a, s->tgid, s->start_ns, &p) < 0) {
		decode_unknown(s, user, h);
		return NULL;
	}
	if (!p->comm[0] && s->tid == s->tgid)
		memcpy(p->comm, h->comm, sizeof(p->comm));
	if (s->flags & SAMPLE_KTHREAD)
		return p;
	if (s->flags & SAMPLE_BUILD_ID)
		decode_by_kernel(a, p, s, user, h);
	else
		decode_by_mappings(a, p, s, (const uint64_t *)user, h);
	return p;
}
