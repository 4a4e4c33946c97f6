package realserver

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// FreePorts returns n loopback ports that were free a moment ago.
func FreePorts(t testing.TB, n int) []int {
	t.Helper()
	ports := make([]int, n)
	for i := range ports {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close() // all are held until all are chosen
		ports[i] = ln.Addr().(*net.TCPAddr).Port
	}
	return ports
}

// RunForTest starts a program that stays in the foreground and ends with the test,
// and waits until something listens at each of addrs (host:port, or the path of a
// socket). pkg is the Debian package that has it. What it prints shows where it
// fails. The test is skipped where the program is missing, or fails if
// SHARDD_REQUIRE_SERVICES is 1.
func RunForTest(t testing.TB, program, pkg string, args []string, addrs ...string) {
	t.Helper()
	path, err := lookProgram(program)
	if err != nil {
		if os.Getenv("SHARDD_REQUIRE_SERVICES") == "1" {
			t.Fatalf("%s is not installed; install Debian's package %s", program, pkg)
		}
		t.Skipf("%s is not installed; install Debian's package %s", program, pkg)
	}
	var out bytes.Buffer
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stop := func() {
		_ = cmd.Process.Kill()
		<-ended //nolint:errcheck // it was killed
	}
	if err := awaitAddrs(addrs, ended); err != nil {
		stop()
		t.Fatalf("%s: %v\n%s", program, err, out.Bytes())
	}
	t.Cleanup(stop)
}

// lookProgram finds a program, in the directories of administrators too.
func lookProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return exec.LookPath("/usr/sbin/" + name)
	}
	return path, nil
}

// awaitAddrs waits up to 10 s for all addresses to take connections.
func awaitAddrs(addrs []string, ended chan error) error {
	deadline := time.Now().Add(10 * time.Second)
	for _, addr := range addrs {
		network := "tcp"
		if strings.HasPrefix(addr, "/") {
			network = "unix"
		}
		for {
			conn, err := net.DialTimeout(network, addr, time.Second)
			if err == nil {
				conn.Close()
				break
			}
			select {
			case err := <-ended:
				ended <- err // for stop
				return fmt.Errorf("ended: %w", err)
			case <-time.After(5 * time.Millisecond):
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("nothing listens at %s: %w", addr, err)
			}
		}
	}
	return nil
}
