/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_stress.c: real tables of real files, libc's among them, written anew all the time while
 * 20,000 ticks a second and CPU walk long stacks by them. The writer is the consumer's own code but
 * for the order of its steps, which are those of consumer/process/unwind_tables.c and
 * unwind_files.c: write to free places, fill, publish by one store, retire the old, wait for the
 * grace, write there again. Each stack must equal, address by address, that of libgcc's unwinder in
 * the process. Without the grace the same run must see stacks that are not.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "consumer/unwind/compile/unwind_compile.h"
#include "consumer/unwind/store/unwind_builds.h"
#include "consumer/unwind/store/unwind_file.h"
#include "unwind_chains.h"
#include "unwind_fixture.h"

HARNESS_LOADS("sampler", "ranges*");

#define STRESS_HZ   20000
#define SAMPLES	    (16u << 20) /* bytes of the ring */
#define FILES_MAX   32
#define RUN_MS	    10000
#define LONG_MS	    60000
#define CONTROL_MS  60000 /* at most: it ends at the first wrong stack */
#define POISON_RULE (UNWIND_RULES_MAX - 1)
#define WRONG_SAID  5
#define AWAIT_NS    20000000
#define BRIEF_NS    150000 /* some ticks */

/* A file that the burning processes have mapped, compiled. */
struct compiled {
	char path[256];
	struct unwind_layout layout;
	struct unwind_table table;
	struct unwind_build *build; /* in the pool now */
};

/* An executable mapping of theirs; they all have the same. */
struct mapped {
	uint64_t start, offset, inode;
	struct compiled *file; /* NULL: without rows */
};

struct burner {
	pid_t pid;
	uint64_t start_ns;
	struct chain *chain; /* shared with it */
	uint32_t table;	     /* published now */
};

struct seen {
	uint64_t samples, good, wrong, switched, unwalked;
};

struct stress {
	struct fixture f;
	struct unwind_rules rules;
	struct unwind_builds builds;
	struct compiled files[FILES_MAX];
	struct mapped mapped[PLACES];
	size_t file_count, mapped_count;
	struct burner burners[CHAINS];
	struct seen seen;
	uint64_t rewritten; /* generations of tables */
};

static struct stress stress;

static struct harness_options options = { .samples_bytes = SAMPLES };

/* ---- before: processes, files */

static void burner_start(struct stress *s, uint32_t which)
{
	struct burner *b = &s->burners[which];

	b->chain = mmap(NULL, sizeof(*b->chain), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	assert_ptr_not_equal(b->chain, MAP_FAILED);
	b->chain->which = which;
	b->pid = harness_start(chains_run, b->chain, s->f.dir);
	b->table = 2 * which;
	for (int i = 0; i < 1000 && !__atomic_load_n(&b->chain->ready, __ATOMIC_ACQUIRE); i++)
		harness_sleep_ms(10);
	assert_true(b->chain->ready);
	assert_in_range(b->chain->count, 50, CHAIN_FRAMES - 1);
	b->start_ns = harness_start_ns(s->f.h, b->pid);
}

static struct compiled *compile(struct stress *s, const char *path)
{
	struct elf_image image = { .fd = -1 };
	struct compiled *c;
	struct stat st;

	for (size_t i = 0; i < s->file_count; i++)
		if (!strcmp(s->files[i].path, path))
			return &s->files[i];
	image.fd = open(path, O_RDONLY | O_CLOEXEC);
	if (image.fd < 0)
		return NULL; /* "[vdso]" */
	assert_true(s->file_count < FILES_MAX);
	c = &s->files[s->file_count++];
	snprintf(c->path, sizeof(c->path), "%s", path);
	assert_int_equal(fstat(image.fd, &st), 0);
	image.bytes = (uint64_t)st.st_size;
	assert_int_equal(unwind_file_layout(&image, &c->layout), 0);
	assert_int_equal(unwind_compile(&image, &s->rules, &c->table), 0);
	close(image.fd);
	return c;
}

static void read_mapped(struct stress *s, pid_t pid)
{
	_cleanup_fclose_ FILE *file = NULL;
	char name[64], line[512], mode[5], path[256];
	unsigned long start, offset, inode;

	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	file = fopen(name, "re");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		/* NOLINTNEXTLINE(cert-err34-c): the kernel writes no number that does not fit */
		if (sscanf(line, "%lx-%*x %4s %lx %*s %lu %255s", &start, mode, &offset, &inode,
			   path) != 5)
			continue;
		if (mode[2] != 'x' || strstr(line, "[vsyscall]"))
			continue;
		assert_true(s->mapped_count < PLACES);
		s->mapped[s->mapped_count++] =
			(struct mapped){ start, offset, inode, compile(s, path) };
	}
	assert_true(s->mapped_count > 4 && s->file_count > 3);
}

