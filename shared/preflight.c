/* SPDX-License-Identifier: BSD-2-Clause */
#include "preflight.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cleanup.h"
#include "macro.h"
#include "preflight_parts.h"

void preflight_present(struct preflight_row *row)
{
	row->state = PREFLIGHT_PRESENT;
}

/* Not there, or not for us: EPERM and EACCES from a process that is not root prove nothing. */
void preflight_failed(struct preflight_row *row, int error)
{
	bool denied = error == EPERM || error == EACCES;

	row->state = denied && geteuid() != 0 ? PREFLIGHT_UNKNOWN : PREFLIGHT_MISSING;
	if (row->state == PREFLIGHT_UNKNOWN) {
		PREFLIGHT_SAY(row, "no permission to ask (%s)", strerror(error));
		row->how = "run it as root to find out";
	} else {
		PREFLIGHT_SAY(row, "%s", strerror(error));
	}
}

static const struct need {
	const char *name, *lost, *how;
	int capability; /* -1: a probe knows */
	bool required;
} needs[] = {
#define REQUIRED			      true
#define OPTIONAL			      false
#define NEED(id, level, lost, how)	      { #id, lost, how, -1, level },
#define NEED_CAP(id, capability, level, lost) { #id, lost, "", capability, level },
#include "shared/preflight.def"
#undef NEED
#undef NEED_CAP
#undef REQUIRED
#undef OPTIONAL
};

_Static_assert(ARRAY_SIZE(needs) == PREFLIGHT_COUNT_, "a need has no row");

static void ask(struct preflight_probes *p, size_t i, struct preflight_row *row)
{
	*row = (struct preflight_row){
		.name = needs[i].name,
		.required = needs[i].required,
		.state = PREFLIGHT_UNKNOWN,
		.lost = needs[i].lost,
		.how = needs[i].how,
	};
	if (preflight_kernel_calls[i])
		preflight_kernel_calls[i](p, row);
	else if (preflight_system_calls[i])
		preflight_system_calls[i](p, row);
	else
		preflight_capability(needs[i].capability, row);
}

static void probes_done(struct preflight_probes *p)
{
	cleanup_close(&p->perf_link_fd);
	cleanup_close(&p->prog_fd);
	cleanup_close(&p->bpffs_fd);
	kbtf_done(&p->btf);
}

void preflight_probe(struct preflight *ret_preflight)
{
	struct preflight_probes p = { .prog_fd = -1, .bpffs_fd = -1, .perf_link_fd = -1 };

	for (size_t i = 0; i < ARRAY_SIZE(needs); i++)
		ask(&p, i, &ret_preflight->rows[i]);
	probes_done(&p);
}

void preflight_ask(enum preflight_id id, struct preflight_row *ret_row)
{
	struct preflight_probes p = { .prog_fd = -1, .bpffs_fd = -1, .perf_link_fd = -1 };

	(void)kbtf_open(
		&p.btf); /* what is missing is explained by it; without it with fewer words */
	ask(&p, id, ret_row);
	probes_done(&p);
}

bool preflight_fine(const struct preflight *p)
{
	for (size_t i = 0; i < PREFLIGHT_COUNT_; i++)
		if (p->rows[i].required && p->rows[i].state != PREFLIGHT_PRESENT)
			return false;
	return true;
}

static const char *state_name(enum preflight_state state)
{
	static const char *const names[] = {
		[PREFLIGHT_PRESENT] = "present",
		[PREFLIGHT_MISSING] = "missing",
		[PREFLIGHT_UNKNOWN] = "unknown",
	};

	return names[state];
}

void preflight_print(const struct preflight *p, FILE *out)
{
	for (size_t i = 0; i < PREFLIGHT_COUNT_; i++) {
		const struct preflight_row *row = &p->rows[i];

		fprintf(out, "%-7s %s", state_name(row->state), row->name);
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
		jsonw_string(w, "state", state_name(row->state));
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
