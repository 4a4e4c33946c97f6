package httpsource_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"time"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/httpsource"
)

func Example() {
	source, err := httpsource.New("cache", []string{"10.0.0.5:7420", "10.0.0.6:7420"})
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := sdk.New(source) // no I/O yet: the servers need not be there
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	_, err = client.Route("user:1")
	fmt.Println(err)
	// Output:
	// sdk: no topology yet; call WaitReady first
}

// Servers behind TLS with certificates of one's own.
func ExampleWithTransport() {
	roots := x509.NewCertPool() // roots.AppendCertsFromPEM(...)
	options := []httpsource.Option{
		httpsource.WithTransport(&http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}}),
		httpsource.WithTimeout(5 * time.Second),
	}
	_, err := httpsource.New("cache", []string{"https://shardd-1:7420", "https://shardd-2:7420"}, options...)
	fmt.Println(err)
	// Output: <nil>
}
