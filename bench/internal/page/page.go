// Package page keeps measured tables in marked blocks of Markdown pages, so
// that the text around them is written by people and the figures by a program.
//
// A block stands between two lines, each of which is a comment:
//
//	<!-- balance -->
//	...
//	<!-- /balance -->
package page

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Block returns what stands in the block name of page, without the markers.
// It fails if the block is missing, is there twice, or does not end.
func Block(page []byte, name string) (string, error) {
	from, to, err := find(page, name)
	if err != nil {
		return "", err
	}
	return string(page[from:to]), nil
}

// Replace returns page with body in the block name. The errors are Block's;
// page itself stays as it is.
func Replace(page []byte, name, body string) ([]byte, error) {
	from, to, err := find(page, name)
	if err != nil {
		return nil, err
	}
	if body != "" && !strings.HasSuffix(body, "\n") {
		body += "\n"
	}
	return bytes.Join([][]byte{page[:from], []byte(body), page[to:]}, nil), nil
}

// find returns where the text between the markers begins and ends.
func find(page []byte, name string) (from, to int, err error) {
	open, end := []byte("<!-- "+name+" -->\n"), []byte("<!-- /"+name+" -->\n")
	if n := bytes.Count(page, open); n != 1 {
		return 0, 0, fmt.Errorf("page: block %q begins %d times; want once, by the line %q", name, n, open)
	}
	from = bytes.Index(page, open) + len(open)
	length := bytes.Index(page[from:], end)
	if length < 0 {
		return 0, 0, fmt.Errorf("page: block %q does not end; want the line %q", name, end)
	}
	return from, from + length, nil
}

// Table is a table in which every row has as many cells as Header.
type Table struct {
	Header []string
	Rows   [][]string
}

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Markdown writes the table with its columns padded to one width; the first
// column is aligned left, the others right.
func (t Table) Markdown() string {
	widths := t.widths()
	var b strings.Builder
	line := func(cells []string) {
		for i, c := range cells {
			b.WriteString("| ")
			b.WriteString(padded(c, widths[i], i > 0))
			b.WriteByte(' ')
		}
		b.WriteString("|\n")
	}
	line(t.Header)
	for i, w := range widths {
		b.WriteByte('|')
		if i == 0 {
			b.WriteString(strings.Repeat("-", w+2))
		} else {
			b.WriteString(strings.Repeat("-", w+1) + ":")
		}
	}
	b.WriteString("|\n")
	for _, r := range t.Rows {
		line(r)
	}
	return b.String()
}

// Text writes the table for a terminal.
func (t Table) Text() string {
	widths := t.widths()
	var b strings.Builder
	for _, r := range append([][]string{t.Header}, t.Rows...) {
		cells := make([]string, len(r))
		for i, c := range r {
			cells[i] = padded(c, widths[i], i > 0)
		}
		b.WriteString(strings.TrimRight(strings.Join(cells, "  "), " ") + "\n")
	}
	return b.String()
}

func (t Table) widths() []int {
	widths := make([]int, len(t.Header))
	for _, r := range append([][]string{t.Header}, t.Rows...) {
		for i, c := range r {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	return widths
}

func padded(s string, width int, right bool) string {
	pad := strings.Repeat(" ", width-utf8.RuneCountInString(s))
	if right {
		return pad + s
	}
	return s + pad
}
