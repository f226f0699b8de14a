/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pprof.h: writes stacks as a gzipped profile.proto (github.com/google/pprof, proto/profile.proto),
 * for `go tool pprof`, speedscope and profile stores.
 */
#ifndef TROCAR_CTL_RENDER_PPROF_H
#define TROCAR_CTL_RENDER_PPROF_H

#include "ctl/view/view.h"

/* The command. Returns enum command_exit. */
int pprof_call(const struct options *options, const char *const *arguments);

/* Writes the profile. 0, -ENOMEM, -ENOSPC, -EIO. */
int pprof_write(struct view *view, FILE *out);

#endif