static uint32_t elements_of(const struct unwind_table *t)
{
	return t->row_count + (t->page_count + 1) / 2;
}

/* The maps of the kernel side, and a pool in which two generations of all files have room. */
static void stress_begin(struct stress *s)
{
	uint32_t elements = 0;
	uint64_t id;

	*s = (struct stress){ 0 };
	chains_prepare();
	assert_int_equal(unwind_rules_init(&s->rules), 0);
	read_mapped(s, getpid()); /* a forked child has the same */
	for (size_t i = 0; i < s->file_count; i++)
		elements += elements_of(&s->files[i].table);
	print_message("%zu files, %u elements; libc's size: ", s->file_count, elements);
	for (size_t i = 0; i < s->file_count; i++)
		if (strstr(s->files[i].path, "/libc.so"))
			print_message("%u rows\n", s->files[i].table.row_count);
	options.pool_elements = 2 * elements + 64;
	s->f.h = harness_new(&options);
	id = harness_group(s->f.h, "burn", s->f.dir);
	s->f.tables = map(s->f.h->skel->maps.unwind_process);
	s->f.claims = map(s->f.h->skel->maps.unwind_claims);
	s->f.files = map(s->f.h->skel->maps.unwind_files);
	s->f.rules = map(s->f.h->skel->maps.unwind_rules);
	s->f.pool = map(s->f.h->skel->maps.unwind_pool);
	memcpy(s->f.rules, s->rules.rules, s->rules.count * sizeof(*s->rules.rules));
	s->f.rules[POISON_RULE] = (struct unwind_rule){ .cfa = UNWIND_CFA_UNSUPPORTED };
	assert_int_equal(unwind_builds_init(&s->builds, options.pool_elements), 0);
	for (uint32_t i = 0; i < CHAINS; i++)
		burner_start(s, i);
	harness_watch(s->f.h, id, SLOT, SLOT_CAPTURE, 0);
}

static void stress_end(struct stress *s)
{
	for (size_t i = 0; i < s->file_count; i++)
		unwind_table_done(&s->files[i].table);
	for (size_t i = 0; i < CHAINS; i++) {
		harness_kill(s->burners[i].pid);
		munmap(s->burners[i].chain, sizeof(*s->burners[i].chain));
	}
	unwind_builds_done(&s->builds);
	unwind_rules_done(&s->rules);
	harness_free(s->f.h);
}

/* ---- the writer */

/* Rows of all files in free places; *ret_old: those that they have now. */
static void write_files(struct stress *s, struct unwind_build *ret_old[FILES_MAX])
{
	int fd = bpf_map__fd(s->f.h->skel->maps.unwind_pool);

	for (size_t i = 0; i < s->file_count; i++) {
		struct compiled *c = &s->files[i];

		ret_old[i] = c->build;
		assert_int_equal(unwind_builds_add(&s->builds, &c->layout, &c->table, 0, &c->build),
				 0);
		assert_int_equal(unwind_builds_write(c->build, &c->table, fd,
						     &s->f.files[c->build - s->builds.items]),
				 0);
	}
}

static struct unwind_mapping mapping_of(const struct stress *s, const struct mapped *m)
{
	struct unwind_mapping to = { .kind = UNWIND_KIND_NONE };
	uint64_t bias;

	if (!m->file)
		return to;
	assert_int_equal(unwind_file_bias(&m->file->layout, m->start, m->offset, &bias), 0);
	return (struct unwind_mapping){ .base = bias + m->file->build->table_base,
					.file = (uint32_t)(m->file->build - s->builds.items),
					.kind = UNWIND_KIND_ROWS_ALONE };
}

/* Writes table `next` of a burner, and has it filled: the number of the filling. */
static uint64_t prepare(struct stress *s, const struct burner *b, uint32_t next)
{
	struct ranges_record record = { 0 };

	for (size_t i = 0; i < s->mapped_count; i++) {
		s->f.tables[next].mappings[i] = mapping_of(s, &s->mapped[i]);
		s->f.claims->starts[i] = s->mapped[i].start;
		s->f.claims->inodes[i] = s->mapped[i].inode;
	}
	s->f.claims->count = (uint32_t)s->mapped_count;
	s->f.claims->table = next;
	s->f.claims->start_ns = b->start_ns;
	s->f.claims->tgid = (uint32_t)b->pid;
	assert_true(fill(&s->f, &record));
	assert_int_equal(record.missed, 0);
	return record.table_generation;
}

