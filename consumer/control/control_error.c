/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/control/control_error.h"

#include <stdarg.h>
#include <stdio.h>

int control_error_fail(struct control_error *error, enum control_code code, const char *format, ...)
{
	va_list args;

	error->code = code;
	va_start(args, format);
	vsnprintf(error->message, sizeof(error->message), format, args);
	va_end(args);
	return -1;
}
