package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/shardd/shardd/migrate"
	"github.com/shardd/shardd/migrate/foreign"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

func TestSplitCommand(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		got, err := splitCommand(text)
		if diff := cmp.Diff(want, got); diff != "" || (err == nil) != (want != nil) {
			t.Errorf("%q: %v (-want +got):\n%s", text, err, diff)
		}
	}
	f("nginx -s reload", "nginx", "-s", "reload")
	f(" a\t'b c' \"d 'e\" f\\ g '' h\"i\"j ", "a", "b c", "d 'e", "f g", "", "hij")
	f(`sh -c "echo $HOME; ls *" '\n'`, "sh", "-c", "echo $HOME; ls *", `\n`)
	f("")
	f(" ")
	f("a 'b")
	f(`a \`)
}

// exported is a mapping in mode nginx, or natively by ring, of a node of this weight.
func exported(t *testing.T, spec topology.Spec, weight uint32) *placement.Table {
	t.Helper()
	table, err := migrate.Next(nil, topology.Declared{Cluster: "web", Spec: spec.Normal(), Nodes: []topology.Node{{ID: "a", Addr: "10.0.0.1:80", Weight: weight}}})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// A command that fails is due until it succeeds; the file stays when a mapping
// cannot be exported, and nothing runs when nothing changed.
func TestExportStep(t *testing.T) {
	dir := t.TempDir()
	file, flag, ran := filepath.Join(dir, "u.conf"), filepath.Join(dir, "flag"), filepath.Join(dir, "ran")
	var out, errs bytes.Buffer
	a := newApp(Env{Stdout: &out, Stderr: &errs})
	k, err := a.exporter(exportFlags{format: "nginx", out: file, exec: `sh -c 'test -e "$0" && echo x >>"$1"' ` + flag + " " + ran, timeout: 10e9})
	if err != nil {
		t.Fatal(err)
	}
	nginx := topology.Spec{Compat: topology.Foreign{Mode: topology.ModeNginx}}
	step := func(table *placement.Table, fails bool, lines, runs int, contents string) {
		t.Helper()
		if err := k.step(t.Context(), table, hclog.NewNullLogger()); (err != nil) != fails {
			t.Errorf("step: %v", err)
		}
		b, _ := os.ReadFile(file)
		r, _ := os.ReadFile(ran)
		if got := strings.Count(out.String(), "1.1\t"+file+"\n"); got != lines || len(r) != 2*runs || !strings.Contains(string(b), contents) {
			t.Errorf("%d lines, ran %d times, file\n%s", got, len(r)/2, b)
		}
	}
	step(exported(t, nginx, 1), true, 0, 0, "server 10.0.0.1:80;")
	step(exported(t, nginx, 1), true, 0, 0, "server 10.0.0.1:80;")
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	step(exported(t, nginx, 1), false, 1, 1, "server 10.0.0.1:80;")
	step(exported(t, nginx, 1), false, 1, 1, "server 10.0.0.1:80;")
	step(exported(t, nginx, 2), false, 2, 2, "weight=2;")
	step(exported(t, topology.Spec{Algorithm: topology.Ring}, 1), false, 2, 2, "weight=2;")
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	step(exported(t, nginx, 3), false, 3, 3, "weight=3;")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".u.conf*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := foreign.Parse(foreign.Nginx, file, must(os.ReadFile(file)), foreign.Options{}); err != nil {
		t.Error(err)
	}
}

func must[T any](v T, _ error) T { return v }
