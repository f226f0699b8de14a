/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/preflight.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "loader/load.h"
#include "shared/jsonw.h"
#include "shared/log.h"
#include "shared/preflight.h"

#define JSON_BYTES_MAX 65536

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

int preflight_run(const struct options *o)
{
	struct preflight p;

	preflight_probe(&p);
	if (!o->json)
		preflight_print(&p, stdout);
	else if (print_json(&p) < 0)
		return EXIT_FAILED;
	return preflight_fine(&p) ? EXIT_FINE : EXIT_NEEDS;
}

/* One line: what is wrong, what goes without it, how to cure it. */
#define SAY(log, row)                                                    \
	log("missing %s: %s%s%s (cure: %s)", (row)->name, (row)->detail, \
	    *(row)->detail ? ": " : "", (row)->lost, (row)->how)

void preflight_explain_failure(void)
{
	struct preflight p;

	preflight_probe(&p);
	/* Was there a stage earlier; a unit's sandbox lets nobody make another one. */
	p.rows[PREFLIGHT_bpffs].state = PREFLIGHT_PRESENT;
	for (size_t i = 0; i < PREFLIGHT_COUNT_; i++)
		if (p.rows[i].required && p.rows[i].state == PREFLIGHT_MISSING)
			SAY(log_error, &p.rows[i]);
}

int preflight_surroundings(void)
{
	struct preflight_row row;

	preflight_ask(PREFLIGHT_cgroup2, &row);
	if (row.state == PREFLIGHT_MISSING) {
		SAY(log_error, &row);
		return -ENOTSUP;
	}
	preflight_ask(PREFLIGHT_psi, &row);
	if (row.state == PREFLIGHT_MISSING)
		SAY(log_warning, &row);
	return 0;
}
