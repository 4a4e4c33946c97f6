package membership

import "fmt"

func etag(s State) string {
	version := "0.0"
	if s.Head != nil {
		version = s.Head.Version().String()
	}
	return fmt.Sprintf(`"%s+%d"`, version, s.Generation)
}
