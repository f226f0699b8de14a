/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * secret.c: what a taken-over consumer learns of one word of another process's memory by the tables
 * that it writes: nothing. A process stands still at one instruction, its stack made of addresses
 * of code and of stacks and of one secret word. Each table, of random rules of every kind, walks it
 * with one secret after another; with either of them the same frames are reported and the same end.
 */
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "unwind_fixture.h"

HARNESS_LOADS("sampler", "ranges*");

#define WORDS	  128
#define SP	  8  /* the word that the stack pointer points to */
#define ALTERNATE 64 /* from here on they are the stack of signal handlers */
#define RULES	  64
#define TICK_HZ	  20000
#define ROUNDS	  4000
#define RUN_NS	  10000000000u
#define SHORT_NS  3000000000u
#define WAIT_NS	  2000000000u
#define LEAST	  50 /* rounds, on a machine with other work */
#define WARM	  3  /* walks until the caches have all that they will have */

/* The stack; shared with the process, so that a word changes under its feet. */
static volatile uint64_t *words;

static uint64_t sigreturn_at; /* code in the C library */

/* Stands still, with the stack pointer in the words and the frame pointer in the middle of them. */
static void stand(void *context)
{
	stack_t handlers = { .ss_sp = (void *)(words + ALTERNATE),
			     .ss_size = (WORDS - ALTERNATE) * sizeof(*words) };
	cpu_set_t second;

	CPU_ZERO(&second);
	CPU_SET((int)sysconf(_SC_NPROCESSORS_ONLN) - 1, &second);
	sched_setaffinity(0, sizeof(second), &second);
	sigaltstack(&handlers, NULL);
	words[0] = 1;
#if defined(__x86_64__)
	__asm__ volatile("mov %0, %%rsp\n\tmov %1, %%rbp\n\tmov $0x1234, %%edi\n1:\tjmp 1b" ::"r"(
				 words + SP),
			 "r"(words + SP + 12));
#endif
	_exit(1);
}

/* The report of one walk. */
struct outcome {
	uint64_t frames[STACK_FRAMES];
	uint32_t count, end, flags;
};

static bool same(const struct outcome *a, const struct outcome *b)
{
	return a->count == b->count && a->end == b->end && a->flags == b->flags &&
	       memcmp(a->frames, b->frames, a->count * sizeof(a->frames[0])) == 0;
}

/* The newest sample of filling `fill` since `since_ns`; false when there is none yet. */
static bool newest(const struct fixture *f, uint64_t fill, uint64_t since_ns, struct outcome *ret)
{
	for (size_t i = f->h->samples.count; i-- > 0;) {
		const struct sample *s = f->h->samples.records[i];
		const uint64_t *frames = (const uint64_t *)(s + 1) + s->kernel_frames;

		if (s->time_ns <= since_ns || s->table_generation != (uint32_t)fill)
			continue;
		ret->count = s->user_frames;
		ret->end = s->stop_reason;
		ret->flags = s->flags & SAMPLE_BY_POINTER;
		memcpy(ret->frames, frames, s->user_frames * sizeof(*frames));
		return true;
	}
	return false;
}

/* The walk of the stack with `secret` at word `place`. */
static void take_with(const struct fixture *f, size_t place, uint64_t secret, uint64_t fill,
		      struct outcome *ret)
{
	uint64_t begun_ns;

	words[place] = secret;
	__sync_synchronize();
	begun_ns = harness_now_ns();
	harness_forget(f->h);
	while (!newest(f, fill, begun_ns, ret)) {
		assert_true(harness_now_ns() - begun_ns < WAIT_NS);
		harness_drain(f->h);
	}
}

/* An address in the process's code. */
static uint64_t some_code(const struct fixture *f)
{
	const struct place *p;

	do {
		p = &f->places[(size_t)random() % f->count];
	} while (!p->executable);
	return p->start + (uint64_t)random() % (p->end - p->start);
}

static uint64_t some_word(const struct fixture *f)
{
	switch (random() % 16) {
	case 0:
	case 1:
		return (uint64_t)(words + random() % WORDS);
	case 2:
		return (uint64_t)random() % 1024;
	case 3:
		return sigreturn_at;
	default:
		return some_code(f);
	}
}

/* Mostly code that a compiler might have written, sometimes code that none would. */
static struct unwind_rule some_rule(void)
{
	static const uint8_t likely[] = { UNWIND_CFA_SP,	UNWIND_CFA_SP,	     UNWIND_CFA_SP,
					  UNWIND_CFA_SP,	UNWIND_CFA_SP,	     UNWIND_CFA_FP,
					  UNWIND_CFA_SP_MEMORY, UNWIND_CFA_FP_MEMORY };
	struct unwind_rule rule = {
		.cfa_offset = (int32_t)(1 + random() % 8) * 8,
		.fp_offset = (int16_t)((random() % 24) * -8),
		.cfa = random() % 16 ? likely[random() % 8] : (uint8_t)(random() % 8),
		.saved = UNWIND_SAVED(random() % 8 ? 0 : random() % 8, random() % 5),
	};

