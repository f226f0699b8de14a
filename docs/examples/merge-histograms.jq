# SPDX-License-Identifier: BSD-2-Clause
# Adds up the lines `histogram` of many sessions and hosts, by rule and by what they are of:
#
#   jq -nc -f merge-histograms.jq FILE...
#
# All of them count in the same bounds (docs/events.md), so the sums are as exact as each line. What tells one process
# from another (pid, start_ns, the address of a lock) is left out of the key. A line that is read twice counts once.

# The bound in which the value is that $pct of 100 are not larger than; 0 without any.
def bound_of($pct):
  (map(.[1]) | add // 0) as $count
  | reduce .[] as [$le, $n] ({below: 0};
      .below += $n | if has("le") or .below * 100 < $count * $pct then . else .le = $le end)
  | if has("le") then .le else 0 end;

[inputs | select(.type == "histogram")]
| unique_by([.host, .boot_id, .session, .signal, .key])
| group_by([.rule, .signal, .unit, (.key | del(.pid, .start_ns, .address))])[]
| (map(.buckets[]) | group_by(.[0]) | map([.[0][0], (map(.[1]) | add)])
   | sort_by(if .[0] == null then infinite else .[0] end)) as $buckets
| {
    rule: .[0].rule, signal: .[0].signal, key: (.[0].key | del(.pid, .start_ns, .address)), unit: .[0].unit,
    hosts: (map(.host) | unique | length),
    sessions: (map([.host, .boot_id, .session]) | unique | length),
    buckets: $buckets, count: ($buckets | map(.[1]) | add // 0), sum: (map(.sum) | add),
    p50: ($buckets | bound_of(50)), p90: ($buckets | bound_of(90)), p99: ($buckets | bound_of(99))
  }
