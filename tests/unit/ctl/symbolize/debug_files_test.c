/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "ctl/symbolize/debug_files.h"
#include "shared/tools/cleanup.h"
#include "tests/unit/ctl/specimens_testing.h"
#include "tests/unit/swap_testing.h"

static char dir[64];
static struct specimens_facts facts;

static int setup(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/trocar-debug-XXXXXX");
	return mkdtemp(dir) && specimens_facts("pie", &facts) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

/* Copies a specimen into the folder; `to` may have folders of its own, which are there. */
static void copy(const char *name, const char *to)
{
	char command[1024];

	snprintf(command, sizeof(command), "mkdir -p $(dirname %s/%s) && cp %s/%s %s/%s", dir, to,
		 specimens_dir, name, dir, to);
	assert_int_equal(system(command), 0);
}

static void add(struct debug_files *d)
{
	_cleanup_close_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	debug_files_init(d);
	d->root = dir; /* the machine's own files are not ours */
	assert_int_equal(debug_files_add(d, fd, dir), 0);
}

/* Which of the two are found: 1 the code, 2 the split debug file, 3 both; or -errno. */
static int found(struct debug_files *d, const char *id, const char *module)
{
	struct debug_files_pair pair;
	int r = debug_files_open(d, id, strlen(id), module, &pair), which;

	if (r < 0)
		return r;
	which = (pair.code >= 0) | (pair.debug >= 0) << 1;
	cleanup_close(&pair.code);
	cleanup_close(&pair.debug);
	return which;
}

/* What debuginfod's client has fetched is found by its folder's name, if it is of that build. */
static void test_cache(void **state)
{
	struct debug_files d;
	char to[sizeof(facts.id) + 16];

	debug_files_init(&d);
	d.root = d.cache = dir;
	assert_int_equal(found(&d, facts.id, NULL), -ENOENT);
	snprintf(to, sizeof(to), "%s/debuginfo", facts.id);
	copy("fixed.debug", to);
	assert_int_equal(found(&d, facts.id, NULL), -ENOENT);
	copy("pie.debug", to);
	assert_int_equal(found(&d, facts.id, NULL), 2);
	snprintf(to, sizeof(to), "%s/executable", facts.id);
	copy("pie.stripped", to);
	assert_int_equal(found(&d, facts.id, NULL), 3);
	debug_files_done(&d);
}

static void test_folder(void **state)
{
	struct debug_files d;

	copy("pie.debug", "a/b/c/x");
	copy("pie.stripped", "a/y");
	copy("fixed.debug", "z");
	add(&d);
	assert_int_equal(d.files, 3);
	assert_int_equal(found(&d, facts.id, NULL), 3);
	assert_int_equal(found(&d, facts.id, "/nowhere"), 3);
	assert_int_equal(found(&d, "00112233445566778899", NULL), -ENOENT);
	assert_int_equal(found(&d, "../../../../etc/pass", NULL), -ENOENT);
	assert_int_equal(found(&d, "", NULL), -ENOENT);
	debug_files_done(&d);
}

static void test_module_and_root(void **state)
{
	char module[512], to[256];
	struct debug_files d;

	debug_files_init(&d);
	d.root = dir;
	specimens_path(module, "pie.stripped");
	assert_int_equal(found(&d, facts.id, module), 1);
	assert_int_equal(found(&d, facts.id, module + 1), -ENOENT); /* no whole path */
	snprintf(to, sizeof(to), ".build-id/%.2s/%s.debug", facts.id, facts.id + 2);
	copy("pie.debug", to);
	assert_int_equal(found(&d, facts.id, module), 3);
	assert_int_equal(found(&d, facts.id, NULL), 2);
	debug_files_done(&d);
}

/* What has another build-id is not given out: not at the module's path, nor changed meanwhile. */
static void test_other_build(void **state)
{
	char module[512], to[256];
	struct debug_files d;

	copy("pie.debug", "x");
	add(&d);
	specimens_path(module, "fixed.full");
	assert_int_equal(found(&d, facts.id, module), 2);
	copy("fixed.debug", "x");
	assert_int_equal(found(&d, facts.id, module), -ESTALE);
	specimens_path(module, "nameless.full");
	assert_int_equal(found(&d, facts.id, module), -ESTALE);
	snprintf(to, sizeof(to), ".build-id/%.2s/%s.debug", facts.id, facts.id + 2);
	copy("fixed.debug", to);
	assert_int_equal(found(&d, facts.id, NULL), -ENOENT);
	debug_files_done(&d);
}

/*
 * Programs that differ may have one build-id (finding B8): then it is the file at the module's path
 * that counts. Stripped copies do not differ.
 */
static void test_shared_id(void **state)
{
	static const char id[] = "00112233445566778899aabbccddeeff00112233";
	char one[512], two[512], bare[512];
	struct debug_files d;

	specimens_path(one, "one.long");
	specimens_path(two, "two.long");
	specimens_path(bare, "one.bare");
	assert_true(debug_files_shape(id, strlen(id), one) != 0);
	assert_true(debug_files_shape(id, strlen(id), one) ==
		    debug_files_shape(id, strlen(id), bare));
	assert_true(debug_files_shape(id, strlen(id), one) !=
		    debug_files_shape(id, strlen(id), two));
	assert_true(debug_files_shape(facts.id, strlen(facts.id), one) == 0);
	specimens_path(one, "moved_4.long");
	specimens_path(bare, "moved_8.long");
	assert_true(debug_files_shape(id, strlen(id), one) != 0);
	assert_true(debug_files_shape(id, strlen(id), one) ==
		    debug_files_shape(id, strlen(id), bare));
	copy("one.bare", "a");
	copy("one.long", "b");
	add(&d);
	assert_int_equal(found(&d, id, NULL), 1);
	assert_int_equal(found(&d, id, two), 1);
	debug_files_done(&d);
	copy("two.long", "c");
	add(&d);
	assert_int_equal(found(&d, id, NULL), -ENOTUNIQ);
	assert_int_equal(found(&d, id, "/nowhere"), -ENOTUNIQ);
	assert_int_equal(found(&d, id, two), 1);
	debug_files_done(&d);
}

/* None of these makes us wait, and none is taken: FIFOs, sockets, devices, loops, files of /proc.
 */
static void test_hostile_folder(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char path[128], deep[1024] = "";
	struct debug_files d;

	copy("pie.debug", "good");
	snprintf(path, sizeof(path), "%s/fifo", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(found(&(struct debug_files){ .root = dir }, facts.id, path), -ENOENT);
	snprintf(address.sun_path, sizeof(address.sun_path), "%.80s/socket", dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	snprintf(path, sizeof(path), "%s/loop", dir);
	assert_int_equal(symlink(path, path), 0);
	snprintf(path, sizeof(path), "%s/up", dir);
	assert_int_equal(symlink(dir, path), 0);
	snprintf(path, sizeof(path), "%s/zero", dir);
	assert_int_equal(symlink("/dev/zero", path), 0);
	snprintf(path, sizeof(path), "%s/kmsg", dir);
	assert_int_equal(symlink("/proc/kmsg", path), 0);
	snprintf(path, sizeof(path), "%s/link", dir);
	assert_int_equal(symlink("good", path), 0);
	for (int i = 0; i < DEBUG_FILES_DEPTH + 3; i++)
		strcat(deep, "d/");
	strcat(deep, "x");
	copy("fixed.debug", deep);
	add(&d);
	assert_int_equal(d.files, 2); /* good, and by the link */
	assert_int_equal(d.passed_over, 1);
	assert_int_equal(d.first_error, ELOOP);
	assert_int_equal(found(&d, facts.id, NULL), 2);
	debug_files_done(&d);
}

/* A module's path is one that a hostile line names. */
static void test_hostile_module(void **state)
{
	static const char *const paths[] = { "/dev/zero",      "/dev/tty", "/proc/kmsg",
					     "/proc/self/mem", "/tmp",	   "/",
					     "/etc/passwd" };
	struct debug_files d;

	debug_files_init(&d);
	d.root = dir;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		assert_int_equal(found(&d, facts.id, paths[i]), -ENOENT);
	debug_files_done(&d);
}

/* The owner of a path swaps it for a FIFO or a device between the look and the open. */
static void test_swapped(void **state)
{
	size_t opened = 0, refused = 0;
	struct debug_files d;
	struct swap swap;
	char path[128];

	copy("pie.stripped", "module");
	snprintf(path, sizeof(path), "%s/module", dir);
	if (!swap_start(&swap, path))
		skip();
	debug_files_init(&d);
	d.root = dir;
	while (swap_lasts(&swap)) {
		int r = found(&d, facts.id, path);

		opened += r == 1;
		refused += r == -ENOENT;
		/* The folder is walked too. */
		if (opened % 100 == 1) {
			struct debug_files all;

			add(&all);
			debug_files_done(&all);
		}
	}
	debug_files_done(&d);
	assert_int_equal(swap_stop(&swap), 0);
	assert_true(opened > 0 && refused > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

UNIT_TESTS(debug_files)
{
	const struct CMUnitTest tests[] = { TEST(folder),	   TEST(cache),
					    TEST(module_and_root), TEST(other_build),
					    TEST(hostile_folder),  TEST(hostile_module),
					    TEST(shared_id),	   TEST(swapped) };

	specimens_dir = argv[1];
	pool_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
