/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * in_turn.c: two libraries of one layout take turns in one place, each for TURN_MS. run_a calls the
 * first, run_b the second.
 *
 *   in_turn text A B: the text of B is mapped over that of A, except for the first page in_turn
 *   library A B: A is closed before B is opened, and the other way round
 *
 * It ends with an error when a library is not where the other one was.
 */
#include <dlfcn.h>
#include <err.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define TURN_MS 400
#define PAGE	4096ul

typedef void (*plug_fn)(void);

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

__attribute__((noipa)) static void run_a(plug_fn plug, uint64_t end_ms)
{
	while (now_ms() < end_ms)
		plug();
	__asm__ volatile("# a");
}

__attribute__((noipa)) static void run_b(plug_fn plug, uint64_t end_ms)
{
	while (now_ms() < end_ms)
		plug();
	__asm__ volatile("# b");
}

static plug_fn open_library(const char *path, void **ret_library)
{
	*ret_library = dlopen(path, RTLD_NOW);
	if (!*ret_library)
		errx(1, "%s", dlerror());
	return (plug_fn)dlsym(*ret_library, "plug");
}

static void turn_libraries(char **paths)
{
	plug_fn first = NULL;

	for (int turn = 0;; turn ^= 1) {
		void *library;
		plug_fn plug = open_library(paths[turn], &library);

		if (first && plug != first)
			errx(1, "%s is at another place", paths[turn]);
		first = plug;
		(turn ? run_b : run_a)(plug, now_ms() + TURN_MS);
		dlclose(library);
	}
}

/* Maps the page of the text over, with that of the library behind `fd`. */
static void map_over(plug_fn plug, int fd)
{
	char *text = (char *)((uintptr_t)plug & ~(PAGE - 1));
	Dl_info info;

	if (!dladdr((void *)plug, &info))
		errx(1, "no library has plug");
	if (mmap(text, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd,
		 text - (char *)info.dli_fbase) == MAP_FAILED)
		err(1, "mmap");
}

static void turn_text(char **paths)
{
	int fds[2] = { open(paths[0], O_RDONLY), open(paths[1], O_RDONLY) };
	void *library;
	plug_fn plug = open_library(paths[0], &library);

	for (int turn = 0;; turn ^= 1) {
		map_over(plug, fds[turn]);
		(turn ? run_b : run_a)(plug, now_ms() + TURN_MS);
	}
}

int main(int argc, char **argv)
{
	if (argc != 4)
		errx(2, "usage: in_turn text|library A B");
	if (!strcmp(argv[1], "text"))
		turn_text(argv + 2);
	turn_libraries(argv + 2);
}
