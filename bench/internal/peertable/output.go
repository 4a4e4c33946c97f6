package peertable

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/shardd/shardd/bench/internal/page"
)

// Text returns the whole report for a terminal.
func (r Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n%d keys, median of %d interleaved pairs\n", r.Command, r.Machine, r.Keys, r.Pairs)
	for _, n := range r.Sizes() {
		fmt.Fprintf(&b, "\n%s", r.PlacementTable(n).Text())
	}
	if len(r.Pickers) > 0 {
		fmt.Fprintf(&b, "\n%s", r.PickerTable().Text())
	}
	if list := r.Left(); len(list) > 0 {
		fmt.Fprintf(&b, "\nLeft out:\n  %s\n", strings.Join(list, "\n  "))
	}
	if list := r.Notes(); len(list) > 0 {
		fmt.Fprintf(&b, "\nNotes:\n  %s\n", strings.Join(list, "\n  "))
	}
	return b.String()
}

// CSV writes one line for each placement, then one for each picker; fields that
// a line has not are empty.
func (r Report) CSV(out io.Writer) error {
	w := csv.NewWriter(out)
	rows := [][]string{{"what", "subject", "nodes", "ns", "ratio", "allocs", "build_ms", "add_ms", "remove_ms", "bytes",
		"peak", "cv", "add_x", "remove_x", "needless", "clock", "two", "two_worked", "left"}}
	f := func(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
	for _, p := range r.Placements {
		row := []string{"placement", p.Subject, strconv.Itoa(p.Nodes), "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", p.Left}
		if s := p.Speed; s != nil {
			copy(row[3:], []string{f(s.Key), f(s.Ratio), f(s.Allocs), f(s.Build), f(s.Add), f(s.Remove), strconv.FormatInt(s.Bytes, 10)})
		}
		if e := p.Exact; e != nil {
			copy(row[10:], []string{f(e.Peak), f(e.CV), f(e.Add), f(e.Remove), f(e.Needless)})
		}
		rows = append(rows, row)
	}
	for _, p := range r.Pickers {
		rows = append(rows, []string{"picker", p.Subject, strconv.Itoa(p.Nodes), f(p.Pick), f(p.Ratio), f(p.Allocs), "", "", "", "",
			"", "", "", "", "", p.Clock, f(p.Two), f(p.Worked), p.Left})
	}
	return w.WriteAll(rows)
}

// BlockName is the name of the block of a page that holds the table of
// placements with that many nodes.
func BlockName(nodes int) string { return fmt.Sprintf("peers-%d", nodes) }

// Check compares the report's counts with those in the blocks of a page and
// returns how many rows it compared. It fails on the first row that differs, or
// that the page has not, and if there is nothing to compare.
func (r Report) Check(text []byte) (int, error) {
	rows := 0
	for _, n := range r.Sizes() {
		block, err := page.Block(text, BlockName(n))
		if err != nil {
			return rows, err
		}
		there := readRows(block)
		for _, p := range r.Placements {
			if p.Nodes != n || p.Exact == nil {
				continue
			}
			rows++
			want := strings.Join(p.Exact.cells(), " ")
			if got := there[name(p.Subject, p.Ours)]; got != want {
				return rows, fmt.Errorf("peertable: %s at N = %d: the page has %q, computed is %q: write the page anew with `go run ./bench tables`", p.Subject, n, got, want)
			}
		}
	}
	if rows == 0 {
		return 0, fmt.Errorf("peertable: nothing to compare: no placements were measured")
	}
	return rows, nil
}

// readRows returns the last five cells of each row of a Markdown table by its
// first one.
func readRows(table string) map[string]string {
	rows := map[string]string{}
	for line := range strings.Lines(table) {
		cells := strings.Fields(strings.ReplaceAll(strings.Trim(strings.TrimSpace(line), "|"), "|", " | "))
		line := strings.Split(strings.Join(cells, " "), " | ")
		if len(line) > 5 {
			rows[line[0]] = strings.Join(line[len(line)-5:], " ")
		}
	}
	return rows
}
