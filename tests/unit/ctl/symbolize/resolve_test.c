/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <dirent.h>
#include <link.h>
#include <sys/mman.h>

#include "ctl/symbolize/debug_files.h"
#include "ctl/symbolize/resolve.h"
#include "shared/elf/debug_file.h"
#include "shared/elf/elf_call.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/symbols/specimen_testing.h"
#include "tests/unit/ctl/specimens_testing.h"

static const char *const layouts[] = { "pie", "fixed", "packed", "lld", "gold" };

/* Which files are there of a layout: the program and its split debug file. */
static const struct {
	const char *code, *debug;
} pairs[] = { { "full", NULL }, { "stripped", "debug" }, { NULL, "debug" }, { "full", "debug" } };

static int open_part(const char *layout, const char *part)
{
	char name[64];

	if (!part)
		return -1;
	snprintf(name, sizeof(name), "%s.%s", layout, part);
	return specimens_open(name);
}

static void check_places(const struct answer *a)
{
	assert_int_equal(a->unnamed, UNNAMED_NOT);
	assert_null(a->raw);
	assert_int_equal(a->n, 3);
	assert_string_equal(a->places[0].fn, "specimen_telling");
	assert_string_equal(a->places[1].fn, "specimen_inlined");
	assert_string_equal(a->places[2].fn, "specimen_between");
	assert_int_equal(a->places[0].line, specimens_line("/* line of the outer call */"));
	assert_int_equal(a->places[1].line, specimens_line("/* line of the instruction */"));
	assert_int_equal(a->places[2].line, specimens_line("/* line of the inner call */"));
	for (unsigned int i = 0; i < a->n; i++)
		assert_non_null(strstr(a->places[i].file, "specimen.c"));
}

/* Names and lines are the same from each pair of files, in each layout. */
static void test_layouts(void **state)
{
	struct specimens_facts facts = { 0 };
	struct answer answer;
	unsigned int seen = 0;

	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		if (!specimens_facts(layouts[i], &facts))
			continue;
		for (size_t j = 0; j < ARRAY_SIZE(pairs); j++) {
			_cleanup_close_ int code = open_part(layouts[i], pairs[j].code);
			_cleanup_close_ int debug = open_part(layouts[i], pairs[j].debug);
			struct resolve r;

			resolve_open(&r, code, debug, true);
			resolve_find(&r, (struct answer_question){ facts.at }, &answer);
			check_places(&answer);
			resolve_close(&r);
			seen++;
		}
	}
	assert_true(seen >= 3 * ARRAY_SIZE(pairs));
}

static void test_without_lines(void **state)
{
	_cleanup_close_ int code = specimens_open("pie.full");
	struct specimens_facts facts = { 0 };
	struct answer answer;
	struct resolve r;

	assert_true(specimens_facts("pie", &facts));
	resolve_open(&r, code, -1, false);
	resolve_find(&r, (struct answer_question){ facts.at }, &answer);
	assert_int_equal(answer.n, 1);
	assert_string_equal(answer.places[0].fn, "specimen_telling");
	assert_null(answer.places[0].file);
	resolve_find(&r, (struct answer_question){ 0 }, &answer);
	assert_int_equal(answer.unnamed, UNNAMED_NO_SYMBOL);
	resolve_find(&r, (struct answer_question){ UINT64_MAX }, &answer);
	assert_int_equal(answer.unnamed, UNNAMED_NO_SYMBOL);
	resolve_close(&r);
}

/*
 * A return address belongs to the call before it, and where its function begins without one to that
 * function, as the agent names it (finding B14).
 */
