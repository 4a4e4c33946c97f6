package server

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

func (s *Server) hub(r *http.Request) (*hub, error) {
	return s.clusters.get(r.Context(), r.PathValue("cluster"))
}

// load reads the cluster from the store, not from memory.
func (s *Server) load(r *http.Request) (*hub, membership.State, error) {
	h, err := s.hub(r)
	if err != nil {
		return nil, membership.State{}, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.cfg.StoreTimeout)
	defer cancel()
	st, err := h.store.Load(ctx)
	return h, st, inTime(err)
}

// inTime makes a store that did not answer in time an unreachable one.
func inTime(err error) error {
	if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, membership.ErrUnreachable) {
		return fmt.Errorf("%w: %w", membership.ErrUnreachable, err)
	}
	return err
}

func setTags(w http.ResponseWriter, id topology.ClusterID, tag api.ETag) {
	w.Header().Set("ETag", tag.String())
	w.Header().Set(api.ClusterHeader, id.String())
}

func (s *Server) getTopology(w http.ResponseWriter, r *http.Request) error {
	if text := r.URL.Query().Get("version"); text != "" {
		return s.getKept(w, r, text)
	}
	_, st, err := s.load(r)
	if err != nil {
		return err
	}
	if st.Head == nil {
		return noVersionYet(r.PathValue("cluster"))
	}
	tag := api.ETag{Version: st.Head.Version(), Generation: st.Generation, Cluster: st.ID}
	setTags(w, st.ID, tag)
	if r.Header.Get("If-None-Match") == tag.String() {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return writeTopology(w, r, st.Head)
}

func (s *Server) getKept(w http.ResponseWriter, r *http.Request, text string) error {
	v, err := parseVersion(text)
	if err != nil {
		return err
	}
	h, err := s.hub(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.cfg.StoreTimeout)
	defer cancel()
	t, err := h.store.Version(ctx, v)
	if err != nil {
		return inTime(err)
	}
	w.Header().Set(api.ClusterHeader, t.ClusterID().String())
	return writeTopology(w, r, t)
}

func noVersionYet(cluster string) error {
	return &api.Error{Code: api.CodeNoVersion, Message: fmt.Sprintf("cluster %s has no version yet", cluster),
		Hint: "it is declared, and is published as soon as a leader is there"}
}

func writeTopology(w http.ResponseWriter, r *http.Request, t *topology.Topology) error {
	w.Header().Set("Vary", "Accept")
	if !accepts(r, api.TypeBinary) {
		return writeJSON(w, r, http.StatusOK, api.Topology{Topology: t})
	}
	saved, err := t.MarshalSaved()
	if err != nil {
		return err
	}
	return writeBody(w, r, http.StatusOK, api.TypeBinary, saved)
}

func accepts(r *http.Request, mediaType string) bool {
	for _, v := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(v, ",") {
			if t, _, err := mime.ParseMediaType(strings.TrimSpace(part)); err == nil && t == mediaType {
				return true
			}
		}
	}
	return false
}

func (s *Server) getSpec(w http.ResponseWriter, r *http.Request) error {
	_, st, err := s.load(r)
	if err != nil {
		return err
	}
	if st.Invalid != nil {
		return fmt.Errorf("%w: declared state: %w", membership.ErrCorrupt, st.Invalid)
	}
	tag := api.ETag{Generation: st.Generation, Cluster: st.ID}
	if st.Head != nil {
		tag.Version = st.Head.Version()
	}
	setTags(w, st.ID, tag)
	return writeJSON(w, r, http.StatusOK, api.Declared{Declared: st.Declared, Generation: st.Generation, Applied: st.Applied})
}

// getObject serves tables from memory first: a fleet of clients asks for the
// same one at the same moment.
func (s *Server) getObject(w http.ResponseWriter, r *http.Request) error {
	digest, err := topology.ParseDigest(r.PathValue("digest"))
	if err != nil {
		return badRequest("", "%v", err)
	}
	h, err := s.hub(r)
	if err != nil {
		return err
	}
	o, err := s.object(r.Context(), h, digest)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("ETag", `"`+digest.String()+`"`)
	return writeBody(w, r, http.StatusOK, api.TypeBinary, o.Encode())
}

func (s *Server) object(ctx context.Context, h *hub, digest topology.Digest) (*topology.Object, error) {
	h.mu.Lock()
	o := h.table(digest)
	h.mu.Unlock()
	if o != nil {
		return o, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.StoreTimeout)
	defer cancel()
	st, err := h.store.Load(ctx)
	if err != nil {
		return nil, inTime(err)
	}
	if st.Head != nil {
		for _, o := range st.Head.Objects() {
			if o.Digest() == digest {
				return o, nil
			}
		}
	}
	return nil, api.Errorf(api.CodeNoObject, "the newest version refers to another one; read that", "table %s is not kept", digest)
}

// Bounds of GET history.
const (
	defaultHistory = 20
	maxHistory     = 2 * membership.KeptVersions
)

func (s *Server) getHistory(w http.ResponseWriter, r *http.Request) error {
	limit, err := number(r, "limit", defaultHistory, maxHistory)
	if err != nil {
		return err
	}
	h, err := s.hub(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.cfg.StoreTimeout)
	defer cancel()
	versions, err := h.store.Versions(ctx)
	if err != nil {
		return inTime(err)
	}
	slices.Reverse(versions)
	answer := api.History{Cluster: h.name, Versions: []api.HistoryEntry{}, Omitted: max(0, len(versions)-limit)}
	for _, v := range versions[:min(limit, len(versions))] {
		answer.Versions = append(answer.Versions, api.HistoryEntry{Version: v.Version, Digest: v.Digest, Nodes: v.Nodes,
			Cause: v.Cause, Moved: v.Moved, Ratio: v.Ratio})
	}
	if v, _, err := h.look(); err == nil && v != nil {
		answer.ClusterID = v.state.ID
	}
	return writeJSON(w, r, http.StatusOK, answer)
}

