/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exec_in_turn.c: computes for 4 to 20 ms in a function that LETTER names, then executes the
 * program that its first argument names, with both arguments exchanged. Linked at fixed addresses,
 * two such programs have each other's functions at the same place.
 *
 *   exec_in_turn OTHER SELF
 */
#include <err.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#define JOIN(letter, name)  JOIN_(letter, name)
#define JOIN_(letter, name) letter##_##name
#define TEXT(letter)	    TEXT_(letter)
#define TEXT_(letter)	    #letter

/* Programs with the same bytes would share a build-id, and with it their names. */
static const volatile char letter[] = TEXT(LETTER);
static volatile uint64_t sum;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

__attribute__((noipa)) static void JOIN(LETTER, work)(uint64_t end_ns)
{
	while (now_ns() < end_ns)
		for (int i = 0; i < 20000; i++)
			sum += (uint64_t)letter[0];
}

int main(int argc, char **argv)
{
	uint64_t begun_ns = now_ns();

	if (argc != 3)
		errx(2, "usage: exec_in_turn OTHER SELF");
	JOIN(LETTER, work)(begun_ns + 4000000 + begun_ns / 1000 % 16000 * 1000);
	execl(argv[1], argv[1], argv[2], argv[1], (char *)NULL);
	err(1, "%s", argv[1]);
}
