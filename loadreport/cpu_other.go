//go:build !unix

package loadreport

import "time"

// processTime says nothing here.
func processTime() (time.Duration, float64) { return 0, 1 }
