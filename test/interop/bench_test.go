package interop

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/door/kafka/kafkatest"
	"github.com/leat-io/leat/internal/vfs"
)

// onDisk starts a node in a temporary folder with a topic of so many partitions.
func onDisk(b *testing.B, partitions int32) *kafkatest.Node {
	b.Helper()
	n := kafkatest.Start(b, kafkatest.Options{FS: vfs.Default, Dir: b.TempDir() + "/data"})
	spec := broker.TopicSpec{Name: "t", Partitions: partitions, Configs: map[string]string{"max.message.bytes": "10000000"}}
	if _, err := n.Broker.CreateTopic(within(b), spec); err != nil {
		b.Fatal(err)
	}
	return n
}

// produceLoop sends frame again and again, one at a time or with so many in flight, and reads the answers.
func produceLoop(b *testing.B, addr string, frame []byte, inFlight int, left *atomic.Int64) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		b.Error(err)
		return
	}
	defer nc.Close()
	answer := make([]byte, 4096)
	read := func() bool {
		if _, err := io.ReadFull(nc, answer[:4]); err != nil {
			b.Error(err)
			return false
		}
		if _, err := io.ReadFull(nc, answer[:binary.BigEndian.Uint32(answer[:4])]); err != nil {
			b.Error(err)
			return false
		}
		return true
	}
	out := 0
	for left.Add(-1) >= 0 {
		if _, err := nc.Write(frame); err != nil {
			b.Error(err)
			return
		}
		if out++; out == inFlight {
			if !read() {
				return
			}
			out--
		}
	}
	for ; out > 0 && read(); out-- {
	}
}

func benchmarkProduce(b *testing.B, connections, inFlight, bytes int) {
	n := onDisk(b, int32(connections))
	batch := batchOf(strings.Repeat("x", bytes))
	if bytes > 1024 { // of records of 1 KB
		values := make([]string, bytes/1024)
		for i := range values {
			values[i] = strings.Repeat(fmt.Sprint(i%10), 1024)
		}
		batch = batchOf(values...)
	}
	b.SetBytes(int64(len(batch)))
	b.ReportAllocs()
	b.ResetTimer()
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for c := range connections {
		frame := formatter.AppendRequest(nil, produceRequest(9, "t", int32(c), -1, batch), 1)
		wg.Go(func() { produceLoop(b, n.Addr, frame, inFlight, &left) })
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}

// BenchmarkDurableSingleRecords is one record of 100 bytes a request, acks=all, over 64 connections with one request in flight each.
func BenchmarkDurableSingleRecords(b *testing.B) { benchmarkProduce(b, 64, 1, 100) }

// BenchmarkLargeBatches is batches of records of 1 KB, acks=all, over 4 connections with 5 requests in flight each.
func BenchmarkLargeBatches(b *testing.B) {
	for _, size := range []int{64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) { benchmarkProduce(b, 4, 5, size) })
	}
}

// BenchmarkFetch reads 64 MB of batches of 64 KiB, 1 MiB at a time.
func BenchmarkFetch(b *testing.B) {
	n := onDisk(b, 1)
	var values []string
	for range 64 {
		values = append(values, strings.Repeat("x", 1000))
	}
	var left atomic.Int64
	left.Store(1000)
	produceLoop(b, n.Addr, formatter.AppendRequest(nil, produceRequest(9, "t", 0, -1, batchOf(values...)), 1), 5, &left)
	nc, err := net.Dial("tcp", n.Addr)
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	buf := make([]byte, 2<<20)
	total := 0
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		req := fetchRequest(12, "t", int64(i*16*64)%(900*64), 0)
		req.Topics[0].Partitions[0].PartitionMaxBytes = 1 << 20
		if _, err := nc.Write(formatter.AppendRequest(nil, req, 1)); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(nc, buf[:4]); err != nil {
			b.Fatal(err)
		}
		size := int(binary.BigEndian.Uint32(buf[:4]))
		if _, err := io.ReadFull(nc, buf[:size]); err != nil {
			b.Fatal(err)
		}
		total += size
	}
	b.SetBytes(int64(total / b.N))
}