func (s *Server) getMovement(w http.ResponseWriter, r *http.Request) error {
	v, err := parseVersion(r.PathValue("version"))
	if err != nil {
		return err
	}
	h, err := s.hub(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.cfg.StoreTimeout)
	defer cancel()
	report, err := h.store.Movement(ctx, v)
	if err != nil {
		return inTime(err)
	}
	from := topology.Version{}
	if v.Seq > 1 {
		from = topology.Version{Epoch: v.Epoch, Seq: v.Seq - 1}
	}
	return writeJSON(w, r, http.StatusOK, api.Movement{From: from, To: v, Report: report})
}

// maxRouteNodes bounds n of GET route.
const maxRouteNodes = 1000

func (s *Server) getRoute(w http.ResponseWriter, r *http.Request) error {
	key, err := routeKey(r)
	if err != nil {
		return err
	}
	n, err := number(r, "n", 0, maxRouteNodes)
	if err != nil {
		return err
	}
	h, err := s.hub(r)
	if err != nil {
		return err
	}
	v, err := h.present(r.Context())
	if err != nil {
		return err
	}
	if v.state.Head == nil {
		return noVersionYet(h.name)
	}
	table, err := v.table()
	if err != nil {
		return fmt.Errorf("version %s: %w", v.head(), err)
	}
	setTags(w, v.state.ID, v.etag())
	return writeJSON(w, r, http.StatusOK, routeAnswer(table, key, n))
}

func routeAnswer(table *placement.Table, key []byte, n int) api.Route {
	t := table.Topology()
	spec := t.Spec()
	if n == 0 {
		n = int(spec.Replicas)
	}
	hash := table.HashBytes(key)
	a := api.Route{Cluster: t.Cluster(), Version: t.Version(), KeyHex: hex.EncodeToString(key), Hash: fmt.Sprintf("%016x", hash),
		Slot: slotOf(spec, hash), Nodes: []topology.Node{}}
	if utf8.Valid(key) {
		a.Key = string(key)
	}
	for _, i := range table.AppendNodes(nil, key, n) {
		a.Nodes = append(a.Nodes, t.Node(i))
	}
	return a
}

// redisSlots is the number of slots of Redis Cluster.
const redisSlots = 16384

// slotOf returns the slot of a hash: of the slots algorithm, or of Redis Cluster
// under crc16, whose 16 bits stand at the top, so that a multiply-high by 16384
// is crc & 16383. nil where there are no slots.
func slotOf(spec topology.Spec, hash uint64) *int {
	count := uint64(spec.SlotCount)
	if spec.Algorithm != topology.Slots {
		if spec.KeyHash != topology.CRC16 && spec.Compat.Mode != topology.ModeRedisSlots {
			return nil
		}
		count = redisSlots
	}
	slot, _ := bits.Mul64(hash, count)
	n := int(slot)
	return &n
}

func routeKey(r *http.Request) ([]byte, error) {
	q := r.URL.Query()
	plain, hexed := q["key"], q["key_hex"]
	if len(plain)+len(hexed) != 1 {
		return nil, badRequest("?key=user:1, or ?key_hex= for bytes that are not text", "want exactly one of key and key_hex")
	}
	if len(plain) == 1 {
		return checkKey([]byte(plain[0]))
	}
	key, err := hex.DecodeString(hexed[0])
	if err != nil {
		return nil, badRequest("", "key_hex: %v", err)
	}
	return checkKey(key)
}

func checkKey(key []byte) ([]byte, error) {
	if len(key) > api.MaxKey {
		return nil, badRequest("", "key of %d bytes is longer than %d", len(key), api.MaxKey)
	}
	return key, nil
}

func (s *Server) getClusters(w http.ResponseWriter, r *http.Request) error {
	select {
	case <-s.clusters.read:
	default:
		return fmt.Errorf("the list of clusters has not been read yet: %w", membership.ErrUnreachable)
	}
	answer := api.Clusters{Clusters: []api.ClusterEntry{}}
	for _, h := range s.clusters.list() {
		v, _, err := h.look()
		if err != nil {
			continue
		}
		entry := api.ClusterEntry{Name: h.name}
		if v != nil {
			entry.ClusterID, entry.Version = v.state.ID, v.head().Version
			if v.state.Head != nil {
				entry.Nodes = v.state.Head.Len()
			}
		}
		answer.Clusters = append(answer.Clusters, entry)
	}
	return writeJSON(w, r, http.StatusOK, answer)
}

func badRequest(hint, format string, args ...any) error {
	return api.Errorf(api.CodeBadRequest, hint, format, args...)
}

func parseVersion(text string) (topology.Version, error) {
	v, err := topology.ParseVersion(text)
	if err != nil {
		return v, badRequest("", "%v", err)
	}
	return v, nil
}

// number reads a query parameter, 1 to most; absent is def.
func number(r *http.Request, name string, def, most int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return def, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, badRequest("", "%s=%q: want a whole number from 1 to %d", name, text, most)
	}
	return n, nil
}
