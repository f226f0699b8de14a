/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/fake_agent_testing.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>

#include "consumer/watch/binding.h"
#include "shared/json/jsonw.h"

static struct fake *fake;

static int setup(void **state)
{
	fake = fake_new();
	return 0;
}

static int teardown(void **state)
{
	if (!fake)
		return 0;
	fake_free(fake);
	return 0;
}

/* A watch of a cgroup that only the cache knows. */
static int get(uint64_t id, struct watch **ret_watch)
{
	char path[32];

	snprintf(path, sizeof(path), "/unit/%u", (unsigned int)id);
	cgroups_learn(&fake->a.cgroups, id << 40, path);
	return watch_get(&fake->a.watches, id << 40, 0, ret_watch);
}

static void test_slots(void **state)
{
	struct watch *w[FAKE_SLOTS + 1], *again;
	uint32_t epoch;

	if (!fake)
		skip();
	for (uint64_t i = 0; i < FAKE_SLOTS; i++) {
		assert_int_equal(get(i + 1, &w[i]), 0);
		assert_int_equal(w[i]->slot, i);
		assert_int_equal(fake->slots[i].state, SLOT_RECORDER);
		assert_int_equal(fake->control.armed, i + 1);
	}
	assert_int_equal(get(1, &again), 0);
	assert_ptr_equal(again, w[0]);
	/* Full: reported once, however often it is tried. */
	assert_int_equal(get(100, &again), -ENOSPC);
	assert_int_equal(get(101, &again), -ENOSPC);
	assert_int_equal(fake_count(fake, "error"), 1);
	/*
	 * The slot of one that went is taken again, under another epoch: its samples are
	 * distinguished.
	 */
	epoch = w[2]->epoch;
	watch_remove(w[2], "cgroup_removed");
	assert_int_equal(fake->slots[2].state, SLOT_IDLE);
	assert_int_equal(fake->control.armed, FAKE_SLOTS - 1);
	assert_int_equal(get(100, &again), 0);
	assert_int_equal(again->slot, 2);
	assert_int_equal(again->epoch, epoch + 1);
	assert_int_equal(fake->slots[2].epoch, epoch + 1);
}

static struct watch *get_at(uint64_t id, const char *path)
{
	struct watch *w = NULL;

	cgroups_learn(&fake->a.cgroups, id, path);
	return watch_get(&fake->a.watches, id, 0, &w) == 0 ? w : NULL;
}

/* The watches of one owner share the kernel side's tables under one number, and no other has it. */
static void test_payers(void **state)
{
	struct watch *a, *b, *other, *late;

	if (!fake)
		skip();
	a = get_at(1ULL << 40, "/user.slice/one/a");
	other = get_at(2ULL << 40, "/system.slice/x.service");
	b = get_at(3ULL << 40, "/user.slice/one/b");
	assert_int_equal(fake->slots[a->slot].payer, fake->slots[b->slot].payer);
	assert_int_not_equal(fake->slots[a->slot].payer, fake->slots[other->slot].payer);
	/* The slot with the number that identifies the owner gets a watch of another one. */
	assert_int_equal(fake->slots[b->slot].payer, a->slot);
	watch_remove(a, "cgroup_removed");
	assert_non_null(get_at(4ULL << 40, "/system.slice/z.service")); /* the last free slot */
	late = get_at(5ULL << 40, "/system.slice/y.service");
	assert_int_equal(late->slot, 0);
	assert_int_not_equal(fake->slots[late->slot].payer, fake->slots[b->slot].payer);
	assert_int_not_equal(fake->slots[late->slot].payer, fake->slots[other->slot].payer);
}

/*
 * The slot of a displaced watch is for the newcomer, also where it becomes free only with a later
 * walk and the displaced cgroup asks first.
 */
static void test_promised(void **state)
{
	uint64_t *frees = fake ? fake->a.watches.tree.frees : NULL;
	struct watch *w[FAKE_SLOTS];
	char path[64];
	uint32_t slot;

	if (!fake)
		skip();
	for (uint64_t i = 0; i < FAKE_SLOTS; i++) {
		snprintf(path, sizeof(path), "/user.slice/flood/%u", (unsigned int)i);
		w[i] = get_at((i + 1) << 40, path);
		w[i]->start_ns = i + 1;
		frees[w[i]->slot] = UINT64_MAX;
	}
	slot = w[FAKE_SLOTS - 1]->slot;
	assert_null(get_at(60ULL << 40, "/system.slice/a.service"));
	assert_null(fake->a.watches.by_slot[slot]);
	for (int i = 0; i < FAKE_SLOTS; i++)
		frees[i] = 0;
	assert_null(get_at((uint64_t)FAKE_SLOTS << 40, path));
	assert_non_null(get_at(60ULL << 40, "/system.slice/a.service"));
	assert_int_equal(fake_count(fake, "watch.stop"), 1);
}

