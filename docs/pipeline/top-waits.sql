-- SPDX-License-Identifier: BSD-2-Clause
-- The stacks in which threads waited longest in the last hour, leaf first, and for what; threads without work
-- (idle) are left out. A stack of several lines (parts) is put together again; only its first line has the weight.
WITH stack AS (
	SELECT host, rule, cgroup, session, line->>'phase' AS phase, line->>'comm' AS comm,
		max(line->>'wait') AS wait, coalesce(bool_or((line->>'idle')::bool), false) AS idle,
		max(weight_ns) AS weight_ns,
		string_agg(coalesce(frame->>'fn',
			regexp_replace(frame->>'module', '.*/', '') || '+' || (frame->>'offset'), '?'),
			' < ' ORDER BY coalesce((line->>'part')::int, 1), place) AS frames
	FROM trocar_lines
	LEFT JOIN LATERAL jsonb_array_elements(line->'frames')
		WITH ORDINALITY AS f (frame, place) ON true
	WHERE type = 'stack' AND line->>'signal' = 'offcpu' AND ts > now() - interval '1 hour'
	GROUP BY host, rule, cgroup, session, phase, comm,
		coalesce(line->>'stack_id', digest::text)
)
SELECT host, cgroup, comm, rule, wait,
	round(sum(weight_ns) / 1e9, 3) AS wait_s,
	count(DISTINCT session) AS sessions,
	frames
FROM stack
WHERE phase = 'during' AND NOT idle
GROUP BY host, cgroup, comm, rule, wait, frames
ORDER BY wait_s DESC NULLS LAST
LIMIT 20;
