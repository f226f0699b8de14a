/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * churn FLAG: once the file exists, two threads map and unmap large areas all the time; eight
 * others need the same mmap_lock.
 */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define LARGE	 (64 << 20)
#define SMALL	 (1 << 18)

static const char *flag;

static void *map(size_t bytes, int more)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | more, -1, 0);
}

static NOINLINE void churn_buffers(void)
{
	for (int i = 0; i < 20; i++)
		munmap(map(LARGE, MAP_POPULATE), LARGE);
}

static NOINLINE void serve(void)
{
	char *page = map(SMALL, 0);

	memset(page, 1, SMALL);
	munmap(page, SMALL);
}

static void *do_churn(void *unused)
{
	for (;;) {
		if (!access(flag, F_OK))
			churn_buffers();
		else
			usleep(50000);
	}
	return NULL;
}

static void *do_serve(void *unused)
{
	for (;;) {
		serve();
		usleep(10000);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	flag = argv[argc - 1];
	for (int i = 0; i < 2; i++)
		pthread_create(&thread, NULL, do_churn, NULL);
	for (int i = 0; i < 8; i++)
		pthread_create(&thread, NULL, do_serve, NULL);
	pause();
	return 0;
}
