package bind

import (
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/ast"
)

// typeKinds are the types by PostgreSQL's catalog names, to which the parser maps the other spellings.
var typeKinds = map[string]column.Type{
	"bool": column.TBool, "boolean": column.TBool,
	"int2": column.TInt16, "smallint": column.TInt16,
	"int4": column.TInt32, "int": column.TInt32, "integer": column.TInt32,
	"int8": column.TInt64, "bigint": column.TInt64,
	"float4": column.TFloat32, "real": column.TFloat32,
	"float8": column.TFloat64, "float": column.TFloat64,
	"numeric": column.TNumeric, "decimal": column.TNumeric,
	"text": column.TText, "string": column.TText,
	"varchar": column.TVarchar,
	"bytea":   column.TBytea, "bytes": column.TBytea,
	"date":        column.TDate,
	"time":        column.TTime,
	"timestamp":   column.TTimestamp,
	"timestamptz": column.TTimestamptz,
	"interval":    column.TInterval,
	"jsonb":       column.TJSONB, "json": column.TJSONB,
}

const (
	maxNumericPrecision = 1000
	maxVarchar          = 1<<15 - 1 // what a Type's Precision can hold
)

// typeOf is the type that a name in a statement means.
func (b *binder) typeOf(t ast.TypeName) (column.Type, error) {
	none := column.Type{}
	if t.Schema.Given() && t.Schema.Name != "pg_catalog" {
		return none, b.errorf(t, pgerr.UndefinedObject, "type \"%s.%s\" does not exist", t.Schema.Name, t.Name)
	}
	if t.SetOf {
		return none, b.unsupported(t, "SETOF")
	}
	switch t.Name {
	case "bpchar", "char", "character":
		return none, b.unsupported(t, "type character(n), which is padded with blanks,").WithHint("Use varchar(n) or text.")
	case "timetz":
		return none, b.unsupported(t, "type time with time zone").WithHint("Use timestamptz, or time.")
	case "uuid", "inet", "cidr", "money", "xml", "bit", "varbit", "name", "oid", "point":
		return none, b.unsupported(t, "type "+t.Name)
	}
	out, ok := typeKinds[t.Name]
	if !ok {
		return none, b.errorf(t, pgerr.UndefinedObject, "type \"%s\" does not exist", t.Name)
	}
	if t.Name == "json" {
		b.notice("type json is stored as jsonb: white space, the order of keys and duplicate keys are not kept")
	}
	if t.Fields != ast.AnyField {
		return none, b.unsupported(t, "an interval type that is restricted to some fields")
	}
	if err := b.modifiers(&out, t); err != nil {
		return none, err
	}
	switch {
	case t.Dims > 1:
		return none, b.unsupported(t, "an array of more than one dimension")
	case t.Dims == 1:
		if out.Precision != 0 || out.Scale != 0 {
			return none, b.unsupported(t, "an array whose elements have a length or precision")
		}
		return column.Type{Kind: column.Array, Elem: out.Kind, Varchar: out.Varchar}, nil
	}
	return out, nil
}

// modifiers applies (10,2) and the like.
func (b *binder) modifiers(out *column.Type, t ast.TypeName) error {
	if len(t.Mods) == 0 {
		return nil
	}
	first := int(t.Mods[0])
	switch out.Kind {
	case column.Numeric:
		if len(t.Mods) > 2 {
			return b.errorf(t, pgerr.InvalidParameterValue, "invalid NUMERIC type modifier")
		}
		if first < 1 || first > maxNumericPrecision {
			return b.errorf(t, pgerr.InvalidParameterValue, "NUMERIC precision %d must be between 1 and %d", first, maxNumericPrecision)
		}
		out.Precision = int16(first)
		if len(t.Mods) == 2 {
			scale := int(t.Mods[1])
			if scale < 0 || scale > first {
				return b.errorf(t, pgerr.InvalidParameterValue, "NUMERIC scale %d must be between 0 and the precision %d", scale, first)
			}
			out.Scale = int16(scale)
		}
		return nil
	case column.Text:
		if out.Varchar && len(t.Mods) == 1 {
			if first < 1 {
				return b.errorf(t, pgerr.InvalidParameterValue, "length for type varchar must be at least 1")
			}
			if first > maxVarchar {
				return b.errorf(t, pgerr.InvalidParameterValue, "length for type varchar cannot exceed %d", maxVarchar).
					WithHint("Use varchar without a length, or text.")
			}
			out.Precision = int16(first)
			return nil
		}
	case column.Time, column.Timestamp, column.Timestamptz, column.IntervalKind:
		if len(t.Mods) == 1 {
			if first < 0 {
				return b.errorf(t, pgerr.InvalidParameterValue, "%s precision must not be negative", out.String())
			}
			out.Precision = int16(min(first, 6) + 1)
			return nil
		}
	case column.Float64:
		// float(p) comes through the parser as float4 or float8; float8 itself takes no modifier.
	}
	return b.errorf(t, pgerr.SyntaxError, "type modifier is not allowed for type \"%s\"", t.Name)
}
