package cli

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The flags of this file know the values that make sense, so that a wrong one is refused in one place, on the command line as in a LEAT_ variable,
// with what was given and what is allowed.

// flagError says what was given and why it does not do.
func flagError(_ *cobra.Command, err error) error {
	var wrong *pflag.InvalidValueError
	if errors.As(err, &wrong) {
		err = fmt.Errorf("--%s %q: %w", wrong.GetFlag().Name, wrong.GetValue(), errors.Unwrap(wrong))
	}
	return &codeError{code: exitUsage, err: err}
}

type whole interface {
	~int | ~int16 | ~int32 | ~int64
}

// number is a flag that takes whole numbers from min to max.
type number[T whole] struct {
	value    *T
	min, max T
}

// numberFlag adds a flag with a default, which may lie outside of what can be given: it is then not shown, and the usage says what it is.
func numberFlag[T whole](f *pflag.FlagSet, p *T, name, short string, def, minimum, maximum T, usage string) *number[T] {
	*p = def
	n := &number[T]{value: p, min: minimum, max: maximum}
	f.VarP(n, name, short, usage)
	return n
}

func (n *number[T]) allowed(tooLarge bool) string {
	text := fmt.Sprintf("a whole number from %d to %d is needed", n.min, n.max)
	if n.max == maximumOf[T]() && !tooLarge {
		text = fmt.Sprintf("a whole number of at least %d is needed", n.min)
	}
	return text
}

// Set reads the flag.
func (n *number[T]) Set(v string) error {
	got, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
	given := T(got)
	if err != nil || int64(given) != got || given < n.min || given > n.max {
		return errors.New(n.allowed(got > int64(n.max)))
	}
	*n.value = given
	return nil
}

// String is empty for a default that cannot be given.
func (n *number[T]) String() string {
	if n.value == nil || *n.value < n.min {
		return ""
	}
	return strconv.FormatInt(int64(*n.value), 10)
}

// Type is how the usage names the value.
func (n *number[T]) Type() string { return "int" }

func maximumOf[T whole]() T {
	for bits := 63; ; bits /= 2 { // 63, 31, 15
		if most := int64(math.MaxInt64) >> (63 - bits); int64(T(most)) == most {
			return T(most)
		}
	}
}

// numbers is a flag that may be repeated, or have several numbers with commas between; none is below zero.
type numbers[T whole] struct{ list []T }

func numbersFlag[T whole](f *pflag.FlagSet, name, short, usage string) *numbers[T] {
	n := &numbers[T]{}
	f.VarP(n, name, short, usage)
	return n
}

// Set reads one occurrence of the flag.
func (n *numbers[T]) Set(v string) error {
	for part := range strings.SplitSeq(v, ",") {
		var one T
		if err := (&number[T]{value: &one, max: maximumOf[T]()}).Set(part); err != nil {
			return err
		}
		n.list = append(n.list, one)
	}
	return nil
}

// String is what has been given.
func (n *numbers[T]) String() string {
	if len(n.list) == 0 {
		return ""
	}
	return fmt.Sprint(n.list)
}

// Type is how the usage names the value.
func (n *numbers[T]) Type() string { return "ints" }

// span is a flag that takes lengths of time, and 0 if that has a meaning.
type span struct {
	value    *time.Duration
	min, max time.Duration
	zero     string // the meaning of 0; empty: it has none
}

func spanFlag(f *pflag.FlagSet, p *time.Duration, name string, def, minimum, maximum time.Duration, zero, usage string) {
	*p = def
	f.Var(&span{p, minimum, maximum, zero}, name, usage)
}

// Set reads the flag.
func (s *span) Set(v string) error {
	d, err := time.ParseDuration(strings.TrimSpace(v))
	if err != nil || (d < s.min || d > s.max) && (s.zero == "" || d != 0) {
		text := fmt.Sprintf("a length of time from %v to %v is needed, such as 90s or 1h30m", s.min, s.max)
		if s.zero != "" {
			text += ", or 0: " + s.zero
		}
		return errors.New(text)
	}
	*s.value = d
	return nil
}

