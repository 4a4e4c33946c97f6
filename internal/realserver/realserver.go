// Package realserver starts memcached and redis-server processes on free loopback
// ports, for tests and runnable examples. A test that cannot find the program is
// skipped, or fails if SHARDD_REQUIRE_SERVICES is 1.
package realserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Kind is a program that can be started.
type Kind struct {
	program string
	pkg     string // Debian's
	args    func(port string) []string
	hello   string // what it is asked
	answer  string // how what it answers begins
}

// Memcached returns the kind of a memcached with 64 MB and extra arguments.
func Memcached(extra ...string) Kind {
	return Kind{program: "memcached", pkg: "memcached", hello: "version\r\n", answer: "VERSION", args: func(port string) []string {
		args := []string{"-l", "127.0.0.1", "-p", port, "-U", "0", "-m", "64", "-t", "2"}
		if os.Getuid() == 0 {
			args = append(args, "-u", "root") // memcached wants it said
		}
		return append(args, extra...)
	}}
}

// Redis returns the kind of a redis-server that keeps nothing on disk, with extra
// arguments.
func Redis(extra ...string) Kind {
	return Kind{program: "redis-server", pkg: "redis-server", hello: "PING\r\n", answer: "+PONG", args: func(port string) []string {
		return append([]string{"--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--daemonize", "no"}, extra...)
	}}
}

// ErrNotInstalled says which program is missing.
var ErrNotInstalled = errors.New("not installed")

// Server is a running process.
type Server struct {
	Addr string // 127.0.0.1:port
	kind Kind
	path string
	cmd  *exec.Cmd
}

// Start starts one server on a free port and waits until it answers.
func Start(ctx context.Context, k Kind) (*Server, error) {
	path, err := exec.LookPath(k.program)
	if err != nil {
		return nil, fmt.Errorf("%s is %w; install Debian's package %s", k.program, ErrNotInstalled, k.pkg)
	}
	for range 5 { // a port that was free may be taken by now
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		s := &Server{Addr: ln.Addr().String(), kind: k, path: path}
		ln.Close()
		if err = s.Run(ctx); err == nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%s does not answer on any of five ports", k.program)
}

// Run starts the process (again) on the server's port.
func (s *Server) Run(ctx context.Context) error {
	_, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		return err
	}
	s.cmd = exec.Command(s.path, s.kind.args(port)...)
	if err := s.cmd.Start(); err != nil {
		return err
	}
	if !s.answers(ctx) {
		s.Stop()
		return fmt.Errorf("%s does not answer at %s", s.kind.program, s.Addr)
	}
	return nil
}

// Stop kills the process and waits for its end. It may be called more than once.
func (s *Server) Stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.cmd = nil
}

// answers waits up to 5 s for the server to answer.
func (s *Server) answers(ctx context.Context) bool {
	deadline := time.Now().Add(5 * time.Second)
	for time.Now().Before(deadline) && ctx.Err() == nil {
		if s.asked(deadline) {
			return true
		}
		time.Sleep(5 * time.Millisecond)
	}
	return false
}

func (s *Server) asked(deadline time.Time) bool {
	conn, err := net.DialTimeout("tcp", s.Addr, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(deadline)
	var b [8]byte
	_, err = conn.Write([]byte(s.kind.hello))
	n, readErr := conn.Read(b[:])
	return err == nil && readErr == nil && strings.HasPrefix(string(b[:n]), s.kind.answer)
}

// StartN starts n servers; stop ends them all.
func StartN(ctx context.Context, k Kind, n int) (servers []*Server, stop func(), err error) {
	stop = func() {
		for _, s := range servers {
			s.Stop()
		}
	}
	for range n {
		s, err := Start(ctx, k)
		if err != nil {
			stop()
			return nil, nil, err
		}
		servers = append(servers, s)
	}
	return servers, stop, nil
}

// ForTest starts n servers that end with the test.
func ForTest(t testing.TB, k Kind, n int) []*Server {
	t.Helper()
	servers, stop, err := StartN(t.Context(), k, n)
	if errors.Is(err, ErrNotInstalled) && os.Getenv("SHARDD_REQUIRE_SERVICES") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return servers
}