static void test_return_addresses(void **state)
{
	_cleanup_close_ int code = specimens_open("pie.full");
	struct specimens_facts facts = { 0 };
	struct answer answer;
	struct resolve r;
	uint64_t first;

	assert_true(specimens_facts("pie", &facts));
	resolve_open(&r, code, -1, true);
	resolve_find(&r, (struct answer_question){ facts.at + 1, .caller = 1 }, &answer);
	check_places(&answer);
	assert_non_null(elf_symbols_find(r.symbols, facts.at, &first));
	assert_false(elf_call_ends_at(&r.code, first));
	resolve_find(&r, (struct answer_question){ first, .caller = 1 }, &answer);
	assert_string_equal(answer.places[0].fn, "specimen_telling");
	assert_true(answer.places[0].line > 0);
	resolve_find(&r, (struct answer_question){ 0, .caller = 1 }, &answer);
	assert_int_equal(answer.unnamed, UNNAMED_NO_SYMBOL);
	resolve_close(&r);
}

static void test_no_sound_file(void **state)
{
	_cleanup_close_ int fd = memfd_create("no", MFD_CLOEXEC);
	struct answer answer;
	struct resolve r;

	assert_int_equal(io_write_full(fd, "\177ELF and no more", 16), 0);
	resolve_open(&r, fd, -1, true);
	resolve_find(&r, (struct answer_question){ 0 }, &answer);
	assert_int_equal(answer.unnamed, UNNAMED_BAD_FILE);
	resolve_close(&r);
	resolve_open(&r, -1, -1, true);
	resolve_find(&r, (struct answer_question){ 0 }, &answer);
	assert_int_equal(answer.unnamed, UNNAMED_BAD_FILE);
	resolve_close(&r);
}

/* A file cut anywhere gives an answer, and a sound one. */
static void test_cut_files(void **state)
{
	_cleanup_close_ int whole = specimens_open("pie.full");
	_cleanup_free_ char *data = NULL;
	struct specimens_facts facts = { 0 };
	size_t bytes;

	assert_true(specimens_facts("pie", &facts));
	assert_int_equal(io_read_fd(whole, 1 << 20, &data, &bytes), 0);
	for (size_t cut = 0; cut < bytes; cut += 97) {
		_cleanup_close_ int fd = memfd_create("cut", MFD_CLOEXEC);
		char message[ANSWER_BYTES];
		struct answer answer, back;
		struct resolve r;

		assert_int_equal(io_write_full(fd, data, cut), 0);
		resolve_open(&r, fd, -1, true);
		resolve_find(&r, (struct answer_question){ facts.at }, &answer);
		assert_int_equal(answer_read(message, answer_write(&answer, message), &back), 0);
		resolve_close(&r);
	}
}

/*
 * Opens a symbol table of so many MiB that costs nothing to make: a hole behind the real one.
 * Returns the descriptor, which the caller closes behind *r.
 */
static int open_huge_table(unsigned int mib, struct resolve *r, uint64_t *ret_at)
{
	_cleanup_close_ int whole = specimens_open("pie.full");
	int fd = memfd_create("huge", MFD_CLOEXEC);
	struct specimens_facts facts = { 0 };
	_cleanup_free_ char *data = NULL;
	Elf64_Ehdr header;
	size_t bytes;

	assert_true(specimens_facts("pie", &facts));
	assert_int_equal(io_read_fd(whole, 1 << 20, &data, &bytes), 0);
	memcpy(&header, data, sizeof(header));
	for (unsigned int i = 0; i < header.e_shnum; i++) {
		char *at = data + header.e_shoff + i * sizeof(Elf64_Shdr);
		Elf64_Shdr section;

		memcpy(&section, at, sizeof(section));
		if (section.sh_type == SHT_SYMTAB)
			section.sh_size =
				((uint64_t)mib << 20) / sizeof(Elf64_Sym) * sizeof(Elf64_Sym);
		memcpy(at, &section, sizeof(section));
	}
	assert_int_equal(io_write_full(fd, data, bytes), 0);
	assert_int_equal(ftruncate(fd, ((off_t)mib + 1) << 20), 0);
	resolve_open(r, fd, -1, false);
	*ret_at = facts.at;
	return fd;
}

