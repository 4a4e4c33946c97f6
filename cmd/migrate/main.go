// Command migrate says what a change of a cluster moves before it is made.
// "migrate --help" lists its verbs.
package main

import (
	"os"

	"github.com/shardd/shardd/internal/cli"
)

func main() { os.Exit(cli.Main(cli.Migrate)) }
