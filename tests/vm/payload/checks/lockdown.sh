# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# A kernel locked down so that no program may read its memory.

refused 'missing lockdown: lockdown=confidentiality'
