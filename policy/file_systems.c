/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "policy/policy.h"
#include "shared/tools/macro.h"

static const char *const types[] = {
#define FILE_SYSTEM(type, reason) type,
#include "policy/file_systems.def"
#undef FILE_SYSTEM
};

bool policy_file_systems_allow(const char *type, size_t bytes)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (strlen(types[i]) == bytes && memcmp(types[i], type, bytes) == 0)
			return true;
	return false;
}
