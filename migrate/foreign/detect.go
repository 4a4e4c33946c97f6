package foreign

import (
	"bytes"
	"slices"
	"strings"
)

// Detect tells the format of a file by its content. It says no rather than guess;
// a cluster file of this module's own is none of the formats.
func Detect(data []byte) (Format, bool) {
	if len(data) > MaxSize {
		return "", false
	}
	content := bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\uFEFF")))
	if len(content) == 0 {
		return "", false
	}
	if content[0] == '{' || content[0] == '[' {
		return detectJSON(content)
	}
	first, _, _ := strings.Cut(string(content), "\n")
	switch {
	case isClusterFile(content):
		return "", false
	case nodeHash(strings.Split(first, " ")[0]):
		return Redis, true
	case isNginx(content):
		return Nginx, true
	case isHAProxy(content):
		return HAProxy, true
	case isServerList(content):
		return Memcached, true
	}
	root, err := parseYAML(data)
	if err != nil {
		return "", false
	}
	return detectMap(root)
}

// isClusterFile says whether a line begins with "cluster: NAME", as cluster files
// of this module do. It saves reading them as YAML.
func isClusterFile(content []byte) bool {
	for line := range bytes.Lines(content) {
		if name, ok := bytes.CutPrefix(line, []byte("cluster:")); ok {
			name = bytes.TrimSpace(name)
			return len(name) > 0 && name[0] != '#'
		}
	}
	return false
}

func detectJSON(content []byte) (Format, bool) {
	root, err := parseJSON(content)
	if err != nil {
		return "", false
	}
	isAssignment := func(v value) bool {
		_, name := v.get("cluster_name", "clusterName")
		_, endpoints := v.get("endpoints")
		return name && endpoints
	}
	if root.kind == object {
		list, ok := root.get("resources")
		if isAssignment(root) || ok && slices.ContainsFunc(list.items, isAssignment) {
			return EnvoyEDS, true
		}
		return detectMap(root)
	}
	for _, ring := range root.items {
		if _, ok := ring.get("endpoints"); ok {
			return Thanos, true
		}
	}
	return "", false
}

// detectMap tells pools of twemproxy from options of a Ring.
func detectMap(root value) (Format, bool) {
	for _, f := range root.fields {
		if plainName(f.name) == "addrs" && f.kind == object {
			return GoRedisRing, true
		}
		servers, ok := f.get("servers")
		if _, listens := f.get("listen"); ok && servers.kind == list && (listens || root.kind == object && isPool(f.value)) {
			return Twemproxy, true
		}
	}
	return "", false
}

// isPool says whether v has a field that only twemproxy's pools have.
func isPool(v value) bool {
	_, hash := v.get("hash")
	_, distribution := v.get("distribution")
	_, eject := v.get("auto_eject_hosts")
	return hash || distribution || eject
}

func isNginx(content []byte) bool {
	if !bytes.Contains(content, []byte("upstream")) || !bytes.Contains(content, []byte("{")) {
		return false
	}
	all, err := parseNginxFile(content)
	found := false
	walkNginx(all, func(s statement) { found = found || s.words[0] == "upstream" && s.braces })
	return err == nil && found
}

func isHAProxy(content []byte) bool {
	section, server := false, false
	for _, l := range haproxyLines(content) {
		switch l.words[0] {
		case "backend", "listen":
			section = len(l.words) > 1
		case "server", "server-template":
			server = server || section
		}
	}
	return server
}

// isServerList says whether every line is a host with a port, and perhaps a weight.
func isServerList(content []byte) bool {
	for line := range bytes.Lines(content) {
		text, _, _ := strings.Cut(string(line), "#")
		f := strings.Fields(text)
		if len(f) == 0 {
			continue
		}
		if len(f) > 2 || portOf(f[0]) == "" || !serverText(f[0]) {
			return false
		}
		if len(f) == 2 && strings.Trim(f[1], "0123456789") != "" {
			return false
		}
	}
	return true
}
