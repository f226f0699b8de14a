# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# What the host-side scripts of tests/vm share. Sourced.

vm_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
vm_root=$(cd "$vm_here/../.." && pwd)
vm_cache=${TROCAR_CACHE:-$vm_root/build/vm-cache}
# Exit status of a script that could not do its work for a reason outside of the project.
vm_skipped=77

vm_say() { echo "${0##*/}: $*" >&2; }

vm_skip() {
	vm_say "$*"
	exit "$vm_skipped"
}

vm_die() {
	vm_say "$*"
	exit 1
}

# vm_need PROGRAM...: skips with the package to install when one is missing.
vm_need() {
	local program
	for program in "$@"; do
		command -v "$program" >/dev/null || vm_skip "no $program here: tests/vm/install-deps installs it"
	done
}

# The archive's address for suite $1, as this machine's own apt is configured.
vm_archive() {
	local sites
	sites=$(apt-get indextargets --format '$(SITE) $(RELEASE)' | sort -u)
	case $1 in
	*-security) awk '$2 ~ /^bookworm-security/ { print $1; exit }' <<<"$sites" ;;
	*) awk '$2 ~ /^bookworm(-updates)?$/ { print $1; exit }' <<<"$sites" ;;
	esac
}
