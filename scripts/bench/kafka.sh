#!/bin/bash
# Leat next to Apache Kafka on the same machine, in turns, with Kafka's own perf tools and `leat bench log`: throughput, and CPU seconds a GB of
# each broker. Kafka runs as it comes (it syncs nothing before it acknowledges), and with flush.messages=1 on the topic.
#
# Usage: scripts/bench/kafka.sh [path to leat] [rounds]
# KAFKA names a command that starts and stops a broker and runs Kafka's tools:
#   KAFKA start --port 0 --dir DIR    prints "HOST:PORT PID";   KAFKA stop --dir DIR;   KAFKA tool producer-perf-test ARGS...
# FIELD narrows the tests to those whose name contains it.
set -euo pipefail
leat=${1:-leat}
rounds=${2:-3}
kafka=${KAFKA:?names the command that runs Apache Kafka, see the top of this script}
field=${FIELD:-}
dir=$(mktemp -d)
leat_pid=
finish() {
	[[ -z $leat_pid ]] || kill "$leat_pid" 2>/dev/null || true
	"$kafka" stop --dir "$dir/kafka" >/dev/null 2>&1 || true
	[[ -z $leat_pid ]] || wait "$leat_pid" 2>/dev/null || true
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 1' INT TERM

"$leat" server --data "$dir/leat" --kafka 127.0.0.1:0 --postgres 127.0.0.1:0 --http 127.0.0.1:0 2>"$dir/leat.log" &
leat_pid=$!
until grep -q '"msg":"ready"' "$dir/leat.log"; do
	kill -0 "$leat_pid" 2>/dev/null || { cat "$dir/leat.log" >&2; exit 1; }
	sleep 0.05
done
leat_addr=$(sed -n 's/.*"kafka":"\([^"]*\)".*/\1/p' "$dir/leat.log" | head -n 1)
read -r kafka_addr kafka_pid < <("$kafka" start --port 0 --dir "$dir/kafka")

addr() { case $1 in leat) echo "$leat_addr" ;; *) echo "$kafka_addr" ;; esac; }
pid() { case $1 in leat) echo "$leat_pid" ;; *) echo "$kafka_pid" ;; esac; }
cpu() { awk '{ print $14 + $15 }' "/proc/$1/stat"; } # hundredths of a second
create() {                                           # BROKER TOPIC PARTITIONS
	local config=()
	[[ $1 != kafka-sync ]] || config=(--config flush.messages=1)
	"$kafka" tool topics --bootstrap-server "$(addr "$1")" --create --topic "$2" --partitions "$3" "${config[@]}" >/dev/null
}
result() { echo "$1 $2 $3 $4" >>"$dir/results"; echo "round $round: $1 $2: $3 $4" >&2; } # TEST BROKER VALUE CPU-A-GB

# produce BROKER PARTITIONS SIZE RECORDS
produce() {
	local test="produce-$3B-$2p" topic="t$round-$2-$3-$1" before out
	[[ $test == *"$field"* ]] || return 0
	create "$1" "$topic" "$2"
	before=$(cpu "$(pid "$1")")
	out=$("$kafka" tool producer-perf-test --bootstrap-server "$(addr "$1")" --topic "$topic" --num-records "$4" --record-size "$3" --throughput -1 \
		--command-property acks=all | tail -n 1)
	result "$test" "$1" "$(sed -n 's/.*(\([0-9.]*\) MB\/sec).*/\1/p' <<<"$out")" \
		"$(awk -v c=$(($(cpu "$(pid "$1")") - before)) -v b=$(($3 * $4)) 'BEGIN { printf "%.2f", c / 100 / (b / 1e9) }')"
}

# consume BROKER PARTITIONS SIZE RECORDS, what produce has left
consume() {
	local test="consume-$3B-$2p" topic="t$round-$2-$3-$1" before out
	[[ $test == *"$field"* ]] || return 0
	before=$(cpu "$(pid "$1")")
	out=$("$kafka" tool consumer-perf-test --bootstrap-server "$(addr "$1")" --topic "$topic" --num-records "$4" | tail -n 1)
	# The rate of fetching alone: joining the group takes as long as its timeouts say.
	result "$test" "$1" "$(awk -F', *' '{ print $(NF - 1) }' <<<"$out")" \
		"$(awk -v c=$(($(cpu "$(pid "$1")") - before)) -v b=$(($3 * $4)) 'BEGIN { printf "%.2f", c / 100 / (b / 1e9) }')"
}

