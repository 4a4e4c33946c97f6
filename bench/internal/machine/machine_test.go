package machine

import (
	"runtime"
	"strings"
	"testing"
)

func TestDescribe(t *testing.T) {
	got := Describe()
	if !strings.Contains(got, runtime.Version()) || !strings.Contains(got, runtime.GOOS) || strings.HasPrefix(got, ",") {
		t.Errorf("Describe = %q", got)
	}
}
