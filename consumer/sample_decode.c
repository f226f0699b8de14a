/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/sample_decode.h"

#include <string.h>

#include "consumer/agent.h"
#include "consumer/process_mappings.h"

/* Resolves one raw address; false when no mapping that was read holds it. */
static bool resolve(const struct mappings *maps, uint64_t address, struct frame *ret_frame)
{
	const struct mapping *m = mappings_find(maps, address);

	if (!m) {
		*ret_frame = (struct frame){ .module = &stack_sample_unknown, .offset = address };
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
static void cut(struct stack_sample *h, const struct frame *frames)
{
	for (uint16_t i = 1; i < h->user_frames; i++)
		if (frames[i].module == &stack_sample_unknown) {
			h->user_frames = i;
			h->flags |= STACK_SAMPLE_CUT;
		}
}

/* Whether the kernel has not told the build-id of some frame's file yet. */
static bool some_untold(const struct stack_sample *h)
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

/* The leaf lies in a file that the table does not know: only the kernel can tell which. */
static bool is_lost(const struct stack_sample *h, uint16_t i)
{
	return i == 0 && h->flags & SAMPLE_LEAF_CHANGED;
}

static bool has_id(struct agent *a, const struct module *m, const struct frame_build_id *id)
{
	uint8_t known[SYMBOLS_BUILD_ID_MAX];

	return symbols_build_id(a->symbols, m, known) == BUILD_ID_BYTES &&
	       !memcmp(known, id->build_id, BUILD_ID_BYTES);
}

/*
 * The leaf of a walk that ended there, in no range of the table or in a hole of it, by the build-id
 * that came with it.
 */
static void resolve_leaf(struct agent *a, const struct mappings *maps, const uint64_t *addresses,
			 const struct stack_sample *h, struct frame *leaf)
{
	const struct frame_build_id *id =
		(const struct frame_build_id *)(addresses + h->user_frames);
	const struct mapping *m;
	struct module *module;

	if (!(h->flags & SAMPLE_LEAF_ID) || h->user_frames != 1 || id->status != 1 ||
	    id->offset_or_ip > INT64_MAX)
		return;
	m = mappings_find(maps, addresses[0]);
	if (m && has_id(a, m->module, id))
		*leaf = (struct frame){ m->module, id->offset_or_ip };
	else if (symbols_module_by_build_id(a->symbols, id->build_id, &module) == 0)
		*leaf = (struct frame){ module, id->offset_or_ip };
}

/* Resolves the first frames that are not resolved yet. True when some are not in `maps`. */
static bool resolve_all(const struct mappings *maps, const uint64_t *addresses,
			const struct stack_sample *h, uint16_t count, struct frame *frames)
{
	bool missing = false;

	for (uint16_t i = 0; i < count; i++)
		if (frames[i].module == &stack_sample_unknown && !is_lost(h, i))
			missing = !resolve(maps, addresses[i], &frames[i]) || missing;
	return missing;
}

/*
 * `maps` is what the stack was walked in, or what was mapped when the sample was taken. Of a stack
 * that was walked by a table only the leaf may lie elsewhere.
 */
static void decode_raw(struct agent *a, struct process *p, const struct mappings *maps,
		       uint32_t image, const uint64_t *addresses, struct stack_sample *h)
{
	struct frame *frames = h->frames + h->kernel_frames;
	bool walked = h->flags & SAMPLE_UNWOUND, missing;
	uint16_t elsewhere = walked ? h->user_frames > 0 : h->user_frames;

	for (uint16_t i = 0; i < h->user_frames; i++)
		frames[i] =
			(struct frame){ .module = &stack_sample_unknown, .offset = addresses[i] };
	resolve_leaf(a, maps, addresses, h, frames);
	missing = resolve_all(maps, addresses, h, h->user_frames, frames);
	/* Something was mapped since (dlopen, a new image): read once more, at most every 100 ms.
	 */
	if (missing && (walked || maps == &p->maps) && p->maps.read_ns <= h->time_ns &&
	    process_mappings_read(&a->mappings, p, h->time_ns))
		resolve_all(process_mappings_at(p, h->time_ns, image), addresses, h, elsewhere,
			    frames);
	if (missing)
		cut(h, frames);
	if (some_untold(h))
		process_mappings_ask_build_ids(&a->mappings, p);
}

/*
 * Whether that module lay at `address` when the sample was taken: it did in a reading before and in
 * one after. What a single reading says may have been something else a moment before or behind.
 */
static bool lay_there(struct agent *a, struct process *p, const struct module *module,
		      uint64_t address, uint64_t time_ns)
{
	const struct mapping *m;

	process_mappings_read_image(&a->mappings, p, time_ns);
	m = mappings_find(&p->maps, address);
	return m && m->module == module && m->since_ns <= time_ns && p->maps.read_ns >= time_ns;
}

/*
 * With the address of a frame that the kernel resolved it is known which module has which build-id:
 * that is kept, for the frames that come without.
 */
static void learn_id(struct agent *a, struct process *p, const struct frame_build_id *id,
		     uint64_t address, uint64_t time_ns)
{
	const struct mapping *m = mappings_find(&p->maps, address);
	bool told = id->status == 1 && id->offset_or_ip <= INT64_MAX;
	struct module *module = m ? m->module : NULL;

	if (!m || !symbols_untold(module))
		return;
	if (id->status == 1 && mapping_offset(m, address) != id->offset_or_ip)
		return; /* something else was mapped there when the sample was taken */
	if (lay_there(a, p, module, address, time_ns))
		symbols_told(a->symbols, module, told ? id->build_id : NULL);
}

/* One frame that the kernel resolved. */
static void decode_build_id(struct agent *a, const struct frame_build_id *id,
			    const struct mapping *m, struct frame *ret_frame)
{
	/* For an address below a mapping the kernel tells that one's file (find_vma). */
	bool told = id->status == 1 && id->offset_or_ip <= INT64_MAX;
	struct module *module;

	if (told && m && symbols_is(a->symbols, m->module, id->build_id))
		*ret_frame = (struct frame){ m->module, id->offset_or_ip };
	else if (told && symbols_module_by_build_id(a->symbols, id->build_id, &module) == 0)
		*ret_frame = (struct frame){ module, id->offset_or_ip };
	else
		*ret_frame = (struct frame){ &stack_sample_unknown, id->offset_or_ip };
}

/* `addresses` is NULL when the sample came without them. */
static void decode_build_ids(struct agent *a, const struct frame_build_id *ids,
			     const uint64_t *addresses, const struct mappings *maps,
			     struct stack_sample *h)
{
	struct frame *frames = h->frames + h->kernel_frames;

	for (uint16_t i = 0; i < h->user_frames; i++) {
		uint64_t address = addresses ? addresses[i] : 0;
		const struct mapping *m = addresses ? mappings_find(maps, address) : NULL;

		/* The kernel tells the file of data, too: no return address, if all code is known.
		 */
		if (addresses && !m && maps->count && maps->read_ns >= h->time_ns) {
			frames[i] = (struct frame){ &stack_sample_unknown, address };
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
static void decode_unknown(const struct sample *s, const uint8_t *user, struct stack_sample *h)
{
	struct frame *frames = h->frames + h->kernel_frames;
	const struct frame_build_id *ids = (const struct frame_build_id *)user;
	const uint64_t *addresses = (const uint64_t *)user;

	for (uint16_t i = 0; i < h->user_frames; i++)
		frames[i] = (struct frame){
			.module = &stack_sample_unknown,
			.offset = s->flags & SAMPLE_BUILD_ID ? ids[i].offset_or_ip : addresses[i],
		};
	cut(h, frames);
}

static void decode_by_kernel(struct agent *a, struct process *p, const struct sample *s,
			     const uint8_t *user, struct stack_sample *h)
{
	const struct frame_build_id *ids = (const struct frame_build_id *)user;
	const uint64_t *addresses = NULL;

	if (s->flags & SAMPLE_ADDRESSES)
		addresses = (const uint64_t *)(ids + h->user_frames);
	/* The kernel side does not know it as mapped: fresh, or it has a new image, or we asked. */
	if (!process_mappings_answered(&a->mappings, p, s->time_ns))
		process_mappings_read_image(&a->mappings, p, s->time_ns);
	for (uint16_t i = 0; addresses && i < h->user_frames; i++)
		if (p->maps.image == s->image)
			learn_id(a, p, &ids[i], addresses[i], s->time_ns);
	decode_build_ids(a, ids, addresses, process_mappings_at(p, s->time_ns, s->image), h);
}

/* The build-id of the leaf's file, behind a stack that was unwound. */
static void take_leaf_id(struct agent *a, struct process *p, const uint64_t *addresses,
			 const struct stack_sample *h)
{
	const struct frame_build_id *id =
		(const struct frame_build_id *)(addresses + h->user_frames);

	process_mappings_answered(&a->mappings, p, h->time_ns);
	if (h->user_frames && !is_lost(h, 0) && p->maps.image == h->image)
		learn_id(a, p, id, addresses[0], h->time_ns);
}

static bool is_later(uint32_t image, uint32_t than)
{
	return (int32_t)(image - than) > 0;
}

static enum unwind_end end_of(const struct sample *s, bool cut)
{
	bool no_caller = s->user_end == UNWIND_END_NO_CALLER;

	if (no_caller && s->flags & SAMPLE_BY_POINTER)
		return UNWIND_END_NO_POINTERS;
	if (cut && (no_caller || s->user_end == UNWIND_END_NO_MAPPING))
		return UNWIND_END_NO_PLACE;
	return (enum unwind_end)s->user_end;
}

static void decode_by_mappings(struct agent *a, struct process *p, const struct sample *s,
			       const uint64_t *user, struct stack_sample *h)
{
	static const struct mappings none;
	bool walked = h->flags & SAMPLE_UNWOUND;
	bool later = p->maps.count && is_later(s->image, p->maps.image);
	const struct walk_table *table = walked ? process_unwind_table(&a->unwind, s) : NULL;
	const struct mappings *maps;

	if (process_unwind_sample(&a->unwind, p, walked, h->time_ns))
		later = true;
	process_mappings_read(&a->mappings, p, later ? s->time_ns : 0);
	if (walked)
		maps = table ? &table->maps : &none;
	else
		maps = process_mappings_at(p, s->time_ns, s->image);
	h->user_end = walked ? end_of(s, table && table->cut) : 0;
	if (h->flags & SAMPLE_LEAF_ID)
		take_leaf_id(a, p, user, h);
	decode_raw(a, p, maps, s->image, user, h);
	if (table && !table->rows) {
		h->flags &= ~(uint32_t)SAMPLE_UNWOUND;
		h->user_end = UNWIND_END_NONE;
	}
}

struct process *sample_decode(struct agent *a, const struct sample *s, struct stack_sample *h)
{
	const uint8_t *body = (const uint8_t *)(s + 1);
	const uint64_t *kernel = (const uint64_t *)body;
	const uint8_t *user = body + s->kernel_frames * sizeof(uint64_t);
	struct process *p;

	*h = (struct stack_sample){
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
	if (process_get(&a->processes, s->tgid, s->start_ns, &p) < 0) {
		decode_unknown(s, user, h);
		return NULL;
	}
	if (!p->cgroup_id && a->watches.by_slot[s->slot])
		p->cgroup_id = a->watches.by_slot[s->slot]->cgroup_id;
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
