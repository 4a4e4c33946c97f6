package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestETag(t *testing.T) {
	tag := ETag{Version: topology.Version{Epoch: 2, Seq: 45}, Generation: 17}
	if tag.String() != `"2.45+17"` {
		t.Fatal(tag.String())
	}
	st := membership.State{Generation: 17}
	if got := (ETag{Generation: 17}).String(); got != st.ETag() {
		t.Fatalf("%s here, %s in membership", got, st.ETag())
	}
	st.ID = topology.ClusterID{1, 15: 2}
	named := ETag{Generation: 17, Cluster: st.ID}
	if got, err := ParseETag(st.ETag()); named.String() != st.ETag() || err != nil || got != named {
		t.Fatalf("%s here, %s in membership, read as %v, %v", named, st.ETag(), got, err)
	}
	for _, s := range []string{`"2.45+17"`, `2.45+17`} {
		if got, err := ParseETag(s); err != nil || got != tag {
			t.Errorf("%s: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "*", `""`, `"2.45"`, `W/"2.45+17"`, `"2.45+17`, `"2.45+017"`, `"2.45+0"`, `"2.45+-1"`, `"2.45+1", "2.45+2"`, `"a+1"`, `"2.45+17@"`, `"2.45+17@1"`, `"2.45+17@00000000000000000000000000000000"`, `"2.45+17@0100000000000000000000000000000g"`, `"2.45+17@01000000000000000000000000000002@"`} {
		if got, err := ParseETag(s); err == nil {
			t.Errorf("%s: taken as %v", s, got)
		}
	}
}

// TestErrorsTravel: every sentinel arrives as itself.
func TestErrorsTravel(t *testing.T) {
	for _, sentinel := range []error{membership.ErrInvalid, membership.ErrConflict, membership.ErrExists, membership.ErrNoCluster, membership.ErrNoNode,
		membership.ErrNoVersion, membership.ErrTooLarge, membership.ErrUnreachable, membership.ErrCorrupt, ErrCluster, ErrForked, ErrOlder} {
		sent := FromError(fmt.Errorf("operation: %w", sentinel))
		b, err := json.Marshal(ErrorBody{sent})
		if err != nil {
			t.Fatal(err)
		}
		var got ErrorBody
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		if !errors.Is(got.Error, sentinel) || got.Error.HTTPStatus() < 400 || got.Error.Message == "" {
			t.Errorf("%v arrives as %#v", sentinel, got.Error)
		}
	}
	field := &topology.FieldError{Path: "nodes[0].id", Err: errors.New("empty")}
	if e := FromError(fmt.Errorf("%w: %w", membership.ErrConflict, placement.ErrMoving)); e.Code != CodeConflict || e.Hint != hintMoving {
		t.Errorf("steps under way: %+v", e)
	}
	if e := FromError(field); e.Code != CodeInvalid {
		t.Errorf("a field error is %s", e.Code)
	}
	if e := FromError(errors.New("the password is secret")); e.Code != CodeInternal || e.Message != "the server failed" {
		t.Errorf("an unknown error says %q", e.Message)
	}
	later := &Error{Code: "from_a_later_release", Status: http.StatusConflict}
	if !errors.Is(later, membership.ErrConflict) {
		t.Error("a 409 of a later release is no conflict")
	}
}

// TestCodes: codes are unique, so that each has one meaning.
func TestCodes(t *testing.T) {
	seen := map[Code]bool{}
	for _, m := range meanings {
		if seen[m.code] || m.status < 400 || m.sentinel == nil {
			t.Errorf("%+v", m)
		}
		seen[m.code] = true
	}
}

func TestRetryAfter(t *testing.T) {
	for header, want := range map[string]time.Duration{"": 0, "2": 2 * time.Second, "-1": 0, "99999": maxRetryAfter, "Wed, 21 Oct 2015 07:28:00 GMT": 0, "1.5": 0} {
		if got := retryAfter(header); got != want {
			t.Errorf("%q: %v, want %v", header, got, want)
		}
	}
}

func TestParseServer(t *testing.T) {
	for s, want := range map[string]string{"10.0.0.1:7420": "http://10.0.0.1:7420", "http://a:1/": "http://a:1", "https://shardd.example:443": "https://shardd.example:443", "[::1]:7420": "http://[::1]:7420"} {
		if u, err := ParseServer(s); err != nil || u.String() != want {
			t.Errorf("%s: %v, %v", s, u, err)
		}
	}
	for _, s := range []string{"", "http://", "ftp://a", "http://a/path", "http://user:pw@a", "http://a?x=1", "a b"} {
		if u, err := ParseServer(s); err == nil {
			t.Errorf("%q: taken as %v", s, u)
		}
	}
}

func testTopology(t testing.TB) *topology.Topology {
	topo, err := topology.New(topology.Draft{Cluster: "cache", ID: topology.ClusterID{1}, History: 7, Version: topology.Version{Epoch: 2, Seq: 45},
		Spec: topology.Spec{Algorithm: topology.Ring}, Nodes: []topology.Node{{ID: "a", Addr: "10.0.0.1:1", Weight: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

func TestTopologyJSON(t *testing.T) {
	topo := testTopology(t)
	b, err := json.Marshal(Topology{topo})
	if err != nil {
		t.Fatal(err)
	}
	var people struct {
		Cluster string
		Version string
		Digest  string
		Nodes   []topology.Node
		Encoded []byte
	}
	if err := json.Unmarshal(b, &people); err != nil {
		t.Fatal(err)
	}
	if people.Version != "2.45" || people.Digest != topo.Digest().String() || len(people.Nodes) != 1 || people.Cluster != "cache" {
		t.Fatalf("%s", b)
	}
	var back Topology
	if err := json.Unmarshal(b, &back); err != nil || !back.Equal(topo) {
		t.Fatalf("%v: %s", err, b)
	}
	people.Encoded[20] ^= 1
	forged, _ := json.Marshal(people)
	if err := json.Unmarshal(forged, &back); err == nil && back.Digest() == topo.Digest() {
		t.Fatal("a changed encoding was taken")
	}
}

func TestDeclaredJSON(t *testing.T) {
	want := Declared{Declared: topology.Declared{Cluster: "cache", Spec: topology.Spec{Algorithm: topology.Jump}.Normal(),
		Nodes: []topology.Node{{ID: "a", Weight: 2}}}, Generation: 9, Applied: 8}
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Declared
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

func full(t testing.TB, topo *topology.Topology) Message {
	return Message{Type: MessageFull, ClusterID: topo.ClusterID(), Version: topo.Version(), Digest: topo.Digest(), Encoded: topo.Encode()}
}

func TestMessageDecode(t *testing.T) {
	topo := testTopology(t)
	m := full(t, topo)
	if got, err := m.Decode(); err != nil || !got.Equal(topo) {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Message){
		"digest":  func(m *Message) { m.Digest[0] ^= 1 },
		"version": func(m *Message) { m.Version.Seq++ },
		"cluster": func(m *Message) { m.ClusterID[0] ^= 1 },
		"cut":     func(m *Message) { m.Encoded = m.Encoded[:len(m.Encoded)-1] },
		"empty":   func(m *Message) { m.Encoded = nil },
	} {
		bad := full(t, topo)
		change(&bad)
		if _, err := bad.Decode(); !errors.Is(err, topology.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (Message{Type: MessageHeartbeat}).Decode(); err == nil {
		t.Error("a heartbeat was decoded")
	}
}

func FuzzMessage(f *testing.F) {
	topo := testTopology(f)
	b, err := json.Marshal(full(f, topo))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"type":"full","version":"1.1","encoded":"U0hUAQ=="}`))
	f.Add([]byte(`{"type":"heartbeat","interval_ms":-1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var m Message
		if json.Unmarshal(b, &m) != nil {
			return
		}
		if got, err := m.Decode(); err == nil && (got.Digest() != m.Digest || got.Version() != m.Version) {
			t.Fatalf("%s: decoded as %v", b, got.Ref())
		}
	})
}

func FuzzParseETag(f *testing.F) {
	f.Add(`"2.45+17"`)
	f.Add(`1.1+1`)
	f.Add(`"1.1+1@01000000000000000000000000000002"`)
	f.Fuzz(func(t *testing.T, s string) {
		tag, err := ParseETag(s)
		if err != nil {
			return
		}
		if again, err := ParseETag(tag.String()); err != nil || again != tag {
			t.Fatalf("%q: %v, %v", s, again, err)
		}
	})
}

// TestReadable: people read what is wrong and where, not which package said so.
func TestReadable(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := Readable(errors.New(text)); got != want {
			t.Errorf("%q\nbecame %q\nwant   %q", text, got, want)
		}
	}
	f("etcdstore: declare: membership: no such node: \"x\"", "declare: no such node: \"x\"")
	f("etcdstore: declare: membership: store unreachable: etcdkv: etcd unreachable: no answer from etcd at http://127.0.0.1:1: connection refused",
		"declare: store unreachable: etcd unreachable: no answer from etcd at http://127.0.0.1:1: connection refused")
	f("c.yaml:3:8: nodes[2].id: node id \"a: b\"", "c.yaml:3:8: nodes[2].id: node id \"a: b\"")
	f("membership: invalid: membership: invalid: twice", "invalid: twice")
	f("cluster membership: full", "cluster membership: full")
	f("api", "api")
	f("", "")
}
