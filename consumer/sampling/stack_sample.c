/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/sampling/stack_sample.h"

static char unknown_path[] = "[unknown]";
struct module stack_sample_unknown = { .path = unknown_path, .anonymous = true, .loaded = true };

static char runtime_path[] = "[runtime]";
struct module stack_sample_runtime = { .path = runtime_path, .loaded = true };
