# What a newcomer types: `make test` (everything CI runs), `make leat` (the binary), `make crash` (the long kill -9 run).
.PHONY: leat test test-deps check unit race e2e crash simulate fuzz bench compat compat-cluster fmt

leat:
	CGO_ENABLED=0 go build -trimpath -o bin/leat ./cmd/leat

test:
	@scripts/test

test-deps:
	@scripts/test-deps

check:
	@scripts/check

unit:
	go test ./internal/... ./cmd/...

race:
	go test -race ./internal/journal/... ./internal/commitlog/... ./internal/broker/... ./internal/flow/... ./internal/job/...

e2e:
	go test ./test/...

# 100 SIGKILLs while a million records flow; CI does 10.
crash:
	go test ./test/crash -count=1 -timeout 60m -v -kills 100 -records 1000000

# The whole node on one goroutine over a file system that loses unsynced writes; CI does 2,000 histories.
simulate:
	go test ./test/simulation -count=1 -timeout 120m -v -histories 20000

fuzz:
	@scripts/fuzz

bench:
	@scripts/bench/all.sh

# Clients, tools and suites that others wrote, against Leat and (KAFKA_PEER: see test/compat) Apache Kafka; writes docs/compatibility.md.
# Needs Java, Python, Node and a C compiler; a suite whose needs are missing fails the run.
compat:
	go run ./test/compat -write docs/compatibility.md

fmt:
	go tool -modfile=tools/go.mod gofumpt -w cmd internal test bench

# Sources and sinks over a real Apache Kafka that is killed meanwhile, as Leat is. KAFKA_PEER is a program that starts and stops one
# (`go test ./test/crash -args -help` says how it is called); it needs a JDK. CI does the same with a second Leat as the cluster.
compat-cluster:
	go test ./test/crash -count=1 -timeout 30m -v -run TestClusterThroughKills -kills 20 -kafka "$(KAFKA_PEER)"
