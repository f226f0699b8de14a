# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# psi=0: nothing tells that a service stalls, which is said everywhere; sessions can still be asked for.

why='switched off on the kernel command line'
follow
said=$("$loader" check)
same "trocar-loader check: not fine" $? 4
matches "and says why" "$said" "missing psi: $why"
check "the units run all the same" until_true 5 active trocar-consumer
matches "systemctl status of the loader says why" "$(systemctl status --no-pager -l trocar-loader)" "missing psi: $why"
check "agent.start names it" until_true 3 line agent.start '/"feature":"psi/'
check "a rule" rules "$shop_rule"
check "a service" shop 60
check "a session on request" until_true 5 trocar capture --rule shop
check "has stacks" until_true 10 line stack 'text("rule") == "shop"'
check "and its end" until_true 5 line session.end
systemctl stop trocar-consumer
sleep 1
cp "$lines" "$results/no-psi.jsonl"
systemctl stop shop trocar-loader
