/* SPDX-License-Identifier: BSD-2-Clause */
/* lock_memory.c: what a lock lies in, for a thread that waits in each kind of memory. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/shm.h>

#include "lock_fixture.h"

HARNESS_LOADS("account_*", "lock_*");

#define PAGE   4096
#define OFFSET 0x140 /* of the lock in the mapping */

#ifndef PR_SET_VMA
#define PR_SET_VMA	     0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

enum home { HEAP, MAIN, OWN, OTHERS, NAMED, MEMFD, SHM, SYSV, COMMON, MAPPED, BSS, DATA, HOMES };

static struct homes {
	uint32_t *words[HOMES];
	pid_t tids[HOMES]; /* of those on stacks */
	uint64_t heap;	   /* where it begins */
	bool named;	   /* the kernel takes names for anonymous memory */
	char shm[32], file[64];
} * homes;

/* More than the rest of the last page of the file. */
static uint32_t in_bss[2 * PAGE], in_data = 1;

static void wait_at(uint32_t *word)
{
	uint32_t seen = __atomic_load_n(word, __ATOMIC_SEQ_CST);

	for (int i = 0; i < ROUNDS; i++) {
		while (__atomic_load_n(word, __ATOMIC_SEQ_CST) == seen)
			futex(word, FUTEX_WAIT, seen, NULL);
		seen = __atomic_load_n(word, __ATOMIC_SEQ_CST);
	}
}

static void wake_at(uint32_t *word)
{
	__atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
	futex(word, FUTEX_WAKE, 1, NULL);
}

static void *wait_there(void *word)
{
	wait_at(word);
	return NULL;
}

static void *wait_on_own_stack(void *unused)
{
	uint32_t word = 0;

	homes->tids[OWN] = (pid_t)syscall(SYS_gettid);
	__atomic_store_n(&homes->words[OWN], &word, __ATOMIC_SEQ_CST);
	wait_at(&word);
	return NULL;
}

/* Wakes one that waits on this thread's stack. */
static void *wake_on_own_stack(void *unused)
{
	uint32_t word = 0;
	pthread_t waiter;

	homes->tids[OTHERS] = (pid_t)syscall(SYS_gettid);
	homes->words[OTHERS] = &word;
	pthread_create(&waiter, NULL, wait_there, &word);
	for (int i = 0; i < 2 * ROUNDS; i++) {
		harness_sleep_ms(HOLD_MS);
		wake_at(&word);
	}
	pthread_join(waiter, NULL);
	return NULL;
}

static uint32_t *map_at(int fd, int flags)
{
	char *at;

	if (fd >= 0 && ftruncate(fd, 4 * PAGE) < 0)
		_exit(2);
	/* Not from the begin of the file: the offset is that in it. */
	at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, flags, fd, fd >= 0 ? PAGE : 0);
	if (at == MAP_FAILED)
		_exit(2);
	if (fd >= 0)
		close(fd);
	return (uint32_t *)(at + OFFSET);
}

static uint32_t *attach_sysv(void)
{
	int id = shmget(0x7ac0 + getpid(), PAGE, IPC_CREAT | 0600);
	char *at = shmat(id, NULL, 0);

	shmctl(id, IPC_RMID, NULL);
	return (uint32_t *)(at + OFFSET);
}

static void settle(uint32_t *main_word)
{
	uint32_t *heap = malloc(64);
	char *plain = (char *)map_at(-1, MAP_PRIVATE | MAP_ANONYMOUS);

	*heap = 0;
	homes->heap = (uint64_t)(uintptr_t)heap;
	homes->words[HEAP] = heap;
	homes->words[MAIN] = main_word;
	homes->tids[MAIN] = getpid();
	homes->words[NAMED] = (uint32_t *)plain;
	homes->named = prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, plain - OFFSET, 2 * PAGE,
			     "trocar_arena") == 0;
	homes->words[MEMFD] = map_at(memfd_create("trocar_queue", MFD_CLOEXEC), MAP_SHARED);
	homes->words[SHM] =
		map_at(shm_open(homes->shm, O_RDWR | O_CREAT | O_EXCL, 0600), MAP_SHARED);
	homes->words[SYSV] = attach_sysv();
	homes->words[COMMON] = map_at(-1, MAP_SHARED | MAP_ANONYMOUS);
	homes->words[MAPPED] =
		map_at(open(homes->file, O_RDWR | O_CREAT | O_CLOEXEC, 0600), MAP_PRIVATE);
	homes->words[BSS] = &in_bss[PAGE];
	homes->words[DATA] = &in_data;
}

