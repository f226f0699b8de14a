/* SPDX-License-Identifier: BSD-2-Clause */
/* A record of the ring is not believed where the kernel side cannot have written it. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <sys/socket.h>

#include "consumer/evidence/sockets/socket_passes.h"

static void test_insane(void **state)
{
	const struct socket_record good = {
		.slot = 3, .way = SOCKET_LISTENS, .state = 12, .family = AF_INET6
	};
	struct socket_record r = good;

	assert_true(socket_passes_is_sane(&r, 4));
	assert_false(socket_passes_is_sane(&r, 3));
	r.way = SOCKET_WAYS_;
	assert_false(socket_passes_is_sane(&r, 4));
	r = good;
	r.state = 13;
	assert_false(socket_passes_is_sane(&r, 4));
	r = good;
	r.family = AF_UNIX;
	assert_false(socket_passes_is_sane(&r, 4));
}

UNIT_TESTS(socket_passes)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(test_insane) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
