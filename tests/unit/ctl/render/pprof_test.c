/* SPDX-License-Identifier: BSD-2-Clause */
/* The wire format by known bytes, and whole profiles by a decoder that shares nothing with it. */
#include "tests/unit/runner/unit.h"
#include <stdbool.h>

#include <fcntl.h>
#include <zlib.h>

#include "ctl/cli/command_exit.h"
#include "ctl/cli/options.h"
#include "ctl/render/pprof.h"
#include "ctl/render/proto.h"
#include "shared/tools/cleanup.h"
#include "tests/unit/ctl/events_testing.h"

#define PLAIN_BYTES (1u << 20)
#define SOME_MAX    64

static void test_wire_format(void **state)
{
	static const uint8_t expected[] = { 0x08, 0x96, 0x01,			/* 1: 150 */
					    0x12, 0x02, 'h',  'i',		/* 2: "hi" */
					    0x1a, 0x04, 0x00, 0x01, 0xac, 0x02, /* 3: 0 1 300 */
					    0x22, 0x03, 0x08, 0x96, 0x01,	/* 4: { 1: 150 } */
					    0x28, 0xff, 0xff, 0xff, 0xff, 0xff,
					    0xff, 0xff, 0xff, 0xff, 0x01 };
	_cleanup_(proto_done) struct proto p = { 0 }, inner = { 0 };
	const uint64_t numbers[] = { 0, 1, 300 };

	proto_u64(&p, 1, 150);
	proto_u64(&p, 9, 0);
	proto_bytes(&p, 2, "hi", 2);
	proto_packed(&p, 3, numbers, 3);
	proto_u64(&inner, 1, 150);
	proto_message(&p, 4, &inner);
	proto_u64(&p, 5, UINT64_MAX);
	assert_int_equal(p.error, 0);
	assert_int_equal(p.bytes, sizeof(expected));
	assert_memory_equal(p.data, expected, sizeof(expected));
}

/* ---- an own decoder */

struct message {
	const uint8_t *at, *end;
};

static uint64_t varint(struct message *m)
{
	uint64_t n = 0;

	for (unsigned int shift = 0;; shift += 7) {
		assert_true(m->at < m->end && shift < 64);
		n |= (uint64_t)(*m->at & 0x7f) << shift;
		if (!(*m->at++ & 0x80))
			return n;
	}
}

/* The next field; a text or message in *ret_inner, a number in *ret_number. 0 at the end. */
static unsigned int field(struct message *m, uint64_t *ret_number, struct message *ret_inner)
{
	uint64_t tag;

	if (m->at == m->end)
		return 0;
	tag = varint(m);
	*ret_number = varint(m);
	if ((tag & 7) == 2) {
		assert_true(*ret_number <= (uint64_t)(m->end - m->at));
		*ret_inner = (struct message){ m->at, m->at + *ret_number };
		m->at += *ret_number;
	} else {
		assert_int_equal(tag & 7, 0);
	}
	return (unsigned int)(tag >> 3);
}

static uint8_t plain[PLAIN_BYTES];
static struct message strings[SOME_MAX], samples[SOME_MAX], mappings[SOME_MAX], locations[SOME_MAX],
	functions[SOME_MAX];
static unsigned int n_strings, n_samples, n_mappings, n_locations, n_functions;
static uint64_t numbers[16];

static void decode(void)
{
	z_stream z = { .next_in = (Bytef *)events_out, .avail_in = (uInt)events_out_bytes };
	struct message whole, inner = { 0 };
	unsigned int number;
	uint64_t n;

	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	z.next_out = plain;
	z.avail_out = sizeof(plain);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	inflateEnd(&z);
	n_strings = n_samples = n_mappings = n_locations = n_functions = 0;
	memset(numbers, 0, sizeof(numbers));
	whole = (struct message){ plain, plain + z.total_out };
	while ((number = field(&whole, &n, &inner))) {
		if (number == 2)
			samples[n_samples++] = inner;
		else if (number == 3)
			mappings[n_mappings++] = inner;
		else if (number == 4)
			locations[n_locations++] = inner;
		else if (number == 5)
			functions[n_functions++] = inner;
		else if (number == 6)
			strings[n_strings++] = inner;
		else if (number < 16)
			numbers[number] = n;
	}
}

