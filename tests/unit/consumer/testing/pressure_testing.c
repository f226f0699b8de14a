/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/pressure_testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "shared/tools/clock.h"

struct fake *fake;
struct fake_cgroup group;
struct psi_opener *opener;

/* What the opener does. */
int opened, answer;
const char *answer_why;
bool armed; /* it hands out a file that has a trigger already */

static int open_file(void *context, uint64_t cgroup_id, enum resource resource, int *ret_fd,
		     const char **ret_why)
{
	static const char text[] = "some 2000000 2000000";
	char file[4300];
	int fd;

	assert_ptr_equal(context, &opened);
	assert_int_equal(cgroup_id, group.id);
	opened++;
	*ret_why = answer_why;
	if (answer)
		return answer;
	snprintf(file, sizeof(file), "%s/%s.pressure", group.directory,
		 rules_resource_name(resource));
	fd = open(file, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	assert_true(fd >= 0);
	if (armed)
		assert_int_equal(write(fd, text, sizeof(text)), sizeof(text));
	*ret_fd = fd;
	return 0;
}

int pressure_testing_setup(void **state)
{
	fake = fake_new();
	if (!fake)
		return 0;
	opener = &fake->a.pressure.opener;
	opener->open = open_file;
	opener->context = &opened;
	opened = answer = 0;
	answer_why = NULL;
	armed = false;
	if (fake->a.pressure.scan.system[RESOURCE_CPU].fd < 0 ||
	    !fake_cgroup_make(fake, "triggers", &group)) {
		fake_free(fake);
		fake = NULL;
	}
	return 0;
}

int pressure_testing_teardown(void **state)
{
	if (!fake)
		return 0;
	fake_cgroup_remove(&group);
	fake_free(fake);
	fake = NULL;
	return 0;
}

/* `n` rules for our cgroup, each with its own text for `when`; bound to its watch. */
struct watch *pressure_testing_watch(const char *const *when, size_t n)
{
	static char text[16384];
	struct watch *w;
	size_t at;

	at = (size_t)snprintf(text, sizeof(text), "{\"version\":1,\"rules\":[");
	for (size_t i = 0; i < n; i++) {
		at += (size_t)snprintf(text + at, sizeof(text) - at,
				       "%s{\"name\":\"r%zu\",\"match\":{\"comm\":\"c%zu\","
				       "\"cgroup_prefix\":\"%s\"},\"when\":[%s]}",
				       i ? "," : "", i, i, group.path, when[i]);
		assert_true(at < sizeof(text) - 4);
	}
	snprintf(text + at, sizeof(text) - at, "]}");
	fake_rules(fake, text);
	cgroups_learn(&fake->a.cgroups, group.id, group.path);
	assert_int_equal(watch_get(&fake->a.watches, group.id, 0, &w), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(binding_add_cgroup(w, &fake->a.active.set->rules->rules[i]), 0);
	return w;
}

struct followed *pressure_testing_of(const struct watch *w)
{
	return pressure_follow_of(&fake->a.pressure, w);
}

struct threshold *pressure_testing_only(const struct watch *w)
{
	assert_non_null(pressure_testing_of(w)->thresholds);
	assert_null(pressure_testing_of(w)->thresholds->next);
	return pressure_testing_of(w)->thresholds;
}

/* The loop, for so long. */
static void stop(void *context, uint32_t events)
{
	loop_stop(context);
}

void pressure_testing_loop(uint64_t ns)
{
	struct loop_source *timer;

	assert_int_equal(loop_timer(fake->a.loop, stop, fake->a.loop, &timer), 0);
	assert_int_equal(loop_timer_set(timer, ns, 0), 0);
	assert_int_equal(loop_run(fake->a.loop), 0);
	loop_remove(timer);
}

/* A drain that is not held back by the one before. */
void pressure_testing_drained(void)
{
	fake->a.pressure.read_ns = 0;
	pressure_follow_drained(&fake->a.pressure, clock_mono_ns());
}
