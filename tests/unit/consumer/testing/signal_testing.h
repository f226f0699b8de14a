/* SPDX-License-Identifier: BSD-2-Clause */
/* signal_testing.h: what a signal writes of itself into session.end. */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_TESTING_SIGNAL_TESTING_H
#define TROCAR_TESTS_UNIT_CONSUMER_TESTING_SIGNAL_TESTING_H

#include "shared/json/jsonw.h"
#include "tests/unit/consumer/testing/unit_testing.h"

#include <json-c/json.h>

#include "consumer/signals/signals.h"

/* Returns the keys in an object, which the caller puts. */
static inline json_object *written(const struct signal *s)
{
	struct jsonw w;
	json_object *root;

	jsonw_init(&w, 4096);
	jsonw_object(&w, NULL);
	s->kind->write(s, &w);
	jsonw_object_end(&w);
	jsonw_string_n(&w, NULL, "", 0);
	assert_int_equal(jsonw_end(&w), 0);
	w.data[w.bytes - 3] = 0;
	root = json_tokener_parse(w.data);
	assert_non_null(root);
	jsonw_done(&w);
	return root;
}

#endif
