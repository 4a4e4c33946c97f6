// Command plan says what a change would move, without any server: the library
// behind "migrate plan" on two cluster files.
//
//	go run ./examples/plan            # the two files of this example
//	go run ./examples/plan now.yaml next.yaml
package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"

	"github.com/shardd/shardd/migrate"
)

var (
	//go:embed now.yaml
	now []byte
	//go:embed next.yaml
	next []byte
)

func main() {
	loader := migrate.Loader{}
	from, to := "now.yaml", "next.yaml"
	if len(os.Args) == 3 {
		from, to = os.Args[1], os.Args[2]
	} else {
		loader.ReadFile = func(path string) ([]byte, error) {
			return map[string][]byte{"now.yaml": now, "next.yaml": next}[path], nil
		}
	}
	if err := plan(os.Stdout, loader, from, to); err != nil {
		fmt.Fprintln(os.Stderr, "plan:", err)
		os.Exit(1)
	}
}

func plan(w io.Writer, loader migrate.Loader, now, next string) error {
	ctx := context.Background()
	from, err := loader.Source(ctx, now)
	if err != nil {
		return err
	}
	to, err := loader.Target(ctx, from, next)
	if err != nil {
		return err
	}
	p, err := migrate.New(from, to, 0)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s: %.2f %% of the keys move, at least %.2f %% must\n", p.Report.Cause, 100*p.Report.Ratio, 100*p.Report.Minimum)
	for _, n := range p.Report.Nodes {
		fmt.Fprintf(w, "%-8s %6.2f %% -> %6.2f %%\n", n.ID, 100*n.Before, 100*n.After)
	}
	c, err := migrate.Compare(from, to)
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "the same change elsewhere:")
	for _, row := range c.Rows {
		if row.Movement == nil {
			fmt.Fprintf(w, "%-11s %s\n", row.Algorithm, row.Note)
			continue
		}
		fmt.Fprintf(w, "%-11s %6.2f %%\n", row.Algorithm, 100*row.Movement.Ratio)
	}
	return nil
}