// String is the value.
func (s *span) String() string {
	if s.value == nil || *s.value == 0 {
		return "0"
	}
	return s.value.String()
}

// Type is how the usage names the value.
func (s *span) Type() string { return "duration" }

// words is a flag that may be repeated, or have several words with commas between, out of those that are known in any case of letters.
type words struct{ list, known []string }

func wordsFlag(cmd *cobra.Command, name string, known []string, usage string) *words {
	w := &words{known: known}
	cmd.Flags().Var(w, name, usage+" ("+strings.Join(known, ", ")+"); may be repeated")
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(known, cobra.ShellCompDirectiveNoFileComp))
	return w
}

// Set reads one occurrence of the flag.
func (w *words) Set(v string) error {
	for part := range strings.SplitSeq(v, ",") {
		i := slices.IndexFunc(w.known, func(k string) bool { return strings.EqualFold(k, strings.TrimSpace(part)) })
		if i < 0 {
			return fmt.Errorf("%s are known", strings.Join(w.known, ", "))
		}
		w.list = append(w.list, w.known[i])
	}
	return nil
}

// String is what has been given.
func (w *words) String() string { return strings.Join(w.list, ",") }

// Type is how the usage names the value.
func (w *words) Type() string { return "strings" }

// listenAddress is a flag that takes an address to listen on. It has a port, and so is never one that nobody meant: without an address Go would listen
// on any free port of all of the machine's addresses.
type listenAddress struct{ value *string }

func listenFlag(f *pflag.FlagSet, p *string, name, def, usage string) {
	*p = def
	f.Var(&listenAddress{p}, name, usage)
}

// Set reads the flag.
func (a *listenAddress) Set(v string) error {
	_, port, err := net.SplitHostPort(v)
	if err == nil {
		if _, err = strconv.ParseUint(port, 10, 16); err != nil {
			_, err = net.LookupPort("tcp", port)
		}
	}
	if err != nil || port == "" {
		return errors.New("an address and a port from 0 to 65535 are needed, such as 127.0.0.1:9092 or 0.0.0.0:9092 (all of the machine's addresses); port 0 picks a free one")
	}
	*a.value = v
	return nil
}

// String is the value.
func (a *listenAddress) String() string {
	if a.value == nil {
		return ""
	}
	return *a.value
}

// Type is how the usage names the value.
func (a *listenAddress) Type() string { return "address" }

// memoryFlag is a size that the machine's memory bounds.
type memoryFlag struct{ size }

const leastStateMemory = 1 << 20

// Set reads the flag.
func (m *memoryFlag) Set(v string) error {
	var given size
	most := machineMemory()
	if err := given.Set(v); err != nil || given < leastStateMemory || given > most {
		rounded := size(int64(most) >> 20 << 20) // the machine's, to the MB
		return fmt.Errorf("a size from 1MB to %s is needed, such as 64MB or 1GB: what does not fit stays on disk, and more than the machine has makes it no faster", rounded.String())
	}
	m.size = given
	return nil
}

// machineMemory is how much memory the machine has; where the system does not say, more than any has.
func machineMemory() size {
	info, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 1 << 50
	}
	for line := range bytes.Lines(info) {
		var kb int64
		if n, _ := fmt.Sscanf(string(line), "MemTotal: %d kB", &kb); n == 1 && kb > 0 && kb < 1<<50 {
			return size(kb << 10)
		}
	}
	return 1 << 50
}

// boundedSize is a size that is at least so much.
type boundedSize struct {
	size
	min size
}

// Set reads the flag.
func (b *boundedSize) Set(v string) error {
	var given size
	if err := given.Set(v); err != nil || given < b.min {
		return fmt.Errorf("a size of at least %s is needed, such as 64MB or 1GB", b.min.String())
	}
	b.size = given
	return nil
}
