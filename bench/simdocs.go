package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/shardd/shardd/bench/internal/experiment"
	"github.com/shardd/shardd/bench/internal/page"
)

// simBlock is the block of a page that has an experiment's rows.
func simBlock(name string) string { return "sim:" + name }

// document writes the rows of an experiment into its page in dir, and its plots
// beside the page.
func document(dir string, x *experiment.Experiment, rows []experiment.Row) error {
	path := filepath.Join(dir, x.Page)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if text, err = page.Replace(text, simBlock(x.Name), experiment.TableOf(rows).Markdown()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return err
	}
	if x.Plot == nil {
		return nil
	}
	for name, p := range x.Plot(rows) {
		svg, err := p.SVG()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, "plots", "sim-"+name+".svg"), svg, 0o644); err != nil {
			return err
		}
	}
	return nil
}
