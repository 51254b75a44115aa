package project

// NodeKind is what a YAML node is.
type NodeKind uint8

// The kinds of nodes. Scalar kinds say how YAML reads the text: `1` is an integer, `"1"` a string.
const (
	NullNode NodeKind = iota
	StringNode
	IntegerNode
	FloatNode
	BooleanNode
	ListNode
	MappingNode
)

// String names the kind for people.
func (k NodeKind) String() string {
	switch k {
	case NullNode:
		return "nothing"
	case StringNode:
		return "a string"
	case IntegerNode:
		return "an integer"
	case FloatNode:
		return "a number"
	case BooleanNode:
		return "a boolean"
	case ListNode:
		return "a list"
	case MappingNode:
		return "a mapping"
	}
	return "an unknown node"
}

// Node is a YAML value with its place. Which fields are set depends on Kind.
type Node struct {
	Kind NodeKind
	At   Position
	// Text of a scalar, as written and unquoted.
	Text string
	// Body is where Text begins in the file when it stands there as it is; else it is zero, as for a string with escapes. Indent is how
	// many characters stand before each further line of Text.
	Body   Position
	Indent int
	// Items of a list.
	Items []Node
	// Entries of a mapping, in order, repetitions included: the decoder refuses them.
	Entries []Entry
}

// Entry is a key and value of a mapping.
type Entry struct {
	Key   Node
	Value Node
}