static uint64_t number_of(struct message m, unsigned int wanted)
{
	struct message inner;
	unsigned int number;
	uint64_t n;

	while ((number = field(&m, &n, &inner)))
		if (number == wanted)
			return n;
	return 0;
}

static void is_string(uint64_t number, const char *expected)
{
	assert_true(number < n_strings);
	assert_int_equal(strings[number].end - strings[number].at, strlen(expected));
	assert_memory_equal(strings[number].at, expected, strlen(expected));
}

static void test_profile(void **state)
{
	struct message packed = { 0 }, sample;
	uint64_t n, location;

	events_write(EVENTS_START("1") EVENTS_STACK(
		"1", "during", "web", "4", "100",
		EVENTS_KERNEL("read") "," EVENTS_USER("main") "," EVENTS_UNNAMED) EVENTS_END("1"));
	assert_int_equal(events_command("pprof", events_file, NULL), COMMAND_FINE);
	decode();
	is_string(0, "");
	assert_int_equal(n_samples, 1);
	assert_int_equal(n_mappings, 4);
	assert_int_equal(n_locations, 3);
	assert_int_equal(n_functions, 2);
	/* 2026-11-21T15:59:01.098828602Z; 1 s before and 2 s during; 97 Hz. */
	assert_int_equal(numbers[9], 1795276741098828602);
	assert_int_equal(numbers[10], 3000000000);
	assert_int_equal(numbers[12], 1000000000 / 97);
	is_string(numbers[13], "/c/1 stalled on cpu for 434 ms");
	sample = samples[0];
	assert_int_equal(field(&sample, &n, &packed), 1);
	location = varint(&packed) - 1;
	/* The leaf is in the kernel: a function, and no address. */
	assert_int_equal(number_of(locations[location], 3), 0);
	assert_int_equal(field(&sample, &n, &packed), 2);
	assert_int_equal(varint(&packed), 4);
	assert_int_equal(varint(&packed), 100);
	for (unsigned int i = 0; i < n_mappings; i++) {
		assert_int_equal(number_of(mappings[i], 1), i + 1);
		assert_true(number_of(mappings[i], 2) < number_of(mappings[i], 3));
	}
}

/* Two lines of one function in one file; odd sources are none. */
static void test_source_lines(void **state)
{
#define AT(offset, source)                                       \
	"{\"fn\":\"f\",\"module\":\"/bin/a\",\"offset\":" offset \
	",\"kind\":\"user\",\"source\":" source "}"
	struct message line = { 0 };
	unsigned int seen = 0;
	uint64_t n;

	events_write(EVENTS_STACK("1", "during", "web", "4", "100",
				  AT("10", "{\"file\":\"/f.c\",\"line\":7}") "," AT(
					  "20", "{\"line\":9,\"x\":[],\"file\":\"/f.c\"}")));
	assert_int_equal(events_command("pprof", events_file, NULL), COMMAND_FINE);
	decode();
	assert_int_equal(n_functions, 1);
	is_string(number_of(functions[0], 4), "/f.c");
	assert_int_equal(n_locations, 2);
	for (unsigned int i = 0; i < n_locations; i++) {
		struct message m = locations[i], inner = { 0 };

		for (unsigned int number; (number = field(&m, &n, &inner));)
			line = number == 4 ? inner : line;
		seen |= 1u << number_of(line, 2);
	}
	assert_int_equal(seen, 1u << 7 | 1u << 9);
	assert_int_equal(number_of(mappings[1], 8), 1);
	assert_int_equal(number_of(mappings[1], 9), 1);
	events_write(EVENTS_STACK("1", "during", "web", "4", "100",
				  AT("10", "7") "," AT("20", "{\"file\":null,\"line\":-1}") "," AT(
					  "30", "{}") "," AT("40", "null")));
	assert_int_equal(events_command("pprof", events_file, NULL), COMMAND_FINE);
	decode();
	is_string(number_of(functions[0], 4), "");
	assert_int_equal(number_of(mappings[1], 9), 0);
}

