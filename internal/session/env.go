package session

import (
	"strconv"
	"strings"

	"github.com/leat-io/leat/internal/catalog"
	"github.com/leat-io/leat/internal/column"
	"github.com/leat-io/leat/internal/expr"
	"github.com/leat-io/leat/internal/sql/bind"
)

// env is what a statement of this session is bound in: a catalog, and what only the session knows.
func (s *Session) env(c *catalog.Snapshot, p *Prepared) bind.Env {
	text := func(v string) *expr.Node { return expr.Const(column.TText, v, 0) }
	user := text(s.settings.user)
	version, _ := s.settings.get("server_version")
	return bind.Env{
		Catalog: c, Text: p.Text, Params: p.declared, Context: s.context(),
		Functions: map[string]*expr.Node{
			"current_user": user, "session_user": user, "user": user, "current_role": user,
			"current_database": text(s.settings.database), "current_catalog": text(s.settings.database),
			"current_schema":    text("public"),
			"version":           text("PostgreSQL " + version + ", the SQL door of Leat"),
			"pg_backend_pid":    expr.Const(column.TInt32, strconv.Itoa(int(s.ID)), 0),
			"pg_is_in_recovery": expr.Bool(false),
		},
		Setting: func(name string) (string, bool) { return s.settings.get(strings.ToLower(name)) },
	}
}
