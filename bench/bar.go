package main

import (
	"io"
	"os"
	"sync"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// bar shows on a terminal how far an experiment is; elsewhere it shows nothing.
type bar struct {
	name string
	w    io.Writer

	mu       sync.Mutex
	progress *mpb.Progress
	bar      *mpb.Bar
}

func newBar(w io.Writer, name string) *bar {
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return &bar{name: name, w: w}
		}
	}
	return &bar{}
}

// at moves the bar; it appears with the first call.
func (b *bar) at(done, total int) {
	if b.w == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bar == nil {
		b.progress = mpb.New(mpb.WithOutput(b.w), mpb.WithWidth(60))
		b.bar = b.progress.AddBar(int64(total),
			mpb.PrependDecorators(decor.Name(b.name), decor.CountersNoUnit(" %d/%d runs")),
			mpb.AppendDecorators(decor.OnComplete(decor.AverageETA(decor.ET_STYLE_MMSS), "")),
			mpb.BarRemoveOnComplete())
	}
	b.bar.SetTotal(int64(total), false)
	if int64(done) > b.bar.Current() {
		b.bar.SetCurrent(int64(done))
	}
}

// end takes the bar away.
func (b *bar) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bar == nil {
		return
	}
	b.bar.Abort(true)
	b.progress.Wait()
}
