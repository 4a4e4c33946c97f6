// Package etcdtest gives tests an etcd that is not this process (Debian's
// etcd-server), and the failures of a network: an endpoint that answers
// nothing, a connection that is cut.
//
// A machine without the program skips the test by name; with
// SHARDD_REQUIRE_SERVICES=1 it fails in its place.
package etcdtest

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Program is where Debian's etcd-server puts etcd.
const Program = "/usr/bin/etcd"

// Process is a running etcd.
type Process struct {
	Endpoint string
	dir      string
	args     []string
	cmd      *exec.Cmd
}

// Start runs Program on free loopback ports until the test ends.
func Start(t testing.TB) *Process {
	t.Helper()
	if _, err := os.Stat(Program); err != nil {
		if os.Getenv("SHARDD_REQUIRE_SERVICES") == "1" {
			t.Fatalf("%s is missing and SHARDD_REQUIRE_SERVICES=1: install Debian's etcd-server", Program)
		}
		t.Skipf("%s is missing: install Debian's etcd-server to run this test", Program)
	}
	clients, peers := "http://"+FreeAddr(t), "http://"+FreeAddr(t)
	p := &Process{Endpoint: clients, dir: t.TempDir()}
	p.args = []string{"--name=t", "--data-dir=" + filepath.Join(p.dir, "data"),
		"--listen-client-urls=" + clients, "--advertise-client-urls=" + clients,
		"--listen-peer-urls=" + peers, "--initial-advertise-peer-urls=" + peers, "--initial-cluster=t=" + peers,
		"--heartbeat-interval=10", "--election-timeout=100", "--log-level=error", "--logger=zap"}
	p.Run(t)
	t.Cleanup(func() { p.Stop(t) })
	return p
}

// Run starts the process (again) and waits until it answers.
func (p *Process) Run(t testing.TB) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(p.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer shut(log)
	p.cmd = exec.Command(Program, p.args...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.waitListening(t)
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{p.Endpoint}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer shut(c)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for {
		try, done := context.WithTimeout(ctx, time.Second)
		_, err := c.Get(try, "ready")
		done()
		switch {
		case err == nil:
			return
		case ctx.Err() != nil:
			text, _ := os.ReadFile(filepath.Join(p.dir, "log"))
			t.Fatalf("%s does not answer: %v\n%s", Program, err, text)
		}
	}
}

// waitListening waits for the socket: a client that is refused once tries again
// only a second later.
func (p *Process) waitListening(t testing.TB) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); <-tick.C {
		c, err := net.DialTimeout("tcp", strings.TrimPrefix(p.Endpoint, "http://"), time.Second)
		if err == nil {
			shut(c)
			return
		}
	}
}

// Stop kills the process and waits for it; its data stay for Run.
func (p *Process) Stop(testing.TB) {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		p.cmd = nil
	}
}

// FreeAddr returns a loopback address that nobody listens at just now.
func FreeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer shut(l)
	return l.Addr().String()
}

// BlackHole returns the address of a listener that accepts and never answers.
func BlackHole(t testing.TB) string {
	t.Helper()
	p := NewProxy(t, "")
	return p.Addr
}

// Proxy forwards connections until it is cut. An empty target swallows
// everything.
type Proxy struct {
	Addr   string
	target string
	l      net.Listener
	mu     sync.Mutex
	cut    bool
	conns  map[net.Conn]bool
	wg     sync.WaitGroup
}

// NewProxy starts a proxy in front of target, host:port, until the test ends.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), target: target, l: l, conns: map[net.Conn]bool{}}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		shut(l)
		p.Cut(true)
		p.wg.Wait()
	})
	return p
}

// Cut closes every connection and, until Cut(false), refuses new ones.
func (p *Proxy) Cut(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	if cut {
		for c := range p.conns {
			shut(c)
		}
		clear(p.conns)
	}
}

// hold remembers connections so that Cut finds them, or closes them at once.
func (p *Proxy) hold(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.cut {
			shut(c)
		} else {
			p.conns[c] = true
		}
	}
	return !p.cut
}

func (p *Proxy) accept() {
	for {
		c, err := p.l.Accept()
		if err != nil {
			return
		}
		if !p.hold(c) {
			continue
		}
		p.wg.Go(func() { p.serve(c) })
	}
}

func (p *Proxy) serve(c net.Conn) {
	defer shut(c)
	if p.target == "" {
		_, _ = io.Copy(io.Discard, c)
		return
	}
	up, err := net.Dial("tcp", p.target)
	if err != nil || !p.hold(up) {
		return
	}
	defer shut(up)
	p.wg.Go(func() {
		_, _ = io.Copy(up, c)
		shut(up)
	})
	_, _ = io.Copy(c, up)
}

// shut closes what is no longer needed: an error makes no difference then.
func shut(c io.Closer) { _ = c.Close() }
