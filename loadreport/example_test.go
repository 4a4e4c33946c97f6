package loadreport_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

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

// A server of another kind counts its requests by hand, at what they cost: here in
// tokens.
func ExampleRequest() {
	load := loadreport.New(loadreport.Config{})
	other := load.Begin(500) // another client's
	request := load.Begin(200)
	fmt.Println("goes with the answer:", request.Report().InFlight) // without itself
	request.Done(false)
	fmt.Println("answers a probe:", load.Report().InFlight)
	other.Done(false)
	// Output:
	// goes with the answer: 500
	// answers a probe: 500
}

// A server that knows better than the processor how full it is says so itself.
func ExampleServer() {
	load := loadreport.New(loadreport.Config{})
	load.SetUtilization(.75)   // 30 of 40 workers are busy
	load.SetMemory(.5)         // half of the cache is in use
	load.Set("queue_depth", 4) // a name of its own
	r := load.Report()
	fmt.Println(r.Utilization, r.Memory, r.Named["queue_depth"])
	// Output: 0.75 0.5 4
}

// The clock and the processor's time are the caller's, as in tests.
func ExampleConfig() {
	now, used := time.Unix(0, 0), time.Duration(0)
	load := loadreport.New(loadreport.Config{
		Now: func() time.Time { return now },
		CPU: func() (time.Duration, float64) { return used, 4 },
	})
	now, used = now.Add(time.Second), 3*time.Second // three of four processors were busy
	fmt.Println(load.Report().CPU)
	// Output: 0.75
}

// A report in both of its forms.
func ExampleReport() {
	r := loadreport.Report{InFlight: 7, HasInFlight: true, CPU: .25, Named: map[string]float64{"queue_depth": 3}}
	text := r.Text()
	fmt.Println(text)
	read, err := loadreport.Parse(text)
	if err != nil {
		fmt.Println(err)
		return
	}
	again, err := loadreport.Unmarshal(read.Marshal()) // gRPC's
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(again.InFlight, again.CPU, again.Named["queue_depth"])
	// Output:
	// TEXT cpu_utilization=0.25,named_metrics.in_flight=7,named_metrics.queue_depth=3
	// 7 0.25 3
}
