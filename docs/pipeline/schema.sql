-- SPDX-License-Identifier: BSD-2-Clause
-- One table for all event lines: the line as it came, and columns that PostgreSQL computes from it. Run as the
-- owner of the database. rsyslog only calls trocar_line(); it needs no right on the table.

-- Immutable because the text always carries its zone (Z). Microseconds: the nanoseconds stay in the line.
CREATE FUNCTION trocar_ts(text) RETURNS timestamptz
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS 'SELECT $1::timestamptz';

CREATE TABLE trocar_lines (
	line      jsonb NOT NULL,
	ts        timestamptz NOT NULL GENERATED ALWAYS AS (trocar_ts(line->>'ts')) STORED,
	type      text NOT NULL GENERATED ALWAYS AS (line->>'type') STORED,
	host      text GENERATED ALWAYS AS (line->>'host') STORED,
	session   text GENERATED ALWAYS AS (line->>'session') STORED,
	rule      text GENERATED ALWAYS AS (line->>'rule') STORED,
	cgroup    text GENERATED ALWAYS AS (line->>'cgroup') STORED,
	weight_ns bigint GENERATED ALWAYS AS ((line->>'weight_ns')::bigint) STORED,
	-- A line that is delivered twice is the same line: it carries boot_id and mono_ns.
	digest    uuid NOT NULL GENERATED ALWAYS AS (md5(line::text)::uuid) STORED,
	PRIMARY KEY (ts, digest)
);
CREATE INDEX trocar_lines_session ON trocar_lines (session, ts) WHERE session IS NOT NULL;
CREATE INDEX trocar_lines_rule ON trocar_lines (rule, ts) WHERE type = 'session.end';

-- What is no event line: kept and looked at, never a reason for the queue to stand still.
CREATE TABLE trocar_rejected (
	received timestamptz NOT NULL DEFAULT now(),
	reason   text NOT NULL,
	line     text NOT NULL
);

CREATE FUNCTION trocar_line(text) RETURNS void
	LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
	INSERT INTO trocar_lines (line) VALUES ($1::jsonb) ON CONFLICT DO NOTHING;
EXCEPTION WHEN data_exception OR not_null_violation THEN
	INSERT INTO trocar_rejected (reason, line) VALUES (sqlerrm, left($1, 8192));
END $$;

CREATE ROLE trocar_writer LOGIN;
REVOKE ALL ON FUNCTION trocar_line(text) FROM public;
GRANT EXECUTE ON FUNCTION trocar_line(text) TO trocar_writer;
