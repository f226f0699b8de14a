/* SPDX-License-Identifier: BSD-2-Clause */
/* unit_testing.h: what every test of this folder includes, in the order that cmocka asks for. */
#ifndef TROCAR_TESTS_UNIT_SHARED_UNIT_TESTING_H
#define TROCAR_TESTS_UNIT_SHARED_UNIT_TESTING_H

#include "tests/unit/runner/unit.h"

#endif