static void publish_next(struct stress *s, const struct burner *b, uint32_t next, uint64_t fill)
{
	struct process_key key = { .tgid = (uint32_t)b->pid, .start_ns = b->start_ns };
	struct target target = { .flags = TARGET_MAPPED, .rule = NO_SLOT, .unwind = next + 1 };
	int targets = bpf_map__fd(s->f.h->skel->maps.targets);

	__atomic_store_n(&s->f.tables[next].published, fill, __ATOMIC_RELEASE);
	assert_int_equal(bpf_map_update_elem(targets, &key, &target, BPF_ANY), 0);
}

static void poison_file(struct stress *s, const struct unwind_build *old)
{
	uint64_t *to = s->f.pool + old->first;

	for (uint32_t k = 0; k < old->rows; k++)
		__atomic_store_n(&to[k], (uint64_t)POISON_RULE << 32, __ATOMIC_RELAXED);
	for (uint32_t k = old->rows; k < old->elements; k++)
		__atomic_store_n(&to[k], (uint64_t)UNWIND_PAGE(0, 1) << 32 | UNWIND_PAGE(0, 1),
				 __ATOMIC_RELAXED);
}

/* What no good walk meets, over all that only the old tables referred to; the places first, as
 * those few words reach the other CPUs at once. */
static void poison(struct stress *s, struct unwind_build *const old[FILES_MAX])
{
	for (size_t i = 0; i < s->file_count && old[i]; i++)
		s->f.files[old[i] - s->builds.items].place = (struct unwind_place){ 0 };
	for (size_t i = 0; i < s->file_count && old[i]; i++) {
		poison_file(s, old[i]);
		old[i]->holds--;
	}
}

static void poison_table(struct unwind_process *table)
{
	for (size_t i = 0; i < UNWIND_RANGES; i++)
		table->mappings[i] = (struct unwind_mapping){ .kind = UNWIND_KIND_FP };
}

/* The burners' tables are not to be used any more. */
static void retire(struct stress *s)
{
	for (size_t i = 0; i < CHAINS; i++)
		__atomic_store_n(&s->f.tables[s->burners[i].table].published, 0, __ATOMIC_RELEASE);
}

static void spin_for(uint64_t ns)
{
	uint64_t end_ns = harness_now_ns() + ns;

	while (harness_now_ns() < end_ns)
		;
}

static uint32_t turns_of(const struct stress *s)
{
	uint32_t turns = 0;

	for (size_t i = 0; i < CHAINS; i++)
		turns += __atomic_load_n(&s->burners[i].chain->turns, __ATOMIC_RELAXED);
	return turns;
}

/* Until one of them runs, on another CPU; on a busy machine they seldom do. Not for long. */
static void await_burner(const struct stress *s)
{
	uint64_t end_ns = harness_now_ns() + AWAIT_NS;
	uint32_t turns = turns_of(s);

	while (turns_of(s) == turns && harness_now_ns() < end_ns)
		;
}

static void poison_tables(struct stress *s, uint32_t which)
{
	for (size_t i = 0; i < CHAINS; i++)
		poison_table(&s->f.tables[s->burners[i].table ^ which]);
}

/*
 * All that the kernel side walks by, once more and elsewhere. What it has found it remembers by the
 * number of the filling, so that it reads most of a table in the first walks by it: a `brief` one
 * is retired while these may be under way.
 */
static void rewrite(struct stress *s, bool grace, bool brief)
{
	struct unwind_build *old[FILES_MAX], *gone[FILES_MAX] = { NULL };
	uint64_t fills[CHAINS];

	write_files(s, old);
	for (size_t i = 0; i < CHAINS; i++)
		fills[i] = prepare(s, &s->burners[i], s->burners[i].table ^ 1);
	if (brief)
		await_burner(s);
	for (size_t i = 0; i < CHAINS; i++)
		publish_next(s, &s->burners[i], s->burners[i].table ^ 1, fills[i]);
	retire(s);
	for (size_t i = 0; i < CHAINS; i++)
		s->burners[i].table ^= 1;
	if (brief) {
		spin_for((uint64_t)random() % BRIEF_NS);
		retire(s);
		for (size_t i = 0; i < s->file_count; i++) {
			gone[i] = s->files[i].build;
			s->files[i].build = NULL;
		}
	}
	if (grace)
		assert_int_equal(syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0), 0);
	poison(s, gone);
	poison(s, old);
	poison_tables(s, 1);
	if (brief)
		poison_tables(s, 0);
	s->rewritten++;
}

