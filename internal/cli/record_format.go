package cli

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
)

// recordFormatHelp says what a format may hold.
const recordFormatHelp = `A format holds, as kcat's and rpk's do:
  %t topic   %p partition   %o offset   %T timestamp in milliseconds   %d timestamp as RFC 3339, or -   %e leader epoch
  %k key     %K its length  %s or %v value   %S or %V its length (-1: null)   %h headers, name=value,...   %% a percent sign
  \n \t \r \0 \\ and \xHH`

// recordFormat prints records: pieces that append to dst.
type recordFormat []func(dst []byte, r *kgo.Record) []byte

func parseRecordFormat(text string) (recordFormat, error) {
	var f recordFormat
	var literal []byte
	flush := func() {
		if len(literal) > 0 {
			l := literal
			f = append(f, func(dst []byte, _ *kgo.Record) []byte { return append(dst, l...) })
			literal = nil
		}
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '%' && c != '\\' {
			literal = append(literal, c)
			continue
		}
		if i++; i == len(text) {
			return nil, fmt.Errorf("the format ends in a single %c", c)
		}
		if c == '\\' {
			b, used, err := unescape(text[i:])
			if err != nil {
				return nil, err
			}
			literal = append(literal, b)
			i += used - 1
			continue
		}
		if text[i] == '%' {
			literal = append(literal, '%')
			continue
		}
		piece, ok := recordPieces[text[i]]
		if !ok {
			return nil, fmt.Errorf("%%%c in the format is not known: %%t %%p %%o %%T %%d %%e %%k %%K %%s %%v %%S %%V %%h %%%% are", text[i])
		}
		flush()
		f = append(f, piece)
	}
	flush()
	return f, nil
}

func unescape(s string) (b byte, used int, err error) {
	switch s[0] {
	case 'n':
		return '\n', 1, nil
	case 't':
		return '\t', 1, nil
	case 'r':
		return '\r', 1, nil
	case '0':
		return 0, 1, nil
	case '\\', '%':
		return s[0], 1, nil
	case 'x':
		if len(s) >= 3 {
			if n, err := strconv.ParseUint(s[1:3], 16, 8); err == nil {
				return byte(n), 3, nil
			}
		}
		return 0, 0, fmt.Errorf(`\x in the format needs two hexadecimal digits`)
	}
	return 0, 0, fmt.Errorf(`\%c in the format is not known: \n \t \r \0 \\ \xHH are`, s[0])
}

var recordPieces = map[byte]func(dst []byte, r *kgo.Record) []byte{
	't': func(dst []byte, r *kgo.Record) []byte { return append(dst, r.Topic...) },
	'p': func(dst []byte, r *kgo.Record) []byte { return strconv.AppendInt(dst, int64(r.Partition), 10) },
	'o': func(dst []byte, r *kgo.Record) []byte { return strconv.AppendInt(dst, r.Offset, 10) },
	'T': func(dst []byte, r *kgo.Record) []byte { return strconv.AppendInt(dst, r.Timestamp.UnixMilli(), 10) },
	'd': func(dst []byte, r *kgo.Record) []byte {
		if !hasTimestamp(r) {
			return append(dst, '-')
		}
		return r.Timestamp.UTC().AppendFormat(dst, recordTime)
	},
	'e': func(dst []byte, r *kgo.Record) []byte { return strconv.AppendInt(dst, int64(r.LeaderEpoch), 10) },
	'k': func(dst []byte, r *kgo.Record) []byte { return append(dst, r.Key...) },
	'K': func(dst []byte, r *kgo.Record) []byte { return appendLength(dst, r.Key) },
	's': func(dst []byte, r *kgo.Record) []byte { return append(dst, r.Value...) },
	'v': func(dst []byte, r *kgo.Record) []byte { return append(dst, r.Value...) },
	'S': func(dst []byte, r *kgo.Record) []byte { return appendLength(dst, r.Value) },
	'V': func(dst []byte, r *kgo.Record) []byte { return appendLength(dst, r.Value) },
	'h': func(dst []byte, r *kgo.Record) []byte {
		for i, h := range r.Headers {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(append(append(dst, h.Key...), '='), h.Value...)
		}
		return dst
	},
}

// hasTimestamp tells a record with a timestamp from one without, which is -1 in Kafka's protocol.
func hasTimestamp(r *kgo.Record) bool { return r.Timestamp.UnixMilli() != -1 }

func appendLength(dst, b []byte) []byte {
	if b == nil {
		return append(dst, "-1"...)
	}
	return strconv.AppendInt(dst, int64(len(b)), 10)
}

const recordTime = "2006-01-02T15:04:05.000Z07:00"

// recordJSON is a record for programs. What is no UTF-8 stands in base64, under another name.
type recordJSON struct {
	Topic       string       `json:"topic"`
	Partition   int32        `json:"partition"`
	Offset      int64        `json:"offset"`
	Timestamp   *string      `json:"timestamp"` // null: the record has none
	Key         *string      `json:"key"`
	KeyBase64   string       `json:"key_base64,omitempty"`
	Value       *string      `json:"value"`
	ValueBase64 string       `json:"value_base64,omitempty"`
	Headers     []headerJSON `json:"headers,omitempty"`
}

type headerJSON struct {
	Key         string  `json:"key"`
	Value       *string `json:"value"`
	ValueBase64 string  `json:"value_base64,omitempty"`
}

// recordAsJSON is a recordFormat of one object a line.
var recordAsJSON = recordFormat{func(dst []byte, r *kgo.Record) []byte {
	out := recordJSON{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}
	if hasTimestamp(r) {
		at := r.Timestamp.UTC().Format(recordTime)
		out.Timestamp = &at
	}
	out.Key, out.KeyBase64 = textOrBase64(r.Key)
	out.Value, out.ValueBase64 = textOrBase64(r.Value)
	for _, h := range r.Headers {
		j := headerJSON{Key: h.Key}
		j.Value, j.ValueBase64 = textOrBase64(h.Value)
		out.Headers = append(out.Headers, j)
	}
	line, err := json.Marshal(out)
	if err != nil { // there is nothing in it that cannot be written
		return dst
	}
	return append(append(dst, line...), '\n')
}}

func textOrBase64(b []byte) (*string, string) {
	switch {
	case b == nil:
		return nil, ""
	case utf8.Valid(b):
		s := string(b)
		return &s, ""
	}
	return nil, base64.StdEncoding.EncodeToString(b)
}

// producedJSON says where a record went.
type producedJSON struct {
	Topic     string    `json:"topic"`
	Partition int32     `json:"partition"`
	Offset    int64     `json:"offset"`
	Timestamp time.Time `json:"timestamp"`
}
