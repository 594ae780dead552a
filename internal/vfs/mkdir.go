package vfs

// MkdirAll makes the folder and those above it that are missing, and makes each durable in the folder that has it: a file
// is only as durable as the path to it.
func MkdirAll(fs FS, dir string) error {
	if _, err := fs.Stat(dir); err == nil || !NotExist(err) {
		return err
	}
	parent := fs.PathDir(dir)
	if parent != dir {
		if err := MkdirAll(fs, parent); err != nil {
			return err
		}
	}
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if parent == dir {
		return nil
	}
	return SyncDir(fs, parent)
}
