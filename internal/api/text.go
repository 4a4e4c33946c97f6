package api

import "strings"

// packages are the names with which this module's packages begin their errors.
var packages = [...]string{"api", "clusterfile", "etcdkv", "etcdsource", "etcdstore", "httpsource", "membership", "memstore", "migrate", "placement", "sdk", "server", "topology"}

// Readable returns the text of an error for people: without the names of this
// module's packages, which say where in the program it arose, and without saying
// the same twice.
func Readable(err error) string {
	var kept []string
	for part := range strings.SplitSeq(err.Error(), ": ") {
		if isPackage(part) || len(kept) > 0 && kept[len(kept)-1] == part {
			continue
		}
		kept = append(kept, part)
	}
	if len(kept) == 0 { // nothing but names
		return err.Error()
	}
	return strings.Join(kept, ": ")
}

func isPackage(s string) bool {
	for _, p := range packages {
		if s == p {
			return true
		}
	}
	return false
}
