// Package bind gives the syntax tree its meaning: names are resolved in the catalog, types are checked and casts put in by
// PostgreSQL's rules, and a query becomes the physical plan that the engine runs.
//
// It owns the way from a statement to a plan: scopes and names, the logical tree with stream keys, event time and
// append-only inference, one rewrite rule per file (push_filters.go, prune_columns.go, merge_projects.go ...), and the
// choice of physical operators, exchanges and state tables (physical.go).
//
// What always holds:
//   - it only reads: the catalog is a snapshot, and nothing is created, written or executed here;
//   - the same statement over the same catalog gives the same plan, byte for byte;
//   - input never panics: what is wrong, or not supported yet, is a *pgerr.Error with SQLSTATE and position;
//   - a refusal of something that PostgreSQL has names what is missing.
package bind
