# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# What the verifier of this kernel makes of each program. Its time is real on a real machine only.

check "the verifier takes every program" sh -c "verifier >$results/verifier.$(uname -r)"
sed 's/^/# /' "$results/verifier.$(uname -r)"
