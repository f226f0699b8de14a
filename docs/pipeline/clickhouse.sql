-- SPDX-License-Identifier: BSD-2-Clause
-- Keys of the lines that are no column are skipped (input_format_skip_unknown_fields). `frames` stands as JSON text:
-- versions from 21 on read it as Array(Tuple(...)) or JSON; 18.16 of Debian reads the line as text, below.
CREATE TABLE trocar_lines (
	line      String,
	ts        DateTime MATERIALIZED parseDateTimeBestEffort(visitParamExtractString(line, 'ts')),
	type      String MATERIALIZED visitParamExtractString(line, 'type'),
	host      String MATERIALIZED visitParamExtractString(line, 'host'),
	session   String MATERIALIZED visitParamExtractString(line, 'session'),
	rule      String MATERIALIZED visitParamExtractString(line, 'rule'),
	cgroup    String MATERIALIZED visitParamExtractString(line, 'cgroup'),
	weight_ns UInt64 MATERIALIZED visitParamExtractUInt(line, 'weight_ns')
) ENGINE = MergeTree PARTITION BY toYYYYMMDD(ts) ORDER BY (type, host, ts);
