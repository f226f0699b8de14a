/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * runtime.c: frames of a language runtime. This program has the symbols of CPython 3.11 and passes
 * for one, so a child of it can have any memory behind them: right, torn, hostile.
 */
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <unistd.h>

#include "consumer/runtimes/runtime_symbols.h"
#include "unwind_fixture.h"

HARNESS_LOADS("sampler", "ranges*", "looks");

#define VERSION	  0x030b
#define NAMES_MAX 4096
#define OBJECTS	  512
#define THREAD	  19 /* word of the thread state: the thread that it belongs to */

/* The begin of a type object. */
struct type {
	uint64_t references;
	const void *type;
	uint64_t size;
	const char *name;
	uint64_t basic_bytes;
	uint64_t rest[46];
};

/* The symbols of CPython, in the table of dynamic symbols (-rdynamic). */
char _PyRuntime[1024] __attribute__((aligned(16)));
struct type PyCode_Type = { .name = "code", .basic_bytes = 184 };
struct type PyUnicode_Type = { .name = "str" }, PyBytes_Type = { .name = "bytes" };
struct type PyFrame_Type = { .name = "frame" };
const unsigned long Py_Version = VERSION << 16;

extern char __executable_start, etext; /* of the linker */

/* A string or bytes; its text is within it. */
struct text {
	uint64_t references;
	const void *type;
	uint64_t length, hash;
	uint32_t state, pad;
	uint64_t wstr;
	char ascii[208]; /* of bytes the text begins at 32, where `state` is */
};

#define COMPACT_ASCII (1u << 2 | 1u << 5 | 1u << 6)

/* A code object of 3.11, up to its instructions. */
struct code {
	uint64_t references;
	const void *type;
	uint64_t size;
	uint64_t words[6];
	int32_t first_line, pad;
	uint64_t more[4];
	const struct text *file, *name, *qualname, *table;
	uint64_t after[5];
	uint16_t instructions[64];
};

_Static_assert(offsetof(struct code, first_line) == 72 && offsetof(struct code, file) == 112 &&
		       offsetof(struct code, instructions) == 184,
	       "the layout of 3.11");

struct frame_3_11 {
	uint64_t words[4];
	const struct code *code;
	uint64_t word;
	const struct frame_3_11 *previous;
	const uint16_t *at;
	uint32_t top;
	uint8_t is_entry, owner, pad[2];
	uint64_t locals[8];
};

_Static_assert(offsetof(struct frame_3_11, previous) == 48 &&
		       offsetof(struct frame_3_11, is_entry) == 68,
	       "the layout of 3.11");

/* The memory of the interpreter; shared with the child, so that it changes under a walk's feet. */
static struct world {
	struct frame_3_11 frames[OBJECTS];
	struct code codes[OBJECTS];
	struct text names[OBJECTS], file, table, secret;
	uint64_t interpreter[16], thread[32], control[8];
	uint32_t sleeps; /* the child sleeps instead of burning */
	uint32_t ready;
} * world;

static void make_text(struct text *t, const void *type, const char *text)
{
	*t = (struct text){ .type = type, .length = strlen(text), .state = COMPACT_ASCII };
	memcpy(type == &PyBytes_Type ? (char *)&t->state : t->ascii, text, t->length);
}

/* `count` frames, frame 0 the innermost; every second one ends a run. */
static void make_world(size_t count)
{
	uint64_t thread = world->thread[THREAD];

	memset(world, 0, sizeof(*world));
	world->thread[THREAD] = thread;
	make_text(&world->file, &PyUnicode_Type, "/srv/app.py");
	make_text(&world->table, &PyBytes_Type, "\xf8\x04\x81");
	make_text(&world->secret, &PyUnicode_Type, "hunter2");
	for (size_t i = 0; i < count; i++) {
		char name[32];

		snprintf(name, sizeof(name), "function_%zu", i);
		make_text(&world->names[i], &PyUnicode_Type, name);
		world->codes[i] = (struct code){ .type = &PyCode_Type,
						 .size = 64,
						 .first_line = (int32_t)(10 + i),
						 .file = &world->file,
						 .name = &world->names[i],
						 .qualname = &world->names[i],
						 .table = &world->table };
		world->frames[i] = (struct frame_3_11){ .code = &world->codes[i],
							.at = &world->codes[i].instructions[i % 8],
							.is_entry = i & 1 };
		if (i + 1 < count)
			world->frames[i].previous = &world->frames[i + 1];
	}
	world->control[1] = (uint64_t)(uintptr_t)&world->frames[0];
	world->thread[7] = (uint64_t)(uintptr_t)world->control; /* cframe: offset 56 */
	world->interpreter[2] = (uint64_t)(uintptr_t)world->thread;
}

