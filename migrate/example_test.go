package migrate_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/shardd/shardd/migrate"
)

func ExampleNew() {
	files := map[string]string{
		"now.yaml":  "{cluster: cache, algorithm: slots, nodes: [{id: a}, {id: b}, {id: c}]}",
		"next.yaml": "{cluster: cache, algorithm: slots, nodes: [{id: a}, {id: b}, {id: c}, {id: d}]}",
	}
	loader := migrate.Loader{ReadFile: func(path string) ([]byte, error) {
		if text, ok := files[path]; ok {
			return []byte(text), nil
		}
		return nil, os.ErrNotExist
	}}
	ctx := context.Background()
	from, err := loader.Source(ctx, "now.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	to, err := loader.Target(ctx, from, "next.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := migrate.New(from, to, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.4f of all keys move, at least %.4f must\n", plan.Report.Ratio, plan.Report.Minimum)

	keys, err := migrate.CountKeys(from.Table, to.Table, migrate.Keys(strings.NewReader("user:1\nuser:2\nuser:3\n"), false))
	fmt.Println(keys.Moved, "of", keys.Total, "keys move", err)
	// Output:
	// 0.2500 of all keys move, at least 0.2500 must
	// 1 of 3 keys move <nil>
}
