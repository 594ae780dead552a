package node

import (
	"fmt"
	"strings"

	"github.com/leat-io/leat/internal/journal"
	"github.com/leat-io/leat/internal/kv"
	"github.com/leat-io/leat/internal/vfs"
)

// The parts of a data folder.
const (
	formatFile    = "FORMAT"
	databaseDir   = "db"
	spillDir      = "spill"
	journalDir    = "journal"
	partitionsDir = "topics"
)

const restore = "no record was touched; restore the whole folder from a copy that was made while the server was stopped"

// checkFormat refuses a folder of a version that this binary does not know, and marks a new one. The mark is the first thing that a new folder gets.
func checkFormat(f vfs.FS, dir string) error {
	have, err := vfs.ReadFile(f, f.PathJoin(dir, formatFile), 1<<10)
	switch {
	case err == nil:
		if got := strings.TrimSpace(string(have)); got != formatVersion {
			return fmt.Errorf("the data folder %s has format %q; this binary knows %q: use the version of leat that wrote it", dir, got, formatVersion)
		}
		if there(f, dir, journalDir) && !there(f, dir, databaseDir) { // of a new folder's parts the database is the first
			return fmt.Errorf("the data folder %s is not whole: it has a %s folder and no %s folder: %s", dir, journalDir, databaseDir, restore)
		}
		return nil
	case !vfs.NotExist(err):
		return fmt.Errorf("data folder: %w", err)
	}
	for _, part := range []string{databaseDir, journalDir, partitionsDir} {
		if there(f, dir, part) {
			return fmt.Errorf("the data folder %s has a %s folder, and no file %s that says which version wrote it: %s", dir, part, formatFile, restore)
		}
	}
	return vfs.WriteFile(f, dir, formatFile, []byte(formatVersion+"\n"))
}

func there(f vfs.FS, dir, part string) bool {
	_, err := f.Stat(f.PathJoin(dir, part))
	return err == nil
}

// checkDatabase refuses a database that lacks what the journal has recycled. It is asked before the journal is replayed into it.
func checkDatabase(db *kv.DB, j *journal.Journal, dir string) error {
	want := j.Checkpointed()
	if want <= 1 {
		return nil // all there ever was is in the journal
	}
	have, err := db.Checkpoint()
	if err != nil {
		return err
	}
	if have == 0 && db.Mark(journal.KindMeta) > 0 {
		return nil // written before databases noted checkpoints
	}
	if have < want {
		return fmt.Errorf("the data folder %s is not whole: its database (%s) reaches to %d, and its journal begins at %d: %s", dir, databaseDir, have, want, restore)
	}
	return nil
}

// checkJournal refuses a journal that ends before what the database has had from it, and partition files that neither knows of: what comes next
// would cut or remove files that hold acknowledged records. It is asked when the journal has been replayed.
func checkJournal(f vfs.FS, db *kv.DB, j *journal.Journal, dir string) error {
	end := j.Durable()
	had, err := db.Checkpoint()
	if err != nil {
		return err
	}
	had = max(had, 1) - 1 // a checkpoint is of all before it
	for kind := journal.KindMeta; kind <= journal.KindState; kind++ {
		had = max(had, db.Mark(kind))
	}
	if end < had {
		return fmt.Errorf("the data folder %s is not whole: its journal ends at %d, and its database (%s) holds what came up to %d: %s", dir, end, databaseDir, had, restore)
	}
	if end > 0 {
		return nil
	}
	names, err := f.List(f.PathJoin(dir, partitionsDir))
	if err != nil && !vfs.NotExist(err) {
		return fmt.Errorf("data folder: %w", err)
	}
	partitions := 0
	for _, name := range names {
		if st, err := f.Stat(f.PathJoin(dir, partitionsDir, name)); err == nil && st.IsDir() {
			partitions++
		}
	}
	if partitions > 0 {
		return fmt.Errorf("the data folder %s is not whole: its %s folder has files of %d partitions, and journal and database know of none: %s", dir, partitionsDir, partitions, restore)
	}
	return nil
}