/* The child: an interpreter with this thread alone. */
static void run(void *context)
{
	volatile char sum = 0;
	uint32_t no_key = 40;
	uint64_t at = (uint64_t)(uintptr_t)world->interpreter;

	for (const char *p = &__executable_start; p < &etext; p += 4096)
		sum += *p;
	for (const char *p = (const char *)&PyCode_Type; p < (const char *)(&PyCode_Type + 1); p++)
		sum += *p;
	for (size_t i = 0; i < sizeof(*world); i += 4096)
		sum += ((volatile char *)world)[i]; /* shared memory: fork(2) maps none of it */
	sum += PyCode_Type.name[0] + (char)Py_Version;
	memcpy(_PyRuntime + 40, &at, sizeof(at));
	memcpy(_PyRuntime + 596, &no_key, sizeof(no_key));
#if defined(__x86_64__)
	__asm__("mov %%fs:0, %0" : "=r"(at));
#endif
	world->thread[THREAD] = at;
	__atomic_store_n(&world->ready, 1, __ATOMIC_RELEASE);
	while (1)
		if (__atomic_load_n(&world->sleeps, __ATOMIC_RELAXED))
			usleep(1000000);
}

/* The ring of names. */
struct names {
	struct ring_buffer *ring;
	struct runtime_name items[NAMES_MAX];
	size_t count;
};

static struct names names;

static int take_name(void *context, void *record, size_t bytes)
{
	assert_in_range(bytes, offsetof(struct runtime_name, table), sizeof(*names.items));
	if (names.count < NAMES_MAX)
		memcpy(&names.items[names.count++], record, bytes);
	return 0;
}

static void drain_names(void)
{
	ring_buffer__consume(names.ring);
}

/* The claim with the true symbols of this program. */
static struct runtime_claim true_claim(const struct fixture *f)
{
	struct elf_image image = { .fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC) };
	struct runtime_symbols symbols;
	struct runtime_claim claim = { 0 };
	struct elf_reader e;
	struct stat st;

	assert_int_equal(fstat(image.fd, &st), 0);
	image.bytes = (uint64_t)st.st_size;
	assert_int_equal(elf_reader_open(&image, &e), 0);
	assert_true(runtime_symbols_read(&e, &symbols));
	elf_reader_done(&e);
	close(image.fd);
	memcpy(claim.symbols, symbols.indices, sizeof(claim.symbols));
	claim.start = (uint64_t)(uintptr_t)&__executable_start;
	return claim;
}

/* Starts the child with this function, and claims its mappings. */
static void restart(struct fixture *f, void (*call)(void *context))
{
	harness_kill(f->pid);
	world->ready = 0;
	f->pid = harness_start(call, NULL, f->dir);
	while (!__atomic_load_n(&world->ready, __ATOMIC_ACQUIRE))
		harness_sleep_ms(1);
	target_set(f, TARGET_MAPPED, 0);
	read_places(f);
	claim(f, false);
}

static struct fixture begin_runtime(size_t frames)
{
	struct fixture f = begin("sleep");

	if (!world)
		world = mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(world, MAP_FAILED);
	make_world(frames);
	restart(&f, run);
	lie(&f, (struct unwind_rule){ .cfa = UNWIND_CFA_END }, UNWIND_KIND_ROWS);
	names.count = 0;
	names.ring =
		ring_buffer__new(bpf_map__fd(f.h->skel->maps.runtime_names), take_name, NULL, NULL);
	assert_non_null(names.ring);
	return f;
}

static void end_runtime(struct fixture *f)
{
	ring_buffer__free(names.ring);
	end(f);
}

/* Makes the claim, and returns the result of the check. */
static uint32_t check(const struct fixture *f, const struct runtime_claim *claim)
{
	struct ranges_record record = { 0 };

	f->claims->runtime = *claim;
	assert_true(fill(f, &record));
	assert_true(record.table_generation);
	publish((struct fixture *)f, record.table_generation);
	return record.runtime;
}

/* The runtime's part of a sample; NULL: it has none. */
static const struct sample_runtime *runtime_of(const struct sample *s)
{
	const uint64_t *frames = (const uint64_t *)(s + 1);
	const char *rest = (const char *)(frames + s->kernel_frames + s->user_frames);

	if (!(s->flags & SAMPLE_RUNTIME))
		return NULL;
	if (s->flags & SAMPLE_LEAF_ID)
		rest += sizeof(struct frame_build_id);
	return (const struct sample_runtime *)rest;
}

