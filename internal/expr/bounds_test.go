package expr

import (
	"strings"
	"testing"
)

// TestSmallArgumentsMakeNoGiants calls what can make a value far larger than its arguments are together: it ends with an error, soon.
func TestSmallArgumentsMakeNoGiants(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"repeat('x', 1000000000)",
		"lpad('', 1000000000, 'x')",
		"format('%1000000000s', '')",
		"format(repeat('%1$s', 10000), repeat('x', 1000000))",
		"format(repeat('%1$L', 10000), repeat('''', 1000000))",
		"replace(repeat('x', 30000), 'x', repeat('y', 100000))",
		"regexp_replace(repeat('x', 30000), 'x', repeat('y', 100000), 'g')",
		"array_to_string(string_to_array(repeat('x,', 100000), ','), repeat('y', 1000000))",
		"array_to_string(string_to_array(repeat('x,', 100000), ',', 'x'), ',', repeat('y', 1000000))",
	} {
		if got := evaluate(text, asWritten); !strings.HasPrefix(got, "ERROR 54000|") {
			t.Errorf("%s: %.100s", text, got)
		}
	}
}
