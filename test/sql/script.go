// Package sql runs the scripts of testdata against a whole node, through its own doors.
//
// A script is a text of items, with a blank line between two; lines that begin with # are comments. An item is one of
//
//	statement ok                        the statement on the lines below succeeds
//	statement error CODE[@POSITION] [regexp]   ... fails, with that SQLSTATE, position (from 1) and message
//	statement notice CODE [regexp]      ... succeeds and tells the client that
//	query [ordered|error CODE ...]      the query on the lines below gives the rows under ----, columns separated by |, NULL as NULL; sorted as
//	                                    text unless it is ordered
//	topic NAME PARTITIONS               a topic is made
//	produce TOPIC                       each line below is a record; [key=K partition=N timestamp=RFC3339 hex tombstone empty] may stand before its value
//	produce error TOPIC [regexp]        ... is refused
//	consume TOPIC [key] [headers] [last]   the topic holds the records under ----, sorted; last: only the last one of each key that is no tombstone
//	flush                               FLUSH
//	late|failed|dead|unmatched RELATION N   what has been counted of the relation
//	session NAME                        the connection that the items below use
//	restart                             the node is killed and started again
//
// Every script gives the same with any batch size, number of workers, and when it is killed anywhere.
package sql

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// item is one step of a script.
type item struct {
	line  int // of its first line, from 1
	verb  string
	args  []string
	rest  string // of the first line behind the verb
	body  []string
	want  []string
	marks bool // there is a ----
}

func (it *item) sql() string { return strings.Join(it.body, "\n") }

// parseScript splits a script into items.
func parseScript(text string) ([]*item, error) {
	var items []*item
	var cur *item
	for i, line := range strings.Split(text, "\n") {
		switch {
		case cur == nil && (strings.HasPrefix(line, "#") || strings.TrimSpace(line) == ""):
		case cur == nil:
			fields := strings.Fields(line)
			cur = &item{line: i + 1, verb: fields[0], args: fields[1:], rest: strings.TrimSpace(line[len(fields[0]):])}
			if !verbs[cur.verb] {
				return nil, fmt.Errorf("line %d: there is no item %q", i+1, cur.verb)
			}
			items = append(items, cur)
		case line == "":
			cur = nil
		case line == "----" && !cur.marks:
			cur.marks = true
		case cur.marks:
			cur.want = append(cur.want, line)
		default:
			cur.body = append(cur.body, line)
		}
	}
	return items, nil
}

var verbs = map[string]bool{
	"statement": true, "query": true, "topic": true, "produce": true, "consume": true, "flush": true, "late": true, "failed": true, "dead": true,
	"unmatched": true, "session": true, "restart": true,
}

var recordOptions = regexp.MustCompile(`^\[((?:(?:key|partition|timestamp)=[^\] ]*|hex|tombstone|empty| )+)\] ?`)

// parseRecord reads one line of produce.
func parseRecord(topic, line string) (*kgo.Record, error) {
	r := &kgo.Record{Topic: topic}
	m := recordOptions.FindStringSubmatch(line)
	if m == nil {
		r.Value = []byte(line)
		return r, nil
	}
	r.Value = []byte(line[len(m[0]):])
	for _, o := range strings.Fields(m[1]) {
		name, value, _ := strings.Cut(o, "=")
		switch name {
		case "key":
			r.Key = []byte(value)
		case "partition":
			n, err := strconv.ParseInt(value, 10, 32)
			if err != nil {
				return nil, err
			}
			r.Partition = int32(n)
		case "timestamp":
			t, err := time.Parse(time.RFC3339Nano, value)
			if err != nil {
				return nil, err
			}
			r.Timestamp = t
		case "hex":
			text := string(r.Value)
			r.Value = nil
			for i := 0; i+2 <= len(text); i += 2 {
				b, err := strconv.ParseUint(text[i:i+2], 16, 8)
				if err != nil {
					return nil, err
				}
				r.Value = append(r.Value, byte(b))
			}
		case "tombstone":
			r.Value = nil
		case "empty":
			r.Value = []byte{}
		}
	}
	return r, nil
}

// formatRecord writes a consumed record as one line.
func formatRecord(r *kgo.Record, key, headers bool) string {
	var b strings.Builder
	if key {
		if r.Key == nil {
			b.WriteString("NULL ")
		} else {
			fmt.Fprintf(&b, "%s ", r.Key)
		}
	}
	if headers {
		for _, h := range r.Headers {
			fmt.Fprintf(&b, "%s=%s ", h.Key, h.Value)
		}
	}
	if r.Value == nil {
		b.WriteString("(tombstone)")
	} else {
		fmt.Fprintf(&b, "%s", printable(r.Value))
	}
	return b.String()
}

// printable shows bytes that are no text as \xNN.
func printable(v []byte) string {
	s := strconv.Quote(string(v))
	s = s[1 : len(s)-1]
	return strings.ReplaceAll(s, `\"`, `"`)
}
