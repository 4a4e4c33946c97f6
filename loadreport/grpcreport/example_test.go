package grpcreport_test

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/shardd/shardd/loadreport"
	"github.com/shardd/shardd/loadreport/grpcreport"
)

func Example() {
	load := loadreport.New(loadreport.Config{})
	server := grpc.NewServer(
		grpc.UnaryInterceptor(grpcreport.Unary(load)),
		grpc.StreamInterceptor(grpcreport.Stream(load)))
	grpcreport.RegisterProbe(server, load)
	fmt.Println(len(server.GetServiceInfo()), "service besides your own")
	// Output: 1 service besides your own
}

// A client that has no request for a server hears of its load all the same.
func ExampleWatch() {
	load := loadreport.New(loadreport.Config{})
	load.SetUtilization(.5)
	server := grpc.NewServer()
	grpcreport.RegisterOOB(server, load, 100*time.Millisecond)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error)
	go func() { ended <- server.Serve(ln) }()
	defer func() { server.Stop(); <-ended }()
	conn, err := grpc.NewClient(ln.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_ = grpcreport.Watch(ctx, conn, time.Second, func(r loadreport.Report) {
		fmt.Println(r.Utilization)
		cancel()
	})
	// Output: 0.5
}
