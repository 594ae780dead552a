package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/leat-io/leat/internal/sql/parse"
)

func sqlCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "sql", Short: "Run SQL on a server", Args: cobra.NoArgs,
		Long: "Runs the statements of -c, of the file of -f, or of standard input, and prints their results. The first error ends it.\n" +
			"As with psql, the statements of one -c are one transaction, in which an error takes back those before it; those of a file\n" +
			"or of standard input stand each for itself, unless the text has BEGIN and COMMIT. For an interactive shell use psql.",
	}
	addr := cmd.Flags().String("postgres", "127.0.0.1:4566", "address of the PostgreSQL door")
	commands := cmd.Flags().StringArrayP("command", "c", nil, "statements to run; may be repeated")
	file := cmd.Flags().StringP("file", "f", "", "file of statements to run; - is standard input")
	format := cmd.Flags().String("output", "table", "table, csv (without header) or json (an object a row)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if len(*commands) > 0 && *file != "" {
			return usage("-c and -f exclude each other: each says what to run")
		}
		print, ok := printers[*format]
		if !ok {
			return usage("--output %q: table, csv and json are known", *format)
		}
		conn, err := connectSQL(cmd.Context(), *addr)
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(cmd.Context()))
		r := &sqlRunner{conn: conn, out: cmd.OutOrStdout(), print: print}
		switch {
		case len(*commands) > 0:
			for _, text := range *commands {
				if err := r.run(cmd.Context(), "", text); err != nil {
					return err
				}
			}
			return nil
		case *file != "" && *file != "-":
			text, err := os.ReadFile(*file)
			if err != nil {
				return err
			}
			return r.script(cmd.Context(), string(text))
		}
		if f, ok := cmd.InOrStdin().(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			fmt.Fprintf(cmd.ErrOrStderr(), "Type statements, each ended by ;. Ctrl-D ends. (psql -h 127.0.0.1 -p PORT is more comfortable.)\n")
			return r.interactive(cmd.Context(), f, cmd.ErrOrStderr())
		}
		text, err := io.ReadAll(cmd.InOrStdin())
		if err != nil {
			return err
		}
		return r.script(cmd.Context(), string(text))
	}
	return cmd
}

func connectSQL(ctx context.Context, addr string) (*pgconn.PgConn, error) {
	if err := checkAddress(addr, true); err != nil {
		return nil, usage("--postgres %w", err)
	}
	c, err := pgconn.ParseConfig("postgres://leat@" + addr + "/leat?sslmode=disable&application_name=leat")
	if err != nil {
		return nil, usage("--postgres %q: %w", addr, err)
	}
	c.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { fmt.Fprintf(os.Stderr, "%s:  %s\n", n.Severity, n.Message) }
	conn, err := pgconn.ConnectConfig(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("no PostgreSQL door answers at %s (is `leat server` running? --postgres names another): %w", addr, err)
	}
	return conn, nil
}

type sqlRunner struct {
	conn  *pgconn.PgConn
	out   io.Writer
	print func(w *bufio.Writer, r *pgconn.Result)
}

// script runs the statements of a text one by one.
func (r *sqlRunner) script(ctx context.Context, text string) error {
	pieces, rest, _ := parse.Split(text)
	for at, piece := 0, ""; at < len(text); at += len(piece) {
		if piece = rest; len(pieces) > 0 {
			piece, pieces = pieces[0], pieces[1:]
		}
		if err := r.run(ctx, text[:at], piece); err != nil {
			return err
		}
	}
	return nil
}

