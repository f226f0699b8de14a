# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# The two units as systemd binds, restarts and fails them.

drop_in=/run/systemd/system/trocar-loader.service.d

restarts() {
	local pid ids
	pid=$(consumer_pid)
	ids=$(program_ids)
	check "systemctl restart trocar-consumer" systemctl restart trocar-consumer
	check "it is another process" another "$pid"
	same "a restart of the consumer loads no BPF" "$(program_ids)" "$ids"
	pid=$(consumer_pid)
	check "systemctl reload trocar-consumer" systemctl reload trocar-consumer
	same "a reload keeps the process" "$(consumer_pid)" "$pid"
	check "systemctl restart trocar-loader" systemctl restart trocar-loader
	check "it takes the consumer along" until_true 5 another "$pid"
	pid=$(consumer_pid)
	sleep 1
	same "once" "$(consumer_pid)" "$pid"
	matches "with programs of its own" "$(program_ids)" '^[0-9]'
	[ "$(program_ids)" != "$ids" ] && ok "which are new" || fail "which are new" <<<"$ids"
}

# By hand while the units are installed and idle: systemd must not take the mount away.
by_hand() {
	local ids
	check "load by hand, the units idle" timeout 60 "$loader" load
	sleep 0.5
	check "its pins stay" test -e "$bpf_dir/abi"
	ids=$(program_ids)
	check "unload by hand" timeout 60 "$loader" unload
	check "nothing of it is left" no_trace "$ids"
}

failed_load() {
	mkdir -p $drop_in
	printf '[Service]\nExecStart=\nExecStart=%s load --hz 1\n' "$loader" >$drop_in/wrong.conf
	systemctl daemon-reload
	systemctl start trocar-consumer >/run/said 2>&1 && fail "a failed load fails the start" </run/said ||
		ok "a failed load fails the start"
	check "the consumer stays down" inactive trocar-consumer
	same "the loader's unit has failed" "$(property trocar-loader ActiveState)" failed
	matches "systemctl status of the loader says why" "$(systemctl status --no-pager -l trocar-loader)" \
		'--hz 1: want a number from 5 to 999'
	matches "systemctl status of the consumer says on whom it waits" \
		"$(systemctl status --no-pager -l trocar-consumer)" 'Dependency failed|trocar-loader'
	check "a failed load leaves nothing" no_trace ""
	rm -r $drop_in
	systemctl daemon-reload
	systemctl reset-failed
	check "with the fault gone one start brings both" systemctl start trocar-consumer
	check "the loader came with it" active trocar-loader
}

faulty_rules() {
	local pid mark
	pid=$(consumer_pid)
	mark=$(mono_ns)
	echo '{ "version": 1, "rules": [ { "name": "Bad" } ] }' >/etc/trocar/rules.new
	mv /etc/trocar/rules.new /etc/trocar/rules.json
	check "a faulty file is refused" until_true 5 line_after "$mark" rules.rejected
	same "and the consumer goes on" "$(consumer_pid)" "$pid"
}

follow
check "both units start" systemctl start trocar-consumer
steps restarts
systemctl stop trocar-loader
steps by_hand failed_load faulty_rules
systemctl stop trocar-consumer
sleep 1
cp "$lines" "$results/restarts.jsonl"
systemctl stop trocar-loader
