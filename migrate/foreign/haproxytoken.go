package foreign

import (
	"bytes"
	"strconv"
	"strings"
)

// haproxyLine is a line of a HAProxy file.
type haproxyLine struct {
	number int
	words  []string
	env    bool // a word depends on the environment
	open   bool // a quote is not closed
}

// haproxyLines takes a file apart by the rules of the configuration manual,
// section 2.2: words between blanks, comments from '#', "weak" and 'strong'
// quotes, backslashes; variables of the environment within weak quotes.
func haproxyLines(data []byte) []haproxyLine {
	var out []haproxyLine
	number := 0
	for b := range bytes.Lines(bytes.TrimPrefix(data, []byte("\uFEFF"))) {
		number++
		s := haproxyScan{rest: strings.TrimRight(string(b), "\r\n")}
		s.run()
		if len(s.words) > 0 {
			out = append(out, haproxyLine{number, s.words, s.env, s.quote != 0})
		}
	}
	return out
}

// haproxyScan is a line while it is read.
type haproxyScan struct {
	rest  string
	words []string
	word  strings.Builder
	in    bool // a word has begun
	quote byte
	env   bool
}

func (s *haproxyScan) run() {
	for s.rest != "" {
		c := s.rest[0]
		s.rest = s.rest[1:]
		switch {
		case c == '\\' && s.quote != '\'':
			s.escape()
		case s.quote != 0 && c == s.quote:
			s.quote = 0
		case s.quote == 0 && (c == '"' || c == '\''):
			s.quote, s.in = c, true
		case s.quote == 0 && c == '#':
			s.rest = ""
		case s.quote == 0 && (c == ' ' || c == '\t'):
			s.flush()
		default:
			if c == '$' && s.quote == '"' && s.rest != "" && (s.rest[0] == '{' || s.rest[0] == '_' || s.rest[0]|0x20 >= 'a' && s.rest[0]|0x20 <= 'z') {
				s.env = true
			}
			s.put(c)
		}
	}
	s.flush()
}

func (s *haproxyScan) put(c byte) {
	s.in = true
	s.word.WriteByte(c)
}

func (s *haproxyScan) flush() {
	if s.in {
		s.words = append(s.words, s.word.String())
	}
	s.in = false
	s.word.Reset()
}

// escape reads what stands behind a backslash; an unknown one stays as it is.
func (s *haproxyScan) escape() {
	if s.rest == "" {
		s.put('\\')
		return
	}
	c, n := s.rest[0], 1
	switch c {
	case ' ', '\\', '"', '\'', '#', '$':
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'x':
		if len(s.rest) >= 3 {
			if v, err := strconv.ParseUint(s.rest[1:3], 16, 8); err == nil {
				c, n = byte(v), 3
				break
			}
		}
		c, n = '\\', 0
	default:
		c, n = '\\', 0
	}
	s.put(c)
	s.rest = s.rest[n:]
}