	if (rule.cfa >= UNWIND_CFA_SP_MEMORY)
		rule.cfa_offset = UNWIND_HALVES(random() % 16 * 8 - 32, random() % 8 * 8 - 16);
	if (UNWIND_SAVED_FP(rule.saved) == UNWIND_FP_SP)
		rule.fp_offset = (int16_t)(random() % 16 * 8);
	if (random() % 16 == 0)
		rule.saved |= UNWIND_SAVED_EXACT;
	if (random() % 16 == 0)
		rule.cfa_offset += (int32_t)(random() % 8) - 4;
	if (random() % 32 == 0)
		rule.cfa_offset = (int32_t)(random() * 2);
	return rule;
}

/* A file with a rule of its own for every 256 bytes of text. */
static void write_random(struct fixture *f)
{
	uint64_t *rows = f->pool;

	for (int i = 0; i < RULES; i++) {
		f->rules[8 + i] = some_rule();
		rows[i] = (uint64_t)(8 + i) << 32;
	}
	for (int i = 0; i < PAGES / 2; i++)
		rows[RULES + i] = (uint64_t)UNWIND_PAGE(random() % RULES, 1) << 32 |
				  UNWIND_PAGE(random() % RULES, 1);
	f->files[0].place = (struct unwind_place){
		.rows = 0, .row_count = RULES, .pages = RULES, .page_count = PAGES
	};
	for (size_t i = 0; i < f->claims->count; i++)
		f->tables[TABLE].mappings[i] = (struct unwind_mapping){
			.base = f->claims->starts[i],
			.kind = random() % 8 ? UNWIND_KIND_ROWS : (uint32_t)random() % 4,
		};
}

static void say(const char *what, const struct outcome *o)
{
	print_message("%s: end %u, flags %x:", what, o->end, o->flags);
	for (uint32_t i = 0; i < o->count; i++)
		print_message(" %" PRIx64, o->frames[i]);
	print_message("\n");
}

/* One table, and all secrets by it. Returns the reported frames. */
static uint32_t round_of(struct fixture *f, const uint64_t *secrets, size_t count)
{
	struct outcome first = { 0 }, other = { 0 };
	struct ranges_record record = { 0 };
	size_t place = SP + (size_t)random() % 40;

	for (size_t i = 0; i < WORDS; i++)
		words[i] = some_word(f);
	write_random(f);
	assert_true(fill(f, &record));
	publish(f, record.table_generation);
	/*
	 * The first walks by a table store the findings about its code in the caches, and later
	 * ones may know more by these: all secrets are taken with the same knowledge.
	 */
	for (int i = 0; i < WARM; i++)
		take_with(f, place, secrets[0], record.table_generation, &first);
	for (size_t i = 1; i < count; i++) {
		take_with(f, place, secrets[i], record.table_generation, &other);
		if (same(&first, &other))
			continue;
		say("the first secret", &first);
		say("another", &other);
		fail_msg("the secret %" PRIx64 " at word %zu is told from %" PRIx64, secrets[i],
			 place, secrets[0]);
	}
	return first.count;
}

/* The code that a signal's handler returns to. */
static uint64_t find_sigreturn(const struct fixture *f)
{
	static const uint8_t code[] = { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05 };

	for (size_t i = 0; i < f->count; i++) {
		const struct place *p = &f->places[i];
		const void *found = NULL;

		if (p->executable && strncmp(p->file, "libc", 4) == 0)
			found = memmem((const void *)p->start, p->end - p->start, code,
				       sizeof(code));
		if (found)
			return (uint64_t)found;
	}
	return 0;
}

/* A process instead of the fixture's, with our mappings. */
static void begin_standing(struct fixture *f)
{
	words = mmap(NULL, WORDS * sizeof(*words), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(words, MAP_FAILED);
	harness_kill(f->pid);
	f->pid = harness_start(stand, NULL, f->dir);
	while (!words[0])
		harness_sleep_ms(10);
	harness_sleep_ms(100);
	target_set(f, TARGET_MAPPED, 0);
	read_places(f);
	sigreturn_at = find_sigreturn(f);
	assert_true(sigreturn_at != 0);
	claim(f, false);
}

static void secrets_are_kept(void **state)
{
	struct fixture f = begin("burn");
	bool is_short = getenv("TROCAR_SHORT"); /* NOLINT(concurrency-mt-unsafe) */
	uint64_t *heap = malloc(64), frames = 0;
	uint64_t begin_ns = harness_now_ns(), lasts_ns = is_short ? SHORT_NS : RUN_NS;
	/* Numbers, a password, an address of memory that can be read, and other words. */
	const uint64_t secrets[] = { 0x1234,	     0,		UINT64_MAX, 0x64726f7773736170,
				     (uint64_t)heap, 1ull << 63 };
	size_t rounds = 0;

	setpriority(PRIO_PROCESS, 0, -20); /* both: it is to be running at each tick */
	srandom(11);
	begin_standing(&f);
	harness_tick(f.h, TICK_HZ);
	while (rounds < ROUNDS &&
	       harness_now_ns() - begin_ns < (rounds < LEAST ? 3 * RUN_NS : lasts_ns)) {
		frames += round_of(&f, secrets, sizeof(secrets) / sizeof(*secrets));
		rounds++;
	}
	ticks_stop(f.h);
	print_message("%zu tables, %" PRIu64 " frames\n", rounds, frames);
	assert_true(rounds >= LEAST && 2 * frames > 3 * rounds);
	free(heap);
	end(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(secrets_are_kept) };

#if !defined(__x86_64__)
	print_message("rows are walked on x86-64 only\n");
	return HARNESS_SKIP;
#endif
	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
