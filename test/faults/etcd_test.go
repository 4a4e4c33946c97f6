//go:build linux

package faults

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/shardd/shardd/internal/embedetcd/etcdtest"
)

// member is one etcd process. It is stopped and signalled by its pid.
type member struct {
	name, url, dir string
	args           []string
	cmd            *exec.Cmd
}

// etcd is three members, and a client of its own for the experiment's looks.
type etcd struct {
	members []*member
	client  *clientv3.Client
}

const etcdMembers = 3

// startEtcd runs three members until the test ends.
func startEtcd(t *testing.T) *etcd {
	t.Helper()
	requireEtcd(t)
	e := &etcd{}
	var peers []string
	for i := range etcdMembers {
		name, peer := fmt.Sprintf("m%d", i), "http://"+etcdtest.FreeAddr(t)
		m := &member{name: name, url: "http://" + etcdtest.FreeAddr(t), dir: t.TempDir()}
		m.args = []string{"--name=" + name, "--data-dir=" + m.data(), "--listen-client-urls=" + m.url, "--advertise-client-urls=" + m.url,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
			"--heartbeat-interval=50", "--election-timeout=500", "--log-level=error", "--logger=zap"}
		peers = append(peers, name+"="+peer)
		e.members = append(e.members, m)
	}
	for _, m := range e.members {
		m.args = append(m.args, "--initial-cluster="+strings.Join(peers, ","))
		m.start(t)
		t.Cleanup(m.kill)
	}
	var err error
	e.client, err = clientv3.New(clientv3.Config{Endpoints: e.endpoints(), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.client.Close() })
	eventually(t, "etcd has a leader", time.Minute, func() bool { return e.leader(t) >= 0 })
	return e
}

func requireEtcd(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(etcdtest.Program); err == nil {
		return
	}
	if os.Getenv("SHARDD_REQUIRE_SERVICES") == "1" {
		t.Fatalf("%s is missing and SHARDD_REQUIRE_SERVICES=1: install Debian's etcd-server", etcdtest.Program)
	}
	t.Skipf("%s is missing: install Debian's etcd-server to run this test", etcdtest.Program)
}

func (e *etcd) endpoints() []string {
	var all []string
	for _, m := range e.members {
		all = append(all, m.url)
	}
	return all
}

// leader returns the index of the member that leads, -1 if none answers so.
func (e *etcd) leader(t *testing.T) int {
	for i, m := range e.members {
		ctx, cancel := timeout(t, 500*time.Millisecond)
		s, err := e.client.Status(ctx, m.url)
		cancel()
		if err == nil && s.Leader != 0 && s.Leader == s.Header.MemberId {
			return i
		}
	}
	return -1
}

func (m *member) data() string   { return filepath.Join(m.dir, "data") }
func (m *member) backup() string { return filepath.Join(m.dir, "backup") }

func (m *member) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(m.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	m.cmd = exec.Command(etcdtest.Program, m.args...)
	m.cmd.Stdout, m.cmd.Stderr = log, log
	m.cmd.SysProcAttr = withParent()
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

// kill is kill -9.
func (m *member) kill() {
	if m.cmd != nil {
		_ = m.cmd.Process.Kill()
		_ = m.cmd.Wait()
		m.cmd = nil
	}
}

func (m *member) freeze(t *testing.T) { m.signal(t, syscall.SIGSTOP) }
func (m *member) thaw(t *testing.T)   { m.signal(t, syscall.SIGCONT) }

func (m *member) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := m.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// saveAll copies the data directories of all members while all are frozen, as a
// snapshot of their disks would.
func (e *etcd) saveAll(t *testing.T) {
	t.Helper()
	for _, m := range e.members {
		m.freeze(t)
	}
	for _, m := range e.members {
		copyDir(t, m.data(), m.backup())
	}
	for _, m := range e.members {
		m.thaw(t)
	}
}

// restoreAll puts the copies in the place of the data, and starts all members.
func (e *etcd) restoreAll(t *testing.T) {
	t.Helper()
	for _, m := range e.members {
		m.kill()
	}
	for _, m := range e.members {
		copyDir(t, m.backup(), m.data())
		m.start(t)
	}
}

func copyDir(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	// cp, because etcd's files are mostly preallocated holes.
	if out, err := exec.Command("cp", "-r", "--sparse=always", from, to).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v: %s", err, out)
	}
}
