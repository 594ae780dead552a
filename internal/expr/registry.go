package expr

import (
	"fmt"
	"strings"
	"sync"

	"github.com/leat-io/leat/internal/column"
)

// tables are all overloads, a table a file. Add a file's table here.
func tables() [][]Overload {
	return [][]Overload{
		comparisons,
		integerArithmetic,
		floatArithmetic,
		numericArithmetic,
		mathFunctions,
		booleanTests,
		extremes,
		textConcat,
		arrayFunctions,
		clockFunctions,
		stringFunctions,
		substringFunctions,
		likeFunctions,
		byteFunctions,
		quoteFunctions,
		textArrayFunctions,
		regexpFunctions,
		timeArithmetic,
		timeFieldFunctions,
		timeTruncation,
		timeFunctions,
		timeToText,
		textToTime,
		numberToText,
		jsonAccess,
		jsonBuild,
	}
}

// Volatility says when equal arguments give equal results.
type Volatility uint8

// The volatilities, from the most to the least constant.
const (
	Immutable Volatility = iota // always
	Zoned                       // as long as the session's TimeZone is the same; PostgreSQL calls this stable, too
	Stable                      // within one statement or epoch, such as now()
	Volatile                    // never
)

// Overload is one function or operator for given argument types. Tables of them are plain data; see concat.go for an
// example with text.
type Overload struct {
	// Name is what SQL calls it; an operator's is its symbol. Name and Args make the identity in stored plans.
	Name string
	Args []column.Type
	// Variadic: the last of Args is repeated, one or more times.
	Variadic bool
	// Result may be a pseudo-type (tElement, tArray), which stands for what the arguments made of it.
	Result column.Type
	// CallsOnNull: the kernel sees rows with NULL arguments and decides on NULL itself. Otherwise (PostgreSQL: strict) NULL
	// in is NULL out, and the kernel is not given such rows.
	CallsOnNull bool
	// Total: the kernel works on any bits in any row, cannot fail, and gives no NULL of its own. It is then run over whole
	// batches where that is cheaper, NULL and unselected rows included; such a kernel may ignore Call.Sel.
	Total      bool
	Volatility Volatility
	// Make builds the kernel of one call in a program.
	Make func(s *Site) (Kernel, error)
	// via makes the overload another name for the one that takes these types, after implicit casts. PostgreSQL has
	// operators of mixed types whose only effect on results is which overload is chosen.
	via []column.Type
	// selects is an optional faster form for filters.
	selects func(s *Site) selectKernel
	// dense: like Total, except that some rows may fail. The kernel computes all rows in a tight loop and, only if one of them
	// looks wrong, goes through Call.wanted for those that must be reported.
	dense bool
	// hidden overloads are found by identity only, not by name.
	hidden bool
}

// ID is the identity of the overload in stored plans, such as "+(bigint,bigint)" or "concat(any,...)".
func (o *Overload) ID() string {
	var b strings.Builder
	b.WriteString(o.Name)
	b.WriteByte('(')
	for i, t := range o.Args {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(TypeName(t))
	}
	if o.Variadic {
		b.WriteString(",...")
	}
	b.WriteByte(')')
	return b.String()
}

type registry struct {
	byID   map[string]*Overload
	byName map[string][]*Overload
}

var registered = sync.OnceValue(func() *registry {
	r := &registry{byID: map[string]*Overload{}, byName: map[string][]*Overload{}}
	for _, table := range tables() {
		for i := range table {
			o := &table[i]
			if o.via == nil {
				id := o.ID()
				if r.byID[id] != nil {
					panic(fmt.Sprintf("expr: overload %s is registered twice", id))
				}
				r.byID[id] = o
			}
			if !o.hidden {
				r.byName[o.Name] = append(r.byName[o.Name], o)
			}
		}
	}
	return r
})

// Exists tells whether a function or operator of that name is known, for any arguments.
func Exists(name string) bool { return len(registered().byName[name]) > 0 }
