// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* layout.bpf.c: each struct of the ABI as the BPF compiler lays it out; only its BTF is read. */
#include "shared/abi/abi.h"

#define STRUCT(name) struct name *layout_##name;
#define FIELD(name, field)
#include "layout.def"
