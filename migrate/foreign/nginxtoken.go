package foreign

import "strings"

// statement is a directive of an nginx file: its words, and what stands in its
// braces.
type statement struct {
	line   int
	words  []string
	block  []statement
	braces bool
}

// nginxReader takes a file apart by the rules of nginx (ngx_conf_read_token).
type nginxReader struct {
	data string
	at   int
	line int
}

// end says how a run of words ended.
type end uint8

const (
	endFile  end = iota
	endWords     // ';'
	endOpen      // '{'
	endClose     // '}'
)

func parseNginxFile(data []byte) ([]statement, error) {
	r := &nginxReader{data: strings.TrimPrefix(string(data), "\uFEFF"), line: 1}
	return r.statements(0)
}

func (r *nginxReader) statements(depth int) ([]statement, error) {
	if depth > maxDepth {
		return nil, fault(r.line, "", "nested too deeply")
	}
	var out []statement
	for {
		s, how, err := r.statement()
		if err != nil {
			return nil, err
		}
		switch {
		case how == endClose && depth == 0:
			return nil, fault(r.line, "", "'}' without '{'")
		case how == endFile && depth > 0:
			return nil, fault(r.line, "", "the file ends within a block; '}' is missing")
		case how == endClose || how == endFile:
			return out, nil
		case how == endOpen && strings.HasSuffix(s.words[0], "_by_lua_block"):
			s.braces, err = true, r.skipLua()
		case how == endOpen:
			s.braces = true
			s.block, err = r.statements(depth + 1)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
}

// statement reads words up to what ends them.
func (r *nginxReader) statement() (statement, end, error) {
	var s statement
	for {
		r.skipBlank()
		if r.at == len(r.data) {
			if len(s.words) > 0 {
				return s, endFile, fault(r.line, s.words[0], "the file ends before ';' or '{'")
			}
			return s, endFile, nil
		}
		how := endFile
		switch r.data[r.at] {
		case ';':
			how = endWords
		case '{':
			how = endOpen
		case '}':
			how = endClose
		}
		if how != endFile {
			c := r.data[r.at]
			if (how == endClose) != (len(s.words) == 0) {
				return s, how, fault(r.line, "", "unexpected %q", c)
			}
			r.at++
			return s, how, nil
		}
		if len(s.words) == 0 {
			s.line = r.line
		}
		w, err := r.word()
		if err != nil {
			return s, how, err
		}
		s.words = append(s.words, w)
	}
}

// skipBlank passes space and comments.
func (r *nginxReader) skipBlank() {
	for ; r.at < len(r.data); r.at++ {
		switch r.data[r.at] {
		case '\n':
			r.line++
		case ' ', '\t', '\r':
		case '#':
			for r.at < len(r.data)-1 && r.data[r.at+1] != '\n' {
				r.at++
			}
		default:
			return
		}
	}
}

// word reads one word, quoted or not.
func (r *nginxReader) word() (string, error) {
	quote := byte(0)
	if c := r.data[r.at]; c == '"' || c == '\'' {
		quote = c
		r.at++
	}
	var b strings.Builder
	first, variable := r.line, false
	for ; r.at < len(r.data); r.at++ {
		c := r.data[r.at]
		switch {
		case c == '\\' && r.at+1 < len(r.data):
			r.at++
			r.escape(&b, r.data[r.at])
			variable = false
			continue
		case quote != 0 && c == quote:
			r.at++
			return b.String(), r.behindQuote()
		case quote == 0 && variable && c == '{': // ${name}
		case quote == 0 && strings.IndexByte(" \t\r\n;{", c) >= 0:
			return b.String(), nil
		}
		variable = c == '$'
		if c == '\n' {
			r.line++
		}
		b.WriteByte(c)
	}
	if quote != 0 {
		return "", fault(first, "", "a quote that is not closed")
	}
	return b.String(), nil
}

// escape writes what a backslash before c stands for.
func (r *nginxReader) escape(b *strings.Builder, c byte) {
	switch c {
	case '"', '\'', '\\':
	case 't':
		c = '\t'
	case 'r':
		c = '\r'
	case 'n':
		c = '\n'
	default:
		b.WriteByte('\\')
		if c == '\n' {
			r.line++
		}
	}
	b.WriteByte(c)
}

// behindQuote wants a closed word to end where its quote does.
func (r *nginxReader) behindQuote() error {
	if r.at < len(r.data) && strings.IndexByte(" \t\r\n;{)", r.data[r.at]) < 0 {
		return fault(r.line, "", "unexpected %q behind a quote", r.data[r.at])
	}
	return nil
}

// skipLua passes a block of Lua up to its brace; braces in strings and comments do
// not count.
func (r *nginxReader) skipLua() error {
	first, depth := r.line, 1
	for ; r.at < len(r.data); r.at++ {
		rest := r.data[r.at:]
		switch c := rest[0]; {
		case c == '\n':
			r.line++
		case strings.HasPrefix(rest, "--"):
			if n := strings.IndexByte(rest, '\n'); n >= 0 {
				r.at += n - 1
			}
		case c == '"' || c == '\'':
			r.skipLuaString(c)
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				r.at++
				return nil
			}
		}
	}
	return fault(first, "", "a block of Lua that is not closed")
}

func (r *nginxReader) skipLuaString(quote byte) {
	for r.at++; r.at < len(r.data) && r.data[r.at] != quote; r.at++ {
		switch r.data[r.at] {
		case '\\':
			r.at++
		case '\n':
			r.line++
			return // no string of Lua runs over a line
		}
	}
}
