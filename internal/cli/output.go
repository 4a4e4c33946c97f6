package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/goccy/go-yaml"

	"github.com/shardd/shardd/placement"
)

// Forms of output.
const (
	formatTable    = "table"
	formatJSON     = "json"
	formatYAML     = "yaml"
	formatTopology = "topology"
)

// emit writes v as JSON or YAML, or calls table.
func (a *app) emit(v any, table func(io.Writer)) error {
	switch a.format {
	case formatJSON:
		enc := json.NewEncoder(a.out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return writeError(enc.Encode(v))
	case formatYAML:
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if b, err = yaml.JSONToYAML(b); err != nil {
			return err
		}
		_, err = a.out.Write(b)
		return writeError(err)
	}
	table(a.out)
	return nil // a failed write shows when the buffer is flushed
}

// columns writes rows of cells, the first being the heading, aligned to the left.
func columns(w io.Writer, rows [][]string) {
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	_ = t.Flush() // to memory
	for line := range strings.Lines(text.String()) {
		fmt.Fprintln(w, strings.TrimRight(line, " \n"))
	}
}

// facts writes lines of "name  value".
func facts(w io.Writer, pairs ...string) {
	var rows [][]string
	for i := 0; i+1 < len(pairs); i += 2 {
		rows = append(rows, pairs[i:i+2])
	}
	columns(w, rows)
}

// percent writes a share of 1 as a percentage. Small shares keep two digits, so
// that what is not 0 is not shown as 0; what rounding leaves of a sum is 0.
func percent(x float64) string {
	switch {
	case math.Abs(x) < 1e-13:
		return "0 %"
	case math.Abs(x) < 0.0001:
		return fmt.Sprintf("%.2g %%", 100*x)
	}
	return fmt.Sprintf("%.2f %%", 100*x)
}

// moved describes a movement on one line.
func moved(s placement.Summary) string {
	text := fmt.Sprintf("%s of the keys; minimum %s, excess %s", percent(s.Ratio), percent(s.Minimum), signed(s.Excess))
	if s.Remapped > 0 {
		text += ", remapped between unchanged nodes " + percent(s.Remapped)
	} else {
		text += ", between unchanged nodes " + percent(s.BetweenUnchanged)
	}
	if s.Interval != nil {
		text += fmt.Sprintf(" (sampled, 95 %%: %s to %s)", percent(s.Interval[0]), percent(s.Interval[1]))
	}
	return text
}

func signed(x float64) string {
	if x > 1e-13 {
		return "+" + percent(x)
	}
	return percent(x)
}

// peak writes a ratio of the largest share to the mean.
func peak(x float64) string {
	if x == 0 {
		return "-"
	}
	return fmt.Sprintf("%.4f", x)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