static void live_everywhere(void *unused)
{
	uint32_t on_main = 0;
	pthread_t threads[HOMES];

	settle(&on_main);
	come_in();
	for (int i = 0; i < HOMES; i++)
		pthread_create(&threads[i], NULL,
			       i == OWN	     ? wait_on_own_stack
			       : i == OTHERS ? wake_on_own_stack
					     : wait_there,
			       homes->words[i]);
	for (int round = 0; round < 2 * ROUNDS; round++) {
		harness_sleep_ms(HOLD_MS);
		for (int i = 0; i < HOMES; i++)
			if (i != OTHERS && (i != OWN || round < ROUNDS) && homes->words[i])
				wake_at(homes->words[i]);
	}
	shm_unlink(homes->shm);
	unlink(homes->file);
	pthread_join(threads[OTHERS], NULL);
	say_end();
}

static struct fixture begin_homes(void)
{
	struct fixture f = begin_locks(NULL);

	homes = mmap(NULL, sizeof(*homes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	assert_ptr_not_equal(homes, MAP_FAILED);
	snprintf(homes->shm, sizeof(homes->shm), "/trocar_lock_%d", getpid());
	snprintf(homes->file, sizeof(homes->file), "/var/tmp/trocar_lock_%d", getpid());
	return f;
}

static void expect(const struct fixture *f, pid_t pid, enum home home, uint32_t kind,
		   const char *name)
{
	const struct lock_memory *m;
	struct found lock;

	find_lock(f, pid, homes->words[home], &lock);
	m = &lock.sums.memory;
	if (m->kind != kind || strcmp(m->name, name) != 0)
		fail_msg("home %d: kind %u name %s", home, m->kind, m->name);
	if (kind == LOCK_MEMORY_STACK)
		assert_int_equal(m->tid, homes->tids[home]);
	else
		assert_int_equal(m->tid, 0);
	/* A segment's inode is its id, and a machine's first id is 0 (newseg() of ipc/shm.c). */
	if ((kind == LOCK_MEMORY_SHARED && home != SYSV) || kind == LOCK_MEMORY_FILE)
		assert_true(m->inode);
	if (home == MEMFD || home == SHM || home == MAPPED)
		assert_int_equal(m->offset, PAGE + OFFSET);
	if (home == SYSV || home == COMMON)
		assert_int_equal(m->offset, OFFSET);
}

/* Each kind is reported, with the name and the offset by which another process finds it. */
static void homes_are_told(void **state)
{
	struct fixture f = begin_homes();
	pid_t pid = harness_start(live_everywhere, NULL, f.dir);
	char sysv[32];

	await_end();
	snprintf(sysv, sizeof(sysv), "SYSV%08x", 0x7ac0 + pid);
	expect(&f, pid, HEAP, LOCK_MEMORY_HEAP, "");
	expect(&f, pid, MAIN, LOCK_MEMORY_STACK, "");
	expect(&f, pid, OWN, LOCK_MEMORY_STACK, "");
	expect(&f, pid, OTHERS, LOCK_MEMORY_STACK, "");
	expect(&f, pid, NAMED, LOCK_MEMORY_ANONYMOUS, homes->named ? "trocar_arena" : "");
	expect(&f, pid, MEMFD, LOCK_MEMORY_SHARED, "memfd:trocar_queue");
	expect(&f, pid, SHM, LOCK_MEMORY_SHARED, homes->shm + 1);
	expect(&f, pid, SYSV, LOCK_MEMORY_SHARED, sysv);
	expect(&f, pid, COMMON, LOCK_MEMORY_SHARED, "dev/zero");
	expect(&f, pid, MAPPED, LOCK_MEMORY_FILE, strrchr(homes->file, '/') + 1);
	expect(&f, pid, BSS, LOCK_MEMORY_ANONYMOUS, "");
	expect(&f, pid, DATA, LOCK_MEMORY_FILE, "test-bpf-lock_memory");
	harness_kill(pid);
	munmap(homes, sizeof(*homes));
	end_locks(&f);
}

static void *churn_mappings(void *unused)
{
	for (;;) {
		char *at = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				-1, 0);

		mprotect(at + 2 * PAGE, 2 * PAGE, PROT_READ);
		munmap(at, 8 * PAGE);
	}
	return NULL;
}

/* Waits at ever new words of one memory, while another thread changes the tree of mappings. */
static void wait_in_change(void *unused)
{
	uint32_t *words = map_at(memfd_create("trocar_many", MFD_CLOEXEC), MAP_SHARED);
	const struct timespec brief = { .tv_nsec = MSEC };
	pthread_t thread;

	homes->words[MEMFD] = words;
	pthread_create(&thread, NULL, churn_mappings, NULL);
	for (int i = 0; i < 500; i++)
		futex(&words[i], FUTEX_WAIT, 0, &brief);
	say_end();
}

/* The report is right or empty, also while the mappings change. */
static void changes_tell_nothing_wrong(void **state)
{
	struct found one;
	struct fixture f = begin_homes();
	pid_t pid = harness_start(wait_in_change, NULL, f.dir);
	int fd = bpf_map__fd(f.h->skel->maps.locks), told = 0, all = 0;
	struct lock_key key, *last = NULL;

	await_end();
	while (bpf_map_get_next_key(fd, last, &key) == 0) {
		const struct lock_memory *m = &one.sums.memory;
		uint64_t at = key.address - (uint64_t)(uintptr_t)homes->words[MEMFD];

		last = &key;
		if (key.tgid != (uint32_t)pid || at >= 500 * sizeof(uint32_t) ||
		    bpf_map_lookup_elem(fd, &key, &one.sums) < 0)
			continue;
		all++;
		if (m->kind == LOCK_MEMORY_UNKNOWN)
			continue;
		told++;
		assert_int_equal(m->kind, LOCK_MEMORY_SHARED);
		assert_string_equal(m->name, "memfd:trocar_many");
		assert_int_equal(m->offset, PAGE + OFFSET + at);
	}
	print_message("%d of %d told\n", told, all);
	assert_true(all > 400 && told * 2 > all);
	harness_kill(pid);
	munmap(homes, sizeof(*homes));
	end_locks(&f);
}

static uint32_t *priced; /* what the words of wait_often are */

/* Waits 1,000 times: the first half at ever new words, the second at one. */
static void wait_often(void *unused)
{
	const struct timespec brief = { .tv_nsec = 100000 };

	come_in();
	for (int i = 0; i < 500; i++)
		futex(&priced[i], FUTEX_WAIT, 0, &brief);
	homes->tids[0] = 1;
	while (!homes->tids[1])
		harness_sleep_ms(1);
	for (int i = 0; i < 500; i++)
		futex(&priced[0], FUTEX_WAIT, 0, &brief);
	say_end();
}

/* Returns the time that the program of the wake-ups has run, and how often. */
static struct bpf_prog_info read_runs(const struct fixture *f)
{
	struct bpf_prog_info info = {};
	uint32_t bytes = sizeof(info);

