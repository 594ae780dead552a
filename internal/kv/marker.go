package kv

import (
	"strings"

	"github.com/leat-io/leat/internal/vfs"
)

// orderedMarkers is a file system on which Pebble's markers come after what they name, and go after what takes their place.
//
// A marker is an empty file whose name says which MANIFEST, or which format, counts. Pebble makes the new one, removes the old one and then
// syncs the folder, once. A file system that keeps entries of a folder in another order than they were made could so be left with a marker
// of a MANIFEST that is not there, or with no marker at all, which reads as an empty database.
type orderedMarkers struct{ vfs.FS }

const markerPrefix = "marker."

// Create implements vfs.FS.
func (o orderedMarkers) Create(name string, category vfs.WriteCategory) (vfs.File, error) {
	if !strings.HasPrefix(o.PathBase(name), markerPrefix) {
		return o.FS.Create(name, category)
	}
	dir := o.PathDir(name)
	if err := vfs.SyncDir(o.FS, dir); err != nil {
		return nil, err
	}
	f, err := o.FS.Create(name, category)
	if err != nil {
		return nil, err
	}
	if err := vfs.SyncDir(o.FS, dir); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Unwrap implements vfs.FS.
func (o orderedMarkers) Unwrap() vfs.FS { return o.FS }
