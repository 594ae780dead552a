package expr

import (
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/pgtype"
)

// appendParsed appends a value from its text to a vector of its type.
func appendParsed(v *column.Vector, text []byte, ctx *Context) *pgerr.Error {
	pc := pgtype.Context{Zone: ctx.zone(), Now: ctx.Now}
	if err := pgtype.ParseText(v, text, &pc); err != nil {
		return pgerr.From(err)
	}
	return nil
}

// formatText appends the text of a value that is not NULL. Times with zone are in ctx's zone, UTC without ctx.
func formatText(dst []byte, v *column.Vector, row int, ctx *Context) []byte {
	return pgtype.AppendText(dst, v, row, ctx.zone())
}

func pgerrAt(err error, pos int) error { return pgerr.From(err).At(position(pos)) }
