// Command shardd keeps the membership of clusters and publishes versioned
// topologies. "shardd --help" lists its verbs.
package main

import (
	"os"

	"github.com/shardd/shardd/internal/cli"
)

func main() { os.Exit(cli.Main(cli.Shardd)) }