# single BROKER PARTITIONS: records a second of 64 connections, each waiting for its acknowledgement
single() {
	local test="single-1024B-$2p" config=() out
	[[ $test == *"$field"* ]] || return 0
	[[ $1 != kafka-sync ]] || config=(--topic-config flush.messages=1)
	out=$("$leat" bench log --for 3s --broker "$(addr "$1")" --broker-pid "$(pid "$1")" --partitions "$2" "${config[@]}")
	result "$test" "$1" "$(sed -n 's/.*"single_records_per_second":\([0-9]*\).*/\1/p' <<<"$out")" \
		"$(sed -n 's/.*"single_broker_cpu_us_per_record":\([0-9.]*\).*/\1/p' <<<"$out" | awk '{ printf "%.2f", $1 * 1e9 / 1024 / 1e6 }')"
	result "e2e-go-p50-us-$2p" "$1" "$(sed -n 's/.*"end_to_end_p50_ms":\([0-9.]*\).*/\1/p' <<<"$out" | awk '{ print $1 * 1000 }')" 0
	result "e2e-go-p99-us-$2p" "$1" "$(sed -n 's/.*"end_to_end_p99_ms":\([0-9.]*\).*/\1/p' <<<"$out" | awk '{ print $1 * 1000 }')" 0
}

# latency BROKER: milliseconds, the 99th percentile
latency() {
	local topic="e$round-$1" out
	[[ latency == *"$field"* ]] || return 0
	create "$1" "$topic" 1
	out=$("$kafka" tool e2e-latency --bootstrap-server "$(addr "$1")" --topic "$topic" --num-records 3000 --producer-acks all --record-size 1024 | grep -i percentiles)
	result latency-p99-ms "$1" "$(sed -n 's/.*99th = \([0-9]*\).*/\1/p' <<<"$out")" 0
}

for round in $(seq "$rounds"); do
	for broker in leat kafka kafka-sync; do
		few=1
		[[ $broker != kafka-sync ]] || few=20
		for partitions in 1 16; do
			produce "$broker" "$partitions" 1024 $((300000 / few))
			produce "$broker" "$partitions" 100 $((1000000 / few))
			[[ $broker == kafka-sync ]] || consume "$broker" "$partitions" 1024 300000
			single "$broker" "$partitions"
		done
		latency "$broker"
	done
done

# Medians over the rounds, and Leat's as a multiple of Kafka's.
sort "$dir/results" | awk '
	{ key = $1 " " $2; n[key]++; v[key, n[key]] = $3; c[key, n[key]] = $4; tests[$1] = 1 }
	function median(a, key, m, i, j, t, x) {
		for (i = 1; i <= m; i++) x[i] = a[key, i] + 0
		for (i = 1; i <= m; i++) for (j = i + 1; j <= m; j++) if (x[j] < x[i]) { t = x[i]; x[i] = x[j]; x[j] = t }
		return x[int((m + 1) / 2)]
	}
	END {
		printf "%-18s %10s %10s %12s %9s %11s %10s %10s\n", "test", "leat", "kafka", "kafka-sync", "to kafka", "to synced", "leat s/GB", "kafka s/GB"
		for (t in tests) {
			l = median(v, t " leat", n[t " leat"]); k = median(v, t " kafka", n[t " kafka"]); s = median(v, t " kafka-sync", n[t " kafka-sync"])
			printf "%-18s %10.1f %10.1f %12.1f %9s %11s %10.2f %10.2f\n", t, l, k, s, k ? sprintf("%.2f", l / k) : "-", s ? sprintf("%.1f", l / s) : "-", \
				median(c, t " leat", n[t " leat"]), median(c, t " kafka", n[t " kafka"]) | "sort"
		}
	}'
