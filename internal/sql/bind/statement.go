package bind

import (
	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/sql/ast"
)

func bindStatement(env Env, s ast.Stmt) (Bound, error) {
	return nil, pgerr.Unsupported("not bound yet")
}

func bindAdHoc(env Env, q *ast.Query) (*Select, error) {
	return nil, pgerr.Unsupported("not bound yet")
}
