#!/bin/sh
# Start to first query, idle memory, and what a number of idle views cost. Needs psql. Usage: scripts/bench/idle.sh [path to leat] [views]
set -eu
leat=${1:-leat}
views=${2:-1000}
dir=$(mktemp -d)
trap 'kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; rm -rf "$dir"' EXIT INT TERM

now() { date +%s%N; }
rss() { awk '/^VmRSS/ { print $2 * 1024 }' "/proc/$pid/status"; }
cpu() { awk '{ print ($14 + $15) * 10 }' "/proc/$pid/stat"; } # milliseconds

start=$(now)
"$leat" server --data "$dir/data" --kafka 127.0.0.1:0 --postgres 127.0.0.1:0 --http 127.0.0.1:0 2>"$dir/log" &
pid=$!
until grep -q '"msg":"ready"' "$dir/log"; do
	kill -0 "$pid" 2>/dev/null || { cat "$dir/log" >&2; exit 1; }
	sleep 0.01
done
port=$(sed -n 's/.*"postgres":"[^"]*:\([0-9]*\)".*/\1/p' "$dir/log" | head -n 1)
sql() { psql -X -q -h 127.0.0.1 -p "$port" -U leat -d leat -v ON_ERROR_STOP=1 "$@"; }
sql -Atc 'SELECT 1' >/dev/null
first=$((($(now) - start) / 1000000))
sleep 2
idle=$(rss)

sql -c "CREATE SOURCE events (k bigint, v bigint) WITH (connector='kafka', topic='events') FORMAT PLAIN ENCODE JSON"
i=0
while [ "$i" -lt "$views" ]; do
	echo "CREATE MATERIALIZED VIEW v$i AS SELECT k, count(*) AS n, sum(v) AS total FROM events WHERE v > $i GROUP BY k;"
	i=$((i + 1))
done >"$dir/views.sql"
start=$(now)
sql -f "$dir/views.sql"
created=$((($(now) - start) / 1000000))
sleep 40 # the checkpoint after 30 s brings what making the views wrote out of the database's memory
with=$(rss)
used=$(cpu)
sleep 5
used=$(($(cpu) - used))
echo "{\"start_to_first_query_ms\":$first,\"idle_rss_bytes\":$idle,\"views\":$views,\"create_views_ms\":$created,\"views_rss_bytes\":$((with - idle)),\"idle_cpu_ms_in_5s\":$used}"
