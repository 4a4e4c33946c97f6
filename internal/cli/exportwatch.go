package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/migrate/foreign"
	"github.com/shardd/shardd/placement"
)

// Pauses before a failed export or command is tried again.
const (
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// follow keeps the file in step with the cluster until ctx ends.
func (k *exporter) follow(ctx context.Context, c *api.Client, cluster string) error {
	changes, stop, err := k.app.follow(ctx, c, cluster)
	if err != nil {
		return err
	}
	defer stop()
	log := k.app.logger(hclog.Info)
	var table *placement.Table
	var again <-chan time.Time
	pause := firstRetry
	for {
		select {
		case <-ctx.Done():
			return nil
		case change := <-changes:
			if table, err = placement.Next(table, change.To); err != nil {
				return err
			}
			pause = firstRetry
		case <-again:
			pause = min(2*pause, lastRetry)
		}
		if again = nil; k.step(ctx, table, log) != nil {
			again = time.After(pause)
		}
	}
}

// step writes the file and runs the command. What fails is logged, and the file
// stays as it is, or the command is due again.
func (k *exporter) step(ctx context.Context, table *placement.Table, log hclog.Logger) error {
	version := table.Topology().Version().String()
	if err := k.write(table); err != nil {
		log.Error("the file stays as it is", "file", k.out, "version", version, "error", err)
		if errors.Is(err, foreign.ErrCannot) {
			return nil // until another version comes
		}
		return err
	}
	if err := k.run(ctx, table); err != nil && ctx.Err() == nil {
		log.Error("the command failed and is tried again", "command", k.command[0], "version", version, "error", err)
		return err
	}
	if !k.fresh || ctx.Err() != nil {
		return nil
	}
	k.fresh = false
	fmt.Fprintf(k.app.out, "%s\t%s\n", version, k.out)
	return writeError(k.app.out.Flush())
}

// splitCommand splits at blanks; quotes of either kind keep words together, a
// backslash takes the next character as it is, except in single quotes.
func splitCommand(text string) ([]string, error) {
	var words []string
	var b strings.Builder
	in, quote := false, byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && quote != '\'':
			if i++; i == len(text) {
				return nil, fmt.Errorf("%q ends in a backslash", text)
			}
			b.WriteByte(text[i])
			in = true
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, in = c, true
		case quote == 0 && (c == ' ' || c == '\t' || c == '\n'):
			if in {
				words = append(words, b.String())
			}
			b.Reset()
			in = false
		default:
			b.WriteByte(c)
			in = true
		}
	}
	if in {
		words = append(words, b.String())
	}
	if quote != 0 || len(words) == 0 {
		return nil, fmt.Errorf("%q: want a program and its arguments, with quotes closed", text)
	}
	return words, nil
}
