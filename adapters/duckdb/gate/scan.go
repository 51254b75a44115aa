package gate

import (
	"strings"
	"unicode/utf8"
)

// token is a piece of SQL text that has a name in it. Its place is all that the gate takes from it: what it means is the engine
// parser's to say, and whatever is done at a token's place is checked by parsing again.
type token struct {
	kind       tokenKind
	start, end int
	// name of an identifier without its quotes, or of a parameter without its dollar sign.
	name string
}

type tokenKind uint8

const (
	otherToken tokenKind = iota
	identifierToken
	parameterToken
)

// tokens splits SQL at its identifiers and parameters, skipping strings and comments. The engine turns special Unicode spaces
// into plain ones before it counts offsets, so that a statement with one of them has no reliable places and is refused.
func tokens(sql string) ([]token, *Error) {
	var out []token
	for i := 0; i < len(sql); {
		start, c := i, sql[i]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v':
			i++
			continue
		case strings.HasPrefix(sql[i:], "--"):
			i = lineEnd(sql, i)
			continue
		case strings.HasPrefix(sql[i:], "/*"):
			i = commentEnd(sql, i)
			continue
		case c == '\'':
			i = quoted(sql, i, false)
		case (c == 'e' || c == 'E') && strings.HasPrefix(sql[i+1:], "'"):
			i = quoted(sql, i+1, true)
		case c == '"':
			i = quoted(sql, i, false)
			name := strings.TrimSuffix(sql[start+1:i], `"`)
			out = append(out, token{identifierToken, start, i, strings.ReplaceAll(name, `""`, `"`)})
			continue
		case c == '$':
			i = word(sql, i+1)
			if i < len(sql) && sql[i] == '$' && (i == start+1 || !digit(sql[start+1])) {
				tag := sql[start : i+1]
				if n := strings.Index(sql[i+1:], tag); n >= 0 {
					i += 1 + n + len(tag)
				} else {
					i = len(sql)
				}
				break
			}
			out = append(out, token{parameterToken, start, i, sql[start+1 : i]})
			continue
		case c == '?':
			i++
			out = append(out, token{parameterToken, start, i, ""})
			continue
		case digit(c):
			i = word(sql, i)
		case letter(c):
			i = word(sql, i)
			if i == start {
				return nil, &Error{start, "the statement has a special Unicode space outside of a string", "write an ordinary space"}
			}
			out = append(out, token{identifierToken, start, i, sql[start:i]})
			continue
		default:
			i++
		}
		out = append(out, token{otherToken, start, i, ""})
	}
	return out, nil
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func letter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= utf8.RuneSelf
}

// word is where the letters and digits that begin at i end; a special space ends them too.
func word(sql string, i int) int {
	for i < len(sql) && (letter(sql[i]) || digit(sql[i])) {
		r, n := utf8.DecodeRuneInString(sql[i:])
		if specialSpace(r) {
			return i
		}
		i += n
	}
	return i
}

func specialSpace(r rune) bool {
	return r == 0xA0 || r == 0x1680 || r == 0x180E || r >= 0x2000 && r <= 0x200F || r == 0x2028 || r == 0x2029 || r == 0x202F ||
		r == 0x205F || r == 0x2060 || r == 0x3000 || r == 0xFEFF
}

func lineEnd(sql string, i int) int {
	if n := strings.IndexAny(sql[i:], "\r\n"); n >= 0 {
		return i + n
	}
	return len(sql)
}

// commentEnd skips a block comment; they nest.
func commentEnd(sql string, i int) int {
	for depth := 0; i < len(sql); {
		switch {
		case strings.HasPrefix(sql[i:], "/*"):
			depth++
			i += 2
		case strings.HasPrefix(sql[i:], "*/"):
			depth--
			i += 2
			if depth == 0 {
				return i
			}
		default:
			i++
		}
	}
	return i
}

// quoted skips a quoted piece that begins at i; a doubled quote stands for itself, and so does one behind a backslash when
// escapes are on.
func quoted(sql string, i int, escapes bool) int {
	quote := sql[i]
	for i++; i < len(sql); i++ {
		switch {
		case escapes && sql[i] == '\\':
			i++
		case sql[i] != quote:
		case i+1 < len(sql) && sql[i+1] == quote:
			i++
		default:
			return i + 1
		}
	}
	return len(sql)
}
