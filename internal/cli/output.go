package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// output is the --output flag, and how every command shows what it found: the same structs as tables for people and as JSON for programs. A list
// is a slice of structs: a table, or one JSON array. What is described is a struct: its plain fields as lines of name and value, its slices of
// structs as tables, or one JSON object on a line. Names come from the json tags; a tag col:"-" keeps a field out of tables, col:"X" renames it;
// a column tagged empty:"hide" is left out when it has nothing.
type output struct {
	json      bool
	described bool // something has been: what comes next is set apart
}

// outputFlag adds --output.
func outputFlag(cmd *cobra.Command) *output {
	o := &output{}
	cmd.Flags().Var(o, "output", "table, for people, or json, for programs")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return o
}

func (o *output) String() string {
	if o.json {
		return "json"
	}
	return "table"
}

// Set reads the flag.
func (o *output) Set(v string) error {
	switch v {
	case "table", "json":
		o.json = v == "json"
		return nil
	}
	return fmt.Errorf("table and json are known")
}

func (o *output) Type() string { return "format" }

// list shows rows, a slice of structs.
func (o *output) list(w io.Writer, rows any) error {
	if o.json {
		return writeJSON(w, rows)
	}
	b := bufio.NewWriter(w)
	writeTable(b, reflect.ValueOf(rows))
	return b.Flush()
}

// describe shows one struct. Several in a row are apart by an empty line, or are a line of JSON each.
func (o *output) describe(w io.Writer, what any) error {
	if o.json {
		return writeJSON(w, what)
	}
	b := bufio.NewWriter(w)
	if o.described {
		fmt.Fprintln(b)
	}
	o.described = true
	writeFields(b, reflect.Indirect(reflect.ValueOf(what)))
	return b.Flush()
}

// writeJSON writes one line. An empty list is [], not null.
func writeJSON(w io.Writer, v any) error {
	if r := reflect.ValueOf(v); r.Kind() == reflect.Slice && r.IsNil() {
		v = []int{}
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func quoteJSON(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(b)
}

// column is a field that is shown.
type column struct {
	index int
	name  string // as in JSON: words joined by _
	title string // in a table
	right bool   // numbers are aligned to the right
	hide  bool   // when it is empty
}

func columns(t reflect.Type) []column {
	var out []column
	for i := range t.NumField() {
		f := t.Field(i)
		title := f.Tag.Get("col")
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || title == "-" || isTable(f.Type) {
			continue
		}
		if title == "" {
			title = strings.ToUpper(strings.ReplaceAll(name, "_", "-"))
		}
		out = append(out, column{i, name, title, isNumeric(f.Type), f.Tag.Get("empty") == "hide"})
	}
	return out
}

func isTable(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct
}

func isNumeric(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint64, reflect.Float64:
		return true
	}
	return false
}

// writeTable writes a slice of structs, its header first.
func writeTable(w *bufio.Writer, rows reflect.Value) {
	cols := slices.DeleteFunc(columns(rows.Type().Elem()), func(c column) bool {
		for i := range rows.Len() {
			if cell(rows.Index(i).Field(c.index)) != "-" {
				return false
			}
		}
		return c.hide
	})
	lines := make([][]string, 1, rows.Len()+1)
	for _, c := range cols {
		lines[0] = append(lines[0], c.title)
	}
	for i := range rows.Len() {
		line := make([]string, len(cols))
		for k, c := range cols {
			line[k] = cell(rows.Index(i).Field(c.index))
		}
		lines = append(lines, line)
	}
	align(w, lines, func(i int) bool { return cols[i].right })
}

// align pads the cells of each column to the same width.
func align(w *bufio.Writer, lines [][]string, right func(column int) bool) {
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, c := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	for _, line := range lines {
		for i, c := range line {
			pad := widths[i] - utf8.RuneCountInString(c)
			if i > 0 {
				_, _ = w.WriteString("  ")
			}
			if right(i) {
				writeSpaces(w, pad)
			}
			_, _ = w.WriteString(c)
			if !right(i) && i < len(line)-1 {
				writeSpaces(w, pad)
			}
		}
		_ = w.WriteByte('\n')
	}
}

func writeSpaces(w *bufio.Writer, n int) {
	for range n {
		_ = w.WriteByte(' ')
	}
}

// writeFields writes a struct: a line for each plain field, then its tables.
func writeFields(w *bufio.Writer, v reflect.Value) {
	var lines [][]string
	for _, c := range columns(v.Type()) {
		lines = append(lines, []string{c.title, cell(v.Field(c.index))})
	}
	if len(lines) > 0 {
		align(w, lines, func(int) bool { return false })
	}
	for i := range v.NumField() {
		if f := v.Field(i); isTable(f.Type()) && f.Len() > 0 && v.Type().Field(i).Tag.Get("col") != "-" {
			_ = w.WriteByte('\n')
			writeTable(w, f)
		}
	}
}

// cell is a value in a table: "-" where there is none, and nothing that a terminal would take for a command.
func cell(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return "-"
		}
		v = v.Elem()
	}
	switch x := v.Interface().(type) {
	case time.Time:
		if x.IsZero() {
			return "-"
		}
		return x.Local().Format(time.RFC3339)
	case fmt.Stringer:
		return printable(x.String())
	case []string:
		if len(x) == 0 {
			return "-"
		}
		return printable(strings.Join(x, ","))
	case float64:
		return strconv.FormatFloat(x, 'f', -1, 64)
	case string:
		if x == "" {
			return "-"
		}
		return printable(x)
	}
	return fmt.Sprint(v.Interface())
}

// printable escapes what is not.
func printable(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }) < 0 {
		return s
	}
	q := strconv.Quote(s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

// byteCount is a number of bytes: 1.5 MB for people, a number for programs. The units are powers of 1024, as those of sizes on the command line.
type byteCount int64

func (n byteCount) String() string {
	x := float64(n)
	for _, unit := range []string{"B", "KB", "MB", "GB"} {
		if math.Abs(x) < 1024 {
			if unit == "B" {
				return strconv.FormatInt(int64(n), 10) + " B"
			}
			return strconv.FormatFloat(x, 'f', 1, 64) + " " + unit
		}
		x /= 1024
	}
	return strconv.FormatFloat(x, 'f', 1, 64) + " TB"
}

// seconds is a length of time: 2h3m for people, a number for programs.
type seconds float64

func (s seconds) String() string {
	d := time.Duration(float64(s) * float64(time.Second))
	switch abs := d.Abs(); {
	case abs >= 48*time.Hour:
		return fmt.Sprintf("%dd%dh", int64(d/(24*time.Hour)), int64(abs%(24*time.Hour)/time.Hour))
	case abs >= time.Hour:
		return fmt.Sprintf("%dh%dm", int64(d/time.Hour), int64(abs%time.Hour/time.Minute))
	case abs >= time.Minute:
		return d.Round(time.Second).String()
	case abs >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}
