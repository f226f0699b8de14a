/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/client/profile_words.h"

#include <inttypes.h>

#include "ctl/client/process_names.h"

/* Returns whether the words of a command are after "--". Without "--" a name is not run. */
static bool is_behind_dashes(const struct options *options, const char *const *arguments)
{
	unsigned int n = 0;

	while (arguments[n])
		n++;
	return options->words.count - n >= options->words.before;
}

static void refuse_name(const struct options *options, const char *name)
{
	unsigned int count;
	uint64_t pid = process_names_number(name, &count);

	if (!count)
		fprintf(options->err,
			"trocar: profile: \"%s\" is no PID, and no process has this name: trocar "
			"profile -- %s runs it\n",
			name, name);
	else if (count == 1)
		fprintf(options->err,
			"trocar: profile: \"%s\" runs as PID %" PRIu64 ": trocar profile %" PRIu64
			", or trocar profile -- %s to run it\n",
			name, pid, pid, name);
	else
		fprintf(options->err,
			"trocar: profile: \"%s\" runs as %u processes, PID %" PRIu64
			" and others: trocar profile %" PRIu64
			", or trocar profile -- %s to run it\n",
			name, count, pid, pid, name);
}

bool profile_words_command(const struct options *options, const char *const *arguments)
{
	if (is_behind_dashes(options, arguments))
		return true;
	refuse_name(options, arguments[0]);
	return false;
}
