// Package rediskeys says which arguments of a Redis command are keys, by the key
// specifications that Redis itself publishes (COMMAND, since 7.0; redis.io, "Command
// key specifications").
//
// Law: for every command of Redis 7.0 the positions are those that the server's
// COMMAND GETKEYS answers, which a test asks it. A command that is not in the table
// (a module's, or of a later release) has its first argument as its key, and is said
// to be unknown.
//
// Cost: one map lookup and a step for each key.
package rediskeys

import (
	_ "embed" // the table
	"strconv"
	"strings"
	"sync"
)

//go:embed table.txt
var text string

// Args is a command: Arg(0) is its name.
type Args interface {
	Len() int
	Arg(i int) string
}

// spec is one key specification: where to begin, and which arguments from there.
type spec struct {
	keyword string // "" = by index
	index   int    // of the first key, or where to look for the keyword
	keynum  bool   // the number of keys is an argument
	a, b, c int    // range: last key, step, limit; keynum: index of the number, first key, step
}

// table maps the name, "container|sub" for a subcommand, to its specifications.
var table = sync.OnceValue(func() map[string][]spec {
	t := make(map[string][]spec)
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		var specs []spec
		for _, f := range fields[1:] {
			specs = append(specs, parse(f))
		}
		t[fields[0]] = specs
	}
	return t
})

// parse reads i<index>:<find> or k<KEYWORD>/<start>:<find>, find being
// r<last>/<step>/<limit> or n<index>/<first>/<step>. The table is our own.
func parse(f string) spec {
	begin, find, _ := strings.Cut(f, ":")
	var s spec
	if rest, ok := strings.CutPrefix(begin, "k"); ok {
		var at string
		s.keyword, at, _ = strings.Cut(rest, "/")
		s.index = number(at)
	} else {
		s.index = number(begin[1:])
	}
	s.keynum = find[0] == 'n'
	n := strings.Split(find[1:], "/")
	s.a, s.b, s.c = number(n[0]), number(n[1]), number(n[2])
	return s
}

func number(s string) int {
	n, _ := strconv.Atoi(s) // the table has numbers, other arguments count as 0
	return n
}

// Append appends the positions of the keys to dst, in order of the specifications.
// known is false for a command that is not in the table.
func Append(dst []int, cmd Args) (keys []int, known bool) {
	if cmd.Len() == 0 {
		return dst, false
	}
	name := strings.ToLower(cmd.Arg(0))
	specs, known := table()[name]
	if cmd.Len() > 1 {
		if sub, ok := table()[name+"|"+strings.ToLower(cmd.Arg(1))]; ok {
			specs, known = sub, true
		}
	}
	if !known {
		if cmd.Len() > 1 {
			dst = append(dst, 1)
		}
		return dst, false
	}
	for i, s := range specs {
		if name == "migrate" && i == 0 && cmd.Len() > 3 && cmd.Arg(3) == "" {
			continue // the keys come after KEYS
		}
		dst = s.append(dst, cmd)
	}
	return dst, true
}

func (s spec) append(dst []int, cmd Args) []int {
	first := s.begin(cmd)
	if first <= 0 || first >= cmd.Len() {
		return dst
	}
	var last, step int
	if s.keynum {
		if first+s.a >= cmd.Len() {
			return dst
		}
		n := number(cmd.Arg(first + s.a))
		step = s.c
		first += s.b
		last = first + (n-1)*step
	} else {
		step = s.b
		last = s.last(first, cmd.Len())
	}
	for i := first; i <= min(last, cmd.Len()-1) && step > 0; i += step {
		dst = append(dst, i)
	}
	return dst
}

func (s spec) last(first, n int) int {
	switch {
	case s.a >= 0:
		return first + s.a
	case s.c <= 1:
		return n + s.a
	default: // a part of the arguments, as XREAD has it
		return first + (n-first)/s.c + s.a
	}
}

// begin returns the position of the first key, 0 if there is none.
func (s spec) begin(cmd Args) int {
	if s.keyword == "" {
		return s.index
	}
	if s.index < 0 {
		for i := cmd.Len() + s.index; i > 0; i-- {
			if strings.EqualFold(cmd.Arg(i), s.keyword) {
				return i + 1
			}
		}
		return 0
	}
	for i := s.index; i < cmd.Len(); i++ {
		if strings.EqualFold(cmd.Arg(i), s.keyword) {
			return i + 1
		}
	}
	return 0
}