/* Samples until there is one with frames of a runtime; NULL: there is none in `tries` rounds. */
static const struct sample_runtime *sample_once(const struct fixture *f, int tries)
{
	for (int i = 0; i < tries; i++) {
		harness_forget(f->h);
		sample_for(f->h, 12);
		drain_names();
		for (size_t k = f->h->samples.count; k; k--) {
			const struct sample *s = f->h->samples.records[k - 1];

			if (s->tgid == (uint32_t)f->pid && runtime_of(s))
				return runtime_of(s);
		}
	}
	return NULL;
}

static const struct runtime_name *find_name(uint32_t number)
{
	for (size_t i = 0; number && i < names.count; i++)
		if (names.items[i].number == number)
			return &names.items[i];
	return NULL;
}

static bool is_text(const uint8_t *at, size_t bytes, const char *text)
{
	return bytes == strlen(text) && !memcmp(at, text, bytes);
}

/* The frames of a running thread, with their names, instructions and runs. */
static void frames_of_a_tick(void **state)
{
	struct fixture f = begin_runtime(6);
	struct runtime_claim claim = true_claim(&f);
	const struct sample_runtime *r;
	const uint64_t *words;

	assert_int_equal(check(&f, &claim), RUNTIME_STATE_OK);
	for (int i = 0; i < 3; i++) /* 4 names are copied at a tick */
		assert_non_null(sample_once(&f, 50));
	r = sample_once(&f, 50);
	words = (const uint64_t *)(r + 1);
	assert_int_equal(r->frames, 6);
	assert_int_equal(r->end, RUNTIME_END_BASE);
	assert_int_equal(r->version, VERSION);
	for (size_t i = 0; i < 6; i++) {
		const struct runtime_name *n = find_name(RUNTIME_NUMBER(words[i]));
		char text[32];

		snprintf(text, sizeof(text), "function_%zu", i);
		assert_non_null(n);
		assert_true(is_text(n->name, n->name_bytes, text));
		assert_true(is_text(n->file, n->file_bytes, "/srv/app.py"));
		assert_true(is_text(n->table, n->table_bytes, "\xf8\x04\x81"));
		assert_int_equal(n->first_line, 10 + i);
		assert_int_equal(n->tgid, f.pid);
		assert_int_equal(RUNTIME_INSTRUCTION(words[i]), 2 + 2 * i);
		assert_int_equal(words[i] & RUNTIME_RUN_ENDS, i & 1);
	}
	/* Each is named once. */
	assert_int_equal(names.count, 6);
	end_runtime(&f);
}

/* A claim that is false in any part is no runtime, and gives no frame. */
static void false_claims(void **state)
{
	struct fixture f = begin_runtime(3);
	struct runtime_claim right = true_claim(&f), claim;
	uint32_t result;

	/* Another symbol of the runtime, which is all that a claim demands but for its name. */
	for (int k = 0; k < RUNTIME_SYMBOLS * RUNTIME_SYMBOLS; k++) {
		claim = right;
		claim.symbols[k / RUNTIME_SYMBOLS] = right.symbols[k % RUNTIME_SYMBOLS];
		if (k / RUNTIME_SYMBOLS != k % RUNTIME_SYMBOLS)
			assert_int_equal(check(&f, &claim), RUNTIME_STATE_BAD_SYMBOL);
	}
	srand(7);
	for (int i = 0; i < 400; i++) {
		int k = i % RUNTIME_SYMBOLS;

		claim = right;
		claim.symbols[k] = (uint32_t)rand() % (i % 2 ? 64 : 1u << 26);
		if (claim.symbols[k] == right.symbols[k])
			continue;
		result = check(&f, &claim);
		/* Without the version the sizes decide, and none of an older one fits. */
		assert_true(result == RUNTIME_STATE_BAD_SYMBOL ||
			    (k == RUNTIME_SYMBOL_VERSION && result != RUNTIME_STATE_OK));
	}
	for (size_t i = 0; i < f.count; i++) {
		claim = right;
		claim.start = f.places[i].start;
		if (claim.start != right.start)
			assert_int_not_equal(check(&f, &claim), RUNTIME_STATE_OK);
		claim.start = right.start + 8 * i + 8;
		assert_int_equal(check(&f, &claim), RUNTIME_STATE_NOT_MAPPED);
	}
	claim = (struct runtime_claim){ 0 };
	assert_int_equal(check(&f, &claim), RUNTIME_STATE_NONE);
	assert_null(sample_once(&f, 5));
	assert_int_equal(names.count, 0);
	end_runtime(&f);
}

