// Package pgtype is how PostgreSQL writes and reads values: the text form and the binary wire form of every type, object ids,
// type modifiers and names. It works on rows of column vectors and does not allocate per value, except where a value itself is
// large.
//
// What always holds: what AppendText writes ParseText reads back to the same value; input that PostgreSQL refuses is refused
// with its SQLSTATE, and no input panics. Dates are days and timestamps microseconds since 1970-01-01; the wire's epoch of 2000
// exists only inside the binary functions.
package pgtype

import (
	"strings"

	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
)

// Object ids of PostgreSQL's types.
const (
	OIDBool        = 16
	OIDBytea       = 17
	OIDChar        = 18
	OIDName        = 19
	OIDInt8        = 20
	OIDInt2        = 21
	OIDInt4        = 23
	OIDText        = 25
	OIDOid         = 26
	OIDJSON        = 114
	OIDFloat4      = 700
	OIDFloat8      = 701
	OIDUnknown     = 705
	OIDBpchar      = 1042
	OIDVarchar     = 1043
	OIDDate        = 1082
	OIDTime        = 1083
	OIDTimestamp   = 1114
	OIDTimestamptz = 1184
	OIDInterval    = 1186
	OIDNumeric     = 1700
	OIDJSONB       = 3802
)

type typeInfo struct {
	oid, array uint32
	len        int16
}

var infos = map[column.Kind]typeInfo{
	column.Unknown:      {OIDUnknown, 0, -2},
	column.Bool:         {OIDBool, 1000, 1},
	column.Int16:        {OIDInt2, 1005, 2},
	column.Int32:        {OIDInt4, 1007, 4},
	column.Int64:        {OIDInt8, 1016, 8},
	column.Float32:      {OIDFloat4, 1021, 4},
	column.Float64:      {OIDFloat8, 1022, 8},
	column.Numeric:      {OIDNumeric, 1231, -1},
	column.Text:         {OIDText, 1009, -1},
	column.Bytea:        {OIDBytea, 1001, -1},
	column.Date:         {OIDDate, 1182, 4},
	column.Time:         {OIDTime, 1183, 8},
	column.Timestamp:    {OIDTimestamp, 1115, 8},
	column.Timestamptz:  {OIDTimestamptz, 1185, 8},
	column.IntervalKind: {OIDInterval, 1187, 16},
	column.JSONB:        {OIDJSONB, 3807, -1},
}

const oidVarcharArray = 1015

// OID is the object id of a type.
func OID(t column.Type) uint32 {
	switch {
	case t.Kind == column.Array && t.Elem == column.Text && t.Varchar:
		return oidVarcharArray
	case t.Kind == column.Array:
		return infos[t.Elem].array
	case t.Kind == column.Text && t.Varchar:
		return OIDVarchar
	}
	return infos[t.Kind].oid
}

// ArrayOID is the object id of the type of arrays of t, 0 when there is none.
func ArrayOID(t column.Type) uint32 {
	if t.Kind == column.Text && t.Varchar {
		return oidVarcharArray
	}
	return infos[t.Kind].array
}

// Len is typlen: the bytes of a value of fixed width, -1 for varying ones, -2 for unknown.
func Len(t column.Type) int16 {
	if t.Kind == column.Array {
		return -1
	}
	return infos[t.Kind].len
}

var fromOID = func() map[uint32]column.Type {
	m := map[uint32]column.Type{
		OIDVarchar: column.TVarchar, OIDBpchar: column.TText, OIDName: column.TText, OIDChar: column.TText, OIDJSON: column.TJSONB,
		OIDOid: column.TInt64, oidVarcharArray: {Kind: column.Array, Elem: column.Text, Varchar: true},
	}
	for k, i := range infos {
		m[i.oid] = column.Type{Kind: k}
		if i.array != 0 {
			m[i.array] = column.ArrayOf(k)
		}
	}
	return m
}()

// FromOID is the type with an object id and modifier (-1: none). Types that Leat does not have but can stand in for (char, name, bpchar,
// json, oid) give that.
func FromOID(oid uint32, typmod int32) (column.Type, bool) {
	t, ok := fromOID[oid]
	if !ok || typmod < 0 {
		return t, ok
	}
	switch t.Kind {
	case column.Numeric:
		if typmod >= 4 {
			m := typmod - 4
			t.Precision = int16(m >> 16)
			t.Scale = int16((m&0x7ff ^ 1024) - 1024)
		}
	case column.Text:
		if t.Varchar && typmod >= 4 {
			t.Precision = int16(min(typmod-4, 1<<15-1))
		}
	case column.Time, column.Timestamp, column.Timestamptz:
		if typmod <= 6 {
			t.Precision = int16(typmod) + 1
		}
	case column.IntervalKind:
		if p := typmod & 0xffff; p <= 6 {
			t.Precision = int16(p) + 1
		}
	}
	return t, true
}

