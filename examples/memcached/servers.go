package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"
)

// errNoMemcached: the program is not installed.
var errNoMemcached = errors.New("memcached is not installed; install Debian's package memcached")

// startMemcached starts n processes on free loopback ports and waits until they
// answer. stop ends them.
func startMemcached(ctx context.Context, n int) (addrs []string, stop func(), err error) {
	path, err := exec.LookPath("memcached")
	if err != nil {
		return nil, nil, errNoMemcached
	}
	var running []*exec.Cmd
	stop = func() {
		for _, cmd := range running {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	for range n {
		cmd, addr, err := startOne(ctx, path)
		if err != nil {
			stop()
			return nil, nil, err
		}
		running = append(running, cmd)
		addrs = append(addrs, addr)
	}
	return addrs, stop, nil
}

func startOne(ctx context.Context, path string) (*exec.Cmd, string, error) {
	for range 5 { // a port that was free may be taken by now
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, "", err
		}
		addr := ln.Addr().String()
		ln.Close()
		args := []string{"-l", "127.0.0.1", "-p", addr[strings.LastIndexByte(addr, ':')+1:], "-U", "0", "-m", "64", "-t", "2"}
		if os.Getuid() == 0 {
			args = append(args, "-u", "root") // memcached wants it said
		}
		cmd := exec.CommandContext(ctx, path, args...)
		if err := cmd.Start(); err != nil {
			return nil, "", err
		}
		if answers(ctx, addr) {
			return cmd, addr, nil
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	return nil, "", fmt.Errorf("memcached does not answer on any of five ports")
}

// answers waits up to 3 s for a memcached to answer.
func answers(ctx context.Context, addr string) bool {
	deadline := time.Now().Add(3 * time.Second)
	for time.Now().Before(deadline) && ctx.Err() == nil {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			defer conn.Close()
			_ = conn.SetDeadline(deadline)
			var b [8]byte
			_, err = conn.Write([]byte("version\r\n"))
			n, readErr := conn.Read(b[:])
			return err == nil && readErr == nil && strings.HasPrefix(string(b[:n]), "VERSION")
		}
		time.Sleep(5 * time.Millisecond)
	}
	return false
}
