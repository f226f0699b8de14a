/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/signals/signals.h"

#include <stdlib.h>

uint32_t signals_asked(const struct rule *rule, const struct trigger_reason *reason)
{
	if (reason->kind == TRIGGER_REQUEST && reason->signals)
		return reason->signals & (RULES_SIGNALS_AUTO - 1);
	return rule && !rule->signals_auto ? rule->signals : 0;
}

uint32_t signals_wanted(const struct signal_kind *const *kinds, const struct rule *rule,
			const struct trigger_reason *reason)
{
	uint32_t wanted = 1u << SIGNAL_ONCPU, asked = signals_asked(rule, reason);

	if (asked)
		return wanted | asked;
	for (int i = 0; i < SIGNAL_COUNT_; i++)
		if (kinds[i] && kinds[i]->is_auto(reason))
			wanted |= 1u << i;
	return wanted;
}

struct signal *signals_of_stacks(struct signal *const signals[SIGNAL_COUNT_],
				 enum signal_stacks_of stacks_of)
{
	for (int i = 0; i < SIGNAL_COUNT_; i++)
		if (signals[i] && signals[i]->kind && signals[i]->kind->stacks_of == stacks_of)
			return signals[i];
	return NULL;
}

struct signal *signals_new(enum signal_bit id, const struct signal_host *host,
			   const struct signal_target *target)
{
	const struct signal_kind *kind = host->kinds[id];
	struct signal *s = kind ? kind->create(host, target) : calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->kind = kind;
	s->id = id;
	if (!kind)
		s->off_reason = "this version has no program for it";
	return s;
}

void signals_free(struct signal *s)
{
	if (s && s->kind)
		s->kind->destroy(s);
	else
		free(s);
}

const char *signals_auto_why(const struct signal_kind *const *kinds, uint32_t wanted)
{
	const char *why = NULL;

	for (int i = 0; i < SIGNAL_COUNT_; i++)
		if (wanted & 1u << i && kinds[i] && kinds[i]->auto_why)
			why = kinds[i]->auto_why;
	return why;
}