// run sends a message of statements and prints what they give. before is what comes before them in the user's text, where errors are to point to.
func (r *sqlRunner) run(ctx context.Context, before, text string) error {
	results := r.conn.Exec(ctx, text)
	w := bufio.NewWriter(r.out)
	for results.NextResult() {
		res := results.ResultReader().Read()
		if res.Err == nil {
			r.print(w, res)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return sqlError(results.Close(), before, text)
}

// interactive runs statements as they are completed.
func (r *sqlRunner) interactive(ctx context.Context, in io.Reader, prompt io.Writer) error {
	lines := bufio.NewScanner(in)
	var text strings.Builder
	for fmt.Fprint(prompt, "leat> "); lines.Scan(); fmt.Fprint(prompt, "leat> ") {
		text.WriteString(lines.Text())
		text.WriteByte('\n')
		if !strings.HasSuffix(strings.TrimSpace(lines.Text()), ";") {
			continue
		}
		if err := r.run(ctx, "", text.String()); err != nil {
			var coded *codeError
			if !errors.As(err, &coded) {
				return err
			}
			fmt.Fprintln(prompt, coded.err)
		}
		text.Reset()
	}
	fmt.Fprintln(prompt)
	return lines.Err()
}

// sqlError makes an error of the server readable: its SQLSTATE, and where it is in the user's text, of which the server has seen what comes behind before.
func sqlError(err error, before, text string) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s (SQLSTATE %s)", pg.Severity, pg.Message, pg.Code)
	if pg.Position > 0 {
		line, column := place(before+text, utf8.RuneCountInString(before)+int(pg.Position))
		fmt.Fprintf(&b, "\n  at line %d, column %d", line, column)
	}
	if pg.Detail != "" {
		fmt.Fprintf(&b, "\n  detail: %s", pg.Detail)
	}
	if pg.Hint != "" {
		fmt.Fprintf(&b, "\n  hint: %s", pg.Hint)
	}
	return &codeError{code: exitSQL, err: errors.New(b.String())}
}

// place turns a position in characters, from 1, into a line and column.
func place(text string, position int) (line, column int) {
	line, column = 1, 1
	for _, c := range text {
		if position--; position <= 0 {
			break
		}
		column++
		if c == '\n' {
			line, column = line+1, 1
		}
	}
	return line, column
}

var printers = map[string]func(*bufio.Writer, *pgconn.Result){"table": printTable, "csv": printCSV, "json": printJSON}

func printTable(w *bufio.Writer, r *pgconn.Result) {
	if len(r.FieldDescriptions) == 0 {
		if tag := r.CommandTag.String(); tag != "" {
			fmt.Fprintln(w, tag)
		}
		return
	}
	widths := make([]int, len(r.FieldDescriptions))
	for i, f := range r.FieldDescriptions {
		widths[i] = utf8.RuneCountInString(f.Name)
		for _, row := range r.Rows {
			widths[i] = max(widths[i], utf8.RuneCount(row[i]))
		}
	}
	line := func(cell func(i int) string, right func(i int) bool) {
		for i, width := range widths {
			if i > 0 {
				_, _ = w.WriteString(" | ")
			} else {
				_ = w.WriteByte(' ')
			}
			text := cell(i)
			pad := strings.Repeat(" ", width-utf8.RuneCountInString(text))
			switch {
			case right(i):
				_, _ = w.WriteString(pad + text)
			case i < len(widths)-1:
				_, _ = w.WriteString(text + pad)
			default:
				_, _ = w.WriteString(text)
			}
		}
		_ = w.WriteByte('\n')
	}
	line(func(i int) string { return r.FieldDescriptions[i].Name }, func(int) bool { return false })
	for i, width := range widths {
		if i > 0 {
			_ = w.WriteByte('+')
		}
		_, _ = w.WriteString(strings.Repeat("-", width+2))
	}
	_ = w.WriteByte('\n')
	for _, row := range r.Rows {
		line(func(i int) string { return string(row[i]) }, func(i int) bool { return isNumber(r.FieldDescriptions[i].DataTypeOID) })
	}
	if len(r.Rows) == 1 {
		fmt.Fprint(w, "(1 row)\n\n")
	} else {
		fmt.Fprintf(w, "(%d rows)\n\n", len(r.Rows))
	}
}

// isNumber tells the types that are aligned to the right.
func isNumber(oid uint32) bool {
	switch oid {
	case 20, 21, 23, 26, 700, 701, 1700:
		return true
	}
	return false
}

func printCSV(w *bufio.Writer, r *pgconn.Result) {
	for _, row := range r.Rows {
		for i, cell := range row {
			if i > 0 {
				_ = w.WriteByte(',')
			}
			text := string(cell)
			if strings.ContainsAny(text, ",\"\n\r") || cell != nil && text == "" {
				text = `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
			}
			_, _ = w.WriteString(text)
		}
		_ = w.WriteByte('\n')
	}
}

func printJSON(w *bufio.Writer, r *pgconn.Result) {
	for _, row := range r.Rows {
		_ = w.WriteByte('{')
		for i, cell := range row {
			if i > 0 {
				_ = w.WriteByte(',')
			}
			fmt.Fprintf(w, "%s:", quoteJSON(r.FieldDescriptions[i].Name))
			oid := r.FieldDescriptions[i].DataTypeOID
			switch {
			case cell == nil:
				_, _ = w.WriteString("null")
			case oid == 114 || oid == 3802: // json, jsonb
				_, _ = w.Write(cell)
			case oid == 16:
				_, _ = w.WriteString(map[string]string{"t": "true", "f": "false"}[string(cell)])
			case isNumber(oid) && strings.Trim(string(cell), "0123456789.-+e") == "":
				_, _ = w.Write(cell)
			default:
				_, _ = w.WriteString(quoteJSON(string(cell)))
			}
		}
		_, _ = w.WriteString("}\n")
	}
}
