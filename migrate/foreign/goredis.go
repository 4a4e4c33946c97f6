package foreign

import (
	"slices"
	"strings"

	"github.com/shardd/shardd/topology"
)

// goRedisPassed are fields of RingOptions, in lower case without underscores, that
// decide nothing about where a key goes.
var goRedisPassed = []string{"newclient", "clientname", "heartbeatfrequency", "heartbeatfn", "dialer", "onconnect", "protocol", "username", "password",
	"credentialsprovider", "credentialsprovidercontext", "streamingcredentialsprovider", "db", "maxretries", "minretrybackoff", "maxretrybackoff",
	"dialtimeout", "dialerretries", "dialerretrytimeout", "dialerretrybackoff", "readtimeout", "writetimeout", "contexttimeoutenabled", "poolfifo",
	"poolsize", "pooltimeout", "minidleconns", "maxidleconns", "maxactiveconns", "connmaxidletime", "connmaxlifetime", "connmaxlifetimejitter",
	"readbuffersize", "writebuffersize", "pipelinereadbuffersize", "pipelinewritebuffersize", "pipelinepoolsize", "tlsconfig", "limiter",
	"disableindentity", "disableidentity", "identitysuffix", "unstableresp3"}

// parseGoRedis reads the fields of go-redis' RingOptions: the shards in addrs, a
// map of name to address. Upper case and underscores in names do not count.
func parseGoRedis(data []byte, _ Options) (*draft, error) {
	root, err := parseYAML(data)
	if err != nil {
		return nil, err
	}
	if root.kind != object {
		return nil, fault(root.line, "", "want a map of Ring options, not %s", root.kindName())
	}
	d := &draft{spec: topology.Spec{Algorithm: topology.Compat, Compat: topology.Foreign{Mode: topology.ModeGoRedisRing}}}
	for i := range root.fields {
		root.fields[i].name = plainName(root.fields[i].name)
	}
	if err := root.unique(); err != nil {
		return nil, err
	}
	for _, f := range root.fields {
		switch {
		case f.name == "addrs":
			err = d.goRedisShards(f)
		case f.name == "newconsistenthash":
			err = fault(f.line, f.name, "a hash of the program's own maps the keys; no mode knows it")
		case !slices.Contains(goRedisPassed, f.name):
			err = fault(f.line, f.name, "no field of RingOptions")
		}
		if err != nil {
			return nil, err
		}
	}
	return d, nil
}

func plainName(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }

func (d *draft) goRedisShards(f member) error {
	if f.kind != object {
		return fault(f.line, f.name, "want a map of shard names to addresses, not %s", f.kindName())
	}
	if err := f.unique(); err != nil {
		return err
	}
	for _, s := range f.fields {
		if s.kind != text {
			return fault(s.line, "addrs."+s.name, "want host:port, not %s", s.kindName())
		}
		// The name is hashed, whatever becomes of the id.
		d.add(s.line, s.name, topology.Node{Addr: s.text, Label: s.name, Weight: 1})
	}
	return nil
}
