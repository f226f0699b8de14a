/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/sampling/sample_decode.h"

#include <string.h>

#include "consumer/sampling/sample_record.h"

/* Returns the user frames of a sample. */
static struct frame *user_of(struct stack_sample *sample)
{
	return sample->frames + sample->kernel_frames;
}

/* Resolves one raw address. False if no mapping that was read contains it. */
static bool resolve_address(const struct mappings *maps, uint64_t address, struct frame *ret_frame)
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
 * Ends the chain before the first caller outside all executable mappings: it is no return address,
 * because code without frame pointers uses that register for data. The leaf stays: it is the
 * program's instruction pointer.
 */
static void cut_chain(struct stack_sample *sample)
{
	const struct frame *frames = user_of(sample);

	for (uint16_t i = 1; i < sample->user_frames; i++)
		if (frames[i].module == &stack_sample_unknown) {
			sample->user_frames = i;
			sample->flags |= STACK_SAMPLE_CUT;
		}
}

/* Returns whether a frame's file has no known build-id yet. */
static bool lacks_build_ids(struct stack_sample *sample)
{
	const struct frame *frames = user_of(sample);

	/* For an unwound stack the kernel reports only the build-id of the leaf's file. */
	if (sample->flags & SAMPLE_UNWOUND)
		return sample->user_frames > 0 && symbols_lacks_build_id(frames[0].module);
	for (uint16_t i = 0; i < sample->user_frames; i++)
		if (symbols_lacks_build_id(frames[i].module))
			return true;
	return false;
}

static bool has_id(struct symbols *symbols, const struct module *m, const struct frame_build_id *id)
{
	uint8_t known[SYMBOLS_BUILD_ID_MAX];

	return symbols_build_id(symbols, m, known) == BUILD_ID_BYTES &&
	       !memcmp(known, id->build_id, BUILD_ID_BYTES);
}

/*
 * Resolves the only frame of a walk by the build-id in the record: the walk ended at the leaf,
 * because the leaf is in no range of the table or in an unconfirmed one.
 */
static void resolve_leaf(const struct sample_context *c, const struct mappings *maps,
			 const struct sample *record, struct frame *leaf)
{
	const struct frame_build_id *id = sample_record_leaf_id(record);
	uint64_t address;
	const struct mapping *m;
	struct module *module;

	if (!id || record->user_frames != 1 || id->status != 1 || id->offset_or_ip > INT64_MAX)
		return;
	address = sample_record_addresses(record)[0];
	m = mappings_find(maps, address);
	if (m && has_id(c->symbols, m->module, id))
		*leaf = (struct frame){ m->module, id->offset_or_ip };
	else if (symbols_module_by_build_id(c->symbols, id->build_id, &module) == 0)
		*leaf = (struct frame){ module, id->offset_or_ip };
}

/*
 * Resolves those of the first `count` frames that have no module yet. True if `maps` lacks some. A
 * leaf with SAMPLE_LEAF_CHANGED stays as it is: its file is not the table's, and only the kernel
 * knows it.
 */
static bool resolve_frames(const struct mappings *maps, const struct sample *record, uint16_t count,
			   struct frame *frames)
{
	const uint64_t *addresses = sample_record_addresses(record);
	uint64_t marks = record->flags & SAMPLE_UNWOUND ? STACK_SAMPLE_MARKS : 0;
	bool missing = false;

	for (uint16_t i = record->flags & SAMPLE_LEAF_CHANGED ? 1 : 0; i < count; i++) {
		uint64_t mark = i > 0 ? addresses[i] & marks : 0;

		if (frames[i].module != &stack_sample_unknown)
			continue;
		missing = !resolve_address(maps, addresses[i] ^ mark, &frames[i]) || missing;
		frames[i].offset |= mark;
	}
	return missing;
}

