/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/time/call_names.h"

#include <stddef.h>

#include "shared/tools/macro.h"

#if defined(__x86_64__)
#define CALL(name, x86, arm64) [x86] = #name,
#define CALL_X86(name, x86)    [x86] = #name,
#define CALL_ARM64(name, arm64)
#else
#define CALL(name, x86, arm64) [arm64] = #name,
#define CALL_X86(name, x86)
#define CALL_ARM64(name, arm64) [arm64] = #name,
#endif

static const char *const names[] = {
#include "shared/abi/system_calls.def"
};

const char *call_names_get(uint32_t number)
{
	return number < ARRAY_SIZE(names) ? names[number] : NULL;
}
