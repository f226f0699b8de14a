/* SPDX-License-Identifier: BSD-2-Clause */
/* The captive's use of its descriptors, and its search in /proc. */
#include "captive.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/tools/macro.h"

#define PIECE (1u << 16)

/* Reads from anywhere in it, and searches that. */
static void read_some(struct captive *c, const char *where, int fd)
{
	static uint8_t piece[PIECE];
	off_t from = captive_random(c, 2) ? 0 : (off_t)captive_random(c, 1u << 22);
	ssize_t n = pread(fd, piece, sizeof(piece), from);

	if (n > 0)
		captive_look(c, where, piece, (size_t)n);
}

/* Tried on everything; only files made for writing take it. */
static void write_some(struct captive *c, const struct captive_held *held, const char *where)
{
	uint8_t words[64];

	captive_fill(c, words, sizeof(words));
	if (write(held->fd, words, captive_random(c, sizeof(words))) > 0)
		captive_leak(c, "%s may be written", where);
}

/* By its link in /proc/self/fd a file that is open for reading must not become one for writing. */
static void open_again(struct captive *c, const struct captive_held *held, const char *where)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", held->fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	captive_leak(c, "%s may be opened again for writing", where);
	close(fd);
}

static void map_some(struct captive *c, struct captive_held *held)
{
	int protection = PROT_READ | (captive_random(c, 2) ? PROT_WRITE : 0);
	int kind = captive_random(c, 2) ? MAP_SHARED : MAP_PRIVATE;
	void *p;

	if (held->memory) {
		munmap(held->memory, CAPTIVE_PAGE);
		held->memory = NULL;
		return;
	}
	p = mmap(NULL, CAPTIVE_PAGE, protection, kind, held->fd, 0);
	if (p == MAP_FAILED)
		return;
	held->memory = p;
	captive_look(c, "a mapping of what the broker gave", p, CAPTIVE_PAGE);
}

static void use_event(struct captive *c, struct captive_held *held)
{
	/* Mostly on: it is by its ticks that something is to be seen. */
	ioctl(held->fd, captive_random(c, 8) ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
	if (!captive_random(c, 8))
		map_some(c, held);
}

static void use_pressure(struct captive *c, struct captive_held *held)
{
	char trigger[64];
	struct pollfd p = { .fd = held->fd, .events = POLLPRI };
	int n = snprintf(trigger, sizeof(trigger), "%s %u %u",
			 captive_random(c, 2) ? "some" : "full",
			 (unsigned int)captive_random(c, 1000000),
			 (unsigned int)captive_random(c, 12000000));

	if (!captive_random(c, 4))
		captive_fill(c, trigger, sizeof(trigger));
	if (write(held->fd, trigger, (size_t)n + 1) < 0 && errno == EFAULT)
		captive_leak(c, "a trigger of ours cannot be read");
	poll(&p, 1, 0);
}

static void use_link(struct captive *c, struct captive_held *held)
{
	write_some(c, held, "a link");
	map_some(c, held);
}

static void use_file(struct captive *c, struct captive_held *held)
{
	struct stat st;

	if (fstat(held->fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_mode & (S_ISUID | S_ISGID))
		captive_leak(c, "a file of mode %o from the broker", st.st_mode);
	write_some(c, held, "a file of the broker's");
	open_again(c, held, "a file of the broker's");
	map_some(c, held);
}

static void use_none(struct captive *c, struct captive_held *held)
{
	captive_leak(c, "a descriptor for a request that has none");
}

static void (*const uses[])(struct captive *c, struct captive_held *held) = {
	[BROKER_HELLO] = use_none,	   [BROKER_SAMPLER_OPEN] = use_event,
	[BROKER_SIGNAL_ATTACH] = use_link, [BROKER_PRESSURE_OPEN] = use_pressure,
	[BROKER_MAPPING_OPEN] = use_file,  [BROKER_JIT_MAP_OPEN] = use_file,
};

_Static_assert(ARRAY_SIZE(uses) == BROKER_COUNT_, "a request's descriptors are not used");

static void drop(struct captive *c, struct captive_held *held)
{
	if (held->memory)
		munmap(held->memory, CAPTIVE_PAGE);
	close(held->fd);
	*held = c->held[--c->held_count];
}

void captive_use(struct captive *c)
{
	struct captive_held *held;

	if (!c->held_count)
		return;
	held = &c->held[captive_random(c, c->held_count)];
	c->used++;
	uses[held->request](c, held);
	read_some(c, "what the broker gave", held->fd);
	/* What is counted is given back, so that more of it may be had. */
	if ((held->request == BROKER_SIGNAL_ATTACH || held->request == BROKER_SAMPLER_OPEN) &&
	    !captive_random(c, 8))
		drop(c, held);
}

/* Files of /proc/PID that hold memory, or places in it. */
static const char *const closed[] = { "mem",	 "environ", "maps",  "smaps",	  "auxv",
				      "pagemap", "syscall", "stack", "map_files", "fd" };
/* Those that every user may read: no defence of ours covers them. */
static const char *const open_to_all[] = { "stat",  "status", "cmdline", "comm",
					   "statm", "wchan",  "limits",	 "cgroup" };

void captive_pry(struct captive *c)
{
	bool is_closed = captive_random(c, 2);
	const char *name = is_closed ? closed[captive_random(c, ARRAY_SIZE(closed))]
				     : open_to_all[captive_random(c, ARRAY_SIZE(open_to_all))];
	const struct prey *p = captive_prey(c);
	uint8_t byte;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/%s", p->pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	/* Some may be opened by every user, and are then empty or refuse to be read. */
	if (is_closed && read(fd, &byte, 1) > 0)
		captive_leak(c, "%s may be read", path);
	read_some(c, path, fd);
	close(fd);
}
