-- Hits and bytes of a web server's access log, per hour and status class, kept up to date while the log grows.

-- Each record of the topic is a line as Apache and nginx write it ("common" or "combined" format). A line that does not match has no
-- time: it goes to the topic access.errors, with the reason, and is counted.
CREATE SOURCE access (
    line   text,
    parts  text[] AS (regexp_match(line, '^(\S+) \S+ \S+ \[([^\]]+)\] "([^"]*)" (\d{3}) (\d+|-)')),
    client text AS (parts[1]),
    ts     timestamptz AS (to_timestamp(parts[2], 'DD/Mon/YYYY:HH24:MI:SS TZHTZM')),
    method text AS (split_part(parts[3], ' ', 1)),
    path   text AS (split_part(parts[3], ' ', 2)),
    status int AS (parts[4]::int),
    bytes  bigint AS (NULLIF(parts[5], '-')::bigint),
    -- Lines are written when a request ends, and so come somewhat out of order: wait for them for a minute.
    WATERMARK FOR ts AS ts - INTERVAL '1 minute'
) WITH (connector = 'kafka', topic = 'access') FORMAT PLAIN ENCODE TEXT;

-- Always up to date, the hour that is running included.
CREATE MATERIALIZED VIEW hourly AS
SELECT window_start AS hour, status / 100 AS class, count(*) AS hits, sum(bytes) AS bytes
FROM TUMBLE(access, ts, INTERVAL '1 hour')
GROUP BY window_start, window_end, status / 100;

-- One final record per hour and class, when the hour is over.
CREATE SINK hourly_final AS
SELECT window_start AS hour, status / 100 AS class, count(*) AS hits, sum(bytes) AS bytes
FROM TUMBLE(access, ts, INTERVAL '1 hour')
GROUP BY window_start, window_end, status / 100
EMIT ON WINDOW CLOSE
WITH (connector = 'kafka', topic = 'access.hourly') FORMAT PLAIN ENCODE JSON;
