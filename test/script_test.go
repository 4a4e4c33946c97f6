package test

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/shardd/shardd/internal/cli"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"shardd":  func() { os.Exit(cli.Main(cli.Shardd)) },
		"migrate": func() { os.Exit(cli.Main(cli.Migrate)) },
	})
}

// TestScripts runs every script. Beside testscript's own commands there are:
//
//	code N PROGRAM [ARG...]       run, and expect exit code N
//	start VAR PROGRAM [ARG...]    run in the background; its first line of output becomes $VAR
//	end VAR [SIGNAL]              stop it (TERM, INT or KILL) and expect exit code 0, but for KILL
//	lines VAR N                   wait until it has printed N lines in all
//	corrupt FILE                  change one bit in the middle
//	cut FILE                      drop the second half
//
// and the condition [file:PATH].
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Values[procsKey{}] = &procs{}
			env.Setenv("USER", "tester")
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if path, ok := strings.CutPrefix(cond, "file:"); ok {
				_, err := os.Stat(path)
				return err == nil, nil
			}
			return false, errors.New("unknown condition " + cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":    cmdCode,
			"start":   cmdStart,
			"end":     cmdEnd,
			"lines":   cmdLines,
			"corrupt": cmdCorrupt,
			"cut":     cmdCut,
		},
	})
}

func cmdCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N PROGRAM [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

type procsKey struct{}

// procs are the background processes of one script, by variable.
type procs struct{ byVar map[string]*proc }

// proc is one background process.
type proc struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
	ended  chan struct{}
	err    error

	mu    sync.Mutex
	lines []string
}

func cmdStart(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: start VAR PROGRAM [ARG...]")
	}
	path, err := exec.LookPath(args[1])
	ts.Check(err)
	p := &proc{cmd: exec.Command(path, args[2:]...), ended: make(chan struct{})}
	p.cmd.Dir = ts.MkAbs(".")
	p.cmd.Stderr = &p.stderr
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "USER", "SHARDD_SERVER", "SHARDD_CLUSTER", "WORK"} {
		p.cmd.Env = append(p.cmd.Env, name+"="+ts.Getenv(name))
	}
	out, err := p.cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(p.cmd.Start())
	read := make(chan struct{})
	go func() {
		defer close(read)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.mu.Lock()
			p.lines = append(p.lines, s.Text())
			p.mu.Unlock()
		}
	}()
	go func() {
		<-read
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	ts.Defer(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		ts.Logf("[%s stderr]\n%s", args[0], p.stderr.String())
	})
	all := ts.Value(procsKey{}).(*procs)
	if all.byVar == nil {
		all.byVar = map[string]*proc{}
	}
	all.byVar[args[0]] = p
	p.await(ts, 1)
	ts.Setenv(args[0], p.line(0))
}

func (p *proc) line(i int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines[i]
}

func (p *proc) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.lines)
}

// await waits for real processes, which nothing but looking tells about.
func (p *proc) await(ts *testscript.TestScript, n int) {
	deadline := time.Now().Add(30 * time.Second)
	for p.count() < n {
		select {
		case <-p.ended:
			if p.count() >= n {
				return
			}
			ts.Fatalf("ended (%v) after %d lines of %d: %s", p.err, p.count(), n, p.stderr.String())
		default:
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%d lines of %d after 30 s", p.count(), n)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func named(ts *testscript.TestScript, name string) *proc {
	p := ts.Value(procsKey{}).(*procs).byVar[name]
	if p == nil {
		ts.Fatalf("no background process %s", name)
	}
	return p
}

func cmdEnd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: end VAR [TERM|INT|KILL]")
	}
	p := named(ts, args[0])
	signals := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "KILL": syscall.SIGKILL}
	name := append(slices.Clone(args), "TERM")[1]
	ts.Check(p.cmd.Process.Signal(signals[name]))
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
		ts.Fatalf("still there 20 s after %s", name)
	}
	if p.err != nil && name != "KILL" {
		ts.Fatalf("ended with %v: %s", p.err, p.stderr.String())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := ts.Stdout().Write([]byte(strings.Join(append(p.lines, ""), "\n")))
	ts.Check(err)
}

func cmdLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lines VAR N")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	named(ts, args[0]).await(ts, n)
}

func cmdCorrupt(ts *testscript.TestScript, _ bool, args []string) {
	change(ts, args, func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
}

func cmdCut(ts *testscript.TestScript, _ bool, args []string) {
	change(ts, args, func(b []byte) []byte { return b[:len(b)/2] })
}

func change(ts *testscript.TestScript, args []string, fn func([]byte) []byte) {
	if len(args) != 1 {
		ts.Fatalf("usage: corrupt FILE, or cut FILE")
	}
	path := ts.MkAbs(args[0])
	b, err := os.ReadFile(path)
	ts.Check(err)
	ts.Check(os.WriteFile(path, fn(b), 0o600))
}
