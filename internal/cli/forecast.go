package cli

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/shardd/shardd/migrate"
)

// trafficFlags say for what traffic a comparison makes a forecast.
type trafficFlags struct {
	keys, trace string
	hexadecimal bool
	bandwidth   string
	traffic     migrate.Traffic
}

func (t *trafficFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&t.keys, "keys", "", "file of the keys that are stored, one a line; - = standard input")
	f.StringVar(&t.trace, "trace", "", "file of the keys of requests in their order, one a line, to forecast hit rates")
	f.BoolVar(&t.hexadecimal, "keys-hex", false, "keys are hexadecimal digits, in both")
	f.Uint64Var(&t.traffic.BytesPerKey, "bytes-per-key", 0, "mean size of a key and its value")
	f.StringVar(&t.bandwidth, "bandwidth", "", "what copying may use a second over the whole fleet, such as 100MB or 1GiB")
	f.IntVar(&t.traffic.CacheKeys, "cache-keys", 0, "keys that a node holds, the least recently used leaving first; 0 = all")
	f.Float64Var(&t.traffic.MaxDip, "max-dip", 0.05, "by how much a wave may lower the hit rate, above 0 to 1")
}

// given tells whether there is any traffic to forecast.
func (t *trafficFlags) given() bool { return t.keys != "" || t.trace != "" }

// check refuses flags that have no effect together.
func (t *trafficFlags) check(cmd *cobra.Command) (err error) {
	if !t.given() {
		for _, name := range []string{"keys-hex", "bytes-per-key", "bandwidth", "cache-keys", "max-dip"} {
			if cmd.Flags().Changed(name) {
				return usagef("--%s needs --keys or --trace", name)
			}
		}
		return nil
	}
	switch {
	case t.keys == "-" && t.trace == "-":
		return usagef("--keys and --trace cannot both be standard input")
	case t.bandwidth != "" && t.traffic.BytesPerKey == 0:
		return usagef("--bandwidth needs --bytes-per-key")
	case t.traffic.BytesPerKey > 1<<40:
		return usagef("--bytes-per-key %d: want at most %d", t.traffic.BytesPerKey, uint64(1)<<40)
	case cmd.Flags().Changed("max-dip") && !(t.traffic.MaxDip > 0):
		return usagef("--max-dip %v: want more than 0, at most 1", t.traffic.MaxDip)
	}
	t.traffic.Bandwidth, err = parseBytes("--bandwidth", t.bandwidth)
	return err
}

// read reads the keys and the trace.
func (t *trafficFlags) read(a *app) error {
	for _, part := range []struct {
		flag, file string
		add        func(iter.Seq2[[]byte, error]) error
	}{{"--keys", t.keys, t.traffic.AddKeys}, {"--trace", t.trace, t.traffic.AddTrace}} {
		if part.file == "" {
			continue
		}
		keys, done, err := a.keys(nil, part.file, t.hexadecimal)
		if err != nil {
			return err
		}
		err = part.add(keys)
		done()
		if err != nil {
			return usagef("%s: %w", part.flag, err)
		}
	}
	return nil
}

// forecast adds forecasts to a comparison.
func (t *trafficFlags) forecast(a *app, c *migrate.Comparison, from, to migrate.Side) error {
	if !t.given() {
		return nil
	}
	if err := t.read(a); err != nil {
		return err
	}
	err := c.Forecast(from, to, &t.traffic)
	if errors.Is(err, migrate.ErrTraffic) {
		return usagef("%w", err)
	}
	return err
}

// parseBytes reads a number of bytes with an optional unit; "" is 0.
func parseBytes(flag, text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	number, factor := strings.TrimSuffix(text, "/s"), 1.0
	for _, u := range []struct {
		name   string
		factor float64
	}{
		{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
		{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
	} {
		if rest, ok := strings.CutSuffix(number, u.name); ok {
			number, factor = strings.TrimSpace(rest), u.factor
			break
		}
	}
	x, err := strconv.ParseFloat(number, 64)
	if err != nil || !(x > 0 && x < 1e15) {
		return 0, usagef("%s %q: want a number of bytes above 0, such as 100MB or 1GiB", flag, text)
	}
	return x * factor, nil
}

// forecastTable writes what the change does under each algorithm.
func forecastTable(w io.Writer, c *migrate.Comparison) {
	rows := [][]string{{"ALGORITHM", "KEYS MOVED", "BYTES", "COPIED IN", "REQUESTS MOVED", "HIT RATE", "LOWEST", "REQUESTS TO RECOVER", "PEAK BEFORE", "PEAK AFTER", "WAVES", "KEYS A WAVE"}}
	for _, r := range c.Rows {
		f := r.Forecast
		if f == nil {
			continue
		}
		rows = append(rows, []string{r.Algorithm, strconv.FormatUint(f.KeysMoved, 10), shortBytes(f.Bytes), duration(f.Seconds),
			percent(f.RequestsMoved), percent(f.HitRate), percent(f.HitRate - f.Dip), recovery(f.Recovery),
			peak(f.RequestPeakBefore), peak(f.RequestPeakAfter), strconv.Itoa(f.Waves), strconv.FormatUint(f.WaveKeys, 10)})
	}
	if len(rows) > 1 {
		fmt.Fprintln(w)
		columns(w, rows)
	}
}

func shortBytes(n uint64) string {
	if n == 0 {
		return "-"
	}
	text := byteSize(n)
	if _, short, ok := strings.Cut(text, "("); ok {
		return strings.TrimSuffix(short, ")")
	}
	return text
}

func duration(s float64) string {
	if s == 0 {
		return "-"
	}
	return time.Duration(s * float64(time.Second)).Round(time.Second).String()
}

func recovery(requests int) string {
	if requests < 0 {
		return "not in the trace"
	}
	return strconv.Itoa(requests)
}
