//go:build linux

package faults

import (
	"bufio"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/shardd/shardd/internal/cli"
)

// programVar makes this test binary be shardd.
const programVar = "SHARDD_FAULTS_PROGRAM"

var (
	runs   = flag.Int("runs", 0, "how often TestPercentiles repeats every experiment")
	outage = flag.Duration("outage", 2*time.Second, "how long all members of etcd are stopped")
)

func TestMain(m *testing.M) {
	if os.Getenv(programVar) != "" {
		os.Exit(cli.Main(cli.Shardd))
	}
	os.Exit(m.Run())
}

// program is a shardd process.
type program struct {
	cmd   *exec.Cmd
	line  string // its first line of output
	ended chan struct{}
	err   error // of Wait; read after ended
}

// startProgram runs shardd with args until the test ends. wait says that it
// prints a line when it is ready.
func startProgram(t *testing.T, wait bool, args ...string) *program {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	p := &program{cmd: exec.Command(self, args...), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), programVar+"=1")
	p.cmd.Stderr = log
	p.cmd.SysProcAttr = withParent()
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan string, 1)
	go func() {
		defer close(p.ended)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			select {
			case ready <- lines.Text():
			default:
			}
		}
		p.err = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		p.kill()
		log.Close()
		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("shardd %v: %v\n%s", args, p.err, text[max(0, len(text)-6000):])
		}
	})
	if wait {
		select {
		case p.line = <-ready:
		case <-p.ended:
			t.Fatalf("shardd %v ended: %v", args, p.err)
		case <-time.After(time.Minute):
			t.Fatalf("shardd %v is not ready", args)
		}
	}
	return p
}

// withParent ends a process with this one, even if this one ends in the middle of
// a test.
func withParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// kill is kill -9.
func (p *program) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

func (p *program) terminate() { _ = p.cmd.Process.Signal(syscall.SIGTERM) }

func timeout(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(t.Context()), d)
}

func eventually(t *testing.T, what string, within time.Duration, ok func() bool) {
	t.Helper()
	if *runs <= 0 {
		within *= 2 // correctness, not time
	}
	for deadline := time.Now().Add(within); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", within, what)
		}
	}
}
