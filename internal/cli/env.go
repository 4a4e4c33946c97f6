package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Env is what a program has around it.
type Env struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Getenv func(string) string
}

// OSEnv returns the process's own.
func OSEnv() Env {
	return Env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv}
}

// Main runs program with the process's own arguments until SIGINT or SIGTERM,
// and returns its exit code. A closed pipe on standard output shows as a failed
// write rather than as a signal, so that servers outlive their reader.
func Main(program func(context.Context, Env, []string) int) int {
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the next signal has its usual effect again
	return program(ctx, OSEnv(), os.Args[1:])
}
