package regex

import (
	"unicode/utf8"

	"github.com/leat-io/leat/internal/expr/needle"
)

// required is a string that every match contains, and how many bytes of a match may stand before it. It says at once that there is no match, or
// where the first one cannot start before.
type required struct {
	str    []byte // nil: there is none
	needle *needle.Needle
	lo, hi int // bytes before it; hi < 0: any number
}

// minRequired is the shortest string that is worth looking for: single characters are everywhere.
const minRequired = 2

// requiredOf finds the longest string in a row of what must match; one with a bounded place is better than any without.
func requiredOf(n *node) required {
	var best, run required
	lo, hi := 0, 0
	take := func() {
		bounded := run.hi >= 0 && best.hi < 0
		if len(run.str) >= minRequired && (best.str == nil || bounded || run.hi >= 0 == (best.hi >= 0) && len(run.str) > len(best.str)) {
			best = run
		}
		run.str = nil
	}
	for _, item := range flat(n, nil) {
		if item.literal() {
			if run.str == nil {
				run = required{lo: lo, hi: hi}
			}
			run.str = utf8.AppendRune(run.str, item.set.ranges[0][0])
		} else {
			take()
		}
		a, b := item.width()
		lo += a
		if hi >= 0 && b >= 0 {
			hi += b
		} else {
			hi = -1
		}
	}
	take()
	if best.str != nil {
		best.needle = needle.New(best.str)
	}
	return best
}

// flat appends what must match one after the other.
func flat(n *node, dst []*node) []*node {
	switch n.op {
	case opCat, opGroup:
		for _, sub := range n.subs {
			dst = flat(sub, dst)
		}
		return dst
	}
	return append(dst, n)
}

// maxWidth is where a width counts as unbounded: looking back further would not help.
const maxWidth = 1 << 16

// width is how many bytes n matches at least and at most; hi < 0: there is no end.
func (n *node) width() (lo, hi int) {
	switch n.op {
	case opChars:
		n.set.normal()
		if len(n.set.ranges) == 0 {
			return 0, -1
		}
		if lo = utf8.RuneLen(n.set.ranges[0][0]); lo < 0 {
			lo = 1 // not a character that text can have
		}
		if hi = utf8.RuneLen(n.set.ranges[len(n.set.ranges)-1][1]); hi < 0 {
			hi = utf8.UTFMax
		}
		return lo, hi
	case opCat, opGroup:
		for _, sub := range n.subs {
			a, b := sub.width()
			lo, hi = lo+a, plusWidth(hi, b)
		}
	case opAlt:
		for i, sub := range n.subs {
			a, b := sub.width()
			if i == 0 {
				lo, hi = a, b
				continue
			}
			lo = min(lo, a)
			if hi >= 0 && b >= 0 {
				hi = max(hi, b)
			} else {
				hi = -1
			}
		}
	case opRepeat:
		a, b := n.subs[0].width()
		lo = a * n.min
		switch {
		case b == 0:
			hi = 0
		case n.max < 0 || b < 0:
			hi = -1
		default:
			hi = b * n.max
		}
	}
	if hi > maxWidth {
		hi = -1
	}
	return min(max(lo, 0), maxWidth), hi
}

func plusWidth(a, b int) int {
	if a < 0 || b < 0 {
		return -1
	}
	return a + b
}

// from is the first place from pos on where a match may start; -1 when there is none.
func (q *required) from(text []byte, pos int) int {
	if pos+q.lo > len(text) {
		return -1
	}
	i := q.needle.Index(text[pos+q.lo:])
	if i < 0 {
		return -1
	}
	if q.hi < 0 {
		return pos
	}
	if at := pos + q.lo + i - q.hi; at > pos {
		for at < len(text) && !utf8.RuneStart(text[at]) {
			at++
		}
		return at
	}
	return pos
}
