/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/tools/clock.h"

#include <time.h>

#include "shared/tools/macro.h"

#define SECONDS_PER_DAY 86400u

static uint64_t read_clock(clockid_t id)
{
	struct timespec t;

	/* Fails only for a clock that the kernel lacks; every kernel has these. */
	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

uint64_t clock_mono_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t clock_coarse_ns(void)
{
	return read_clock(CLOCK_MONOTONIC_COARSE);
}

uint64_t clock_boot_ns(void)
{
	return read_clock(CLOCK_BOOTTIME);
}

uint64_t clock_real_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}

uint64_t clock_cpu_ns(void)
{
	return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t clock_thread_ns(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

/* Writes `number` in exactly `digits` digits and returns the position after them. */
static char *put_digits(char *at, unsigned int number, int digits)
{
	for (int i = digits - 1; i >= 0; i--) {
		at[i] = (char)('0' + number % 10);
		number /= 10;
	}
	return at + digits;
}

/*
 * Converts days since the epoch to the civil date, counted in 400-year eras that begin on 1 March
 * (https://howardhinnant.github.io/date_algorithms.html). Not gmtime_r(3), because each event line
 * needs a time and gmtime_r takes a lock for the time zone.
 */
static char *put_date(char *at, uint64_t days)
{
	uint64_t z = days + 719468;
	uint64_t era = z / 146097, of_era = z % 146097;
	uint64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	uint64_t of_year = of_era - (365 * year + year / 4 - year / 100);
	uint64_t shifted = (5 * of_year + 2) / 153; /* month, 0 is March */
	unsigned int day = (unsigned int)(of_year - (153 * shifted + 2) / 5 + 1);
	unsigned int month = (unsigned int)(shifted < 10 ? shifted + 3 : shifted - 9);

	/* 2^64 ns end in the year 2554, so the year always has four digits. */
	at = put_digits(at, (unsigned int)(year + era * 400 + (month <= 2)), 4);
	*at++ = '-';
	at = put_digits(at, month, 2);
	*at++ = '-';
	return put_digits(at, day, 2);
}

void clock_text(uint64_t real_ns, char text[CLOCK_TEXT_BYTES])
{
	uint64_t seconds = real_ns / NSEC_PER_SEC;
	unsigned int of_day = (unsigned int)(seconds % SECONDS_PER_DAY);
	char *at = put_date(text, seconds / SECONDS_PER_DAY);

	*at++ = 'T';
	at = put_digits(at, of_day / 3600, 2);
	*at++ = ':';
	at = put_digits(at, of_day / 60 % 60, 2);
	*at++ = ':';
	at = put_digits(at, of_day % 60, 2);
	*at++ = '.';
	at = put_digits(at, (unsigned int)(real_ns % NSEC_PER_SEC), 9);
	*at++ = 'Z';
	*at = '\0';
}