// Typmod is the type modifier, -1 when there is none.
func Typmod(t column.Type) int32 {
	if t.Precision <= 0 {
		return -1
	}
	switch t.Kind {
	case column.Numeric:
		return (int32(t.Precision)<<16 | int32(t.Scale)&0x7ff) + 4
	case column.Text:
		if t.Varchar {
			return int32(t.Precision) + 4
		}
	case column.Time, column.Timestamp, column.Timestamptz:
		return int32(t.Precision) - 1
	case column.IntervalKind:
		return 0x7fff<<16 | int32(t.Precision) - 1
	}
	return -1
}

// InternalName is pg_type.typname: "int4", "timestamptz", "_text".
func InternalName(t column.Type) string {
	if t.Kind == column.Array {
		return "_" + InternalName(t.ElemType())
	}
	switch t.Kind {
	case column.Bool:
		return "bool"
	case column.Int16:
		return "int2"
	case column.Int32:
		return "int4"
	case column.Int64:
		return "int8"
	case column.Float32:
		return "float4"
	case column.Float64:
		return "float8"
	case column.Text:
		if t.Varchar {
			return "varchar"
		}
	case column.Time:
		return "time"
	case column.Timestamp:
		return "timestamp"
	case column.Timestamptz:
		return "timestamptz"
	}
	return t.Kind.String()
}

var names = map[string]column.Type{
	"bool": column.TBool, "boolean": column.TBool,
	"smallint": column.TInt16, "int2": column.TInt16,
	"int": column.TInt32, "integer": column.TInt32, "int4": column.TInt32,
	"bigint": column.TInt64, "int8": column.TInt64,
	"real": column.TFloat32, "float4": column.TFloat32,
	"double precision": column.TFloat64, "float8": column.TFloat64, "float": column.TFloat64, "double": column.TFloat64,
	"numeric": column.TNumeric, "decimal": column.TNumeric, "dec": column.TNumeric,
	"text": column.TText, "string": column.TText,
	"varchar": column.TVarchar, "character varying": column.TVarchar,
	"bytea": column.TBytea, "date": column.TDate,
	"time": column.TTime, "time without time zone": column.TTime,
	"timestamp": column.TTimestamp, "timestamp without time zone": column.TTimestamp,
	"timestamptz": column.TTimestamptz, "timestamp with time zone": column.TTimestamptz,
	"interval": column.TInterval, "jsonb": column.TJSONB, "json": column.TJSONB,
}

// ByName is the type with an SQL name (in lower case, one space between words), its modifiers in parentheses and "[]" behind it given
// apart: ByName("numeric", []int{10, 2}, false). Errors are 42704 for an unknown name and 22023 for bad modifiers.
func ByName(name string, mods []int, array bool) (column.Type, error) {
	name = strings.TrimPrefix(name, "pg_catalog.")
	t, ok := names[name]
	if !ok && strings.HasPrefix(name, "_") {
		if t, ok = names[name[1:]]; ok && array {
			ok = false
		}
		array = true
	}
	if !ok {
		return t, pgerr.Newf(pgerr.UndefinedObject, "type \"%s\" does not exist", name)
	}
	if len(mods) > 0 {
		var err error
		if t, err = withMods(t, name, mods); err != nil {
			return t, err
		}
	}
	if array {
		t = column.Type{Kind: column.Array, Elem: t.Kind, Varchar: t.Varchar}
	}
	return t, nil
}

func withMods(t column.Type, name string, mods []int) (column.Type, error) {
	bad := func(format string, args ...any) (column.Type, error) {
		return t, pgerr.Newf(pgerr.InvalidParameterValue, format, args...)
	}
	p := mods[0]
	switch t.Kind {
	case column.Numeric:
		switch {
		case len(mods) > 2:
			return bad("invalid NUMERIC type modifier")
		case p < 1 || p > 1000:
			return bad("NUMERIC precision %d must be between 1 and 1000", p)
		case len(mods) == 2 && (mods[1] < -1000 || mods[1] > 1000):
			return bad("NUMERIC scale %d must be between -1000 and 1000", mods[1])
		}
		t.Precision = int16(p)
		if len(mods) == 2 {
			t.Scale = int16(mods[1])
		}
		return t, nil
	case column.Float64:
		if name == "float" && len(mods) == 1 {
			switch {
			case p < 1:
				return bad("precision for type float must be at least 1 bit")
			case p > 53:
				return bad("precision for type float must be less than 54 bits")
			case p <= 24:
				return column.TFloat32, nil
			}
			return t, nil
		}
	case column.Text:
		if t.Varchar && len(mods) == 1 {
			switch {
			case p < 1:
				return bad("length for type varchar must be at least 1")
			case p > 10485760:
				return bad("length for type varchar cannot exceed 10485760")
			case p > 1<<15-1:
				return bad("length for type varchar cannot exceed %d here; use text with a CHECK", 1<<15-1)
			}
			t.Precision = int16(p)
			return t, nil
		}
	case column.Time, column.Timestamp, column.Timestamptz, column.IntervalKind:
		if len(mods) == 1 {
			if p < 0 {
				return bad("%s(%d) precision must not be negative", strings.ToUpper(InternalName(t)), p)
			}
			t.Precision = int16(min(p, 6)) + 1
			return t, nil
		}
	}
	return t, pgerr.Newf(pgerr.SyntaxError, "type modifier is not allowed for type \"%s\"", name)
}