/* Cuts the chain before an unresolved frame; requests build-ids that are still unknown. */
static void finish_chain(const struct sample_context *c, bool missing, struct stack_sample *sample,
			 struct sample_asks *asks)
{
	if (missing)
		cut_chain(sample);
	asks->build_ids = lacks_build_ids(sample);
	/* A table without rows walks by frame pointers alone. */
	if (c->table && !c->table->rows) {
		sample->flags &= ~(uint32_t)SAMPLE_UNWOUND;
		sample->stop_reason = UNWIND_END_NONE;
	}
}

/*
 * Returns how a walk ended, including two facts that the kernel side does not report: whether the
 * table omitted mappings, and whether the last step followed the frame pointer.
 */
static enum unwind_end end_of_walk(const struct walk_table *table, const struct sample *record)
{
	bool no_caller = record->stop_reason == UNWIND_END_NO_CALLER;

	if (no_caller && record->flags & SAMPLE_BY_POINTER)
		return UNWIND_END_NO_POINTERS;
	if (table && table->cut && (no_caller || record->stop_reason == UNWIND_END_NO_MAPPING))
		return UNWIND_END_NO_PLACE;
	return (enum unwind_end)record->stop_reason;
}

/*
 * Decodes a record with addresses only. The frames of a walked stack are in the mappings from which
 * its table was made; the frames of any other stack are in the process's mappings.
 */
static void decode_addresses(const struct sample_context *c, const struct sample *record,
			     struct stack_sample *sample, struct sample_asks *asks)
{
	static const struct mappings none;
	const uint64_t *addresses = sample_record_addresses(record);
	const struct process *p = c->process;
	bool walked = record->flags & SAMPLE_UNWOUND, missing;
	const struct mappings *maps = c->maps;
	struct frame *frames = user_of(sample);

	if (walked) {
		maps = c->table ? &c->table->maps : &none;
		sample->stop_reason = end_of_walk(c->table, record);
	}
	for (uint16_t i = 0; i < sample->user_frames; i++)
		frames[i] = (struct frame){ &stack_sample_unknown, SAMPLE_ADDRESS(addresses[i]) };
	resolve_leaf(c, maps, record, frames);
	missing = resolve_frames(maps, record, sample->user_frames, frames);
	/* The process has mapped something since (dlopen, a new image). */
	asks->mappings =
		missing && (walked || maps == &p->maps) && p->maps.read_ns <= record->time_ns;
	if (!asks->mappings)
		finish_chain(c, missing, sample, asks);
}

/* Adds the frames of the runtime after the native ones. */
static void add_runtime(const struct sample *record, struct stack_sample *sample)
{
	const struct sample_runtime *r = sample_record_runtime(record);
	struct frame *frames = user_of(sample) + sample->user_frames;
	const uint64_t *words = (const uint64_t *)(r + 1);

	if (!r || !sample->user_frames)
		return;
	for (uint16_t i = 0; i < r->frames; i++)
		frames[i] = (struct frame){ &stack_sample_runtime, words[i] };
	sample->runtime_frames = r->frames;
	sample->runtime_end = r->end;
	sample->user_frames += r->frames;
}

void sample_decode_missing(const struct sample_context *c, const struct mappings *fresh,
			   const struct sample *record, struct stack_sample *sample,
			   struct sample_asks *ret_asks)
{
	uint16_t count = sample->user_frames;

	/* In a walked stack only the leaf may be outside the table's mappings. */
	if (record->flags & SAMPLE_UNWOUND && count > 1)
		count = 1;
	if (fresh)
		resolve_frames(fresh, record, count, user_of(sample));
	finish_chain(c, true, sample, ret_asks);
	add_runtime(record, sample);
}

/* Decodes one frame that the kernel resolved. */
static void decode_id(struct symbols *symbols, const struct frame_build_id *id,
		      const struct mapping *m, struct frame *ret_frame)
{
	/* For an address below a mapping the kernel names the file of that mapping (find_vma). */
	bool known = id->status == 1 && id->offset_or_ip <= INT64_MAX;
	struct module *module;

	if (known && m && symbols_is(symbols, m->module, id->build_id))
		*ret_frame = (struct frame){ m->module, id->offset_or_ip };
	else if (known && symbols_module_by_build_id(symbols, id->build_id, &module) == 0)
		*ret_frame = (struct frame){ module, id->offset_or_ip };
	else
		*ret_frame = (struct frame){ &stack_sample_unknown, id->offset_or_ip };
}

