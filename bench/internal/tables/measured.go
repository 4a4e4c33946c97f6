package tables

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/shardd/shardd/bench/internal/page"
	"github.com/shardd/shardd/bench/internal/peertable"
)

// families are the algorithms that have a page.
var families = [...]string{"ring", "jump", "rendezvous", "maglev", "slots"}

// peersPage is the page of the comparison with other libraries.
const peersPage = "peers.md"

// measured puts what r measured into the pages.
func (p *pages) measured(r peertable.Report) error {
	for _, family := range families {
		name := family + ".md"
		if err := p.put(name, "run", runLine(r)); err != nil {
			return err
		}
		if err := p.put(name, "speed", speed(r, family).Markdown()); err != nil {
			return err
		}
		if err := p.put(name, "cost", cost(r, family).Markdown()); err != nil {
			return err
		}
	}
	if err := p.put(peersPage, "run", runLine(r)); err != nil {
		return err
	}
	for _, n := range r.Sizes() {
		if err := p.put(peersPage, peertable.BlockName(n), r.PlacementTable(n).Markdown()); err != nil {
			return err
		}
	}
	if err := p.put(peersPage, "pickers", r.PickerTable().Markdown()); err != nil {
		return err
	}
	if err := p.put(peersPage, "left", bullets(r.Left())); err != nil {
		return err
	}
	return p.put(peersPage, "notes", bullets(r.Notes()))
}

// runLine says how the figures came about.
func runLine(r peertable.Report) string {
	return fmt.Sprintf("Measured by `%s` (which runs `%s`) on %s: %s keys of 16 bytes, median of %d\ninterleaved pairs, in one process.\n",
		Command, r.Command, r.Machine, thousands(r.Keys), r.Pairs)
}

func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func bullets(list []string) string {
	if len(list) == 0 {
		return "Nothing.\n"
	}
	return "- " + strings.Join(list, "\n- ") + "\n"
}

// speed is the ratio to the floor of the family's subjects by nodes.
func speed(r peertable.Report, family string) page.Table {
	sizes := r.Sizes()
	t := page.Table{Header: []string{"x floor, N ="}}
	for _, n := range sizes {
		t.Header = append(t.Header, thousands(n))
	}
	for _, subject := range subjects(r, family) {
		row := []string{subject}
		for _, n := range sizes {
			cell := "-"
			if s := find(r, subject, n); s != nil {
				cell = peertable.Ratio(s.Ratio)
			}
			row = append(row, cell)
		}
		t.Add(row...)
	}
	return t
}

// cost is what building and changing the family's subjects takes.
func cost(r peertable.Report, family string) page.Table {
	t := page.Table{Header: []string{"", "N", "build ms", "add one ms", "remove one ms", "KiB"}}
	for _, subject := range subjects(r, family) {
		for _, n := range r.Sizes() {
			p := row(r, subject, n)
			if p == nil || p.Exact == nil { // batch forms are built like the plain ones
				continue
			}
			s := p.Speed
			t.Add(subject, thousands(n), peertable.Ratio(s.Build), peertable.Ratio(s.Add), peertable.Ratio(s.Remove), strconv.FormatInt((s.Bytes+1023)/1024, 10))
		}
	}
	return t
}

// subjects lists ours of a family, each once.
func subjects(r peertable.Report, family string) []string {
	var list []string
	seen := map[string]bool{}
	for _, p := range r.Placements {
		if p.Ours && p.Family == family && !seen[p.Subject] {
			seen[p.Subject] = true
			list = append(list, p.Subject)
		}
	}
	return list
}

func row(r peertable.Report, subject string, nodes int) *peertable.Placement {
	for i, p := range r.Placements {
		if p.Subject == subject && p.Nodes == nodes && p.Speed != nil {
			return &r.Placements[i]
		}
	}
	return nil
}

func find(r peertable.Report, subject string, nodes int) *peertable.Speed {
	if p := row(r, subject, nodes); p != nil {
		return p.Speed
	}
	return nil
}
