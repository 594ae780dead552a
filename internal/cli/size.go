package cli

import (
	"fmt"
	"strconv"
	"strings"
)

// size is a number of bytes on the command line: 64MB, 1GiB, 4096.
type size int64

func (s *size) String() string {
	n := int64(*s)
	for _, u := range []struct {
		name string
		size int64
	}{{"GB", 1 << 30}, {"MB", 1 << 20}, {"KB", 1 << 10}} {
		if n >= u.size && n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// Set reads a size; KB, MB and GB are powers of 1024, as KiB, MiB and GiB.
func (s *size) Set(v string) error {
	text := strings.ToUpper(strings.TrimSpace(v))
	factor := int64(1)
	for _, u := range []struct {
		suffix string
		factor int64
	}{{"KIB", 1 << 10}, {"MIB", 1 << 20}, {"GIB", 1 << 30}, {"TIB", 1 << 40}, {"KB", 1 << 10}, {"MB", 1 << 20}, {"GB", 1 << 30}, {"TB", 1 << 40}, {"B", 1}} {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			text, factor = strings.TrimSpace(rest), u.factor
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > (1<<62)/factor {
		return fmt.Errorf("%q is not a size such as 64MB or 1GB", v)
	}
	*s = size(n * factor)
	return nil
}

func (s *size) Type() string { return "size" }
