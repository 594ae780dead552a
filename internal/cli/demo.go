package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/leat-io/leat/internal/node"
)

// demoSQL are the definitions of the demo: two streams of an auction house, and views over them.
const demoSQL = `
CREATE SOURCE bid (
  auction bigint, bidder bigint, price bigint, channel varchar, url varchar, "dateTime" bigint,
  date_time timestamptz AS (to_timestamp("dateTime" / 1000.0)),
  WATERMARK FOR date_time AS date_time - INTERVAL '4 seconds'
) WITH (connector = 'kafka', topic = 'bid') FORMAT PLAIN ENCODE JSON;

CREATE SOURCE auction (
  id bigint, "itemName" varchar, category bigint, seller bigint, "initialBid" bigint
) WITH (connector = 'kafka', topic = 'auction') FORMAT PLAIN ENCODE JSON;

CREATE MATERIALIZED VIEW per_window AS
SELECT window_start, count(*) AS bids, sum(price) AS money, max(price) AS highest
FROM TUMBLE(bid, date_time, INTERVAL '10 seconds')
GROUP BY window_start, window_end;

CREATE MATERIALIZED VIEW price_ranges AS
SELECT auction, count(*) AS bids,
       count(*) FILTER (WHERE price < 10000) AS low,
       count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS middle,
       count(*) FILTER (WHERE price >= 1000000) AS high,
       min(price) AS lowest, max(price) AS highest, avg(price) AS average, sum(price) AS total
FROM bid GROUP BY auction;

CREATE MATERIALIZED VIEW big_bids AS
SELECT auction, bidder, price, date_time FROM bid WHERE price > 90000000;

CREATE MATERIALIZED VIEW per_category AS
SELECT a.category, count(*) AS bids, sum(b.price) AS money
FROM bid b JOIN auction a ON b.auction = a.id
GROUP BY a.category;

CREATE SINK closed_windows AS
SELECT window_start, window_end, count(*) AS bids, sum(price) AS money
FROM TUMBLE(bid, date_time, INTERVAL '10 seconds')
GROUP BY window_start, window_end
EMIT ON WINDOW CLOSE
WITH (connector = 'kafka', topic = 'closed_windows') FORMAT PLAIN ENCODE JSON;
`

func demoCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "demo", Short: "Run a node with a live auction stream and views over it", Args: cobra.NoArgs,
		Long: "Starts a node in a temporary folder, writes the events of an auction house to its topics, some of them out of order and some late,\n" +
			"and shows the views over them changing. In a pipe it prints a line a second. Ends on Ctrl-C.",
	}
	d := &demo{}
	spanFlag(cmd.Flags(), &d.duration, "for", 0, time.Second, math.MaxInt64, "until it is interrupted", "end by itself after this long; 0: not")
	cmd.Flags().StringVar(&d.dir, "data", "", "folder to keep the data in; without it a temporary one is used and removed")
	numberFlag(cmd.Flags(), &d.rate, "rate", "", 2000, 1, 1_000_000, "events a second")
	listenFlag(cmd.Flags(), &d.kafka, "kafka", "127.0.0.1:0", "address of the Kafka door")
	listenFlag(cmd.Flags(), &d.postgres, "postgres", "127.0.0.1:0", "address of the PostgreSQL door")
	listenFlag(cmd.Flags(), &d.http, "http", "127.0.0.1:0", "address of the HTTP door")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		d.out, d.errs = cmd.OutOrStdout(), cmd.ErrOrStderr()
		ctx := cmd.Context()
		if d.duration > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, d.duration)
			defer cancel()
		}
		return d.run(ctx)
	}
	return cmd
}

// demo is one run of the demo.
type demo struct {
	duration              time.Duration
	dir                   string
	rate                  int
	kafka, postgres, http string
	out, errs             io.Writer

	node *node.Node
	conn *pgconn.PgConn
	feed *feed
}

