/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/tools/number_text.h"

#include <inttypes.h>
#include <stdio.h>

#define KIB 1024.0
#define MIB (1024.0 * 1024.0)

const char *number_text(double number, int digits, char text[NUMBER_TEXT_BYTES])
{
	if (number >= 999.5) /* %.3g uses an exponent from here on */
		snprintf(text, NUMBER_TEXT_BYTES, "%.0f", number);
	else if (number < 0.001) /* %g uses an exponent below 0.0001 */
		snprintf(text, NUMBER_TEXT_BYTES, number > 0 ? "%.4f" : "%.0f", number);
	else
		snprintf(text, NUMBER_TEXT_BYTES, "%.*g", digits, number);
	return text;
}

const char *number_text_time(uint64_t ns, char text[NUMBER_TEXT_BYTES])
{
	char number[NUMBER_TEXT_BYTES];

	if (ns < 1000)
		snprintf(text, NUMBER_TEXT_BYTES, "%" PRIu64 " ns", ns);
	else if (ns < 999500) /* %.3g uses an exponent from here on */
		snprintf(text, NUMBER_TEXT_BYTES, "%.3g us", (double)ns / 1e3);
	else
		snprintf(text, NUMBER_TEXT_BYTES, "%.20s ms",
			 number_text((double)ns / 1e6, 3, number));
	return text;
}

const char *number_text_bytes(uint64_t bytes, char text[NUMBER_TEXT_BYTES])
{
	double number = (double)bytes;

	if (number < KIB)
		snprintf(text, NUMBER_TEXT_BYTES, "%" PRIu64 " byte%s", bytes,
			 bytes == 1 ? "" : "s");
	else if (number < MIB)
		snprintf(text, NUMBER_TEXT_BYTES, "%.1f KiB", number / KIB);
	else
		snprintf(text, NUMBER_TEXT_BYTES, "%.1f MiB", number / MIB);
	return text;
}
