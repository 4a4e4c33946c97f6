package page

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const text = "# A\n<!-- one -->\nold\n<!-- /one -->\nend\n<!-- two -->\n<!-- /two -->\n"

func TestReplace(t *testing.T) {
	got, err := Replace([]byte(text), "one", "new\nlines")
	if err != nil {
		t.Fatal(err)
	}
	want := "# A\n<!-- one -->\nnew\nlines\n<!-- /one -->\nend\n<!-- two -->\n<!-- /two -->\n"
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Error(d)
	}
	body, err := Block(got, "one")
	if err != nil || body != "new\nlines\n" {
		t.Errorf("Block = %q, %v", body, err)
	}
}

func TestBlocksThatAreNotThere(t *testing.T) {
	f := func(page, name string) {
		t.Helper()
		if _, err := Replace([]byte(page), name, "x"); err == nil {
			t.Errorf("block %q of %q was found", name, page)
		}
		if _, err := Block([]byte(page), name); err == nil {
			t.Errorf("block %q of %q was found", name, page)
		}
	}
	f(text, "three")
	f(text+text, "one")
	f("<!-- a -->\n", "a")
}

func TestTable(t *testing.T) {
	table := Table{Header: []string{"algorithm", "N"}}
	table.Add("ring", "10")
	table.Add("größer", "1,000")
	want := "| algorithm |     N |\n|-----------|------:|\n| ring      |    10 |\n| größer    | 1,000 |\n"
	if d := cmp.Diff(want, table.Markdown()); d != "" {
		t.Error(d)
	}
	want = "algorithm      N\nring          10\ngrößer     1,000\n"
	if d := cmp.Diff(want, table.Text()); d != "" {
		t.Error(d)
	}
}
