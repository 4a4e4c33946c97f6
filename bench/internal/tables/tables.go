// Package tables writes the figures of the pages on the algorithms into their
// marked blocks, draws their plots, and checks that the figures which do not
// depend on the machine are what the code computes.
package tables

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/shardd/shardd/bench/internal/exact"
	"github.com/shardd/shardd/bench/internal/page"
	"github.com/shardd/shardd/bench/internal/peertable"
)

// Command is what writes the pages; error texts and pages name it.
const Command = "go run ./bench tables"

// PlotDir is the directory of the plots in that of the pages.
const PlotDir = "plots"

// ErrStale is wrapped by Check's error where a page has other figures than the
// code computes: write the pages anew.
var ErrStale = errors.New("tables: a page is not up to date")

// pages are read once and written once.
type pages struct {
	dir  string
	text map[string][]byte
}

func open(dir string) *pages { return &pages{dir, map[string][]byte{}} }

func (p *pages) read(name string) ([]byte, error) {
	if text, ok := p.text[name]; ok {
		return text, nil
	}
	text, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil {
		return nil, err
	}
	p.text[name] = text
	return text, nil
}

// put replaces a block, in memory.
func (p *pages) put(name, block, body string) error {
	text, err := p.read(name)
	if err != nil {
		return err
	}
	if text, err = page.Replace(text, block, body); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p.text[name] = text
	return nil
}

// write writes all pages that have changed.
func (p *pages) write() error {
	for name, text := range p.text {
		path := filepath.Join(p.dir, name)
		if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, text) {
			continue
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Write computes the exact blocks and their plots and writes them into the
// pages of dir, together with what was measured: r, or nothing if r is nil.
// Nothing is written before all is computed.
func Write(dir string, r *peertable.Report, progress func(string)) error {
	p := open(dir)
	for _, b := range exact.Blocks() {
		progress(b.Page + ": " + b.Name)
		table, err := b.Table()
		if err != nil {
			return fmt.Errorf("%s, %s: %w", b.Page, b.Name, err)
		}
		if err := p.put(b.Page, b.Name, table.Markdown()); err != nil {
			return err
		}
	}
	progress("plots")
	pictures, err := exactPlots()
	if err != nil {
		return err
	}
	if r != nil {
		if err := p.measured(*r); err != nil {
			return err
		}
		for name, plot := range measuredPlots(*r) {
			pictures[name] = plot
		}
	}
	drawn := map[string][]byte{}
	for name, plot := range pictures {
		if drawn[name], err = plot.SVG(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := p.write(); err != nil {
		return err
	}
	return writePlots(filepath.Join(dir, PlotDir), drawn)
}

func writePlots(dir string, drawn map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, svg := range drawn {
		if err := os.WriteFile(filepath.Join(dir, name), svg, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// All chooses every block for Check.
func All(exact.Block) bool { return true }

// Check compares those exact blocks of the pages of dir that which chooses with
// what the code computes, and reports every block that differs. It writes
// nothing. The error wraps ErrStale if figures differ.
func Check(dir string, which func(exact.Block) bool, progress func(string)) error {
	p := open(dir)
	var stale []error
	for _, b := range exact.Blocks() {
		if !which(b) {
			continue
		}
		progress(b.Page + ": " + b.Name)
		text, err := p.read(b.Page)
		if err != nil {
			return err
		}
		there, err := page.Block(text, b.Name)
		if err != nil {
			return fmt.Errorf("%s: %w", b.Page, err)
		}
		table, err := b.Table()
		if err != nil {
			return fmt.Errorf("%s, %s: %w", b.Page, b.Name, err)
		}
		if want := table.Markdown(); there != want {
			stale = append(stale, fmt.Errorf("%w: %s, block %s: run `%s`; computed is\n%s", ErrStale, b.Page, b.Name, Command, want))
		}
	}
	return errors.Join(stale...)
}
