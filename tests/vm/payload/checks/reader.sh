# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# A reader of README, docs/operations.md and docs/pipeline.md types what stands there, block by block (/ci/walk), on
# a machine with those packages. What comes of it: sessions of nginx under load in PostgreSQL, and their stacks out of
# one query.

query() { sudo -u postgres psql -d trocar -X -A -t -F ' | ' -c "$1"; }
top() { (cd /usr/share/doc/trocar/pipeline && sudo -u postgres psql -d trocar -X -A -t -F ' | ' -f top-stacks.sql); }
of_nginx() { top | awk '/nginx.service [|] nginx [|] nginx/ && rows++ < 3' | grep .; }
some() { [ "$(query "$1")" -gt 0 ]; }

# walked FILE: as in one shell of the reader's, every command of the block has to work.
walked() { (cd /usr/share/doc/trocar/pipeline && bash -exo pipefail "$1"); }

walk() {
	local block began
	for block in /ci/walk/*; do
		began=$SECONDS
		check "the commands of $(basename "$block")" walked "$block"
		say "$(basename "$block"): $((SECONDS - began)) s"
		cp /ci/said "$results/walk.$(basename "$block")"
	done
}

sessions() {
	check "sessions of nginx are in SQL" until_true 3 some "SELECT count(*) FROM trocar_lines WHERE type = 'session.end' AND rule = 'nginx'"
	check "one query gives their top stacks" until_true 3 of_nginx
	say "$(query "SELECT line->>'headline' FROM trocar_lines WHERE type = 'session.end' ORDER BY ts LIMIT 2")"
	say "$(of_nginx | cut -c1-400)"
	matches "with CPU time and frames" "$(of_nginx)" 'nginx \| [0-9.]*[1-9][0-9.]* \| [0-9.]+ \| [1-9][0-9]* \| 0 \| .* < '
	same "no line was refused" "$(query 'SELECT count(*) FROM trocar_rejected')" 0
}

alert() {
	check "the alert has become a session" until_true 3 some \
		"SELECT count(*) FROM trocar_lines WHERE type = 'session.start' AND line#>>'{reason,request,text}' = 'a try'"
	say "$(journalctl --no-pager -o cat -u 'trocar-alert@*')"
	matches "the receiver says so" "$(journalctl --no-pager -o cat -u 'trocar-alert@*')" 'session [0-9a-f]{16} started'
}

rotation() {
	local before
	before=$(query 'SELECT count(*) FROM trocar_lines')
	check "the file is rotated" logrotate --force /etc/logrotate.d/trocar
	check "there is an old one" sh -c 'ls /var/log/trocar/events-*.jsonl'
	check "and a new one" until_true 3 test -e /var/log/trocar/events.jsonl
	check "a session on request" until_true 5 trocar capture --rule nginx --during-ms 500
	check "its lines come into SQL" until_true 5 some "SELECT count(*) - $before FROM trocar_lines"
}

# What ships the file off the host reads it as a user in adm, also after the unit has started anew.
shipper() {
	local when
	useradd --system --groups adm shipper
	for when in "after the installation" "after a restart" "after a rotation"; do
		[ "$when" != "after a restart" ] || check "it is restarted" systemctl restart trocar-consumer
		[ "$when" != "after a rotation" ] || check "it is rotated" logrotate --force /etc/logrotate.d/trocar
		check "a user in adm reads the lines $when" until_true 5 runuser -u shipper -- head -c 1 /var/log/trocar/events.jsonl
		same "the folder $when" "$(stat -c '%a %U:%G' /var/log/trocar)" "2750 trocar:adm"
		same "nobody else may read $when" "$(stat -c '%a %U:%G' /var/log/trocar/events.jsonl)" "640 trocar:adm"
	done
	userdel shipper
}

# As every installer of Debian leaves it; sudo asks for it.
echo "127.0.1.1 $(hostname)" >>/etc/hosts
steps walk sessions alert rotation shipper
cat /var/log/trocar/events*.jsonl >"$results/reader.jsonl"
systemctl stop trocar-consumer trocar-loader nginx
