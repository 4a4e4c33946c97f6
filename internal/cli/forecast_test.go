package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardd/shardd/migrate"
)

// trafficFiles are a cluster of four nodes, one of five, 1,000 keys, and a trace in
// which the n-th key is asked for as often as its rank says.
func trafficFiles(t *testing.T) (from, to, keys, trace string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cluster := func(n int) string {
		text := "cluster: cache\nalgorithm: slots\nnodes:\n"
		for i := range n {
			text += fmt.Sprintf("  - {id: n%d, addr: \"10.0.0.%d:11211\"}\n", i, i)
		}
		return text
	}
	var list, requests strings.Builder
	for k := range 1000 {
		fmt.Fprintf(&list, "key-%d\n", k)
	}
	for i := range 20_000 {
		fmt.Fprintf(&requests, "key-%d\n", i%(1+i%1000))
	}
	return write("a.yaml", cluster(4)), write("b.yaml", cluster(5)), write("keys", list.String()), write("trace", requests.String())
}

func TestCompareForecast(t *testing.T) {
	from, to, keys, trace := trafficFiles(t)
	args := []string{"compare", "--from", from, "--to", to, "--keys", keys, "--trace", trace,
		"--bytes-per-key", "2000", "--bandwidth", "10kB/s", "--cache-keys", "200", "--max-dip", "0.02"}
	out := call(t, Migrate, "", append(args, "-o", "json")...)
	if out.code != 0 {
		t.Fatalf("exit %d: %s", out.code, out.stderr)
	}
	var c migrate.Comparison
	if err := json.Unmarshal([]byte(out.stdout), &c); err != nil {
		t.Fatal(err)
	}
	by := map[string]*migrate.Forecast{}
	for _, r := range c.Rows {
		if by[r.Algorithm] = r.Forecast; r.Forecast == nil {
			t.Fatalf("%s has no forecast", r.Algorithm)
		}
	}
	slots, modulo := by["slots"], by["modulo"]
	if slots.KeysMoved < 150 || slots.KeysMoved > 250 || modulo.KeysMoved < 700 {
		t.Errorf("%d keys move under slots, %d under modulo; want a fifth, and four fifths", slots.KeysMoved, modulo.KeysMoved)
	}
	if slots.Bytes != 2000*slots.KeysMoved || slots.Seconds != float64(slots.Bytes)/10_000 {
		t.Errorf("%d bytes in %v s", slots.Bytes, slots.Seconds)
	}
	if slots.Waves >= modulo.Waves || slots.Dip >= modulo.Dip || slots.HitRate <= 0 || slots.HitRate >= 1 {
		t.Errorf("slots %+v\nmodulo %+v", slots, modulo)
	}
	table := call(t, Migrate, "", args...)
	if table.code != 0 || !strings.Contains(table.stdout, "REQUESTS TO RECOVER") {
		t.Errorf("exit %d: %s\n%s", table.code, table.stderr, table.stdout)
	}
	piped := call(t, Migrate, "key-1\nkey-2\n", "compare", "--from", from, "--to", to, "--keys", "-")
	if piped.code != 0 {
		t.Errorf("keys from standard input: exit %d: %s", piped.code, piped.stderr)
	}
}

func TestCompareForecastRefused(t *testing.T) {
	from, to, keys, trace := trafficFiles(t)
	f := func(want string, args ...string) {
		t.Helper()
		out := call(t, Migrate, "", append([]string{"compare", "--from", from, "--to", to}, args...)...)
		if out.code != 2 || !strings.Contains(out.stderr, want) {
			t.Errorf("%v: exit %d, %s; want %q", args, out.code, out.stderr, want)
		}
	}
	f("needs --keys or --trace", "--bytes-per-key", "3")
	f("cannot both", "--keys", "-", "--trace", "-")
	f("needs --bytes-per-key", "--keys", keys, "--bandwidth", "3MB")
	f("--bandwidth", "--keys", keys, "--bytes-per-key", "3", "--bandwidth", "fast")
	f("--max-dip", "--keys", keys, "--max-dip", "0")
	f("largest dip", "--keys", keys, "--max-dip", "1.5")
	f("caches of", "--trace", trace, "--cache-keys", "-3")
	f("no such file", "--trace", "nowhere")
	f("not hexadecimal", "--trace", trace, "--keys-hex")
}