/* Where the file is mapped only to be read. */
static void *read_only;

/* Maps the file as ld.so does, but for its code, which is not executable. */
static void map_and_run(void *context)
{
	const ElfW(Ehdr) *header = (const void *)&__executable_start;
	const ElfW(Phdr) *p = (const void *)(&__executable_start + header->e_phoff);
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	volatile char sum = 0;
	struct type *code;

	for (int i = 0; i < header->e_phnum; i++, p++) {
		size_t before = p->p_offset & 4095;
		char *at = (char *)read_only + p->p_vaddr - before;

		if (p->p_type != PT_LOAD)
			continue;
		mmap(at, p->p_filesz + before,
		     p->p_flags & PF_W ? PROT_READ | PROT_WRITE : PROT_READ,
		     MAP_PRIVATE | MAP_FIXED, fd, (off_t)(p->p_offset - before));
		for (size_t k = 0; k < p->p_filesz + before; k += 4096)
			sum += at[k];
	}
	/* The pointer that ld.so would have relocated. */
	code = (void *)((char *)read_only + ((char *)&PyCode_Type - &__executable_start));
	code->name = (char *)read_only + (PyCode_Type.name - &__executable_start);
	run(context);
}

/* A process may map another user's file to read it, with symbols of that user's choice. */
static void a_file_that_is_only_read(void **state)
{
	struct fixture f = begin_runtime(3);
	struct runtime_claim claim = true_claim(&f);

	read_only = mmap(NULL, 64u << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(read_only, MAP_FAILED);
	restart(&f, map_and_run);
	claim.start = (uint64_t)(uintptr_t)read_only;
	assert_int_equal(check(&f, &claim), RUNTIME_STATE_NOT_RUNNING);
	munmap(read_only, 64u << 20);
	end_runtime(&f);
}

/* Makes member `k` of the only code object the secret, with a lie about its type. */
static void plant_secret(int k, int lie_of)
{
	struct code *c = &world->codes[0];
	struct text *t = &world->secret;

	make_world(1);
	c->first_line = 1000 + 10 * k + lie_of; /* so that it is a code object not seen before */
	if (lie_of == 0)
		t->type = k == 2 ? (const void *)&PyUnicode_Type : &PyBytes_Type;
	else if (lie_of == 1)
		t->type = NULL;
	else if (k == 2)
		t->type = &PyCode_Type;
	else
		t->state = 1u << 2; /* not compact */
	*(k == 0 ? &c->qualname : k == 1 ? &c->file : &c->table) = t;
}

/* Makes the tables of symbols writable, and runs. */
static void unlock_and_run(void *context)
{
	char *first = &__executable_start + 4096;
	const ElfW(Ehdr) *header = (const void *)&__executable_start;
	const ElfW(Phdr) *p = (const void *)(&__executable_start + header->e_phoff);

	while (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
		p++;
	mprotect(first, (p->p_vaddr & ~4095ul) - 4096, PROT_READ | PROT_WRITE);
	run(context);
}

/* Symbols in memory that the process may write prove nothing. */
static void writable_symbols(void **state)
{
	struct fixture f = begin_runtime(3);
	struct runtime_claim claim = true_claim(&f);

	restart(&f, unlock_and_run);
	assert_int_equal(check(&f, &claim), RUNTIME_STATE_BAD_SYMBOL);
	end_runtime(&f);
}

/* No text leaves but those of code objects: each member must have exactly its type. */
static void no_secret(void **state)
{
	struct fixture f = begin_runtime(1);
	struct runtime_claim claim = true_claim(&f);
	const struct sample_runtime *r;

	assert_int_equal(check(&f, &claim), RUNTIME_STATE_OK);
	for (int k = 0; k < 3; k++)
		for (int lie_of = 0; lie_of < 3; lie_of++) {
			plant_secret(k, lie_of);
			r = sample_once(&f, 50);
			assert_non_null(r);
			assert_int_equal(r->frames, 1);
			assert_int_equal(RUNTIME_NUMBER(*(const uint64_t *)(r + 1)), 0);
		}
	assert_int_equal(names.count, 0);
	/* The secret as the name of a code object is one, and leaves. */
	make_world(1);
	world->codes[0].qualname = &world->secret;
	assert_non_null(sample_once(&f, 50));
	assert_int_equal(names.count, 1);
	assert_true(is_text(names.items[0].name, names.items[0].name_bytes, "hunter2"));
	end_runtime(&f);
}

/* Any memory: a walk ends, and reports no frame that is not one. */
static void hostile_memory(void **state)
{
	struct fixture f = begin_runtime(3);
	struct runtime_claim claim = true_claim(&f);
	const struct sample_runtime *r;

	assert_int_equal(check(&f, &claim), RUNTIME_STATE_OK);
	/* A circle of frames ends at the limit. */
	world->frames[2].previous = &world->frames[0];
	r = sample_once(&f, 50);
	assert_int_equal(r->frames, RUNTIME_FRAMES_MAX);
	assert_int_equal(r->end, RUNTIME_END_DEPTH);
	/* Nothing is mapped there. */
	world->frames[1].previous = (const void *)(uintptr_t)0x1000;
	r = sample_once(&f, 50);
	assert_int_equal(r->frames, 2);
	assert_int_equal(r->end, RUNTIME_END_TORN);
	/* The kernel's memory. */
	world->frames[1].previous = (const void *)(uintptr_t)0xffffffff81000000ull;
	r = sample_once(&f, 50);
	assert_int_equal(r->frames, 2);
	assert_int_equal(r->end, RUNTIME_END_TORN);
	/* No code object: only the innermost frame may be half made. */
	make_world(3);
	world->codes[0].type = &PyFrame_Type;
	r = sample_once(&f, 50);
	assert_int_equal(r->frames, 2);
	assert_int_equal(r->end, RUNTIME_END_BASE);
	world->codes[1].type = NULL;
	r = sample_once(&f, 50);
	assert_int_equal(r->frames, 0);
	assert_int_equal(r->end, RUNTIME_END_TORN);
	make_world(3);
	world->codes[1].type = NULL;
	r = sample_once(&f, 50);
	assert_int_equal(r->frames, 1);
	assert_int_equal(r->end, RUNTIME_END_TORN);
	/* Another thread's state; a circle of states. */
	make_world(3);
	world->thread[THREAD] ^= 64;
	world->thread[1] = (uint64_t)(uintptr_t)world->thread;
	r = sample_once(&f, 50);
	assert_int_equal(r->frames, 0);
	assert_int_equal(r->end, RUNTIME_END_NONE);
	world->thread[THREAD] ^= 64;
	/* Random pointers everywhere. */
	srand(5);
	for (int i = 0; i < 100; i++) {
		uint64_t *words = (uint64_t *)world->frames;

		make_world(16);
		for (int k = 0; k < 8; k++)
			words[rand() % (16 * sizeof(*world->frames) / 8)] =
				(uint64_t)(uintptr_t)world + (uint64_t)(rand() % sizeof(*world));
		r = sample_once(&f, 50);
		assert_non_null(r);
		assert_in_range(r->frames, 0, RUNTIME_FRAMES_MAX);
	}
	end_runtime(&f);
}

/* A process with code objects without end gets no more names than the limits allow. */
static void names_are_bounded(void **state)
{
	struct fixture f = begin_runtime(100);
	struct runtime_claim claim = true_claim(&f);
	uint64_t began_ns = harness_now_ns(), seconds;

	assert_int_equal(check(&f, &claim), RUNTIME_STATE_OK);
	for (int i = 0; i < 40; i++) {
		for (size_t k = 0; k < 100; k++)
			world->codes[k].first_line++;
		assert_non_null(sample_once(&f, 50));
	}
	/* A second of the kernel side has 2^30 ns. */
	seconds = (harness_now_ns() - began_ns) / (1u << 30) + 2;
	assert_in_range(names.count, 64, 64 * seconds);
	end_runtime(&f);
}

/* An owner whose processes have taken its share of a second gets no more names in it. */
static void names_are_shared_by_owner(void **state)
{
	struct fixture f = begin_runtime(3);
	struct runtime_claim claim = true_claim(&f);
	uint32_t payer = f.h->slots[SLOT].payer, used[2];
	int owners = bpf_map__fd(f.h->skel->maps.runtime_owners);

	assert_int_equal(check(&f, &claim), RUNTIME_STATE_OK);
	for (int i = 0; i < 20; i++) {
		/* A second of the kernel side has 2^30 ns; not at its turn. */
		while ((harness_now_ns() & ((1u << 30) - 1)) > 900000000)
			harness_sleep_ms(20);
		used[0] = (uint32_t)(harness_now_ns() >> 30);
		used[1] = 256;
		assert_int_equal(bpf_map_update_elem(owners, &payer, used, BPF_ANY), 0);
		assert_non_null(sample_once(&f, 1));
		assert_int_equal(names.count, 0);
	}
	used[1] = 0;
	assert_int_equal(bpf_map_update_elem(owners, &payer, used, BPF_ANY), 0);
	assert_non_null(sample_once(&f, 50));
	assert_int_equal(names.count, 3);
	end_runtime(&f);
}

/* After so many new numbers a name is copied again, because the consumer may have evicted it. */
static void old_names_are_copied_again(void **state)
{
	struct fixture f = begin_runtime(3);
	struct runtime_claim claim = true_claim(&f);
	struct {
		uint32_t last, second, copied, pad;
	} numbers;
	uint32_t zero = 0, before;
	int fd = bpf_map__fd(f.h->skel->maps.runtime_numbers);

	assert_int_equal(check(&f, &claim), RUNTIME_STATE_OK);
	assert_non_null(sample_once(&f, 50));
	assert_int_equal(names.count, 3);
	before = names.items[0].number;
	assert_int_equal(bpf_map_lookup_elem(fd, &zero, &numbers), 0);
	numbers.last += 1u << 14;
	assert_int_equal(bpf_map_update_elem(fd, &zero, &numbers, BPF_ANY), 0);
	assert_non_null(sample_once(&f, 50));
	assert_int_equal(names.count, 6);
	assert_true(names.items[3].number > before + (1u << 14) - 1);
	end_runtime(&f);
}

/* A thread that waits has its frames, and names only while no thread of its process runs. */
static void frames_of_a_look(void **state)
{
	struct fixture f = begin_runtime(6);
	struct runtime_claim claim = true_claim(&f);
	_cleanup_free_ char *bytes = NULL;
	const struct sample_runtime *r = NULL;
	struct look_head head;
	const uint64_t *words;
	size_t n;

	assert_int_equal(check(&f, &claim), RUNTIME_STATE_OK);
	f.h->slots[SLOT].looked = 1;
	world->sleeps = 1;
	for (int i = 0; i < 200 && !r; i++) {
		free(bytes);
		harness_sleep_ms(10);
		f.h->control->look_epoch++;
		n = harness_read(f.h->skel->progs.looks, &bytes);
		for (size_t at = 0; at < n; at += head.bytes) {
			const struct look_record *look = (const void *)(bytes + at);

			memcpy(&head, bytes + at, sizeof(head));
			if (head.tid == (uint32_t)f.pid && !(head.flags & LOOK_RUNNABLE) &&
			    head.bytes > sizeof(head))
				r = runtime_of(&look->sample);
		}
	}
	assert_non_null(r);
	assert_int_equal(r->frames, 6);
	assert_int_equal(r->end, RUNTIME_END_BASE);
	drain_names();
	words = (const uint64_t *)(r + 1);
	for (size_t i = 0; i < 6; i++)
		assert_non_null(find_name(RUNTIME_NUMBER(words[i])));
	end_runtime(&f);
}

/* A process that may run its data has no runtime: anything can pass for its code. */
static void no_read_implies_exec(void **state)
{
	struct fixture f;
	struct runtime_claim claim;
	int before = personality(0xffffffff);

	personality((unsigned long)before | READ_IMPLIES_EXEC);
	f = begin_runtime(3);
	personality((unsigned long)before);
	claim = true_claim(&f);
	assert_int_equal(check(&f, &claim), RUNTIME_STATE_NONE);
	end_runtime(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_of_a_tick),
		cmocka_unit_test(frames_of_a_look),
		cmocka_unit_test(false_claims),
		cmocka_unit_test(no_secret),
		cmocka_unit_test(a_file_that_is_only_read),
		cmocka_unit_test(hostile_memory),
		cmocka_unit_test(names_are_bounded),
		cmocka_unit_test(writable_symbols),
		cmocka_unit_test(no_read_implies_exec),
		cmocka_unit_test(names_are_shared_by_owner),
		cmocka_unit_test(old_names_are_copied_again),
	};

	harness_main(argc, argv);
#if !defined(__x86_64__)
	print_message("the walk through page tables is of x86-64\n");
	return HARNESS_SKIP;
#endif
	return cmocka_run_group_tests(tests, NULL, NULL);
}
