#!/bin/sh
# Runs all benchmarks at a small size, a JSON line each. Usage: scripts/bench/all.sh [path to leat] [events]
set -eu
leat=${1:-leat}
events=${2:-4000000}
for q in q0 q1 q2 q5 q14 q17 q21 q22; do
	"$leat" bench nexmark --query "$q" --events "$events" --workers 1
done
"$leat" bench nexmark --query q2 --events "$((events / 2))" --workers 1 --from-topics
"$leat" bench latency --for 5s
"$leat" bench mixed
"$leat" bench log
"$leat" bench state --size 100MB --state-memory 6MB
