/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <stdbool.h>
#include <string.h>

#include "consumer/mappings/runtime.h"
#include "shared/tools/macro.h"

static const struct row {
	const char *path;
	bool exe;
	const char *name, *version; /* name NULL: none */
} rows[] = {
	{ "/usr/bin/python3.11", true, "python", "3.11" },
	{ "/usr/bin/python3.11-dbg", true, "python", "3.11" },
	{ "/usr/bin/pythonista", true, NULL, NULL },
	{ "/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0", false, "python", "3.11" },
	{ "/usr/bin/python3.11", false, NULL, NULL },
	{ "/usr/bin/node", true, "node", "" },
	{ "/srv/.nvm/versions/node/v20.1.0/bin/node", true, "node", "20.1.0" },
	{ "/usr/bin/nodejs", true, "node", "" },
	{ "/usr/bin/node_exporter", true, NULL, NULL },
	{ "/usr/lib/x86_64-linux-gnu/libnode.so.108", false, "node", "" },
	{ "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so", false, "java", "17" },
	{ "/opt/jdk-21.0.2/lib/server/libjvm.so", false, "java", "21.0.2" },
	{ "/opt/jdk8/jre/lib/libjvm.so", false, "java", "8" },
	{ "/srv/libjvm.so", false, "java", "" },
	{ "/usr/bin/ruby3.1", true, "ruby", "3.1" },
	{ "/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1.2", false, "ruby", "3.1" },
	{ "/usr/bin/php8.2", true, "php", "8.2" },
	{ "/usr/sbin/php-fpm8.2", true, "php", "8.2" },
	{ "/usr/lib/apache2/modules/libphp8.2.so", false, "php", "8.2" },
	{ "/usr/bin/perl", true, "perl", "" },
	{ "/usr/bin/perl5.36-x86_64-linux-gnu", true, "perl", "5.36" },
	{ "/usr/lib/x86_64-linux-gnu/libperl.so.5.36", false, "perl", "5.36" },
	{ "/usr/lib/erlang/erts-13.1.5/bin/beam.smp", true, "erlang", "13.1.5" },
	{ "/usr/share/dotnet/shared/Microsoft.NETCore.App/8.0.1/libcoreclr.so", false, "dotnet",
	  "8.0.1" },
	{ "/usr/bin/lua5.4", true, "lua", "5.4" },
	{ "/usr/lib/x86_64-linux-gnu/liblua5.4.so.0.0.0", false, "lua", "5.4" },
	{ "/usr/bin/luac", true, NULL, NULL },
	{ "/usr/lib/postgresql/15/bin/postgres", true, NULL, NULL },
	{ "", true, NULL, NULL },
	{ "[vdso]", false, NULL, NULL },
};

static void test_rows(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *row = &rows[i];
		struct runtime runtime = { 0 };

		assert_int_equal(runtime_of_path(row->path, row->exe, &runtime), row->name != NULL);
		if (!row->name)
			continue;
		assert_string_equal(runtime.name, row->name);
		assert_string_equal(runtime.version, row->version);
		assert_string_equal(runtime.how, row->exe ? "exe" : "library");
	}
}

static void test_long_version(void **state)
{
	struct runtime runtime;

	assert_true(runtime_of_path("/bin/python1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.17", true,
				    &runtime));
	assert_int_equal(strlen(runtime.version), sizeof(runtime.version) - 1);
}

UNIT_TESTS(runtime)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_long_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
