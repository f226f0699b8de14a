/* SPDX-License-Identifier: BSD-2-Clause */
/* The preflight of shared/preflight.h and the BTF walk beneath it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <json-c/json.h>
#include <linux/btf.h>
#include <stdlib.h>
#include <string.h>

#include "shared/kbtf.h"
#include "shared/macro.h"
#include "shared/preflight.h"

static void psi_is_told_apart(void **state)
{
	static const struct {
		int error;
		bool compiled;
		const char *cmdline, *says;
		enum preflight_state expected;
	} cases[] = {
		{ 0, true, "psi=0", "", PREFLIGHT_PRESENT },
		{ ENOENT, true, "quiet psi=0", "command line", PREFLIGHT_MISSING },
		{ ENOENT, true, "psi=0 quiet", "command line", PREFLIGHT_MISSING },
		{ ENOENT, true, "quiet nopsi=0", "off by default", PREFLIGHT_MISSING },
		{ EOPNOTSUPP, false, "quiet", "EOPNOTSUPP", PREFLIGHT_MISSING },
		{ ENOENT, false, "quiet", "built without", PREFLIGHT_MISSING },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct preflight_row row = { .state = PREFLIGHT_UNKNOWN };

		preflight_explain_psi(cases[i].error, cases[i].compiled, cases[i].cmdline, &row);
		assert_int_equal(row.state, cases[i].expected);
		assert_non_null(strstr(row.detail, cases[i].says));
	}
}

static void rows_are_whole(void **state)
{
	struct preflight p;

	preflight_probe(&p);
	for (size_t i = 0; i < PREFLIGHT_COUNT_; i++) {
		assert_true(strlen(p.rows[i].name) > 0);
		assert_true(strlen(p.rows[i].lost) > 0);
		assert_true(strlen(p.rows[i].how) > 0);
	}
	assert_int_equal(p.rows[PREFLIGHT_btf].state, PREFLIGHT_PRESENT);
	p.rows[PREFLIGHT_landlock].state = PREFLIGHT_MISSING;
	p.rows[PREFLIGHT_psi].state = PREFLIGHT_UNKNOWN;
	assert_false(preflight_fine(&p));
}

static void json_is_json(void **state)
{
	struct preflight p;
	json_object *o, *needs = NULL;
	struct jsonw w;
	char *text;

	preflight_probe(&p);
	jsonw_init(&w, 1 << 16);
	preflight_write(&p, &w, NULL);
	assert_int_equal(jsonw_end(&w), 0);
	text = calloc(1, w.bytes + 1); /* the writer's text has no NUL */
	assert_non_null(text);
	memcpy(text, w.data, w.bytes);
	o = json_tokener_parse(text);
	assert_non_null(o);
	assert_true(json_object_object_get_ex(o, "needs", &needs));
	assert_int_equal(json_object_array_length(needs), PREFLIGHT_COUNT_);
	json_object_put(o);
	free(text);
	jsonw_done(&w);
}

/* A cut or bent BTF is refused or not found, never read beyond its end (run under ASan). */
static void hostile_btf(void **state)
{
	struct btf_header h = { .magic = BTF_MAGIC,
				.version = 1,
				.hdr_len = sizeof(h),
				.type_len = 12,
				.str_off = 12,
				.str_len = 4 };
	const struct btf_type t = { .name_off = 1, .info = BTF_KIND_FUNC << 24 };
	struct kbtf btf;
	size_t all = sizeof(h) + sizeof(t) + 4;

	for (int bend = 0; bend < 9; bend++) {
		char *data = calloc(1, all);
		struct btf_header bent = h;
		struct btf_type type = t;
		uint32_t id = 0;
		int r;

		assert_non_null(data);
		bent.magic ^= bend == 1;
		bent.hdr_len += bend == 2 ? 1000 : 0;
		bent.type_len += bend == 3 ? UINT32_MAX - 12 : 0;
		bent.str_off += bend == 4 ? 1 : 0;
		bent.str_len = bend == 5 ? 0 : bent.str_len;
		type.name_off = bend == 6 ? 4 : 1;
		type.info = bend == 7 ? BTF_KIND_STRUCT << 24 | 9 : type.info;
		type.info = bend == 8 ? 31u << 24 : type.info;
		memcpy(data, &bent, sizeof(bent));
		memcpy(data + sizeof(h), &type, sizeof(type));
		memcpy(data + sizeof(h) + sizeof(t), "\0ab", 4);
		r = kbtf_take(data, all, &btf);
		assert_int_equal(r, bend >= 1 && bend <= 5 ? -EBADMSG : 0);
		if (r < 0)
			continue;
		r = kbtf_find(&btf, BTF_KIND_FUNC, "ab", &id, NULL);
		assert_int_equal(r, bend == 0 ? 0 : -EBADMSG);
		assert_int_equal(id, bend == 0 ? 1 : 0);
		kbtf_done(&btf);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(psi_is_told_apart),
		cmocka_unit_test(rows_are_whole),
		cmocka_unit_test(json_is_json),
		cmocka_unit_test(hostile_btf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
