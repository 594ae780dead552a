package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/leat-io/leat/internal/broker"
)

// brokerConfigs is a flag of settings, name=value.
type brokerConfigs struct {
	o     *broker.Options
	given []string
}

// Set reads one occurrence of the flag.
func (b *brokerConfigs) Set(v string) error {
	for part := range strings.SplitSeq(v, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok {
			return fmt.Errorf("%q is not of the form name=value", part)
		}
		if err := b.o.SetNodeConfig(name, value); err != nil {
			return errors.New(strings.TrimPrefix(err.Error(), broker.ErrInvalidConfig.Error()+": "))
		}
		b.given = append(b.given, name+"="+value)
	}
	return nil
}

// String is what has been given.
func (b *brokerConfigs) String() string { return strings.Join(b.given, ",") }

// Type is how the usage names the value.
func (b *brokerConfigs) Type() string { return "name=value" }
