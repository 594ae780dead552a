package bind

// optimize applies the rewrites, one a file, in their order.
func (b *binder) optimize(t *tree) (*tree, error) {
	b.rewriting = true
	defer func() { b.rewriting = false }()
	t, err := b.foldConstants(t)
	if err != nil {
		return nil, err
	}
	if t, err = b.pushFilters(t, nil); err != nil {
		return nil, err
	}
	if t, err = b.chooseJoins(t); err != nil {
		return nil, err
	}
	return b.mergeProjects(t)
}

// rebuildWith applies a rewrite to the inputs of a tree and makes the tree again over the results.
func (b *binder) rebuildWith(t *tree, fn func(*tree) (*tree, error)) (*tree, error) {
	in := make([]*tree, len(t.in))
	for i := range t.in {
		r, err := fn(t.in[i])
		if err != nil {
			return nil, err
		}
		in[i] = r
	}
	return b.rebuild(t, in...)
}