static void decode_ids(const struct sample_context *c, const struct sample *record,
		       struct stack_sample *sample)
{
	const struct frame_build_id *ids = sample_record_ids(record);
	const uint64_t *addresses = sample_record_addresses(record);
	struct frame *frames = user_of(sample);

	for (uint16_t i = 0; i < sample->user_frames; i++) {
		uint64_t address = addresses ? addresses[i] : 0;
		const struct mapping *m = addresses ? mappings_find(c->maps, address) : NULL;

		/*
		 * The kernel also names files of data mappings. When all code mappings are known,
		 * an address outside them is no return address.
		 */
		if (addresses && !m && c->maps->count && c->maps->read_ns >= record->time_ns) {
			frames[i] = (struct frame){ &stack_sample_unknown, address };
			continue;
		}
		if (m && ids[i].status == 1 && mapping_offset(m, address) != ids[i].offset_or_ip)
			m = NULL; /* something else was mapped there when the sample was taken */
		decode_id(c->symbols, &ids[i], m, &frames[i]);
		if (ids[i].status != 1)
			resolve_address(c->maps, ids[i].offset_or_ip, &frames[i]);
	}
	cut_chain(sample);
}

/*
 * Keeps the addresses as they are: without an entry in the process table nothing is known about the
 * process.
 */
static void decode_unknown(const struct sample *record, struct stack_sample *sample)
{
	const struct frame_build_id *ids = sample_record_ids(record);
	const uint64_t *addresses = sample_record_addresses(record);
	struct frame *frames = user_of(sample);

	for (uint16_t i = 0; i < sample->user_frames; i++)
		frames[i] = (struct frame){
			.module = &stack_sample_unknown,
			.offset = ids ? ids[i].offset_or_ip : SAMPLE_ADDRESS(addresses[i]),
		};
	cut_chain(sample);
}

void sample_decode(const struct sample_context *c, const struct sample *record,
		   struct stack_sample *ret_sample, struct sample_asks *ret_asks)
{
	const uint64_t *kernel = sample_record_kernel(record);

	*ret_asks = (struct sample_asks){ 0 };
	*ret_sample = (struct stack_sample){
		.time_ns = record->time_ns,
		.start_ns = record->start_ns,
		.tgid = record->tgid,
		.tid = record->tid,
		.slot = record->slot,
		.epoch = record->epoch,
		.seq = record->seq,
		.cpu = record->cpu,
		.flags = record->flags,
		.kernel_frames = record->kernel_frames,
		.user_frames = record->user_frames,
		.user_error = record->user_error,
		.image = record->image,
		.call = record->call,
		.cgroup_id = record->cgroup_id,
		.stop_reason = record->flags & SAMPLE_UNWOUND ? record->stop_reason : 0,
	};
	if (sample_record_waker(record)) {
		ret_sample->weight_ns = sample_record_waker(record)->weight_ns;
		ret_sample->lock = sample_record_waker(record)->lock;
	}
	memcpy(ret_sample->comm, record->comm, sizeof(ret_sample->comm) - 1);
	for (uint16_t i = 0; i < record->kernel_frames; i++)
		ret_sample->frames[i] = (struct frame){ .offset = kernel[i] };
	if (record->flags & SAMPLE_KTHREAD)
		ret_sample->user_frames = 0;
	else if (!c->process)
		decode_unknown(record, ret_sample);
	else if (record->flags & SAMPLE_BUILD_ID)
		decode_ids(c, record, ret_sample);
	else
		decode_addresses(c, record, ret_sample, ret_asks);
	if (!ret_asks->mappings)
		add_runtime(record, ret_sample);
}
