/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/rules/ruleset.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/kernel/map_batch.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

int ruleset_new(struct rules *rules, uint32_t generation, const char *source,
		struct ruleset **ret_set)
{
	struct ruleset *set = calloc(1, sizeof(*set));

	if (!set)
		return -ENOMEM;
	set->refs = 1;
	set->generation = generation;
	set->source = strdup(source);
	set->budgets = calloc(MAX(rules->count, (size_t)1), sizeof(*set->budgets));
	set->ids = calloc(MAX(rules->count, (size_t)1), sizeof(*set->ids));
	if (!set->source || !set->budgets || !set->ids) {
		ruleset_unref(set);
		return -ENOMEM;
	}
	set->rules = rules;
	*ret_set = set;
	return 0;
}

struct ruleset *ruleset_ref(struct ruleset *set)
{
	if (set)
		__atomic_add_fetch(&set->refs, 1, __ATOMIC_RELAXED);
	return set;
}

void ruleset_unref(struct ruleset *set)
{
	if (!set || __atomic_sub_fetch(&set->refs, 1, __ATOMIC_ACQ_REL))
		return;
	if (set->rules)
		rules_free(set->rules);
	free(set->budgets);
	free(set->ids);
	free(set->source);
	free(set);
}

void ruleset_number(struct ruleset *to, const struct ruleset *from, uint32_t *last_id)
{
	for (size_t i = 0; i < to->rules->count; i++) {
		const struct rule *rule = &to->rules->rules[i], *same = NULL;

		if (from)
			same = rules_find(from->rules, rule->name);
		to->ids[i] = same && rule_equal(same, rule) ? ruleset_id(from, same) : ++*last_id;
	}
}

uint32_t ruleset_id(const struct ruleset *set, const struct rule *rule)
{
	return rule ? set->ids[rule - set->rules->rules] : RULE_ID_NONE;
}

/* Keys and values of one trie in the form of the batch commands. */
struct batch {
	void *keys; /* count * key_bytes, zeroed after each prefix */
	struct rule_value *values;
	size_t key_bytes;
	size_t count;
};

static void batch_done(struct batch *batch)
{
	free(batch->keys);
	free(batch->values);
}

static int batch_init(struct batch *batch, size_t key_bytes, size_t max)
{
	batch->key_bytes = key_bytes;
	batch->keys = calloc(MAX(max, (size_t)1), key_bytes);
	batch->values = calloc(MAX(max, (size_t)1), sizeof(*batch->values));
	return batch->keys && batch->values ? 0 : -ENOMEM;
}

static void batch_value(struct batch *batch, uint32_t entry, uint32_t generation)
{
	batch->values[batch->count] = (struct rule_value){
		.rule = entry,
		.generation = generation,
	};
	batch->count++;
}

static int comm_batch(const struct ruleset *set, struct batch *batch)
{
	const struct rules *rules = set->rules;
	int r = batch_init(batch, sizeof(struct comm_key), rules->n_by_comm);

	if (r < 0)
		return r;
	for (size_t i = 0; i < rules->n_by_comm; i++) {
		const struct rules_entry *entry = &rules->entries[rules->by_comm[i]];
		struct comm_key *key = (struct comm_key *)batch->keys + batch->count;
		const char *comm = rules_entry_comm(rules, entry);
		size_t bytes = strlen(comm);

		memcpy(key->comm, comm, bytes);
		key->prefix_bits =
			(uint32_t)(8 * (bytes + (rules->rules[entry->rule].comm_exact ? 1 : 0)));
		batch_value(batch, rules->by_comm[i], set->generation);
	}
	return 0;
}

static int cgroup_batch(const struct ruleset *set, struct batch *batch)
{
	const struct rules *rules = set->rules;
	int r = batch_init(batch, sizeof(struct cgroup_key), rules->n_by_cgroup);

	if (r < 0)
		return r;
	for (size_t i = 0; i < rules->n_by_cgroup; i++) {
		const struct rule *rule = &rules->rules[rules->entries[rules->by_cgroup[i]].rule];
		struct cgroup_key *key = (struct cgroup_key *)batch->keys + batch->count;
		size_t bytes = MIN(strlen(rule->cgroup_prefix), sizeof(key->path) - 1);

		memcpy(key->path, rule->cgroup_prefix, bytes);
		key->prefix_bits = (uint32_t)(8 * bytes);
		batch_value(batch, rules->by_cgroup[i], set->generation);
	}
	return 0;
}

/*
 * Fills a trie with one batch update. Before Linux 5.17 LPM tries have no batch update, and a
 * failed batch reports only a count. Then updates one element at a time, which also gives the
 * errno.
 */
static int fill_trie(int fd, const struct batch *batch)
{
	LIBBPF_OPTS(bpf_map_batch_opts, options, .elem_flags = BPF_ANY);
	uint32_t count = (uint32_t)batch->count;

	if (!count)
		return 0;
	if (bpf_map_update_batch(fd, batch->keys, batch->values, &count, &options) == 0)
		return 0;
	for (size_t i = 0; i < batch->count; i++)
		if (bpf_map_update_elem(fd, (char *)batch->keys + i * batch->key_bytes,
					&batch->values[i], BPF_ANY) < 0)
			return -errno;
	return 0;
}

int ruleset_clear(const struct pinned_maps *pins, unsigned int pair)
{
	int r = map_batch_clear(pins->rules_fd[pair], sizeof(struct comm_key));

	return r < 0 ? r : map_batch_clear(pins->cgroups_fd[pair], sizeof(struct cgroup_key));
}

int ruleset_fill(const struct pinned_maps *pins, unsigned int pair, const struct ruleset *set)
{
	_cleanup_(batch_done) struct batch comms = {}, cgroups = {};
	int r;

	r = ruleset_clear(pins, pair);
	if (r < 0)
		return r;
	r = comm_batch(set, &comms);
	if (r < 0)
		return r;
	r = cgroup_batch(set, &cgroups);
	if (r < 0)
		return r;
	r = fill_trie(pins->rules_fd[pair], &comms);
	if (r < 0)
		return r;
	return fill_trie(pins->cgroups_fd[pair], &cgroups);
}
