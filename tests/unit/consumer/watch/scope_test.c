/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "consumer/watch/scope.h"

static void put(int fd, const char *prefix)
{
	struct cgroup_key key = { .prefix_bits = 8 * (uint32_t)strlen(prefix) };
	uint32_t one = 1;

	memcpy(key.path, prefix, strlen(prefix));
	assert_int_equal(bpf_map_update_elem(fd, &key, &one, BPF_ANY), 0);
}

static void test_read(void **state)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_NO_PREALLOC);
	struct scope s = { .count = 9 };
	int fd = bpf_map_create(BPF_MAP_TYPE_LPM_TRIE, "scope", sizeof(struct cgroup_key),
				sizeof(uint32_t), SCOPE_PREFIXES, &options);

	if (fd < 0) {
		print_message("no BPF map can be made here: %s\n", strerror(-fd));
		skip();
	}
	assert_int_equal(scope_read(fd, &s), 0);
	assert_int_equal(s.count, 0);
	assert_true(scope_holds(&s, "/anything"));
	put(fd, "/system.slice/nginx");
	put(fd, "/kubepods");
	assert_int_equal(scope_read(fd, &s), 0);
	assert_int_equal(s.count, 2);
	assert_true(scope_holds(&s, "/system.slice/nginx.service"));
	assert_true(scope_holds(&s, "/system.slice/nginx.service/worker"));
	assert_true(scope_holds(&s, "/kubepods"));
	assert_false(scope_holds(&s, "/system.slice/nginy"));
	assert_false(scope_holds(&s, "/system.slice"));
	assert_false(scope_holds(&s, "/"));
	assert_false(scope_holds(&s, ""));
	close(fd);
	assert_int_equal(scope_read(fd, &s), -EBADF);
}

UNIT_TESTS(scope)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
