-- SPDX-License-Identifier: BSD-2-Clause
-- The stacks that used most CPU time in the last hour, leaf first; top-waits.sql has what waited. A stack of several
-- lines (parts) is put together again; only its first line has the weight. `missing` counts stacks of which a part
-- never came.
WITH stack AS (
	SELECT host, rule, cgroup, session, line->>'phase' AS phase, line->>'comm' AS comm,
		max(weight_ns) AS weight_ns,
		count(DISTINCT digest) < coalesce(max((line->>'parts')::int), 1) AS missing,
		string_agg(coalesce(frame->>'fn',
			regexp_replace(frame->>'module', '.*/', '') || '+' || (frame->>'offset'), '?'),
			' < ' ORDER BY coalesce((line->>'part')::int, 1), place) AS frames
	FROM trocar_lines
	LEFT JOIN LATERAL jsonb_array_elements(line->'frames')
		WITH ORDINALITY AS f (frame, place) ON true
	WHERE type = 'stack' AND line->>'signal' = 'oncpu' AND ts > now() - interval '1 hour'
	GROUP BY host, rule, cgroup, session, phase, comm,
		coalesce(line->>'stack_id', digest::text)
)
SELECT host, cgroup, comm, rule,
	round(sum(weight_ns) / 1e9, 3) AS cpu_s,
	round(100 * sum(weight_ns) / sum(sum(weight_ns)) OVER (PARTITION BY host, cgroup), 1) AS percent,
	count(DISTINCT session) AS sessions,
	count(*) FILTER (WHERE missing) AS missing,
	frames
FROM stack
WHERE phase = 'during'
GROUP BY host, cgroup, comm, rule, frames
ORDER BY cpu_s DESC NULLS LAST
LIMIT 20;
