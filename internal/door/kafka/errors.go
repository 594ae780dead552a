package kafka

import (
	"context"
	"errors"

	"github.com/leat-io/leat/internal/broker"
	"github.com/leat-io/leat/internal/broker/group"
	"github.com/leat-io/leat/internal/journal"
	"github.com/twmb/franz-go/pkg/kerr"
)

// codes says which of the protocol's codes stands for an error of the broker; the first that fits is taken.
var codes = []struct {
	err  error
	code int16
}{
	{broker.ErrUnknownTopic, kerr.UnknownTopicOrPartition.Code},
	{broker.ErrTopicExists, kerr.TopicAlreadyExists.Code},
	{broker.ErrInvalidTopic, kerr.InvalidTopicException.Code},
	{broker.ErrInvalidConfig, kerr.InvalidConfig.Code},
	{broker.ErrTopicInUse, kerr.PolicyViolation.Code},
	{broker.ErrPolicy, kerr.PolicyViolation.Code},
	{broker.ErrPartitionCount, kerr.InvalidPartitions.Code},
	{broker.ErrStorage, kerr.KafkaStorageError.Code},
	{broker.ErrDamaged, kerr.KafkaStorageError.Code},
	{broker.ErrCorruptBatch, kerr.CorruptMessage.Code},
	{broker.ErrOldFormat, kerr.UnsupportedForMessageFormat.Code},
	{broker.ErrTooLarge, kerr.MessageTooLarge.Code},
	{broker.ErrInvalidTimestamp, kerr.InvalidTimestamp.Code},
	{broker.ErrInvalidBatch, kerr.InvalidRecord.Code},
	{broker.ErrTransactional, kerr.TransactionalIDAuthorizationFailed.Code}, // as Kafka answers to a request without the id
	{broker.ErrNotInTransaction, kerr.InvalidTxnState.Code},
	{broker.ErrUnknownProducer, kerr.InvalidProducerIDMapping.Code},
	{broker.ErrTableTransaction, kerr.InvalidTopicException.Code},
	{broker.ErrTooManyOffsets, kerr.InvalidCommitOffsetSize.Code},
	{broker.ErrInvalidTransactionalID, kerr.InvalidRequest.Code},
	{broker.ErrTooManyTransactions, kerr.PolicyViolation.Code},
	{broker.ErrTransactionState, kerr.InvalidTxnState.Code},
	{broker.ErrFenced, kerr.InvalidProducerEpoch.Code},
	{broker.ErrSequenceGap, kerr.OutOfOrderSequenceNumber.Code},
	{broker.ErrDuplicateSequence, kerr.DuplicateSequenceNumber.Code},
	{broker.ErrOffsetOutOfRange, kerr.OffsetOutOfRange.Code},
	{broker.ErrInvalidGroup, kerr.InvalidGroupID.Code},
	{broker.ErrUnknownGroup, kerr.GroupIDNotFound.Code},
	{broker.ErrGroupNotEmpty, kerr.NonEmptyGroup.Code},
	{broker.ErrTooManyGroups, kerr.GroupMaxSizeReached.Code},
	{broker.ErrStopping, kerr.CoordinatorNotAvailable.Code},
	{broker.ErrClosed, kerr.NotLeaderForPartition.Code},
	{journal.ErrNoSpace, kerr.KafkaStorageError.Code},
	{journal.ErrTooLarge, kerr.MessageTooLarge.Code},
	{journal.ErrClosed, kerr.NotLeaderForPartition.Code},
	{context.Canceled, kerr.RequestTimedOut.Code},
	{context.DeadlineExceeded, kerr.RequestTimedOut.Code},
}

// code translates an error of the broker.
func code(err error) int16 {
	if err == nil {
		return 0
	}
	var records *broker.InvalidRecordsError
	if errors.As(err, &records) {
		return kerr.InvalidRecord.Code
	}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	return kerr.UnknownServerError.Code
}

// groupCode is the code of a group's answer, or of why there is none.
func groupCode(c group.Code, err error) int16 {
	switch {
	case errors.Is(err, context.Canceled): // the node is stopping
		return kerr.CoordinatorNotAvailable.Code
	case err != nil:
		return code(err)
	}
	return int16(c)
}

// explain is what goes with a code, where the protocol has room for it.
func explain(err error) *string {
	if err == nil {
		return nil
	}
	s := err.Error()
	return &s
}
