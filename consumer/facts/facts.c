/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/facts/facts.h"

#include <string.h>
#include <unistd.h>

#include "consumer/facts/facts_text.h"
#include "shared/tools/macro.h"

/* An unset v1 memory limit is the largest number of whole pages (mm/page_counter.c). */
#define NO_LIMIT_FROM (1ULL << 62)
#define CLOCK_TICKS   0 /* no divisor: facts.def */

static const struct {
	const char *name, *controller;
} sources[] = {
#define SOURCE(id, name, controller) [FACTS_##id] = { name, controller },
#include "consumer/facts/facts.def"
};

static const struct facts_file_row files[] = {
#define FILE(id, source, where, shape, depth, name) \
	[FACTS_FILE_##id] = { FACTS_##source, FACTS_##where, FACTS_##shape, FACTS_##depth, name },
#include "consumer/facts/facts.def"
};

static const struct fact_row rows[] = {
#define FACT(id, source, kind, name, divisor) \
	[FACT_##id] = { FACTS_##source, FACTS_##kind, name, divisor },
#include "consumer/facts/facts.def"
};

static const struct key {
	const char *key;
	uint64_t divisor;
	enum facts_file file;
	enum fact fact;
} keys[] = {
#define KEY(file, key, fact, divisor) { key, divisor, FACTS_FILE_##file, FACT_##fact },
#include "consumer/facts/facts.def"
};

static const struct device_key {
	const char *key;
	enum facts_file file;
	enum facts_device_count count;
} device_keys[] = {
#define DEVICE_KEY(file, key, counter) { key, FACTS_FILE_##file, FACTS_##counter },
#include "consumer/facts/facts.def"
};

const struct facts_file_row *facts_file(enum facts_file file)
{
	return &files[file];
}

const struct fact_row *facts_row(enum fact fact)
{
	return &rows[fact];
}

const char *facts_source_name(enum facts_source source)
{
	return sources[source].name;
}

const char *facts_source_controller(enum facts_source source)
{
	return sources[source].controller;
}

const char *facts_device_count_name(enum facts_device_count count)
{
	static const char *const names[] = {
		[FACTS_RBYTES] = "rbytes",
		[FACTS_WBYTES] = "wbytes",
		[FACTS_RIOS] = "rios",
		[FACTS_WIOS] = "wios",
	};

	return names[count];
}

bool facts_get(const struct facts *f, enum fact fact, uint64_t *ret_value)
{
	if (!(f->has & 1ULL << fact))
		return false;
	*ret_value = f->value[fact];
	return true;
}

const struct facts_device *facts_device(const struct facts *f, uint32_t major, uint32_t minor)
{
	for (uint32_t i = 0; i < f->n_devices; i++)
		if (f->devices[i].major == major && f->devices[i].minor == minor)
			return &f->devices[i];
	return NULL;
}

uint64_t facts_limit(const struct facts *f, enum fact fact)
{
	uint64_t limit = FACTS_NO_LIMIT, period_us = 0;

	facts_get(f, fact, &limit);
	if (limit == FACTS_NO_LIMIT || fact != FACT_CPU_QUOTA)
		return limit;
	facts_get(f, FACT_CPU_PERIOD, &period_us);
	return period_us ? limit * 100000 / period_us : FACTS_NO_LIMIT;
}

void facts_take_source(struct facts *f, const struct facts *from, enum facts_source source)
{
	for (int i = 0; i < FACTS_FILE_COUNT_; i++)
		if (files[i].source == source)
			f->files = (f->files & ~(1ULL << i)) | (from->files & 1ULL << i);
	for (int i = 0; i < FACT_COUNT_; i++)
		if (rows[i].source == source) {
			f->has = (f->has & ~(1ULL << i)) | (from->has & 1ULL << i);
			f->value[i] = from->value[i];
		}
	if (source != FACTS_IO)
		return;
	f->n_devices = from->n_devices;
	f->devices_more = from->devices_more;
	memcpy(f->devices, from->devices, sizeof(f->devices));
}

static uint64_t convert_number(uint64_t number, uint64_t divisor)
{
	return divisor == CLOCK_TICKS ? number * 1000 / (uint64_t)sysconf(_SC_CLK_TCK)
				      : number / divisor;
}

/* Stores the number under `key` of the file, if it is a fact. */
static void store_number(struct facts *f, enum facts_file file, struct facts_text key,
			 struct facts_text word)
{
	uint64_t number;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (keys[i].file != file || !facts_text_is(key, keys[i].key) ||
		    !facts_text_number(word, &number))
			continue;
		if (number < NO_LIMIT_FROM)
			number = convert_number(number, keys[i].divisor);
		else if (rows[keys[i].fact].kind == FACTS_BOUND)
			number = FACTS_NO_LIMIT;
		f->value[keys[i].fact] = number;
		f->has |= 1ULL << keys[i].fact;
	}
}

static void parse_keyed(struct facts *f, enum facts_file file, struct facts_text text)
{
	struct facts_text line, key, word;

	while (facts_text_line(&text, &line))
		if (facts_text_word(&line, ' ', &key) && facts_text_word(&line, ' ', &word))
			store_number(f, file, key, word);
}

static void parse_words(struct facts *f, enum facts_file file, struct facts_text text)
{
	char place[2] = "1";
	struct facts_text line, word;

	if (!facts_text_line(&text, &line))
		return;
	for (; place[0] <= '9' && facts_text_word(&line, ' ', &word); place[0]++)
		store_number(f, file, (struct facts_text){ place, 1 }, word);
}

/* Returns the device's numbers, or NULL if there are too many devices. */
static struct facts_device *add_device(struct facts *f, uint32_t major, uint32_t minor)
{
	struct facts_device *d = (struct facts_device *)facts_device(f, major, minor);

	if (d)
		return d;
	if (f->n_devices == FACTS_DEVICES) {
		f->devices_more++;
		return NULL;
	}
	d = &f->devices[f->n_devices++];
	*d = (struct facts_device){ .major = major, .minor = minor };
	for (int i = 0; i < FACTS_DEVICE_COUNTS; i++)
		d->limit[i] = FACTS_NO_LIMIT;
	return d;
}

static void store_count(struct facts_device *d, enum facts_file file, struct facts_text key,
			struct facts_text word)
{
	uint64_t number;

	for (size_t i = 0; i < ARRAY_SIZE(device_keys); i++) {
		const struct device_key *k = &device_keys[i];

		if (k->file != file || !facts_text_is(key, k->key) ||
		    !facts_text_number(word, &number))
			continue;
		if (files[file].depth == FACTS_LIMITS)
			d->limit[k->count] = number;
		else
			d->count[k->count] = number;
	}
}

/* Cuts "8:0" off the line. */
static bool take_device(struct facts_text *line, uint32_t *ret_major, uint32_t *ret_minor)
{
	struct facts_text word, major;
	uint64_t a, b;

	if (!facts_text_word(line, ' ', &word) || !facts_text_word(&word, ':', &major) ||
	    !facts_text_number(major, &a) || !facts_text_number(word, &b) || a > UINT32_MAX ||
	    b > UINT32_MAX)
		return false;
	*ret_major = (uint32_t)a;
	*ret_minor = (uint32_t)b;
	return true;
}

static void parse_device(struct facts_device *d, enum facts_file file, struct facts_text line)
{
	struct facts_text word, key = { "", 0 };

	while (facts_text_word(&line, ' ', &word)) {
		if (files[file].shape == FACTS_NESTED) {
			if (facts_text_word(&word, '=', &key))
				store_count(d, file, key, word);
			continue;
		}
		if (files[file].shape == FACTS_ROWS && !key.bytes)
			key = word;
		else
			store_count(d, file, key, word);
	}
}

static void parse_devices(struct facts *f, enum facts_file file, struct facts_text text)
{
	struct facts_text line;
	uint32_t major, minor;

	while (facts_text_line(&text, &line)) {
		struct facts_device *d = NULL;

		if (take_device(&line, &major, &minor))
			d = add_device(f, major, minor);
		if (d)
			parse_device(d, file, line);
	}
}

void facts_parse(struct facts *f, enum facts_file file, const char *text, size_t bytes)
{
	const struct facts_text all = { text, bytes };

	f->files |= 1ULL << file;
	switch (files[file].shape) {
	case FACTS_KEYED:
		parse_keyed(f, file, all);
		break;
	case FACTS_WORDS:
		parse_words(f, file, all);
		break;
	case FACTS_NESTED:
	case FACTS_ROWS:
	case FACTS_LIMIT:
		parse_devices(f, file, all);
		break;
	case FACTS_PROCESSES: /* facts_files_read */
		break;
	}
}
