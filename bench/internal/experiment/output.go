package experiment

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/shardd/shardd/bench/internal/page"
)

// Formats of Write.
const (
	Table = "table"
	JSON  = "json"
	CSV   = "csv"
)

// Write writes rows in a format. A table is written for each experiment; JSON is
// one list of rows, CSV one table with the columns of all.
func Write(w io.Writer, format string, rows []Row) error {
	switch format {
	case JSON:
		if rows == nil {
			rows = []Row{}
		}
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(rows)
	case CSV:
		return writeCSV(w, rows)
	case Table:
		return writeTables(w, rows)
	}
	return fmt.Errorf("%w: output %q: want %s, %s or %s", ErrParam, format, Table, JSON, CSV)
}

// columns are those of a table of rows.
type columns struct {
	params, metrics      []string
	policy, bump, checks bool
}

func columnsOf(rows []Row) columns {
	var c columns
	for i := range rows {
		r := &rows[i]
		for _, p := range r.Params {
			addTo(&c.params, p.Name)
		}
		for _, m := range r.Metrics {
			addTo(&c.metrics, m.Name)
		}
		c.policy = c.policy || r.Policy != ""
		c.bump = c.bump || r.Bump
		c.checks = c.checks || len(r.Checks) > 0
	}
	return c
}

func addTo(list *[]string, s string) {
	if !slices.Contains(*list, s) {
		*list = append(*list, s)
	}
}

func (c *columns) header() []string {
	h := []string{}
	if c.policy {
		h = append(h, "policy")
	}
	if c.bump {
		h = append(h, "bump")
	}
	return slices.Concat(h, c.params, c.metrics)
}

func (c *columns) cells(r *Row) []string {
	var cells []string
	if c.policy {
		cells = append(cells, r.Policy)
	}
	if c.bump {
		cells = append(cells, fmt.Sprint(r.Bump))
	}
	for _, name := range c.params {
		cells = append(cells, r.paramText(name))
	}
	for _, name := range c.metrics {
		text := ""
		if x, ok := r.Get(name); ok {
			text = number(x)
		}
		cells = append(cells, text)
	}
	return cells
}

func (r *Row) paramText(name string) string {
	if x, ok := r.Param(name); ok {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	for _, p := range r.Params {
		if p.Name == name {
			return fmt.Sprint(p.Value)
		}
	}
	return ""
}

// verdict is "ok", "FAILED", or nothing if the row has no checks.
func (r *Row) verdict() string {
	switch {
	case len(r.Checks) == 0:
		return ""
	case r.OK():
		return "ok"
	}
	return "FAILED"
}

func (r *Row) expected() string {
	var list []string
	for _, c := range r.Checks {
		list = append(list, c.String())
	}
	return strings.Join(list, ", ")
}

// TableOf is the table of the rows of one experiment, with what was expected.
func TableOf(rows []Row) page.Table {
	c := columnsOf(rows)
	t := page.Table{Header: c.header()}
	if c.checks {
		t.Header = append(t.Header, "expected", "")
	}
	for i := range rows {
		cells := c.cells(&rows[i])
		if c.checks {
			cells = append(cells, rows[i].expected(), rows[i].verdict())
		}
		t.Add(cells...)
	}
	return t
}

func writeTables(w io.Writer, rows []Row) error {
	for len(rows) > 0 {
		n := slices.IndexFunc(rows, func(r Row) bool { return r.Experiment != rows[0].Experiment })
		if n < 0 {
			n = len(rows)
		}
		if _, err := fmt.Fprintf(w, "# %s\n%s\n", rows[0].Experiment, TableOf(rows[:n]).Text()); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

func writeCSV(w io.Writer, rows []Row) error {
	c := columnsOf(rows)
	c.policy, c.bump = true, true
	out := csv.NewWriter(w)
	records := [][]string{slices.Concat([]string{"experiment"}, c.header(), []string{"expected", "ok"})}
	for i := range rows {
		r := &rows[i]
		records = append(records, slices.Concat([]string{r.Experiment}, c.cells(r), []string{r.expected(), fmt.Sprint(r.OK())}))
	}
	return out.WriteAll(records)
}
