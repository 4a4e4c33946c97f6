package foreign

import (
	"fmt"
	"strconv"
	"strings"
)

// maxTemplate is the largest number of servers that a server-template makes here.
const maxTemplate = 4096

// haproxyServer is a server line.
type haproxyServer struct {
	line             int
	name, addr       string
	id               int // 0 = not given
	weight           uint32
	disabled, backup bool
}

// server reads "NAME ADDRESS parameters" or "PREFIX COUNT ADDRESS parameters".
func (b *backend) server(line int, kind string, args []string) error {
	from, to := 0, 0
	if kind == "server-template" && len(args) > 1 {
		var err error
		if from, to, err = templateRange(args[1]); err != nil {
			return err
		}
		args = append([]string{args[0]}, args[2:]...)
	}
	if len(args) < 2 {
		return fmt.Errorf("want a name and an address")
	}
	s := b.defaults
	s.line, s.name, s.addr = line, args[0], haproxyAddr(args[1])
	if err := s.parameters(args[2:], b); err != nil {
		return err
	}
	if s.id != 0 {
		if b.byID = true; b.used[s.id] || to > 0 {
			return fmt.Errorf("id %d is taken by another server", s.id)
		}
		b.mark(s.id)
	}
	if to == 0 {
		b.servers = append(b.servers, s)
		return nil
	}
	for i := from; i <= to; i++ {
		s.name = args[0] + strconv.Itoa(i)
		b.servers = append(b.servers, s)
	}
	return nil
}

// templateRange reads "5" (1 to 5) or "3-7".
func templateRange(text string) (from, to int, err error) {
	a, z, ranged := strings.Cut(text, "-")
	if !ranged {
		a, z = "1", a
	}
	low, errA := strconv.ParseUint(a, 10, 31)
	high, errZ := strconv.ParseUint(z, 10, 31)
	if errA != nil || errZ != nil || low < 1 || high < low || high-low >= maxTemplate {
		return 0, 0, fmt.Errorf("%q is no count or range of at most %d servers", text, maxTemplate)
	}
	return int(low), int(high), nil
}

// haproxyAddr takes the prefix of an address family away where the address tells
// it anyway.
func haproxyAddr(text string) string {
	for _, family := range []string{"ipv4@", "ipv6@"} {
		text = strings.TrimPrefix(text, family)
	}
	if path, ok := strings.CutPrefix(text, "unix@"); ok {
		return "unix:" + path
	}
	return text
}

// parameters reads what stands behind an address, or behind default-server.
func (s *haproxyServer) parameters(args []string, b *backend) error {
	for i := 0; i < len(args); i++ {
		name, v := args[i], ""
		if i+1 < len(args) {
			v = args[i+1]
		}
		takes, err := s.parameter(name, v, b)
		if err != nil {
			return err
		}
		if takes > 0 && i+takes >= len(args) {
			return fmt.Errorf("%s without a value", name)
		}
		i += takes
		if name == "source" { // may go on with an interface or another address
			for i+2 < len(args) && (args[i+1] == "interface" || args[i+1] == "usesrc") {
				i += 2
			}
		}
	}
	return nil
}

// parameter reads one, and returns how many values it takes.
func (s *haproxyServer) parameter(name, v string, b *backend) (takes int, err error) {
	switch name {
	case "weight":
		s.weight, err = weight(v, 0, 256)
		return 1, err
	case "id":
		id, err := strconv.ParseUint(v, 10, 31)
		if err != nil || id == 0 {
			return 1, fmt.Errorf("id %q: want a whole number from 1", v)
		}
		s.id = int(id)
		return 1, nil
	case "disabled":
		s.disabled = true
	case "enabled":
		s.disabled = false
	case "backup":
		s.backup = true
	case "no-backup":
		s.backup = false
	case "hash-key":
		if v != "id" {
			return 1, fmt.Errorf("hash-key %s places servers by their address; no mode has that", v)
		}
		return 1, nil
	case "slowstart":
		b.noteOnce("slowstart raises the weight of a server that comes back step by step; shardd moves keys by declared changes only")
		return 1, nil
	case "source":
		return 1, nil
	default:
		switch {
		case haproxyFlags[name]:
		case haproxyValues[name]:
			return 1, nil
		default:
			return 0, fmt.Errorf("unknown parameter %q; remove it if it decides nothing about where keys go", name)
		}
	}
	return 0, nil
}