static void test_addresses_lie_in_their_mappings(void **state)
{
	events_write(EVENTS_STACK(
		"1", "during", "web", "4", "100",
		EVENTS_USER(
			"main") "," EVENTS_UNNAMED ","
				"{\"fn\":\"far\",\"module\":\"/x\",\"offset\":18446744073709551615,"
				"\"kind\":\"user\"}"));
	assert_int_equal(events_command("pprof", events_file, NULL), COMMAND_FINE);
	decode();
	for (unsigned int i = 0; i < n_locations; i++) {
		uint64_t mapping = number_of(locations[i], 2) - 1;
		uint64_t address = number_of(locations[i], 3);

		assert_true(mapping < n_mappings);
		if (address)
			assert_true(address >= number_of(mappings[mapping], 2) &&
				    address < number_of(mappings[mapping], 3));
	}
	assert_int_equal(number_of(locations[0], 3) - number_of(mappings[1], 2), 4096);
	assert_int_equal(number_of(locations[1], 3) - number_of(mappings[2], 2), 160330);
	is_string(number_of(mappings[2], 5), "/lib/libc.so.6");
	is_string(number_of(mappings[2], 6), "ccdd");
}

static bool has_string(const char *text)
{
	for (unsigned int i = 0; i < n_strings; i++)
		if ((size_t)(strings[i].end - strings[i].at) == strlen(text) &&
		    !memcmp(strings[i].at, text, strlen(text)))
			return true;
	return false;
}

#define WAITED                                                                  \
	EVENTS_HEAD("stack", "1")                                               \
	",\"signal\":\"offcpu\",\"phase\":\"during\",\"pid\":7,\"start_ns\":1," \
	"\"comm\":\"web\",\"exe\":\"/bin/web\",\"threads\":1,\"count\":2,"      \
	"\"weight_ns\":900,\"state\":\"blocked\",\"wait\":\"lock\","            \
	"\"idle\":false,\"quality\":\"complete\",\"frames\":[]}\n"

#define HELD                                                                  \
	EVENTS_HEAD("stack", "1")                                             \
	",\"signal\":\"lock\",\"phase\":\"during\",\"pid\":7,\"start_ns\":1," \
	"\"comm\":\"web\",\"exe\":\"/bin/web\",\"threads\":1,\"count\":2,"    \
	"\"weight_ns\":900,\"quality\":\"complete\",\"frames\":[]}\n"

/* Time on a CPU unless the line asks for another kind. */
static void test_type_of_time(void **state)
{
	static const struct {
		const char *signal, *type;
	} cases[] = { { "oncpu", "cpu" }, { "offcpu", "wait" }, { "lock", "time" } };

	events_write(EVENTS_STACK("1", "during", "web", "4", "100", EVENTS_USER("main"))
			     WAITED HELD);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		events_command("pprof", "--signal", cases[i].signal, events_file, NULL);
		decode();
		for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++)
			assert_int_equal(has_string(cases[k].type), i == k);
	}
	events_command("pprof", events_file, NULL);
	decode();
	assert_int_equal(n_samples, 1);
	assert_true(has_string("cpu") && !has_string("wait") && !has_string("time"));
}

/* Readers take the first mapping for the program, whichever file the first frame lies in. */
static void test_first_mapping_is_the_program(void **state)
{
	events_write(EVENTS_STACK("1", "during", "a", "4", "100",
				  EVENTS_KERNEL("read") "," EVENTS_UNNAMED
							"," EVENTS_USER("main")));
	assert_int_equal(events_command("pprof", events_file, NULL), COMMAND_FINE);
	decode();
	assert_int_equal(n_mappings, 3);
	is_string(number_of(mappings[0], 5), "/bin/a");
	is_string(number_of(mappings[0], 6), "aabb");
	/* No frame lies in it. */
	events_write(EVENTS_STACK("1", "during", "web", "4", "100",
				  EVENTS_UNNAMED "," EVENTS_USER("main")));
	assert_int_equal(events_command("pprof", events_file, NULL), COMMAND_FINE);
	decode();
	assert_int_equal(n_mappings, 3);
	is_string(number_of(mappings[0], 5), "/bin/web");
}

