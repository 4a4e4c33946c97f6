package loadreport_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/shardd/shardd/loadreport"
)

func Example() {
	load := loadreport.New(loadreport.Config{})
	load.Set("queue_depth", 12)
	app := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	server := httptest.NewServer(load.Middleware(app))
	defer server.Close()

	resp, err := http.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	report, ok := loadreport.FromHeader(resp.Header)
	fmt.Println(ok, report.InFlight, report.Named["queue_depth"])
	// Output: true 0 12
}
