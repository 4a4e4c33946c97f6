package balance

import "github.com/shardd/shardd/internal/splitmix"

func splitmixAt(seed uint64) splitmix.Source { return splitmix.Source(seed) }
