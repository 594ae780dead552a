package ast

// Format prints a node as SQL; parsing the result gives an equal tree (spans apart).
func Format(n Node) string {
	return ""
}