/* Idle threads fill no profile: it is empty, with a message. */
static void test_what_waited_is_no_profile(void **state)
{
	events_write(EVENTS_START("1") EVENTS_WAIT("1", "during", "web", "9", "900",
						   EVENTS_BLOCKED("lock", "true"),
						   EVENTS_USER("main")) EVENTS_END("1"));
	assert_int_equal(events_command("pprof", events_file, NULL), COMMAND_FINE);
	assert_non_null(strstr(events_err, "no thread ran on a CPU"));
	decode();
	assert_int_equal(n_samples, 0);
	assert_true(has_string("cpu"));
	/* What fits for no other reason either is a mistake. */
	assert_int_equal(events_command("pprof", "--comm", "wbe", events_file, NULL),
			 COMMAND_FAILED);
	assert_int_equal(events_out_bytes, 0);
}

/* Of wall time both are there, and a sample has one of them. */
static void test_wall(void **state)
{
	static const uint64_t wanted[][3] = { { 4, 100, 0 }, { 9, 0, 900 } };
	uint64_t n;

	events_write(EVENTS_STACK("1", "during", "web", "4", "100", EVENTS_USER("main"))
			     EVENTS_WAIT("1", "during", "web", "9", "900",
					 EVENTS_BLOCKED("lock", "false"), EVENTS_USER("main")));
	assert_int_equal(events_command("pprof", "--signal", "wall", events_file, NULL), 0);
	decode();
	assert_true(has_string("cpu") && has_string("wait") && !has_string("time"));
	assert_true(has_string("state") && has_string("lock") && has_string("on CPU"));
	assert_int_equal(n_samples, 2);
	for (size_t i = 0; i < 2; i++) {
		struct message sample = samples[i], packed = { 0 };

		assert_int_equal(field(&sample, &n, &packed), 1);
		assert_int_equal(field(&sample, &n, &packed), 2);
		for (size_t k = 0; k < 3; k++)
			assert_int_equal(varint(&packed), wanted[i][k]);
		assert_ptr_equal(packed.at, packed.end);
	}
}

static void test_empty(void **state)
{
	events_write("");
	assert_int_equal(events_command("pprof", events_file, NULL), COMMAND_FAILED);
	assert_int_equal(events_out_bytes, 0);
}

/* Leaves no zero where the next call has its variables. */
__attribute__((noinline)) static void soil_stack(void)
{
	volatile unsigned char soil[1 << 16];

	for (size_t i = 0; i < sizeof(soil); i++)
		soil[i] = 0xa5;
}

static void test_terminal(void **state)
{
	_cleanup_free_ char *said = NULL;
	size_t bytes;
	int fd = posix_openpt(O_RDWR | O_NOCTTY);
	struct options options = { 0 };
	const char *const arguments[] = { events_file, NULL };

	assert_true(fd >= 0 && grantpt(fd) == 0 && unlockpt(fd) == 0);
	options.out = fdopen(open(ptsname(fd), O_RDWR | O_NOCTTY | O_CLOEXEC), "w");
	options.err = open_memstream(&said, &bytes);
	assert_non_null(options.out);
	soil_stack();
	assert_int_equal(pprof_call(&options, arguments), COMMAND_USAGE);
	fclose(options.out);
	fclose(options.err);
	assert_string_equal(said, "trocar: pprof writes a gzipped file: send it to one\n");
	close(fd);
}

UNIT_TESTS(pprof)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, events_setup, events_teardown)
	const struct CMUnitTest tests[] = {
		TEST(wire_format),
		TEST(profile),
		TEST(source_lines),
		TEST(addresses_lie_in_their_mappings),
		TEST(empty),
		TEST(type_of_time),
		TEST(wall),
		TEST(terminal),
		TEST(first_mapping_is_the_program),
		TEST(what_waited_is_no_profile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
