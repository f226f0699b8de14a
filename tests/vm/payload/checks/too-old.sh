# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# A kernel older than any that has all we need.

refused 'missing iter_ksym: No such file'
