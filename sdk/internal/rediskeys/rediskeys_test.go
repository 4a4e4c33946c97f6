package rediskeys_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/shardd/shardd/internal/realserver"
	"github.com/shardd/shardd/sdk/internal/rediskeys"
)

var update = flag.Bool("update", false, "write table.txt anew from redis-server's COMMAND")

type args []string

func (a args) Len() int         { return len(a) }
func (a args) Arg(i int) string { return a[i] }

func keys(cmd ...string) (found []string, known bool) {
	pos, known := rediskeys.Append(nil, args(cmd))
	for _, p := range pos {
		found = append(found, cmd[p])
	}
	return found, known
}

func server(t *testing.T) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: realserver.ForTest(t, realserver.Redis(), 1)[0].Addr, Protocol: 2})
	t.Cleanup(func() { c.Close() })
	return c
}

// TestTable: the table is what redis-server says of itself.
func TestTable(t *testing.T) {
	all, err := server(t).Do(t.Context(), "COMMAND").Slice()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, c := range all {
		lines = describe(lines, c.([]any))
	}
	slices.Sort(lines)
	got := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile("table.txt", []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("table.txt")
	if err != nil {
		t.Fatal(err)
	}
	if v := server(t).Info(t.Context(), "server").Val(); !strings.Contains(v, "redis_version:7.0") {
		t.Skip("the table is that of Redis 7.0")
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

// describe appends a line for a command and for each of its subcommands.
func describe(lines []string, c []any) []string {
	line := c[0].(string)
	for _, s := range c[8].([]any) {
		m := pairs(s)
		begin, find := pairs(m["begin_search"]), pairs(m["find_keys"])
		b, f := pairs(begin["spec"]), pairs(find["spec"])
		switch begin["type"] {
		case "index":
			line += fmt.Sprintf(" i%v", b["index"])
		case "keyword":
			line += fmt.Sprintf(" k%v/%v", b["keyword"], b["startfrom"])
		default:
			if line == "sort i1:r0/1/0" { // "can appear anywhere", once
				line += " kSTORE/2:r0/1/0"
			}
			continue
		}
		if find["type"] == "keynum" {
			line += fmt.Sprintf(":n%v/%v/%v", f["keynumidx"], f["firstkey"], f["keystep"])
		} else {
			line += fmt.Sprintf(":r%v/%v/%v", f["lastkey"], f["keystep"], f["limit"])
		}
	}
	lines = append(lines, line)
	for _, sub := range c[9].([]any) {
		lines = describe(lines, sub.([]any))
	}
	return lines
}

// pairs reads the flat form that RESP2 has for a map.
func pairs(v any) map[any]any {
	list := v.([]any)
	m := make(map[any]any)
	for i := 0; i+1 < len(list); i += 2 {
		m[list[i]] = list[i+1]
	}
	return m
}

var cases = [][]string{
	{"get", "a"}, {"SET", "a", "v", "EX", "1"}, {"mget", "a", "b", "c"}, {"mset", "a", "1", "b", "2"},
	{"del", "a", "b"}, {"eval", "return 1", "2", "a", "b", "x"}, {"fcall", "f", "1", "a", "x"},
	{"zunionstore", "d", "2", "a", "b", "weights", "1", "2"}, {"zinter", "2", "a", "b"},
	{"xread", "count", "1", "streams", "a", "b", "0", "0"}, {"xreadgroup", "group", "g", "c", "streams", "a", ">"},
	{"bitop", "and", "d", "a", "b"}, {"sort", "a", "by", "nosort", "store", "d"}, {"blpop", "a", "b", "1"},
	{"lmpop", "2", "a", "b", "left"}, {"blmpop", "1", "2", "a", "b", "left"}, {"georadius", "a", "1", "2", "3", "m", "store", "d"},
	{"object", "encoding", "a"}, {"memory", "usage", "a"}, {"xgroup", "create", "a", "g", "$"}, {"rename", "a", "b"},
	{"smove", "a", "b", "m"}, {"pfmerge", "d", "a", "b"}, {"lmove", "a", "b", "left", "right"},
	{"migrate", "h", "1", "", "0", "10", "keys", "a", "b"}, {"sintercard", "2", "a", "b", "limit", "1"},
}

// TestKeys: the same keys as the server finds.
func TestKeys(t *testing.T) {
	c := server(t)
	for _, cmd := range cases {
		full := []any{"COMMAND", "GETKEYS"}
		for _, a := range cmd {
			full = append(full, a)
		}
		want, err := c.Do(context.Background(), full...).StringSlice()
		if err != nil {
			t.Fatalf("%v: %v", cmd, err)
		}
		got, known := keys(cmd...)
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" || !known {
			t.Errorf("%v: known %v: %s", cmd, known, diff)
		}
	}
}

func TestOthers(t *testing.T) {
	for _, cmd := range [][]string{{"ping"}, {"scan", "0"}, {"eval", "return 1", "0"}, {"get"}, {"publish", "ch", "m"}, {"client", "id"}, {"zunion", "9"}, {"zunion"}} {
		if got, known := keys(cmd...); len(got) != 0 || !known {
			t.Errorf("%v: %v, known %v", cmd, got, known)
		}
	}
	if got, known := keys("ft.search", "idx", "q"); known || len(got) != 1 || got[0] != "idx" {
		t.Errorf("%v, %v", got, known)
	}
	if got, known := keys(); known || got != nil {
		t.Errorf("%v, %v", got, known)
	}
}

// FuzzKeys: whatever the arguments are, positions are arguments.
func FuzzKeys(f *testing.F) {
	for _, c := range cases {
		f.Add(strings.Join(c, " "))
	}
	f.Add("eval x 999999999999999999999 a")
	f.Add("zunion -5 a b")
	f.Fuzz(func(t *testing.T, line string) {
		cmd := args(strings.Fields(line))
		pos, _ := rediskeys.Append(nil, cmd)
		for _, p := range pos {
			if p < 1 || p >= len(cmd) {
				t.Fatalf("%q: %v", cmd, pos)
			}
		}
	})
}
