package broker

import (
	"errors"
	"fmt"
)

// Errors that a door translates into its protocol's codes. Each is wrapped with the name of what it is about.
var (
	ErrUnknownTopic     = errors.New("no such topic or partition")
	ErrTopicExists      = errors.New("a topic of this name exists")
	ErrInvalidTopic     = errors.New("not a valid topic name")
	ErrInvalidConfig    = errors.New("not a valid setting")
	ErrTopicInUse       = errors.New("the topic is in use")
	ErrPolicy           = errors.New("the topic's cleanup.policy does not allow it")
	ErrPartitionCount   = errors.New("not a valid number of partitions")
	ErrStorage          = errors.New("the disk is nearly full: free some space, or lower retention; writing resumes by itself")
	ErrDamaged          = errors.New("the partition's files are damaged")
	ErrCorruptBatch     = errors.New("the record batch is damaged")
	ErrOldFormat        = errors.New("record batches before format 2 are not taken: use a client of Kafka 0.11 or later")
	ErrTooLarge         = errors.New("the record batch is larger than max.message.bytes")
	ErrInvalidTimestamp = errors.New("the timestamp is too far from now")
	ErrInvalidBatch     = errors.New("not a valid record batch")
	ErrTransactional    = errors.New("a transactional batch needs a request with its transactional id")
	ErrTransactionState = errors.New("the producer's transaction is in another state")
	ErrNotInTransaction = errors.New("the partition is not part of the producer's transaction")
	ErrUnknownProducer  = errors.New("the transactional id is not that of this producer: the producer must be initialised anew")
	ErrTableTransaction = errors.New("transactions cannot write to the topic of a table: use SQL, or produce without transactional.id")
	ErrTooManyOffsets   = errors.New("the transaction commits too many offsets")

	ErrInvalidTransactionalID = errors.New("not a valid transactional id")
	ErrTooManyTransactions    = errors.New("the node has too many transactional ids")
	ErrFenced                 = errors.New("a newer epoch of this producer has written")
	ErrSequenceGap            = errors.New("the batch is out of sequence")
	ErrDuplicateSequence      = errors.New("the batch repeats one that is too old to be remembered")
	ErrOffsetOutOfRange       = errors.New("offset out of range")
	ErrClosed                 = errors.New("the broker is closed")
)

// RecordError names one record of a batch that was refused.
type RecordError struct {
	Index   int32
	Message string
}

// InvalidRecordsError is a batch refused for some of its records; nothing of it was written.
type InvalidRecordsError struct {
	Records []RecordError
}

func (e *InvalidRecordsError) Error() string {
	if len(e.Records) == 0 {
		return "invalid record"
	}
	return fmt.Sprintf("record %d of the batch: %s", e.Records[0].Index, e.Records[0].Message)
}
