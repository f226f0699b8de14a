-- SPDX-License-Identifier: BSD-2-Clause
-- clickhouse-client --input_format_skip_unknown_fields=1 -q "INSERT INTO trocar_lines FORMAT JSONEachRow" <events.jsonl
-- Keys that are no column are skipped. `ts` keeps its nanoseconds as text, `time` is for the order and the partitions.
CREATE TABLE trocar_lines (
	ts        String,
	mono_ns   UInt64,
	boot_id   String,
	type      String,
	host      String,
	session   String,
	rule      String,
	cgroup    String,
	signal    String,
	phase     String,
	comm      String,
	pid       UInt32,
	count     UInt64,
	weight_ns UInt64,
	verdict   String,
	headline  String,
	code      String,
	message   String,
	time      DateTime MATERIALIZED parseDateTimeBestEffort(substring(ts, 1, 19))
) ENGINE = MergeTree PARTITION BY toYYYYMMDD(time) ORDER BY (type, host, time);
