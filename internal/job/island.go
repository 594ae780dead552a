package job

import (
	"cmp"
	"slices"

	"github.com/leat-io/leat/internal/catalog"
)

// components groups jobs into islands: those connected through what they read share one. A job is a relation with a stored plan. Sources
// connect the jobs that read them; jobs with the option island = 'own' still depend on what they read, so they join its island unless they
// read sources alone. The result is in the order of the smallest id of each.
func components(s *catalog.Snapshot) [][]uint64 {
	parent := map[uint64]uint64{}
	find := func(id uint64) uint64 {
		for parent[id] != id {
			parent[id] = parent[parent[id]]
			id = parent[id]
		}
		return id
	}
	relations := s.Relations()
	for _, r := range relations {
		parent[r.ID] = r.ID
	}
	for _, r := range relations {
		if r.Plan == nil {
			continue // a source, or a view, which is expanded where it is used
		}
		for _, n := range r.Plan.Nodes {
			if n.Scan == nil || n.Scan.Source && ownIsland(r) {
				continue
			}
			if _, ok := parent[n.Scan.Relation]; ok {
				parent[find(r.ID)] = find(n.Scan.Relation)
			}
		}
	}
	groups := map[uint64][]uint64{}
	for _, r := range relations {
		if r.Plan != nil {
			root := find(r.ID)
			groups[root] = append(groups[root], r.ID)
		}
	}
	out := make([][]uint64, 0, len(groups))
	for _, ids := range groups {
		slices.Sort(ids)
		out = append(out, ids)
	}
	slices.SortFunc(out, func(a, b []uint64) int { return cmp.Compare(a[0], b[0]) })
	return out
}

func ownIsland(r *catalog.Relation) bool { return r.Options["island"] == "own" }