/* A newcomer takes the last place of the owner with most; never one in a session. */
static void test_displaced(void **state)
{
	_cleanup_json_ json_object *line = NULL;
	struct session busy = { 0 };
	struct watch *w[FAKE_SLOTS];
	struct owner *flooder;
	char path[64];

	if (!fake)
		skip();
	for (uint64_t i = 0; i < FAKE_SLOTS; i++) {
		snprintf(path, sizeof(path), "/user.slice/flood/%u", (unsigned int)i);
		w[i] = get_at((i + 1) << 40, path);
		assert_non_null(w[i]);
		w[i]->start_ns = i + 1;
	}
	w[3]->requested = true;
	w[2]->session = &busy;
	flooder = w[3]->owner;
	/* No requested watch gives way, and none in a session. */
	w[0]->requested = w[1]->requested = true;
	assert_null(get_at(59ULL << 40, "/system.slice/early.service"));
	w[0]->requested = w[1]->requested = false;
	/* One more of the same owner finds none. */
	assert_null(get_at(50ULL << 40, "/user.slice/flood/more"));
	assert_non_null(get_at(60ULL << 40, "/system.slice/a.service"));
	assert_null(idmap_get(&fake->a.watches.by_cgroup, 2ULL << 40));
	line = fake_last(fake, "watch.stop");
	assert_string_equal(fake_text(line, "reason"), "displaced");
	assert_string_equal(fake_text(line, "cgroup"), "/user.slice/flood/1");
	/* 3 to 1: another two have room until no owner has more than they would have. */
	assert_non_null(get_at(61ULL << 40, "/system.slice/b.service"));
	assert_null(get_at(62ULL << 40, "/system.slice/a.service/below"));
	assert_int_equal(flooder->held[SHARE_WATCHES], 2);
	assert_int_equal(fake_count(fake, "error"), 1);
	w[2]->session = NULL;
}

static void test_gone(void **state)
{
	struct watch *w;

	if (!fake)
		skip();
	assert_int_equal(watch_get(&fake->a.watches, 1ULL << 50, 0, &w), -ENOENT);
	assert_int_equal(fake->a.watches.count, 0);
	assert_int_equal(fake->control.armed, 0);
}

/* When the kernel's table refuses, nothing is left behind. */
static void test_map_fails(void **state)
{
	int fd = fake ? fake->a.pins.watches_fd : -1;
	const struct watch_entry entry = { 0 };
	struct watch *w;

	if (!fake)
		skip();
	for (uint64_t key = 1; key <= FAKE_SLOTS * WATCH_CGROUPS; key++)
		assert_int_equal(bpf_map_update_elem(fd, &key, &entry, 0), 0);
	assert_true(get(1, &w) < 0);
	assert_int_equal(fake->a.watches.count, 0);
	assert_null(fake->a.watches.by_slot[0]);
	for (uint64_t key = 1; key <= FAKE_SLOTS * WATCH_CGROUPS; key++)
		assert_int_equal(bpf_map_delete_elem(fd, &key), 0);
	assert_int_equal(get(1, &w), 0);
}

/* A rule set of `count` rules by cgroup that all match /unit. */
static void many_rules(unsigned int count)
{
	char *text = malloc(count * 128 + 64);
	size_t at;

	assert_non_null(text);
	at = (size_t)sprintf(text, "{\"version\":1,\"rules\":[");
	for (unsigned int i = 0; i < count; i++)
		at += (size_t)sprintf(text + at,
				      "%s{\"name\":\"r%u\",\"match\":{\"comm\":\"c%u\"},\"when\":[{"
				      "\"pressure\":\"memory\",\"some_ms\":100,\"window_ms\":%u}]}",
				      i ? "," : "", i, i, 500 + i);
	strcpy(text + at, "]}");
	fake_rules(fake, text);
	free(text);
}

