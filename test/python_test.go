package test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	pythonReader    = "../examples/python-reader"
	topologyVectors = "../docs/spec/topology-vectors.json"
	exponentials    = "../docs/spec/exponential-vectors.json"
)

// python returns the program, or skips the test; with SHARDD_REQUIRE_SERVICES=1
// it fails in its place.
func python(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err == nil {
		return path
	}
	if os.Getenv("SHARDD_REQUIRE_SERVICES") == "1" {
		t.Fatal("python3 is missing and SHARDD_REQUIRE_SERVICES=1: install Debian's python3")
	}
	t.Skip("python3 is missing: install Debian's python3 to run this test")
	return ""
}

// reader runs a program of the Python reader. -B: it writes nothing beside it.
func reader(t *testing.T, program string, args ...string) result {
	t.Helper()
	return run(t, python(t), append([]string{"-B", filepath.Join(pythonReader, program)}, args...)...)
}

// TestPythonReader: an implementation in another language, written from
// docs/spec, finds the same owners, replicas and digests.
func TestPythonReader(t *testing.T) {
	files := append(vectorFiles(t), topologyVectors, exponentials, refusedPath)
	r := reader(t, "check.py", files...)
	if got := strings.Count(r.stdout, " cases agree\n"); r.code != 0 || got != len(files) {
		t.Errorf("%d of %d files agree, exit %d:\n%s%s", got, len(files), r.code, r.stdout, r.stderr)
	}
}

// The check can fail: on another owner, hash, digest, table or refusal.
func TestPythonReaderFinds(t *testing.T) {
	var damaged []string
	f := func(path, old, changed string) {
		t.Helper()
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(b, []byte(old)) {
			t.Fatalf("%s: no %q to change", path, old)
		}
		damaged = append(damaged, filepath.Join(t.TempDir(), filepath.Base(path)))
		writeFile(t, damaged[len(damaged)-1], bytes.Replace(b, []byte(old), []byte(changed), 1))
	}
	one, rows := filepath.Join(vectorsDir, "few-maglev.json"), filepath.Join(vectorsDir, "slots-rows.json")
	f(one, `"order":[0,1]`, `"order":[1,0]`)
	f(one, `"hash":"f`, `"hash":"e`)
	f(one, `"mapping": "`, `"mapping": "0`)
	f(one, `"digest": "`, `"digest": "0`)
	f(rows, `"tables": ["53484f01`, `"tables": ["53484f02`)
	f(exponentials, `"0000000000000`, `"1000000000000`)
	f(topologyVectors, `"why": "corrupt"`, `"why": "unknown"`)
	r := reader(t, "check.py", damaged...)
	if r.code != 1 || strings.Contains(r.stdout, "agree") || strings.Count(r.stdout, "\n") != len(damaged) {
		t.Errorf("%d damaged files, exit %d:\n%s%s", len(damaged), r.code, r.stdout, r.stderr)
	}
}

// A file that is no vector file is told in one line, and the others are checked.
func TestPythonReaderUnknown(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for name, text := range map[string]string{"list": "[1]", "other": `{"a": 1}`, "text": "no", "bytes": "\xff", "half": `{"mapping": 1}`, "wrong": `{"exponential": 1}`} {
		files = append(files, filepath.Join(dir, name))
		writeFile(t, files[len(files)-1], []byte(text))
	}
	r := reader(t, "check.py", append(files, filepath.Join(dir, "missing"), exponentials)...)
	if r.code != 1 || r.stderr != "" || strings.Count(r.stdout, "\n") != len(files)+2 || strings.Count(r.stdout, "agree") != 1 {
		t.Errorf("exit %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// The reader routes by a saved topology as shardd does, and refuses a damaged one.
func TestPythonReaderSaved(t *testing.T) {
	keys := []string{"", "a", "{user1000}.following", "größe", "key with blanks"}
	for _, v := range vectors(t) {
		switch v.name {
		case "ring-zones", "rendezvous-table", "maglev-refill", "slots-rows", "jump-jumpback-holes":
		default:
			continue
		}
		b, err := v.table.Topology().MarshalSaved()
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), v.name)
		writeFile(t, file, b)
		got := reader(t, "shardd.py", append([]string{file}, keys...)...)
		want := mustRun(t, "shardd", append([]string{"route", "--file", file}, keys...)...)
		if diff := cmp.Diff(want, got.stdout); diff != "" || got.code != 0 {
			t.Errorf("%s: exit %d %s (-shardd +python):\n%s", v.name, got.code, got.stderr, diff)
		}
		if v.name != "slots-rows" {
			continue
		}
		b[len(b)/2] ^= 1
		writeFile(t, file, b)
		if r := reader(t, "shardd.py", file, "a"); r.code == 0 || r.stdout != "" {
			t.Errorf("%s, damaged: exit %d: %s", v.name, r.code, r.stdout)
		}
	}
}
