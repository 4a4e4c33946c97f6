// Command peers measures this module's packages and other Go libraries side by
// side, on the same keys and nodes, in one run, and prints one table of
// placements for each number of nodes and one of pickers:
//
//	go run -C bench/peers .
//
// It has a go.mod of its own, so that nobody who uses the module has to load
// what it is compared with. Times are those of the thread and ratios come from
// interleaved pairs; figures of one run can be compared with each other, and
// nanoseconds of two runs can not.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/grpclog"

	"github.com/zeromicro/go-zero/core/logx"

	"github.com/shardd/shardd/bench/internal/machine"
	"github.com/shardd/shardd/bench/internal/peertable"
	"github.com/shardd/shardd/bench/peers/internal/pickers"
	"github.com/shardd/shardd/bench/peers/internal/placements"
	"github.com/shardd/shardd/internal/floorbench"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	quick            bool
	nodes, pickNodes []int
	only             string
	output           string
	docs             string
	slowest          time.Duration
	placements       bool
	pickers          bool
}

func run(args []string, out, talk io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	logx.Disable() // go-zero would write a line of statistics to standard output every minute
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, talk))
	r := o.measure(talk)
	if err := write(r, o.output, out); err != nil {
		return err
	}
	if o.docs == "" {
		return nil
	}
	return check(r, o.docs, talk)
}

func parse(args []string) (options, error) {
	var o options
	var nodes, pickNodes, what string
	f := flag.NewFlagSet("peers", flag.ContinueOnError)
	f.BoolVar(&o.quick, "quick", false, "few pairs and small sizes, for a test: the counts are right, the times are rough")
	f.StringVar(&nodes, "nodes", "", "numbers of nodes for placements, ascending (default 10,100,1000,10000; with -quick 10,100)")
	f.StringVar(&pickNodes, "pick-nodes", "", "numbers of nodes for pickers, ascending (default 10,100,1000; with -quick 10,100)")
	f.StringVar(&o.only, "only", "", "measure subjects whose name contains this text only")
	f.StringVar(&what, "what", "placements,pickers", "what to measure")
	f.StringVar(&o.output, "o", "table", "output: table, json or csv")
	f.StringVar(&o.docs, "check", "", "fail if the counts differ from those on this page")
	f.DurationVar(&o.slowest, "slowest", 90*time.Second, "leave out a size whose build would take longer")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %q; see -help", f.Arg(0))
	}
	o.placements, o.pickers = strings.Contains(what, "placements"), strings.Contains(what, "pickers")
	defaults := [2]string{"10,100,1000,10000", "10,100,1000"}
	if o.quick {
		defaults = [2]string{"10,100", "10,100"}
		o.slowest = min(o.slowest, 2*time.Second)
	}
	var err error
	if o.nodes, err = numbers(nodes, defaults[0]); err != nil {
		return o, fmt.Errorf("-nodes: %w", err)
	}
	if o.pickNodes, err = numbers(pickNodes, defaults[1]); err != nil {
		return o, fmt.Errorf("-pick-nodes: %w", err)
	}
	return o, nil
}

// numbers reads ascending numbers above 1, separated by commas.
func numbers(s, empty string) ([]int, error) {
	if s == "" {
		s = empty
	}
	var list []int
	for field := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || n < 2 || n > 60000 {
			return nil, fmt.Errorf("%q: want numbers from 2 to 60000, separated by commas", field)
		}
		if len(list) > 0 && n <= list[len(list)-1] {
			return nil, fmt.Errorf("%d after %d: give them in ascending order", n, list[len(list)-1])
		}
		list = append(list, n)
	}
	return list, nil
}

// measure runs what is asked for.
func (o options) measure(talk io.Writer) peertable.Report {
	place := placements.Config{Keys: floorbench.NumKeys, Pairs: 10, ExactKeys: floorbench.NumKeys, Slowest: o.slowest, Budget: 200 * time.Millisecond}
	pick := pickers.Config{Pairs: 20, Pass: 10 * time.Millisecond, Rounds: 400, Round: 80 * time.Microsecond, Work: time.Microsecond}
	if o.quick {
		place.Keys, place.Pairs, place.Budget = 100_000, 3, 20*time.Millisecond
		pick.Pairs, pick.Pass, pick.Rounds = 3, 2*time.Millisecond, 40
	}
	r := peertable.Report{Command: "go run -C bench/peers .", Machine: machine.Describe(), Keys: place.Keys, Pairs: place.Pairs}
	if o.placements {
		list := pickOnly(placements.Subjects(), o.only, func(s placements.Subject) string { return s.Name })
		r.Placements = placements.Measure(list, o.nodes, place, func(p peertable.Placement) {
			fmt.Fprintf(talk, "%s, N = %d: %s\n", p.Subject, p.Nodes, brief(p.Left, p.Speed))
		})
	}
	if o.pickers {
		list := pickOnly(pickers.Subjects(), o.only, func(s pickers.Subject) string { return s.Name })
		r.Pickers = pickers.Measure(list, o.pickNodes, pick, func(p peertable.Picker) {
			fmt.Fprintf(talk, "%s, n = %d: %s %.1f ns\n", p.Subject, p.Nodes, p.Left, p.Pick)
		})
	}
	return r
}

func pickOnly[T any](list []T, only string, name func(T) string) []T {
	var kept []T
	for _, s := range list {
		if strings.Contains(name(s), only) {
			kept = append(kept, s)
		}
	}
	return kept
}

func brief(left string, s *peertable.Speed) string {
	if s == nil {
		return "left out: " + left
	}
	return fmt.Sprintf("%s x floor, %s ns", peertable.Ratio(s.Ratio), peertable.Ratio(s.Key))
}

// check compares the counts of r with those on the page.
func check(r peertable.Report, docs string, talk io.Writer) error {
	text, err := os.ReadFile(docs)
	if err != nil {
		return err
	}
	rows, err := r.Check(text)
	if err != nil {
		return fmt.Errorf("%s: %w", docs, err)
	}
	fmt.Fprintf(talk, "%s: %d rows as computed\n", docs, rows)
	return nil
}

func write(r peertable.Report, format string, out io.Writer) error {
	switch format {
	case "json":
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(r)
	case "csv":
		return r.CSV(out)
	case "table":
		_, err := io.WriteString(out, r.Text())
		return err
	}
	return fmt.Errorf("-o %s: want table, json or csv", format)
}
