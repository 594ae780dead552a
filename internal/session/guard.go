package session

import (
	"errors"
	"fmt"

	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/connector/jsonrow"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/record"
)

// guardTopic has the records that Kafka clients produce into a table's topic checked: they are upserts, and nothing invalid enters.
func (e *Engine) guardTopic(r *catalog.Relation) error {
	if r.Kind != catalog.Table && !r.HasChangelog() {
		return nil
	}
	topic, ok := e.o.Broker.Topic(r.Topic)
	if !ok {
		return fmt.Errorf("the topic %q of %s %s is gone", r.Topic, r.Kind, r.QualifiedName())
	}
	if r.HasChangelog() {
		topic.SetRecordCheck(func(int32, *record.Record) string {
			return "the topic is the changelog of sink \"" + r.Name + "\", and only that writes to it"
		})
		return nil
	}
	topic.SetRecordCheck(func(_ int32, rec *record.Record) string {
		// Decoders are made anew for each record: clients that write to tables are few, and may do so from many connections.
		if err := checkRecord(r, rec); err != nil {
			return err.Error()
		}
		return ""
	})
	return nil
}

func checkRecord(r *catalog.Relation, rec *record.Record) error {
	if rec.Key == nil {
		return fmt.Errorf("a record of table %q needs its key: a JSON object of the key columns", r.Name)
	}
	var keyNames []string
	var keyTypes []column.Type
	for _, k := range r.PrimaryKey {
		keyNames, keyTypes = append(keyNames, r.Columns[k].Name), append(keyTypes, r.Columns[k].Type)
	}
	key := column.NewBatch(keyTypes, 1)
	if err := jsonrow.NewTableDecoder(keyNames, keyTypes).Decode(rec.Key, key.Cols); err != nil {
		return fmt.Errorf("key: %w", err)
	}
	for i, v := range key.Cols {
		if v.IsNull(0) {
			return fmt.Errorf("key: column %q is missing or null", keyNames[i])
		}
	}
	if rec.Value == nil {
		return nil // a deletion
	}
	names, types := make([]string, len(r.Columns)), relationTypes(r)
	for i := range r.Columns {
		names[i] = r.Columns[i].Name
	}
	row := column.NewBatch(types, 1)
	if err := jsonrow.NewTableDecoder(names, types).Decode(rec.Value, row.Cols); err != nil {
		return fmt.Errorf("value: %w", err)
	}
	row.Len = 1
	for i, k := range r.PrimaryKey {
		if !row.Cols[k].Equal(0, key.Cols[i], 0) {
			return fmt.Errorf("column %q differs between key and value", r.Columns[k].Name)
		}
	}
	for i := range r.Columns {
		c := &r.Columns[i]
		if c.NotNull && row.Cols[i].IsNull(0) {
			return fmt.Errorf("column %q is NOT NULL", c.Name)
		}
		if c.Generated != nil {
			if err := checkGenerated(c, types, row, i); err != nil {
				return err
			}
		}
	}
	for _, c := range r.Checks {
		p, err := expr.Compile(c.Expr, types)
		if err != nil {
			return err
		}
		v, err := p.Eval(&expr.Context{}, row)
		if err != nil {
			return err
		}
		if !v.IsNull(0) && !v.Bools[0] {
			return fmt.Errorf("check constraint %q is violated", c.Name)
		}
	}
	return nil
}

// checkGenerated refuses a record whose generated column is not what its expression gives.
func checkGenerated(c *catalog.Column, types []column.Type, row *column.Batch, i int) error {
	p, err := expr.Compile(c.Generated, types)
	if err != nil {
		return err
	}
	v, err := p.Eval(&expr.Context{}, row)
	if err != nil {
		return err
	}
	if !v.Equal(0, row.Cols[i], 0) {
		return errors.New("column \"" + c.Name + "\" is generated and has another value")
	}
	return nil
}
