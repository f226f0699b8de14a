/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/preflight/preflight.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/utsname.h>

#include "loader/preflight/preflight_internal.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/log.h"
#include "shared/tools/macro.h"

#define JSON_BYTES_MAX 65536

static const struct need {
	const char *name, *lost, *how;
	int capability; /* -1: a probe decides */
	bool required;
} needs[] = {
#define REQUIRED			      true
#define OPTIONAL			      false
#define NEED(id, level, lost, how)	      { #id, lost, how, -1, level },
#define NEED_CAP(id, capability, level, lost) { #id, lost, "", capability, level },
#include "loader/preflight/preflight.def"
#undef NEED
#undef NEED_CAP
#undef REQUIRED
#undef OPTIONAL
};

_Static_assert(ARRAY_SIZE(needs) == PREFLIGHT_COUNT_, "a need has no row");

static bool has_btf(struct preflight_probes *p, struct preflight_row *row)
{
	int r = preflight_btf_load(p->btf);

	if (r == 0)
		return true;
	row->state = r == -ENOENT ? PREFLIGHT_MISSING : PREFLIGHT_UNKNOWN;
	PREFLIGHT_ROW_SAY(row, "unknown: the check needs the kernel's BTF");
	return false;
}

static void ask_need(struct preflight_probes *p, size_t i, struct preflight_row *row)
{
	const struct preflight_probe *probe = &preflight_kernel_probes[i];
	int r;

	*row = (struct preflight_row){
		.name = needs[i].name,
		.required = needs[i].required,
		.state = PREFLIGHT_UNKNOWN,
		.lost = needs[i].lost,
		.how = needs[i].how,
	};
	if (!probe->call)
		probe = &preflight_system_probes[i];
	if (probe->name && !has_btf(p, row))
		return;
	r = probe->call ? probe->call(p, probe, row)
			: preflight_system_capability(needs[i].capability, row);
	if (r == 0)
		row->state = PREFLIGHT_PRESENT;
	else if (r > 0)
		preflight_row_failed(row, r);
}

static void end_probes(struct preflight_probes *p)
{
	cleanup_close(&p->perf_link_fd);
	cleanup_close(&p->prog_fd);
	cleanup_close(&p->bpffs_fd);
}

void preflight_probe(struct preflight *ret_preflight)
{
	struct preflight_btf btf = { 0 };
	struct preflight_probes p = {
		.btf = &btf, .prog_fd = -1, .bpffs_fd = -1, .perf_link_fd = -1
	};

	for (size_t i = 0; i < ARRAY_SIZE(needs); i++)
		ask_need(&p, i, &ret_preflight->rows[i]);
	end_probes(&p);
	preflight_btf_done(&btf);
}

void preflight_ask(struct preflight_btf *btf, enum preflight_id id, struct preflight_row *ret_row)
{
	struct preflight_probes p = {
		.btf = btf, .prog_fd = -1, .bpffs_fd = -1, .perf_link_fd = -1
	};

	ask_need(&p, id, ret_row);
	end_probes(&p);
}

bool preflight_fine(const struct preflight *p)
{
	for (size_t i = 0; i < PREFLIGHT_COUNT_; i++)
		if (p->rows[i].required && p->rows[i].state != PREFLIGHT_PRESENT)
			return false;
	return true;
}

void preflight_print(const struct preflight *p, FILE *out)
{
	for (size_t i = 0; i < PREFLIGHT_COUNT_; i++) {
		const struct preflight_row *row = &p->rows[i];

		fprintf(out, "%-7s %s", preflight_row_state(row), row->name);
		if (!row->required)
			fputs(" (optional)", out);
		if (*row->detail)
			fprintf(out, ": %s", row->detail);
		fputc('\n', out);
		if (row->state != PREFLIGHT_PRESENT)
			fprintf(out, "         lost: %s\n         how:  %s\n", row->lost, row->how);
	}
	fprintf(out, "%s\n",
		preflight_fine(p) ? "everything required is present"
				  : "something required is missing");
}

void preflight_write(const struct preflight *p, struct jsonw *w, const char *key)
{
	struct utsname kernel = { 0 };

	uname(&kernel);
	jsonw_object(w, key);
	jsonw_bool(w, "fine", preflight_fine(p));
	jsonw_string(w, "kernel", kernel.release);
	jsonw_array(w, "needs");
	for (size_t i = 0; i < PREFLIGHT_COUNT_; i++) {
		const struct preflight_row *row = &p->rows[i];

		jsonw_object(w, NULL);
		jsonw_string(w, "name", row->name);
		jsonw_bool(w, "required", row->required);
		jsonw_string(w, "state", preflight_row_state(row));
		if (*row->detail)
			jsonw_string(w, "detail", row->detail);
		if (row->state != PREFLIGHT_PRESENT) {
			jsonw_string(w, "lost", row->lost);
			jsonw_string(w, "how", row->how);
		}
		jsonw_object_end(w);
	}
	jsonw_array_end(w);
	jsonw_object_end(w);
}

static int print_json(const struct preflight *p)
{
	struct jsonw w __attribute__((cleanup(jsonw_done)));
	int r;

	jsonw_init(&w, JSON_BYTES_MAX);
	preflight_write(p, &w, NULL);
	r = jsonw_end(&w);
	if (r < 0) {
		log_error("cannot write the report: %s", strerror(-r));
		return r;
	}
	printf("%.*s\n", (int)w.bytes, w.data);
	return 0;
}

int preflight_report(bool json)
{
	struct preflight p;
	int r = 0;

	preflight_probe(&p);
	if (json)
		r = print_json(&p);
	else
		preflight_print(&p, stdout);
	return r < 0 ? r : preflight_fine(&p);
}

/* Logs one line: the missing need, the loss without it, the way to get it. */
#define LOG_ROW(log, row)                                                \
	log("missing %s: %s%s%s (cure: %s)", (row)->name, (row)->detail, \
	    *(row)->detail ? ": " : "", (row)->lost, (row)->how)

void preflight_explain_failure(void)
{
	struct preflight p;

	preflight_probe(&p);
	/* The load has already mounted a bpffs; a unit's sandbox may refuse another. */
	p.rows[PREFLIGHT_bpffs].state = PREFLIGHT_PRESENT;
	for (size_t i = 0; i < PREFLIGHT_COUNT_; i++)
		if (p.rows[i].required && p.rows[i].state == PREFLIGHT_MISSING)
			LOG_ROW(log_error, &p.rows[i]);
}

int preflight_surroundings(void)
{
	struct preflight_btf btf __attribute__((cleanup(preflight_btf_done))) = { 0 };
	struct preflight_row row;

	preflight_ask(&btf, PREFLIGHT_cgroup2, &row);
	if (row.state == PREFLIGHT_MISSING) {
		LOG_ROW(log_error, &row);
		return -ENOTSUP;
	}
	preflight_ask(&btf, PREFLIGHT_psi, &row);
	if (row.state == PREFLIGHT_MISSING)
		LOG_ROW(log_warning, &row);
	return 0;
}