/* ---- the judge */

static const struct burner *burner_of(const struct stress *s, uint32_t tgid)
{
	for (size_t i = 0; i < CHAINS; i++)
		if (s->burners[i].pid == (pid_t)tgid)
			return &s->burners[i];
	fail_msg("a sample of process %u", tgid);
	return NULL;
}

/* The first frame that is not as it must be, its end being the last; -1: all are. */
static int first_wrong(const struct sample *s, const struct chain *chain)
{
	const uint64_t *frames = (const uint64_t *)(s + 1) + s->kernel_frames;

	for (uint32_t i = 0; i < s->user_frames; i++) {
		bool good = i == 0 ? chains_is_bottom(frames[0])
				   : i < chain->count && SAMPLE_ADDRESS(frames[i]) ==
								 (uintptr_t)chain->frames[i];

		if (!good)
			return (int)i;
	}
	if (s->user_frames == chain->count && s->stop_reason == UNWIND_END_COMPLETE)
		return -1;
	return s->user_frames;
}

static void judge(struct stress *s, const struct sample *sample)
{
	const struct burner *b = burner_of(s, sample->tgid);
	int wrong;

	s->seen.samples++;
	if (!(sample->flags & SAMPLE_UNWOUND)) {
		s->seen.unwalked++;
		return;
	}
	if (sample->stop_reason == UNWIND_END_SWITCHED) {
		s->seen.switched++;
		return;
	}
	wrong = first_wrong(sample, b->chain);
	if (wrong < 0) {
		s->seen.good++;
		return;
	}
	if (s->seen.wrong++ < WRONG_SAID)
		print_message("wrong: %u frames of %u, the first at %d, end %u, generation %" PRIu64
			      "\n",
			      sample->user_frames, b->chain->count, wrong, sample->stop_reason,
			      s->rewritten);
}

static void judge_all(struct stress *s)
{
	harness_drain(s->f.h);
	for (size_t i = 0; i < s->f.h->samples.count; i++)
		judge(s, s->f.h->samples.records[i]);
	harness_forget(s->f.h);
}

static void say(const struct stress *s, const char *what)
{
	const struct seen *n = &s->seen;

	print_message("%s: %" PRIu64 " generations of tables, %" PRIu64 " stacks, %" PRIu64
		      " wrong, %" PRIu64 " dropped as switched, %" PRIu64 " without a table\n",
		      what, s->rewritten, n->samples, n->wrong, n->switched, n->unwalked);
}

/* ---- */

static void run(struct stress *s, unsigned int ms, bool grace)
{
	uint64_t end_ns;

	rewrite(s, true, false);
	harness_forget(s->f.h);
	harness_tick(s->f.h, STRESS_HZ);
	end_ns = harness_now_ns() + ms * 1000000ull;
	while (harness_now_ns() < end_ns && (grace || s->seen.wrong == 0)) {
		s->f.h->control->heartbeat_ns = harness_now_ns();
		rewrite(s, grace, s->rewritten % 2);
		judge_all(s);
	}
	ticks_stop(s->f.h);
	judge_all(s);
}

static void no_stack_is_wrong(void **state)
{
	struct stress *s = &stress;
	const char *asked = getenv("TROCAR_LONG");

	stress_begin(s);
	run(s, asked && !strcmp(asked, "1") ? LONG_MS : RUN_MS, true);
	say(s, "with the grace");
	assert_true(s->rewritten > 20);
	assert_true(s->seen.good > 1000);
	assert_int_equal(s->seen.wrong, 0);
	assert_int_equal(s->seen.switched, 0);
	stress_end(s);
}

static void without_grace_some_are(void **state)
{
	struct stress *s = &stress;

	stress_begin(s);
	run(s, CONTROL_MS, false);
	say(s, "without");
	assert_true(s->seen.wrong > 0);
	stress_end(s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_stack_is_wrong),
		cmocka_unit_test(without_grace_some_are),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