static void test_bindings(void **state)
{
	const struct rules *rules;
	struct watch *w;

	if (!fake)
		skip();
	many_rules(BINDINGS_MAX + 1);
	rules = fake->a.active.set->rules;
	assert_int_equal(get(1, &w), 0);
	for (size_t i = 0; i < BINDINGS_MAX; i++) {
		assert_int_equal(binding_add_cgroup(w, &rules->rules[i]), 0);
		assert_int_equal(binding_add_cgroup(w, &rules->rules[i]), 0);
	}
	assert_int_equal(w->n_bindings, BINDINGS_MAX);
	assert_int_equal(binding_add_cgroup(w, &rules->rules[BINDINGS_MAX]), -ENOSPC);
	assert_int_equal(w->n_bindings, BINDINGS_MAX);
	assert_non_null(binding_find(w, &rules->rules[5]));
	assert_null(binding_find(w, &rules->rules[BINDINGS_MAX]));
	assert_int_equal(fake_count(fake, "watch.start"), 1);
}

/* Two rules, by processes and by cgroup. */
static const struct rules *apply_narrow_and_wide(void)
{
	fake_rules(fake, "{\"version\":1,\"rules\":["
			 "{\"name\":\"narrow\",\"match\":{\"comm\":\"a\"},\"capture\":{\"scope\":"
			 "\"process\"}},"
			 "{\"name\":\"wide\",\"match\":{\"comm\":\"b\"}}]}");
	return fake->a.active.set->rules;
}

/* scope: process holds only while every rule of the watch asks for it. */
static void test_scope(void **state)
{
	const struct rules *rules;
	struct watch *w;

	if (!fake)
		skip();
	rules = apply_narrow_and_wide();
	assert_int_equal(get(1, &w), 0);
	assert_int_equal(binding_add_cgroup(w, &rules->rules[0]), 0);
	assert_true(w->by_process);
	assert_int_equal(fake->slots[w->slot].flags, SLOT_BY_PROCESS);
	assert_int_equal(binding_add_cgroup(w, &rules->rules[1]), 0);
	assert_false(w->by_process);
	assert_int_equal(fake->slots[w->slot].flags, 0);
	binding_find(w, &rules->rules[1])->by_cgroup = false;
	bindings_release(w, "rule_gone");
	assert_true(w->by_process);
	assert_int_equal(w->n_bindings, 1);
	w->bindings[0].by_cgroup = false;
	bindings_release(w, "rule_gone");
	assert_int_equal(fake->a.watches.count, 0);
	assert_int_equal(fake_count(fake, "watch.stop"), 1);
}

/* Whether the kernel side's counts by slot are a session's alone. */
static void test_shared(void **state)
{
	const struct rules *rules;
	struct watch *w;

	if (!fake)
		skip();
	rules = apply_narrow_and_wide();
	assert_int_equal(get(1, &w), 0);
	assert_int_equal(binding_add_cgroup(w, &rules->rules[0]), 0);
	assert_false(watch_shares_slot(w, &rules->rules[0], 0));
	assert_true(watch_shares_slot(w, NULL, 7));
	assert_int_equal(binding_add_cgroup(w, &rules->rules[1]), 0);
	assert_true(watch_shares_slot(w, &rules->rules[0], 0));
	assert_false(watch_shares_slot(w, &rules->rules[1], 0));
	assert_false(watch_shares_slot(w, NULL, 0));
}

static void test_write(void **state)
{
	struct jsonw json;
	json_object *root;
	struct watch *w;

	if (!fake)
		skip();
	assert_int_equal(get(1, &w), 0);
	jsonw_init(&json, 8192);
	watch_events_write(&fake->a.watch_events, w, &json);
	jsonw_string_n(&json, NULL, "", 0);
	assert_int_equal(jsonw_end(&json), 0);
	json.data[json.bytes - 3] = 0;
	root = json_tokener_parse(json.data);
	assert_string_equal(fake_text(root, "cgroup"), "/unit/1");
	assert_string_equal(fake_text(root, "state"), "recorder");
	json_object_put(root);
	jsonw_done(&json);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

UNIT_TESTS(watch)
{
	const struct CMUnitTest tests[] = {
		EACH(test_slots), EACH(test_payers),	EACH(test_displaced), EACH(test_promised),
		EACH(test_gone),  EACH(test_map_fails), EACH(test_bindings),  EACH(test_scope),
		EACH(test_write), EACH(test_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
