package ast

import "strings"

// KeywordClass says where a word of the grammar may be used as a name.
type KeywordClass uint8

// The classes, as PostgreSQL's documentation of key words has them. Leat's own words (SOURCE, SINK, WATERMARK, EMIT ...)
// are not keywords: they are recognised where the grammar expects them and are names anywhere else.
const (
	NotKeyword      KeywordClass = iota
	Unreserved                   // any name
	ColumnName                   // a column or table, but not a function or type
	TypeFuncName                 // a function or type, but not a column or table
	Reserved                     // a label after AS only
	classMask       KeywordClass = 7
	needsAs         KeywordClass = 8 // not a label without AS
	columnNameLabel              = ColumnName | needsAs
)

const (
	reservedAs = `array as create except fetch for from grant group having intersect into limit offset on order
		returning to union where window with`
	reserved = `all analyse analyze and any asc asymmetric both case cast check collate column constraint current_catalog
		current_date current_role current_time current_timestamp current_user default deferrable desc distinct do else end
		false foreign in initially lateral leading localtime localtimestamp not null only or placing primary references
		select session_user some symmetric table then trailing true unique user using variadic when`
	typeFuncAs = `isnull notnull overlaps`
	typeFunc   = `authorization binary collation concurrently cross current_schema freeze full ilike inner is join left
		like natural outer right similar tablesample verbose`
	columnAs = `char character precision`
	column   = `between bigint bit boolean coalesce dec decimal exists extract float greatest grouping inout int integer
		interval least national nchar none normalize nullif numeric out overlay position real row setof smallint substring
		time timestamp treat trim values varchar xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces
		xmlparse xmlpi xmlroot xmlserialize xmltable`
	unreservedAs = `day filter hour minute month over second varying within without year`
)

var keywords = func() map[string]KeywordClass {
	m := make(map[string]KeywordClass, 160)
	for class, words := range map[KeywordClass]string{
		Reserved | needsAs: reservedAs, Reserved: reserved, TypeFuncName | needsAs: typeFuncAs, TypeFuncName: typeFunc,
		columnNameLabel: columnAs, ColumnName: column, Unreserved | needsAs: unreservedAs,
	} {
		for _, w := range strings.Fields(words) {
			m[w] = class
		}
	}
	return m
}()

// Keyword returns the class of an unquoted, folded word. Words of PostgreSQL's grammar that may be any name and any label
// are NotKeyword, as are all other words.
func Keyword(word string) KeywordClass { return keywords[word] & classMask }

// IsBareLabel reports whether an unquoted word may name a column of the result without AS.
func IsBareLabel(word string) bool { return keywords[word]&needsAs == 0 }

// The precedences of expressions, PostgreSQL's, from loosest to tightest.
const (
	PrecLowest = iota
	PrecOr
	PrecAnd
	PrecNot
	PrecIs
	PrecCompare // < > = <= >= <>, not associative
	PrecMatch   // BETWEEN IN LIKE ILIKE SIMILAR, not associative
	PrecOther   // every other operator
	PrecAdd
	PrecMultiply
	PrecPower
	PrecZone // AT TIME ZONE
	PrecCollate
	PrecSign // unary + and -
	PrecIndex
	PrecCast
	PrecPrimary
)

// Precedence returns how tightly an infix operator binds. All are left-associative, except those at PrecCompare.
func Precedence(op string) int {
	switch op {
	case "<", ">", "=", "<=", ">=", "<>":
		return PrecCompare
	case "+", "-":
		return PrecAdd
	case "*", "/", "%":
		return PrecMultiply
	case "^":
		return PrecPower
	}
	return PrecOther
}
