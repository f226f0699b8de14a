/* SPDX-License-Identifier: BSD-2-Clause */
/* specimen.c: functions with different frames, for the corpus: they never run. */
#include <stddef.h>

void sink(void *p);

void leaf(int *p);
void saves(long n);
void grows(size_t n);
void aligned(void);
void large(void);
long early(long n);

void leaf(int *p)
{
	*p += 1;
}

void saves(long n)
{
	long a[4] = { n, n * 2, n * 3, n * 4 };

	for (long i = 0; i < n; i++)
		sink(&a[i & 3]);
	sink(a);
}

void grows(size_t n)
{
	char *p = __builtin_alloca(n);

	sink(p);
}

void aligned(void)
{
	char buffer[64] __attribute__((aligned(64)));

	sink(buffer);
}

void large(void)
{
	char buffer[100000];

	sink(buffer);
}

long early(long n)
{
	if (n < 0)
		return n;
	sink(&n);
	if (n > 10)
		return early(n - 1) + early(n - 2);
	sink(&n);
	return n;
}
