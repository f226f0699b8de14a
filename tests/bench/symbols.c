/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * symbols ROUNDS FILE...: what the symbolizer takes to read these ELF files and to look functions
 * up in them; medians of CPU time, page cache warm. Files without functions are passed over.
 *   cold_ms      a new cache: each file opened, read and asked for one name
 *   lookup_ns    each lookup, of functions drawn from all files, their names demangled before
 *   bytes        of memory that its tables hold after the first, of `symbols` symbols
 * and the first two of libdw, which does not demangle.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "consumer/symbols/symbols.h"
#include "shared/elf/elf_symbols.h"
#include "tests/bench/libdw.h"
#include "tests/bench/tool.h"

#define LOOKUPS	  20000u /* addresses drawn in all */
#define TURNS	  10u	 /* through all of them */
#define LIBDW	  200u	 /* of them are enough for libdw, which looks through all symbols */
#define CACHE_MAX (1u << 30)

struct file {
	const char *path;
	struct file_identity identity;
	uint64_t first; /* the place that the cold reading asks for */
	struct module *module;
};

/* An address in a function: of which file, and at which place in it. */
struct place {
	size_t file;
	uint64_t offset;
};

static struct file *files;
static size_t file_count;
static struct place *places;
static size_t place_count;

static double cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The same numbers in every run: xorshift. */
static uint32_t draw(void)
{
	static uint64_t state = 88172645463325252ULL;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32);
}

/* Draws `count` functions of a file, and the middle of each. */
static void draw_places(size_t file, const struct name_table *n, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t at = draw() % n->count;

		places[place_count++] = (struct place){
			.file = file,
			.offset = n->keys[at] + n->sizes[at] / 2,
		};
	}
	files[file].first = places[place_count - 1].offset;
}

static void add_file(const char *path, size_t count)
{
	struct elf_symbols *table;
	struct elf_image image;
	struct stat st;

	image = (struct elf_image){ .fd = open(path, O_RDONLY | O_CLOEXEC) };
	if (image.fd < 0 || fstat(image.fd, &st) < 0)
		tool_die("%s", path);
	image.bytes = (uint64_t)st.st_size;
	if (elf_symbols_read(&image, NULL, &table) == 0) {
		files[file_count] = (struct file){
			.path = path,
			.identity = elf_file_identity(&st),
		};
		if (table->names.count > 0)
			draw_places(file_count++, &table->names, count);
		elf_symbols_free(table);
	}
	close(image.fd);
}

static struct symbols *cold(double *ret_ns)
{
	struct symbols *symbols;
	double start_ns;

	start_ns = cpu_ns();
	if (symbols_new(CACHE_MAX, NULL, &symbols) < 0)
		tool_die("symbols");
	for (size_t i = 0; i < file_count; i++) {
		struct file *f = &files[i];
		struct symbol_name name;

		if (symbols_module(symbols, &f->identity, f->path, false, &f->module) < 0 ||
		    symbols_user(symbols, f->module, f->first, false, &name) < 0)
			tool_die("%s: no name", f->path);
	}
	*ret_ns = cpu_ns() - start_ns;
	return symbols;
}

/* Looks all places up, TURNS times. */
static double look_up(struct symbols *symbols)
{
	double start_ns = cpu_ns();

	for (unsigned int turn = 0; turn < TURNS; turn++)
		for (size_t i = 0; i < place_count; i++) {
			struct symbol_name name;

			if (symbols_user(symbols, files[places[i].file].module, places[i].offset,
					 false, &name) < 0)
				tool_die("%s: nothing at %#llx", files[places[i].file].path,
					 (unsigned long long)places[i].offset);
		}
	return cpu_ns() - start_ns;
}

static void measure(uint32_t rounds)
{
	struct tool_values cold_ns = { 0 }, lookup_ns = { 0 };
	struct symbols_stats stats = { 0 };

	for (uint32_t i = 0; i < rounds; i++) {
		struct symbols *symbols;
		double ns;

		symbols = cold(&ns);
		tool_values_add(&cold_ns, ns);
		symbols_stats(symbols, &stats);
		look_up(symbols);
		tool_values_add(&lookup_ns, look_up(symbols));
		symbols_free(symbols);
	}
	printf("\"cold_ms\":%.3f,\"lookup_ns\":%.1f,\"symbols\":%zu,\"bytes\":%zu",
	       tool_values_median(&cold_ns) / 1e6,
	       tool_values_median(&lookup_ns) / (double)(TURNS * place_count), stats.symbols,
	       stats.bytes);
}

/* The same files, the same places: fewer of them, drawn from all files alike. */
static void measure_libdw(uint32_t rounds)
{
	struct tool_values cold_ns = { 0 }, lookup_ns = { 0 };
	const char **paths = calloc(file_count, sizeof(*paths));
	size_t step = place_count / LIBDW + 1, count = (place_count + step - 1) / step;

	if (!paths)
		tool_die("memory");
	for (size_t i = 0; i < file_count; i++)
		paths[i] = files[i].path;
	for (uint32_t round = 0; round < rounds; round++) {
		double start_ns = cpu_ns();
		struct libdw *d = libdw_new(paths, file_count);
		size_t named = 0;

		for (size_t i = 0; i < file_count; i++)
			named += libdw_name(d, i, files[i].first) != NULL;
		tool_values_add(&cold_ns, cpu_ns() - start_ns);
		start_ns = cpu_ns();
		for (size_t i = 0; i < place_count; i += step)
			named += libdw_name(d, places[i].file, places[i].offset) != NULL;
		tool_values_add(&lookup_ns, cpu_ns() - start_ns);
		libdw_free(d);
		if (named < (file_count + count) / 4) /* it does not know stubs, for one */
			tool_die("libdw names %zu of %zu", named, file_count + count);
	}
	printf(",\"libdw_cold_ms\":%.3f,\"libdw_lookup_ns\":%.1f",
	       tool_values_median(&cold_ns) / 1e6, tool_values_median(&lookup_ns) / (double)count);
	free(paths);
}

int main(int argc, char **argv)
{
	uint32_t rounds = (uint32_t)tool_number(argc, argv, 1, 1, 1000);
	size_t each;

	if (argc < 3)
		tool_die("files are needed");
	each = LOOKUPS / (size_t)(argc - 2) + 1;
	files = calloc((size_t)argc, sizeof(*files));
	places = calloc(LOOKUPS + (size_t)argc, sizeof(*places));
	if (!files || !places)
		tool_die("memory");
	for (int i = 2; i < argc; i++)
		add_file(argv[i], each);
	printf("{\"files\":%zu,", file_count);
	measure(rounds);
	measure_libdw(rounds < 3 ? rounds : 3);
	printf("}\n");
	return 0;
}
