package decimal_test

import (
	"bufio"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/leat-io/leat/internal/decimal"
	"github.com/leat-io/leat/internal/pgerr"
)

// TestEqualsPostgres compares arithmetic, functions and casts with what PostgreSQL 15 answered.
func TestEqualsPostgres(t *testing.T) {
	t.Parallel()
	f, err := os.Open("testdata/numeric.golden")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	fails := map[string]int{}
	for sc.Scan() {
		row := strings.Split(sc.Text(), "\t")
		op, want := row[0], row[3]
		got := answer(t, op, row[1], row[2])
		if got != want {
			if fails[op]++; fails[op] <= 5 {
				t.Errorf("%s(%s, %s)\n got %s\nwant %s", op, row[1], row[2], got, want)
			}
		}
	}
	for op, n := range fails {
		t.Errorf("%s: %d wrong", op, n)
	}
}

func answer(t *testing.T, op, x, y string) string {
	t.Helper()
	switch op {
	case "fromfloat8":
		f, _ := strconv.ParseFloat(x, 64)
		return decimal.FromFloat64(f).String()
	case "fromfloat4":
		f, _ := strconv.ParseFloat(x, 32)
		return decimal.FromFloat32(float32(f)).String()
	}
	a, err := decimal.Parse(x)
	if err != nil {
		t.Fatal(err)
	}
	b, err := decimal.ParseBytes([]byte(y))
	if err != nil {
		t.Fatal(err)
	}
	var r decimal.Decimal
	switch op {
	case "+":
		r, err = a.Add(b)
	case "-":
		r, err = a.Sub(b)
	case "*":
		r, err = a.Mul(b)
	case "/":
		r, err = a.Div(b)
	case "%":
		r, err = a.Mod(b)
	case "div":
		r, err = a.QuoTrunc(b)
	case "<":
		return strconv.FormatBool(a.Cmp(b) < 0)
	case "=":
		if a.Equal(b) && a.Hash() != b.Hash() {
			t.Errorf("%s and %s are equal and hash differently", a, b)
		}
		return strconv.FormatBool(a.Equal(b))
	case "round":
		n, _ := b.ToInt64()
		r, err = a.Round(int(n))
	case "trunc":
		n, _ := b.ToInt64()
		r, err = a.Trunc(int(n))
	case "ceil":
		r, err = a.Ceil()
	case "floor":
		r, err = a.Floor()
	case "sqrt":
		r, err = a.Sqrt()
	case "exp":
		r, err = a.Exp()
	case "ln":
		r, err = a.Ln()
	case "log10":
		r, err = a.Log10()
	case "log":
		r, err = b.Log(a)
	case "power":
		r, err = a.Power(b)
	case "abs":
		r = a.Abs()
	case "sign":
		if a.IsNaN() {
			return "NaN"
		}
		r = decimal.FromInt64(int64(a.Sign()))
	case "trim_scale":
		r = a.Reduce()
	case "float8":
		f, ferr := a.Float64()
		if err = ferr; err == nil {
			switch {
			case math.IsNaN(f):
				return "NaN"
			case math.IsInf(f, 0):
				return strings.Replace(strings.TrimPrefix(strconv.FormatFloat(f, 'g', -1, 64), "+"), "Inf", "Infinity", 1)
			case math.Abs(f) >= 1e15 || math.Abs(f) < 1e-4 && f != 0:
				return strconv.FormatFloat(f, 'e', -1, 64)
			}
			return strconv.FormatFloat(f, 'f', -1, 64)
		}
	case "int8":
		n, nerr := a.ToInt64()
		r, err = decimal.FromInt64(n), nerr
	case "int4":
		n, nerr := a.ToInt32()
		r, err = decimal.FromInt64(int64(n)), nerr
	default:
		t.Fatalf("unknown operation %s", op)
	}
	if err != nil {
		e := pgerr.From(err)
		return "ERROR " + e.Code + " " + e.Message
	}
	return r.String()
}
