/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/sampling/drain.h"

#include <string.h>

#include "consumer/io/turn.h"
#include "consumer/process/process_rule.h"
#include "consumer/runtimes/code_names.h"
#include "consumer/sampling/sample_build_ids.h"
#include "consumer/sampling/sample_decode.h"
#include "consumer/sampling/sample_record.h"

/* Space for the deepest sample; only the main thread uses it. */
static union {
	struct stack_sample sample;
	uint8_t room[sizeof(struct stack_sample) + STACK_SAMPLE_FRAMES_MAX * sizeof(struct frame)];
} scratch;

/* Returns the process of a record, or NULL when the process table is full. */
static struct process *find_process(struct drain *d, const struct sample *record)
{
	struct process *p;

	if (process_get(d->processes, record->tgid, record->start_ns, &p) < 0) {
		d->counts->processes_full++;
		return NULL;
	}
	process_back(d->processes, p);
	if (!p->cgroup_id)
		p->cgroup_id = record->cgroup_id;
	if (!p->comm[0] && record->tid == record->tgid)
		memcpy(p->comm, record->comm, sizeof(p->comm) - 1);
	return p;
}

/*
 * Records the kernel's report of one module. If a build-id differs from the known one, the kernel
 * is asked once more, because the sample may be older than the mapping; the second time the module
 * is retired, and the mappings of each process that has it are read again.
 */
static void learn_build_id(struct drain *d, struct process *p, const struct sample_build_id *id)
{
	if (!id->confirmed) {
		if (!id->other)
			return;
		symbols_doubt_build_id(id->module);
		process_mappings_ask_build_ids(d->mappings, p);
	} else if ((id->other || symbols_lacks_build_id(id->module)) &&
		   !symbols_learn_build_id(d->symbols, id->module, id->build_id)) {
		process_mappings_renew(d->mappings, id->module);
	}
}

/*
 * Records the build-ids of modules that this record shows, for samples that arrive without
 * build-ids. One reading of the mappings may show another file than was mapped when the sample was
 * taken, so a second reading has to confirm it.
 */
static const struct mappings *learn_build_ids(struct drain *d, struct process *p,
					      const struct sample *record)
{
	static struct sample_build_ids ids;

	sample_build_ids_find(d->symbols, record, &p->maps, &ids);
	if (ids.count > 0) {
		process_mappings_read_image(d->mappings, p, record->time_ns);
		sample_build_ids_find(d->symbols, record, &p->maps, &ids);
	}
	for (size_t i = 0; i < ids.count; i++)
		learn_build_id(d, p, &ids.items[i]);
	return process_mappings_at(p, record->time_ns, record->image);
}

/*
 * Decodes a record. If an address is in no mapping that was read, reads the mappings again, because
 * the process has mapped something since, and decodes the rest.
 */
static void decode_sample(struct drain *d, struct process *p, const struct sample *record)
{
	struct sample_context context = { .symbols = d->symbols, .process = p };
	const struct mappings *fresh = NULL;
	struct sample_asks asks;
	bool refused;

	if (p && !(record->flags & SAMPLE_KTHREAD)) {
		refused = process_unwind_sampled(d->unwind, p, record, &context.table);
		context.maps = process_mappings_sampled(d->mappings, p, record, refused);
		if (record->flags & (SAMPLE_BUILD_ID | SAMPLE_LEAF_ID))
			context.maps = learn_build_ids(d, p, record);
	}
	sample_decode(&context, record, &scratch.sample, &asks);
	if (asks.mappings) {
		if (process_mappings_read(d->mappings, p, record->time_ns))
			fresh = process_mappings_at(p, record->time_ns, record->image);
		sample_decode_missing(&context, fresh, record, &scratch.sample, &asks);
	}
	if (asks.build_ids)
		process_mappings_ask_build_ids(d->mappings, p);
}

/*
 * Decodes a record with the known mappings of its process. Reads no mappings and makes no table for
 * it: that would cost far more than the sample that found the thread asleep. With `asks`, has the
 * mappings read later, together with those of other processes.
 */
static void decode_known(struct drain *d, struct process *p, const struct sample *record, bool asks)
{
	struct sample_context context = { .symbols = d->symbols, .process = p };
	struct sample_asks wants;

	if (p && !(record->flags & SAMPLE_KTHREAD)) {
		context.table = process_unwind_table(d->unwind, record);
		context.maps = process_mappings_at(p, record->time_ns, record->image);
		if (asks && !context.maps->count)
			mappings_queue_ask(d->queue, p, record->time_ns);
	}
	sample_decode(&context, record, &scratch.sample, &wants);
}

struct stack_sample *drain_decode(struct drain *d, const struct sample *record, size_t bytes,
				  enum drain_effort effort, const struct process **ret_process)
{
	bool walked = effort == DRAIN_ASK && mappings_queue_is_used(d->queue);
	const struct abi_header *abi = &d->pins->abi;
	struct drain_slot slot;
	struct process *p;

	if (!sample_record_valid(record, bytes, abi->slots, abi->cpus_possible)) {
		d->counts->bad_records++;
		return NULL;
	}
	slot = d->calls->slot(d->context, record->slot);
	p = find_process(d, record);
	if (slot.cgroup_id && record->cgroup_id != slot.cgroup_id)
		d->calls->below(d->context, record->cgroup_id, record->tgid);
	if (effort == DRAIN_KNOWN || walked)
		decode_known(d, p, record, walked);
	else
		decode_sample(d, p, record);
	scratch.sample.rule_id =
		process_rule_at_tick(d->active, d->cgroups, record, p, record->cgroup_id);
	*ret_process = p;
	return &scratch.sample;
}

static void take_record(void *context, const void *record, size_t bytes)
{
	struct drain *d = context;
	const struct sample *sample = record;
	const struct process *p;
	struct drain_slot slot;

	d->counts->samples++;
	if (!drain_decode(d, sample, bytes, DRAIN_READ, &p))
		return;
	slot = d->calls->slot(d->context, sample->slot);
	if (d->calls->session(d->context, &scratch.sample, p))
		return;
	if (slot.cgroup_id && slot.epoch == sample->epoch && !(sample->flags & SAMPLE_WAKER))
		recorder_add(d->recorder, &scratch.sample);
}

static void take_name(void *context, const void *record, size_t bytes)
{
	code_names_add(context, record, bytes);
}

void drain_samples(struct drain *d)
{
	ring_drain(&d->pins->runtime_names, turn_until_ns(), take_name,
		   symbols_code_names(d->symbols));
	ring_drain(&d->pins->samples, turn_until_ns(), take_record, d);
	process_unwind_step(d->unwind);
}
