/* SPDX-License-Identifier: BSD-2-Clause */
/* socket_limits.h: the rows of socket_limits.def as constants. */
#ifndef TROCAR_SHARED_FINDINGS_SOCKET_LIMITS_H
#define TROCAR_SHARED_FINDINGS_SOCKET_LIMITS_H

enum socket_limit {
#define SOCKET_LIMIT(id, number, help) SOCKET_LIMIT_##id = (number),
#include "shared/findings/socket_limits.def"
#undef SOCKET_LIMIT
};

#endif
