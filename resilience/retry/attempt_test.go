package retry_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/resilience/retry"
)

func TestTravel(t *testing.T) {
	f := func(in map[string]string, want int) {
		t.Helper()
		ctx := retry.Extract(context.Background(), func(k string) string { return in[k] })
		if got, ok := retry.Attempt(ctx); got != want || ok != (want > 0) {
			t.Errorf("%v: %d, %v; want %d", in, got, ok, want)
		}
		out := map[string]string{}
		retry.Inject(ctx, retry.HeaderAttempt, func(k, v string) { out[k] = v })
		again := retry.Extract(context.Background(), func(k string) string { return out[k] })
		if got, _ := retry.Attempt(again); got != want {
			t.Errorf("%v travels as %v and arrives as %d; want %d", in, out, got, want)
		}
	}
	f(nil, 0)
	f(map[string]string{retry.HeaderAttempt: "1"}, 1)
	f(map[string]string{retry.MetadataAttempt: "3"}, 3)
	f(map[string]string{retry.HeaderAttempt: "nonsense"}, 1)
	f(map[string]string{retry.HeaderAttempt: "0"}, 1)
	f(map[string]string{retry.HeaderAttempt: "123456789012345678901234567890"}, retry.MaxAttempt)
	f(map[string]string{retry.HeaderEnvoyAttempt: "1"}, 0)
	f(map[string]string{retry.HeaderEnvoyAttempt: "2"}, 2)
	f(map[string]string{retry.MetadataGRPCPrevious: "1"}, 2)
	f(map[string]string{retry.MetadataGRPCPrevious: "x"}, 0)
	f(map[string]string{retry.HeaderAttempt: "1", retry.HeaderEnvoyAttempt: "4"}, 1)
}

func TestWithAttempt(t *testing.T) {
	var got []int
	for _, n := range []int{-5, 0, 1, 7, 999, 1000} {
		a, _ := retry.Attempt(retry.WithAttempt(context.Background(), n))
		got = append(got, a)
	}
	if d := cmp.Diff([]int{1, 1, 1, 7, 999, 999}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func FuzzExtract(f *testing.F) {
	f.Add("1", "", "")
	f.Add("", "2", "")
	f.Add("", "", "1")
	f.Add("-1", "99999999999999999999", "\x00")
	f.Fuzz(func(t *testing.T, own, envoy, grpc string) {
		in := map[string]string{retry.HeaderAttempt: own, retry.HeaderEnvoyAttempt: envoy, retry.MetadataGRPCPrevious: grpc}
		n, ok := retry.Attempt(retry.Extract(context.Background(), func(k string) string { return in[k] }))
		if ok != (n >= 1) || n > retry.MaxAttempt || own != "" && !ok {
			t.Errorf("%q: %d, %v", in, n, ok)
		}
	})
}
