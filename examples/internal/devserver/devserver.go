// Package devserver gives the examples a control plane of their own: "shardd
// dev", run inside this process. Your programs name the address of a shardd that
// is there already.
package devserver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/shardd/shardd/internal/cli"
)

// Start runs "shardd dev" on a free loopback port until stop is called, which
// waits for its end.
func Start(ctx context.Context) (url string, stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	read, write := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		env := cli.Env{Stdin: nil, Stdout: write, Stderr: os.Stderr, Getenv: os.Getenv}
		ended <- cli.Shardd(ctx, env, []string{"dev", "--listen", "127.0.0.1:0", "--log-level", "error"})
		write.Close()
	}()
	line, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		cancel()
		return "", nil, fmt.Errorf("shardd dev ended with code %d", <-ended)
	}
	return line[:len(line)-1], func() { cancel(); <-ended }, nil
}