	assert_int_equal(bpf_obj_get_info_by_fd(bpf_program__fd(f->h->skel->progs.lock_waking),
						&info, &bytes),
			 0);
	return info;
}

/* The lookup is made once for a lock. The bound is a wall against another order of magnitude. */
static void a_new_lock_costs_little(void **state)
{
	struct fixture f = begin_homes();
	int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	struct bpf_prog_info a, b, c;
	uint64_t fresh_ns, known_ns;
	pid_t pid;

	assert_true(stats >= 0);
	priced = map_at(-1, MAP_PRIVATE | MAP_ANONYMOUS);
	a = read_runs(&f);
	pid = harness_start(wait_often, NULL, f.dir);
	while (!homes->tids[0])
		harness_sleep_ms(1);
	b = read_runs(&f);
	homes->tids[1] = 1;
	await_end();
	c = read_runs(&f);
	fresh_ns = b.run_time_ns - a.run_time_ns;
	known_ns = c.run_time_ns - b.run_time_ns;
	print_message("500 waits at new locks cost %llu ns each, at a known one %llu ns\n",
		      (unsigned long long)fresh_ns / 500, (unsigned long long)known_ns / 500);
	assert_true(fresh_ns < known_ns + 500 * 100000ull);
	harness_kill(pid);
	close(stats);
	munmap(homes, sizeof(*homes));
	end_locks(&f);
}

/* A wait that is not over has it in its record. */
static void open_waits_have_it(void **state)
{
	struct fixture f = begin_locks(NULL);
	pid_t pid = harness_start(block_for_ever, NULL, f.dir);
	struct account_record account;
	struct lock_record record = {};

	for (int i = 0; i < 50; i++) {
		harness_sleep_ms(START_MS);
		read_accounts(&f, pid, &account);
		if (read_open(&f, pid, &record) == 1)
			break;
	}
	assert_int_equal(record.memory.kind, LOCK_MEMORY_SHARED);
	assert_string_equal(record.memory.name, "dev/zero");
	assert_int_equal(record.memory.offset, offsetof(struct shared, word));
	harness_kill(pid);
	end_locks(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(homes_are_told),
		cmocka_unit_test(changes_tell_nothing_wrong),
		cmocka_unit_test(a_new_lock_costs_little),
		cmocka_unit_test(open_waits_have_it),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
