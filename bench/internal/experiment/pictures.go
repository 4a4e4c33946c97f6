package experiment

import (
	"fmt"
	"slices"
)

// curve collects the points (param, metric) of the rows that which chooses.
func curve(rows []Row, name, param, metric string, which func(*Row) bool) (Series, bool) {
	s := Series{Name: name}
	for i := range rows {
		r := &rows[i]
		x, okX := r.Param(param)
		y, okY := r.Get(metric)
		if okX && okY && which(r) {
			s.X, s.Y = append(s.X, x), append(s.Y, y)
		}
	}
	return s, len(s.X) > 1
}

// curves are the curves of each policy in rows, with and without bump.
func curves(rows []Row, param, metric string) []Series {
	var list []Series
	var seen []string
	for i := range rows {
		name, policy, bump := rows[i].Policy, rows[i].Policy, rows[i].Bump
		if bump {
			name = fmt.Sprint(policy, ", counting what was sent")
		}
		if slices.Contains(seen, name) {
			continue
		}
		seen = append(seen, name)
		s, ok := curve(rows, name, param, metric, func(r *Row) bool { return r.Policy == policy && r.Bump == bump })
		if ok {
			list = append(list, s)
		}
	}
	return list
}

func plotHomo(rows []Row) map[string]Picture {
	return pictureOf("homo", Picture{
		Title: "Sojourn by utilisation, 100 equal servers", X: "utilisation", Y: "mean sojourn, service times",
		LogY: true, Series: curves(rows, "lambda", "mean"),
	})
}

func plotStale(rows []Row) map[string]Picture {
	return pictureOf("stale", Picture{
		Title: "Loads shown late, 100 servers at 90 %", X: "age of the loads, service times", Y: "mean sojourn, service times",
		LogY: true, Room: true, Series: curves(rows, "T", "mean"),
	})
}

// pictureOf is p under a name, or nothing if it has no curves.
func pictureOf(name string, p Picture) map[string]Picture {
	if len(p.Series) == 0 {
		return nil
	}
	return map[string]Picture{name: p}
}
