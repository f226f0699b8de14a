# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# The Debian packages on a machine that has none of what they need: /ci/archive is all that apt can reach. Installed,
# upgraded, removed, purged, as docs/install.md says it.

packages=/ci/packages

apt() { DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Progress-Fancy=0 "$@" | grep -v "Reading database"; }

# Everything that stands on the disk, and who there is; not what apt, the journal and the test write for themselves.
standing() {
	find / -xdev \( -path /ci -o -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /run -o -path /var/lib/dpkg \
		-o -path /var/lib/apt -o -path /var/cache -o -path /var/log/apt -o -path /var/log/journal -o -path /var/lib/systemd/timers \
		-o -path /var/tmp \) -prune -o -print | grep -v -e '^/etc/.*-$' -e '^/var/log/' -e '^/etc/ld.so.cache' | sort
	find /var/log/trocar /run/trocar /run/trocar* 2>/dev/null
	cut -d: -f1 /etc/passwd /etc/group /etc/shadow
	dpkg-query -W -f '${Package} ${Status}\n' 'trocar*' 2>/dev/null | grep -v not-installed
}

# The pins by which the programs stay in the kernel, as the file system numbers them: a new load makes new ones.
pins() { stat -c '%n %i' $bpf_dir/* | sort; }

# For how long something in the server's cgroup had to wait for a CPU, by the kernel's sum.
stalled_us() {
	sed -n 's/^some .*total=//p' "$(find /sys/fs/cgroup -path '*shop.service/cpu.pressure' | head -n 1)"
}

none_of() { ! line session.start "text(\"rule\") == \"$1\""; }

answers() { trocar status >/dev/null; }
running() { active trocar-consumer && answers; }

installed() {
	local began
	rmdir /etc/systemd/system/default.target.wants 2>/dev/null # the image's own, empty: systemctl disable takes such along
	standing >/ci/before
	check "apt knows its archive" apt update
	began=$(date +%s%N)
	check "apt install ./trocar_*.deb" apt install --no-install-recommends $packages/first/trocar_*.deb
	figure "apt install, ms" $((($(date +%s%N) - began) / 1000000))
	check "leaves the service running" until_true 10 running
	check "and enabled" systemctl is-enabled trocar-consumer
	check "with the rules of the package" until_true 5 line rules.applied 'text("source") == "file:/etc/trocar/rules.json" && number("count") >= 10'
	check "trocar check finds nothing that is required missing" trocar check
	same "the consumer has no capability in any set" "$(cap_lines "$(consumer_pid)")" "$zeros"
	matches "no unit failed" "$(systemctl --failed --no-legend --plain)" '^$'
	check "completion is where the shells look" ls /usr/share/bash-completion/completions/trocar \
		/usr/share/zsh/vendor-completions/_trocar /usr/share/fish/vendor_completions.d/trocar.fish
}

# A server of the rules' names: quiet, then four threads that share half a CPU.
quiet_rules() {
	local mark began
	install -m 0755 /usr/local/bin/burn_cpu /usr/local/bin/memcached
	mark=$(mono_ns)
	check "a server is started" systemd-run -q --unit shop -p CPUQuota=$quota memcached 120 4 $((10 * (slow > 1 ? 3 : 1)))
	check "the package's rules watch it" until_true 40 line_after "$mark" watch.start 'index($0, "memcached")'
	began=$(stalled_us)
	sleep 5
	if none_of memcached || [ $(($(stalled_us) - began)) -lt 1000000 ]; then
		check "and say nothing while it has its CPU" none_of memcached
	else
		skip "and say nothing while it has its CPU" "others had it: the kernel's own sum grew by $(($(stalled_us) - began)) us"
	fi
	check "a stall of a second in two becomes a session" until_true 20 line_after "$mark" session.end 'text("rule") == "memcached"'
	# The first of the walks that tests/e2e/test_walks.py counts: apt install, then this.
	matches "and the second command shows why" "$(trocar show 2>&1 | head -n 40 | tr '\n' ' ')" 'rule memcached.*shop.service'
	matches "trocar reads the journal itself" "$(trocar report --journal --rule memcached 2>&1 | head -n 40)" 'rule memcached'
	systemctl stop shop
	rm /usr/local/bin/memcached
}

# Each line as it stands in README. A session's verdict (5, 6) is no failure of the command that waits for it.
readme_agent() {
	local line failed=0
	while read -r line; do
		(cd /ci && exec bash -c "$line") </dev/null || [ $? -ge 5 ] || { echo "failed: $line" && failed=1; }
	done </ci/readme-agent
	return $failed
}

# What README says to try, with the agent of the package and a process of some service.
readme() {
	check "a service to look at" systemd-run -q --unit shop burn_cpu 300 1 300
	same "README asks an agent seven things and more" "$(($(wc -l </ci/readme-agent) >= 7))" 1
	busy=$(property shop MainPID)
	export busy
	check "README's commands for an agent" readme_agent
	check "README's commands for lines" env -C /ci sh -ex ./readme-lines
	systemctl stop shop
}

upgraded() {
	local before pid
	echo '{ "version": 1, "rules": [ { "name": "mine", "match": { "comm": "mine" }, "when": [ { "pressure": "cpu", "some_pct": 20 } ] } ] }' \
		>/etc/trocar/rules.json
	until_true 5 line rules.applied 'number("count") == 1'
	before=$(pins) pid=$(consumer_pid)
	check "an upgrade with the same kernel side" apt install $packages/same/trocar_*.deb
	check "the service runs" until_true 10 running
	same "the pins are the same" "$(pins)" "$before"
	check "the consumer is another" another "$pid"
	matches "the operator's rules are in force" "$(trocar rules get 2>&1)" '"mine"'
	pid=$(consumer_pid)
	check "an upgrade with another kernel side" apt install $packages/other/trocar_*.deb
	check "the service runs" until_true 10 running
	if [ "$(pins)" = "$before" ]; then fail "the kernel side is loaded anew" <<<"$before"; else ok "the kernel side is loaded anew"; fi
	check "the consumer is another" another "$pid"
	matches "the operator's rules stand" "$(cat /etc/trocar/rules.json)" '"mine"'
	check "no note of the upgrade is left" test ! -e /run/trocar.upgraded-from
}

removed() {
	check "apt remove" apt remove trocar
	check "the command went with it" sh -c '! command -v trocar'
	check "the consumer has stopped" inactive trocar-consumer
	check "no mount" until_true 3 sh -c "! grep ' $bpf_dir ' /proc/mounts"
	matches "the operator's rules stay" "$(cat /etc/trocar/rules.json)" '"mine"'
	check "apt install takes them up again, and trocar-tools beside it" apt install $packages/other/*.deb
	check "the service runs" until_true 10 running
	matches "by the operator's rules" "$(trocar rules get 2>&1)" '"mine"'
	same "the command is the agent's own" "$(readlink -f /usr/bin/trocar)" /usr/libexec/trocar/trocar
}

purged() {
	check "apt purge" apt purge trocar
	check "the consumer has stopped" inactive trocar-consumer
	check "trocar-tools goes on without it" trocar version
	check "apt purge trocar-tools" apt purge trocar-tools
	check "and what came with them" apt autoremove --purge
	standing >/ci/after
	check "nothing is left" diff /ci/before /ci/after
	matches "no unit failed" "$(systemctl --failed --no-legend --plain | grep trocar)" '^$'
}

# A laptop: the command alone, and a file from elsewhere.
tools() {
	check "apt install ./trocar-tools_*.deb" apt install --no-install-recommends $packages/first/trocar-tools_*.deb
	matches "trocar reads lines" "$(trocar report /ci/results/package.jsonl 2>&1 | head -n 40)" 'memcached'
	check "there is no agent on it" sh -c '! ls /usr/sbin/trocar-loader /etc/trocar 2>/dev/null'
	check "apt purge" apt purge trocar-tools
	check "and what came with it" apt autoremove --purge
	standing >/ci/after
	check "nothing is left" diff /ci/before /ci/after
}

follow
steps installed quiet_rules
cp "$lines" "$results/package.jsonl"
steps readme upgraded removed purged tools