func (d *demo) run(ctx context.Context) error {
	dir := d.dir
	if dir == "" {
		temp, err := os.MkdirTemp("", "leat-demo-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temp)
		dir = temp
	}
	level := slog.LevelWarn
	n, err := node.Start(ctx, node.Config{
		Dir: filepath.Clean(dir), Kafka: d.kafka, Postgres: d.postgres, HTTP: d.http, AutoCreateTopics: true,
		Logger: slog.New(slog.NewTextHandler(d.errs, &slog.HandlerOptions{Level: level})),
	})
	if err != nil {
		return err
	}
	d.node = n
	defer func() {
		if err := n.Stop(); err != nil {
			fmt.Fprintln(d.errs, "leat:", err)
		}
	}()
	if d.conn, err = connectSQL(ctx, n.PostgresAddr()); err != nil {
		return err
	}
	defer d.conn.Close(context.WithoutCancel(ctx))
	if err := d.define(ctx); err != nil {
		return err
	}
	if d.feed, err = newFeed(n.KafkaAddr(), d.rate); err != nil {
		return err
	}
	defer d.feed.close()
	failed := make(chan error, 1)
	go func() { failed <- d.feed.run(ctx) }()

	show := d.lines
	interval := time.Second
	if f, ok := d.out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		show, interval = d.screen, 500*time.Millisecond
		fmt.Fprint(d.out, "\x1b[?25l\x1b[2J")
		defer fmt.Fprint(d.out, "\x1b[?25h\n")
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	f := newFigures(d)
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			if ctx.Err() != nil {
				return nil
			}
			return err
		case <-tick.C:
		}
		if err := show(ctx, f); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// define runs the definitions, unless the folder has them from an earlier run.
func (d *demo) define(ctx context.Context) error {
	err := (&sqlRunner{conn: d.conn, out: io.Discard, print: printCSV}).run(ctx, "", demoSQL)
	if err != nil && strings.Contains(err.Error(), "42P07") {
		return nil // the relations exist: a folder of an earlier demo
	}
	return err
}

// query returns the rows of a query as text.
func (d *demo) query(ctx context.Context, sql string) ([][]string, error) {
	r := d.conn.ExecParams(ctx, sql, nil, nil, nil, nil).Read()
	if r.Err != nil {
		return nil, r.Err
	}
	rows := make([][]string, len(r.Rows))
	for i, row := range r.Rows {
		for _, cell := range row {
			rows[i] = append(rows[i], string(cell))
		}
	}
	return rows, nil
}

const (
	windowsQuery  = `SELECT to_char(window_start, 'HH24:MI:SS') AS window, bids, money, highest FROM per_window ORDER BY window_start DESC LIMIT 4`
	rangesQuery   = `SELECT auction, bids, low, middle, high, round(average, 0) AS average FROM price_ranges ORDER BY bids DESC, auction LIMIT 4`
	bigQuery      = `SELECT auction, bidder, price, to_char(date_time, 'HH24:MI:SS') AS at FROM big_bids ORDER BY date_time DESC, price LIMIT 3`
	categoryQuery = `SELECT category, bids, money FROM per_category ORDER BY category`
)

// lines prints the figures as a line.
func (d *demo) lines(ctx context.Context, f *figures) error {
	if err := f.read(ctx); err != nil {
		return err
	}
	rows, err := d.query(ctx, windowsQuery)
	if err != nil {
		return err
	}
	window := "none yet"
	if len(rows) > 0 {
		window = fmt.Sprintf("window %s: %s bids, %s cents", rows[0][0], rows[0][1], rows[0][2])
	}
	_, err = fmt.Fprintf(d.out, "%s | %s\n", f.line(), window)
	return err
}

// screen draws the views over the last ones.
func (d *demo) screen(ctx context.Context, f *figures) error {
	if err := f.read(ctx); err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("\x1b[H")
	line := func(format string, args ...any) {
		fmt.Fprintf(&b, format, args...)
		b.WriteString("\x1b[K\n")
	}
	line("\x1b[1mleat demo\x1b[0m  a live auction: bids and auctions as topics, views that are always up to date")
	line("%s", f.line())
	line("")
	for _, v := range []struct{ title, sql string }{
		{"per_window     bids and money (cents) per 10-second window", windowsQuery},
		{"price_ranges   the busiest auctions: bids below 100, below 10,000 and above (in units)", rangesQuery},
		{"big_bids       a filter: bids above 900,000", bigQuery},
		{"per_category   bids joined with their auctions", categoryQuery},
	} {
		line("\x1b[36m%s\x1b[0m", v.title)
		r := d.conn.ExecParams(ctx, v.sql, nil, nil, nil, nil).Read()
		if r.Err != nil {
			return r.Err
		}
		for _, l := range alignedRows(r) {
			line("  %s", l)
		}
		line("")
	}
	line("connect:  psql -h 127.0.0.1 -p %s      (SELECT * FROM per_window; SHOW JOBS;)", port(d.node.PostgresAddr()))
	line("          kcat -b %s -C -t closed_windows      (every closed window, once)", d.node.KafkaAddr())
	line("          curl http://%s/metrics", d.node.HTTPAddr())
	line("Ctrl-C ends.")
	b.WriteString("\x1b[J")
	_, err := io.WriteString(d.out, b.String())
	return err
}

func port(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }

// alignedRows are the names and rows of a result in columns.
func alignedRows(r *pgconn.Result) []string {
	widths := make([]int, len(r.FieldDescriptions))
	for i, f := range r.FieldDescriptions {
		widths[i] = len(f.Name)
		for _, row := range r.Rows {
			widths[i] = max(widths[i], len(row[i]))
		}
	}
	cells := func(cell func(i int) string) string {
		var parts []string
		for i, w := range widths {
			parts = append(parts, fmt.Sprintf("%*s", w, cell(i)))
		}
		return strings.Join(parts, "  ")
	}
	out := []string{cells(func(i int) string { return r.FieldDescriptions[i].Name })}
	for _, row := range r.Rows {
		out = append(out, cells(func(i int) string { return string(row[i]) }))
	}
	return out
}
