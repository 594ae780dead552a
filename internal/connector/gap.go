package connector

import "fmt"

// BeginAnew is the remedy for input that is not there any more.
const BeginAnew = "what is built on them has to be dropped and created again, and then begins with what is there"

// DeletedUnread is the error of a log that starts behind the position of its reader; where names the partition.
func DeletedUnread(where string, at, start int64) error {
	return fmt.Errorf("%s: retention has deleted records before they were read: the position is %d, the log starts at offset %d, so %d are missing; %s", where, at, start, start-at, BeginAnew)
}
