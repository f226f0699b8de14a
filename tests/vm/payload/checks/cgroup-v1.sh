# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# A machine of before cgroup v2.

refused 'missing cgroup2: only cgroup v1 is mounted'
