package rediscluster_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/shardd/shardd/migrate/foreign/rediscluster"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server answers commands with what answers has for them, else with an error.
func server(t *testing.T, answers map[string]string) *redis.Client {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			wait.Go(func() {
				defer conn.Close()
				answer(conn, answers)
			})
		}
	})
	o, err := rediscluster.Options(ln.Addr().String(), "")
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() {
		c.Close()
		ln.Close()
		wait.Wait()
	})
	return c
}

func answer(conn net.Conn, answers map[string]string) {
	r := bufio.NewReader(conn)
	number := func() (int, error) {
		line, err := r.ReadString('\n')
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	for {
		n, err := number()
		if err != nil {
			return
		}
		var words []string
		for range n {
			size, err := number()
			if err != nil {
				return
			}
			b := make([]byte, size+2)
			if _, err := io.ReadFull(r, b); err != nil {
				return
			}
			words = append(words, string(b[:size]))
		}
		reply, ok := answers[strings.ToLower(strings.Join(words, " "))]
		if !ok {
			reply = "-ERR unknown command\r\n"
		}
		if _, err := io.WriteString(conn, reply); err != nil {
			return
		}
	}
}

func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

var (
	idA, idB = strings.Repeat("a", 40), strings.Repeat("b", 40)
	shards   = "*2\r\n*4\r\n" + bulk("slots") + "*2\r\n:0\r\n:8191\r\n" + bulk("nodes") + "*1\r\n" + shardNode(idA, 7001) +
		"*4\r\n" + bulk("slots") + "*2\r\n:8192\r\n:16383\r\n" + bulk("nodes") + "*1\r\n" + shardNode(idB, 7002)
	slots = "*3\r\n" + slot(0, 100, 7001, idA) + slot(8192, 16383, 7002, idB) + slot(101, 8191, 7001, idA)
	nodes = idA + " 10.0.0.1:7001@17001 master - 0 0 1 connected 0-8191\n" + idB + " 10.0.0.1:7002@17002 myself,master - 0 0 2 connected 8192-16383\n"
)

func shardNode(id string, port int) string {
	return "*14\r\n" + bulk("id") + bulk(id) + bulk("port") + fmt.Sprintf(":%d\r\n", port) + bulk("ip") + bulk("10.0.0.1") + bulk("endpoint") + bulk("10.0.0.1") +
		bulk("role") + bulk("master") + bulk("replication-offset") + ":0\r\n" + bulk("health") + bulk("online")
}

func slot(first, last, port int, id string) string {
	return fmt.Sprintf("*3\r\n:%d\r\n:%d\r\n*3\r\n%s:%d\r\n%s", first, last, bulk("10.0.0.1"), port, bulk(id))
}

func TestRead(t *testing.T) {
	f := func(name string, answers map[string]string, want string) {
		t.Run(name, func(t *testing.T) {
			r, err := rediscluster.Read(t.Context(), server(t, answers), "c")
			got := fmt.Sprint(err)
			if err == nil {
				got = r.Declared.Cluster
				for _, n := range r.Declared.Nodes {
					got += fmt.Sprintf(" %s=%s:%s", n.ID, n.Label[:1], n.Slots)
				}
			}
			if !strings.Contains(got, want) {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
	f("order of NODES", map[string]string{"cluster shards": shards, "cluster nodes": bulk(nodes)}, "c 10.0.0.1:7002=b:8192-16383 10.0.0.1:7001=a:0-8191")
	f("without NODES", map[string]string{"cluster shards": shards}, "c 10.0.0.1:7001=a:0-8191 10.0.0.1:7002=b:8192-16383")
	f("before 7.0", map[string]string{"cluster slots": slots, "cluster nodes": bulk(nodes)}, "c 10.0.0.1:7002=b:8192-16383 10.0.0.1:7001=a:0-8191")
	f("before 7.0, without NODES", map[string]string{"cluster slots": slots}, "c 10.0.0.1:7001=a:0-100 101-8191 10.0.0.1:7002=b:8192-16383")
	alone := idA + " :7001@17001 myself,master - 0 0 1 connected 0-16383\n"
	f("a node that has met none", map[string]string{"cluster slots": "*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n" + bulk("") + ":7001\r\n" + bulk(idA), "cluster nodes": bulk(alone)}, "c 127.0.0.1:7001=a:0-16383")
	f("slots on the move", map[string]string{"cluster shards": shards, "cluster nodes": bulk(strings.NewReplacer("0-8191", "0-8190", "8192-", "8191-").Replace(nodes))}, "slots are being moved right now")
	f("no cluster", map[string]string{}, "unknown command")
	f("a slot without a master", map[string]string{"cluster slots": "*1\r\n" + slot(0, 100, 7001, idA)}, "slot 101 belongs to no master")
}

func TestOptions(t *testing.T) {
	o, err := rediscluster.Options("redis://u:secret@h:1", "other")
	if err != nil || o.Addr != "h:1" || o.Password != "secret" || o.Username != "u" {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := rediscluster.Options("h:1", "other"); err != nil || o.Password != "other" {
		t.Errorf("%+v, %v", o, err)
	}
	for _, bad := range []string{"http://u:secret@h:1", "redis://u:secret@h:x", "redis://u:sec ret@h:1\n"} {
		if _, err := rediscluster.Options(bad, ""); err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "sec ret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func ExampleOptions() {
	o, err := rediscluster.Options("rediss://reader:secret@cache-1.example:6379", "")
	fmt.Println(o.Addr, o.Username, o.TLSConfig != nil, err)
	// Output: cache-1.example:6379 reader true <nil>
}
