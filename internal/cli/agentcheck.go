package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
	"unicode"

	"github.com/hashicorp/go-hclog"

	"github.com/shardd/shardd/membership"
)

// checkFlags say how an agent checks its node.
type checkFlags struct {
	kind      string
	target    string
	interval  time.Duration
	timeout   time.Duration
	threshold int
}

// check tells whether the node is well, within ctx.
type check func(ctx context.Context) error

// check returns the check that the flags ask for; nil = none.
func (f checkFlags) check(id, addr string) (check, error) {
	switch {
	case f.kind == "" || f.kind == "none":
		return nil, nil
	case f.interval <= 0 || f.timeout <= 0 || f.threshold < 1:
		return nil, usagef("--check-interval, --check-timeout and --check-threshold: want more than 0")
	}
	target := f.target
	if target == "" && f.kind != "exec" {
		if target = addr; target == "" {
			return nil, usagef("--check %s: nothing to check; give --addr or --check-target", f.kind)
		}
	}
	switch f.kind {
	case "tcp":
		return func(ctx context.Context) error { return ask(ctx, target, "", nil) }, nil
	case "redis":
		// A server that wants a password answers all the same.
		return func(ctx context.Context) error { return ask(ctx, target, "PING\r\n", []string{"+PONG", "-NOAUTH"}) }, nil
	case "memcached":
		return func(ctx context.Context) error { return ask(ctx, target, "version\r\n", []string{"VERSION "}) }, nil
	case "http":
		if !strings.Contains(target, "://") {
			target = "http://" + target + "/"
		}
		return func(ctx context.Context) error { return askHTTP(ctx, target) }, nil
	case "exec":
		if target == "" {
			return nil, usagef("--check exec: no command; give it as --check-target")
		}
		return func(ctx context.Context) error { return run(ctx, target, id, addr) }, nil
	}
	return nil, usagef("--check %q: want tcp, http, redis, memcached, exec or none", f.kind)
}

// ask connects, sends a line, and wants an answer that begins with one of want.
func ask(ctx context.Context, addr, line string, want []string) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if line == "" {
		return nil
	}
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(conn, line); err != nil {
		return err
	}
	answer, err := bufio.NewReader(io.LimitReader(conn, 4096)).ReadString('\n')
	if err != nil {
		return err
	}
	for _, w := range want {
		if strings.HasPrefix(answer, w) {
			return nil
		}
	}
	return fmt.Errorf("%s answers %q to %q", addr, strings.TrimSpace(answer), strings.TrimSpace(line))
}

// askHTTP wants a status from 200 to 399.
func askHTTP(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 399 {
		return fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return nil
}

// run wants a command to exit with 0. It knows the node by two variables.
func run(ctx context.Context, command, id, addr string) error {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Env = append(os.Environ(), "SHARDD_NODE="+id, "SHARDD_ADDR="+addr)
	cmd.WaitDelay = time.Second // its children may hold the pipe
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return errors.Join(err, errors.New(strings.TrimSpace(string(out[:min(len(out), 200)]))))
	}
	return nil
}

// judge turns results of a check into health: it changes after threshold results
// in a row that say otherwise; the first good result counts at once.
type judge struct {
	threshold int
	health    membership.Health
	other     int // results in a row that say otherwise
}

// hear takes one result and returns the health after it.
func (j *judge) hear(err error) membership.Health {
	now := membership.HealthOK
	if err != nil {
		now = membership.HealthBad
	}
	if now == j.health {
		j.other = 0
		return j.health
	}
	j.other++
	if j.other >= j.threshold || j.health == membership.HealthUnknown && err == nil {
		j.health, j.other = now, 0
	}
	return j.health
}

// checkUntil checks until ctx ends, and tells the member what changes.
func checkUntil(ctx context.Context, f checkFlags, c check, m *membership.Member, counts *agentMetrics, log hclog.Logger) {
	j := &judge{threshold: f.threshold}
	for ctx.Err() == nil {
		try, cancel := context.WithTimeout(ctx, f.timeout)
		began := time.Now()
		err := c(try)
		cancel()
		if ctx.Err() != nil {
			return
		}
		counts.checked(time.Since(began), err)
		before := j.health
		reason := ""
		if now := j.hear(err); now != before {
			if now == membership.HealthBad {
				reason = oneLine(err)
			}
			counts.tell(now)
			log.Info("health changed", "from", before, "to", now, "reason", reason)
			if err := m.SetHealth(now, reason); err != nil {
				log.Warn("health is not told", "error", err)
			}
		}
		t := time.NewTimer(time.Duration(float64(f.interval) * (0.9 + 0.2*rand.Float64())))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
	}
}

// oneLine is the text of err as a reason may be: one line, not too long.
func oneLine(err error) string {
	s := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, err.Error())
	for len(s) > membership.MaxNoteLen {
		r := []rune(s)
		s = string(r[:min(len(r)-1, membership.MaxNoteLen)])
	}
	return s
}