/* What was read has its names. An address without a name may be in the rest, and is marked so. */
static void test_huge_table(void **state)
{
	static const unsigned int mib[] = { 480, 800 };

	for (size_t i = 0; i < ARRAY_SIZE(mib); i++) {
		struct answer answer;
		struct resolve r;
		uint64_t at;
		int fd = open_huge_table(mib[i], &r, &at);

		resolve_find(&r, (struct answer_question){ at }, &answer);
		assert_non_null(answer.places[0].fn);
		assert_string_equal(answer.places[0].fn, "specimen_telling");
		resolve_find(&r, (struct answer_question){ UINT32_MAX }, &answer);
		assert_int_equal(answer.unnamed, i ? UNNAMED_TOO_LARGE : UNNAMED_NO_SYMBOL);
		resolve_close(&r);
		close(fd);
	}
}

struct counts {
	size_t named, stubs; /* places that have a name, and how many of them are stubs */
};

/* One file as the agent reads it and as the command does, which finds debug files by itself. */
struct both {
	struct symbols *agent;
	struct module *module;
	struct resolve command;
	struct counts counts;
};

/* Opens the command's files of the file's build; without a build-id that is the file itself. */
static struct debug_files_pair open_pair(const char *path, struct debug_files *debug)
{
	struct debug_files_pair pair = { .code = open(path, O_RDONLY | O_CLOEXEC), .debug = -1 };
	struct elf_image image = { .fd = pair.code };
	char hex[2 * BUILD_ID_BYTES_MAX + 1];
	struct build_id id;
	struct stat st;

	assert_true(pair.code >= 0 && fstat(pair.code, &st) == 0);
	image.bytes = (uint64_t)st.st_size;
	if (build_id_read(&image, &id) < 0)
		return pair;
	for (size_t i = 0; i < id.n; i++)
		snprintf(hex + 2 * i, 3, "%02x", id.bytes[i]);
	close(pair.code);
	assert_int_equal(debug_files_open(debug, hex, 2u * id.n, path, &pair), 0);
	return pair;
}

/* Asks both for the file offset. */
static void compare_place(struct both *b, uint64_t offset)
{
	struct symbol_name name;
	struct answer answer;

	resolve_find(&b->command, (struct answer_question){ offset }, &answer);
	if (symbols_user(b->agent, b->module, offset, false, &name) < 0) {
		if (answer.places[0].fn)
			fail_msg("0x%jx: %s, but the agent says %s", (uintmax_t)offset,
				 answer.places[0].fn, name.reason);
		assert_string_equal(name.reason, unnamed_word(answer.unnamed));
		return;
	}
	if (!answer.places[0].fn)
		fail_msg("0x%jx: no name, but the agent says %s", (uintmax_t)offset, name.fn);
	assert_string_equal(answer.places[0].fn, name.fn);
	assert_string_equal(answer.raw ? answer.raw : "", name.raw ? name.raw : "");
	b->counts.named++;
	b->counts.stubs += strstr(name.fn, "@plt") != NULL;
}

/* At the beginning of each function, in it, and on both sides of its ends. */
static void compare_places(struct both *b, const struct name_table *n)
{
	compare_place(b, 0);
	for (size_t i = 0; i < n->count; i++) {
		const uint64_t key = n->keys[i], size = n->sizes[i];
		const uint64_t at[] = { key, key + size / 2, key + (size ? size - 1 : 0),
					key + size, key ? key - 1 : 0 };

		for (size_t j = 0; j < ARRAY_SIZE(at); j++)
			compare_place(b, at[j]);
	}
}

/* The agent's own table has the places of functions. */
static void compare_file(struct both *b, const char *path)
{
	struct debug_file debug = { .root = DEBUG_FILE_ROOT, .path = path };
	const struct elf_finder finder = { .open = debug_file_open, .context = &debug };
	const struct elf_symbols_options options = { .finder = &finder };
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_image image = { .fd = fd };
	struct elf_symbols *table;
	struct stat st;

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	image.bytes = (uint64_t)st.st_size;
	assert_int_equal(elf_symbols_read(&image, &options, &table), 0);
	compare_places(b, &table->names);
	elf_symbols_free(table);
}

