package kv_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leat-io/leat/internal/kv"
	"github.com/leat-io/leat/internal/vfs"
)

// TestFullDisk checks that a flush waits for room, that Interrupt ends the wait without a claim to be durable, and that the database is then as after a crash.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := vfs.NewFaults(vfs.NewMem())
	open := func() *kv.DB {
		t.Helper()
		db, err := kv.Open(kv.Options{FS: disk, Dir: "/db"})
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	put := func(db *kv.DB, key string) {
		t.Helper()
		b := db.NewBatch()
		b.Set(1, []byte(key), nil, []byte("v"))
		if err := b.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	flush := func(db *kv.DB) chan error {
		done := make(chan error, 1)
		go func() { done <- db.Flush() }()
		return done
	}
	result := func(done chan error) error {
		t.Helper()
		select {
		case err := <-done:
			return err
		case <-time.After(time.Minute):
			t.Fatal("the flush does not end")
			return nil
		}
	}
	db := open()
	put(db, "a")
	disk.Fill(true)
	done := flush(db)
	disk.Fill(false)
	if err := result(done); err != nil {
		t.Fatalf("with room again: %v", err)
	}
	put(db, "b")
	disk.Fill(true)
	done = flush(db)
	db.Interrupt()
	if err := result(done); !errors.Is(err, kv.ErrNoRoom) {
		t.Errorf("interrupted: %v, want ErrNoRoom", err)
	}
	disk.Fill(false)
	put(db, "c") // its files are frozen: it must not look durable
	if err := result(flush(db)); !errors.Is(err, kv.ErrNoRoom) {
		t.Errorf("a flush after that: %v, want ErrNoRoom", err)
	}
	if err := db.Close(); err != nil && !errors.Is(err, kv.ErrNoRoom) {
		t.Error(err)
	}
	db = open()
	defer db.Close()
	for key, want := range map[string]bool{"a": true, "b": false, "c": false} {
		if _, ok, err := db.Get(1, []byte(key), nil); err != nil || ok != want {
			t.Errorf("%s: %v, %v, want %v", key, ok, err, want)
		}
	}
}
