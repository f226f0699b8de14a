#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# forks.sh: a script as scripts are: it forks, pipes and executes.
while :; do
	for i in 1 2 3 4 5 6 7 8 9 10; do
		x=$(echo "$i" | tr 1 2)
		/bin/true
		[ "$(expr "$x" + 1)" -gt 0 ] && (: $((i * i)))
	done
	LC_ALL=C.UTF-8 date >/dev/null
done