static struct counts agree(const char *file, struct debug_files *debug)
{
	_cleanup_free_ char *path = realpath(file, NULL);
	struct both b = { .agent = fresh(64u << 20) };
	struct debug_files_pair pair;

	assert_non_null(path);
	pair = open_pair(path, debug);
	b.module = module_of(b.agent, path);
	resolve_open(&b.command, pair.code, pair.debug, false);
	compare_file(&b, path);
	print_message("%s: %zu names agree, %zu of them of stubs\n", path, b.counts.named,
		      b.counts.stubs);
	resolve_close(&b.command);
	symbols_free(b.agent);
	cleanup_close(&pair.code);
	cleanup_close(&pair.debug);
	return b.counts;
}

static char **more_files; /* of the command line: programs, and stamps of folders of programs */

static bool ends_with(const char *name, const char *end)
{
	size_t bytes = strlen(name);

	return bytes >= strlen(end) && !strcmp(name + bytes - strlen(end), end);
}

/* Whether the file is ELF, and one that may be mapped: no debug file. */
static bool is_program(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char magic[SELFMAG];

	return !ends_with(path, ".debug") && !ends_with(path, ".names") && fd >= 0 &&
	       read(fd, magic, SELFMAG) == SELFMAG && !memcmp(magic, ELFMAG, SELFMAG);
}

/* Every program of the folder that belongs to a stamp. */
static void agree_on_folder(const char *stamp)
{
	struct debug_files none, beside; /* the second with the debug files of the folder */
	_cleanup_closedir_ DIR *dir = NULL;
	char folder[512], path[1024];
	struct dirent *entry;

	snprintf(folder, sizeof(folder), "%s.d", stamp);
	dir = opendir(folder);
	assert_non_null(dir);
	debug_files_init(&none);
	debug_files_init(&beside);
	assert_int_equal(debug_files_add(&beside, dirfd(dir), folder), 0);
	rewinddir(dir);
	while ((entry = readdir(dir)) != NULL) {
		struct counts counts;

		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		/* Without a build-id the command is not asked for the target of a link. */
		if (!is_program(path) || !strcmp(entry->d_name, "split_crc"))
			continue;
		/* Its link leads the agent to the debug file beside it. */
		counts = agree(path, strcmp(entry->d_name, "split") != 0 ? &none : &beside);
		/* Some of these have no places of their functions. */
		if (strncmp(entry->d_name, "go_26_", 6) != 0)
			assert_true(counts.named >= 2);
		if (!strncmp(entry->d_name, "plt_", 4))
			assert_true(counts.stubs >= 2);
	}
	debug_files_done(&beside);
	debug_files_done(&none);
}

/* A frame has the same name from the agent and from the command, for every specimen. */
static void test_agent_agrees(void **state)
{
	struct debug_files debug;

	debug_files_init(&debug);
	for (char **file = more_files; *file; file++) {
		if (ends_with(*file, ".stamp"))
			agree_on_folder(*file);
		else
			(void)agree(*file, &debug);
	}
	debug_files_done(&debug);
}

/* The C library and the others that we are linked with, as they stand here, and ourselves. */
static void test_agent_agrees_on_libraries(void **state)
{
	struct debug_files debug;

	debug_files_init(&debug);
	(void)agree("/proc/self/exe", &debug);
	for (struct link_map *map = _r_debug.r_map; map; map = map->l_next)
		if (map->l_name[0] == '/')
			assert_true(agree(map->l_name, &debug).named > 5);
	debug_files_done(&debug);
}

UNIT_TESTS(resolve)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layouts),
		cmocka_unit_test(test_without_lines),
		cmocka_unit_test(test_return_addresses),
		cmocka_unit_test(test_no_sound_file),
		cmocka_unit_test(test_cut_files),
		cmocka_unit_test(test_huge_table),
		cmocka_unit_test(test_agent_agrees),
		cmocka_unit_test(test_agent_agrees_on_libraries),
	};

	specimens_dir = argv[1];
	specimens_source = argv[2];
	more_files = argv + 3;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
