package experiment

import (
	"fmt"
	"slices"
)

// curve collects the points (param, metric) of the rows that which chooses, from left
// to right.
func curve(rows []Row, name, param, metric string, which func(*Row) bool) (Series, bool) {
	s := Series{Name: name}
	for i := range rows {
		r := &rows[i]
		x, okX := r.Param(param)
		y, okY := r.Get(metric)
		if okX && okY && which(r) {
			k, _ := slices.BinarySearch(s.X, x)
			s.X, s.Y = slices.Insert(s.X, k, x), slices.Insert(s.Y, k, y)
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

// plotHetero is Peak EWMA's p99 by its decay, beside the policies that have none.
func plotHetero(rows []Row) map[string]Picture {
	list := curves(rows, "tau", "p99")
	if len(list) == 0 {
		return nil
	}
	taus := list[0].X
	for _, policy := range []string{"p2c", "swrr", "jsq"} {
		for i := range rows {
			if p99, ok := rows[i].Get("p99"); ok && rows[i].Policy == policy {
				list = append(list, Series{Name: policy, X: []float64{slices.Min(taus), slices.Max(taus)}, Y: []float64{p99, p99}})
			}
		}
	}
	return pictureOf("hetero", Picture{Title: "p99 with 20 slow servers, by the decay of Peak EWMA", X: "decay, service times", Y: "p99, service times", LogX: true, Right: true, Series: list})
}

// plotClients is the mean by the number of clients.
func plotClients(rows []Row) map[string]Picture {
	var list []Series
	for _, servers := range []string{"equal", "20 slow"} {
		for _, policy := range []string{"p2c", "least"} {
			s, ok := curve(rows, policy+", servers "+servers, "m", "mean", func(r *Row) bool {
				return r.Policy == policy && r.paramText("servers") == servers && r.paramText("view") == "own"
			})
			if ok {
				list = append(list, s)
			}
		}
	}
	return pictureOf("clients", Picture{Title: "Clients that see their own requests only, 100 servers", X: "clients", Y: "mean sojourn, service times", LogX: true, Series: list})
}

// plotBounded is the longest queue by c, with the most clients that were played.
func plotBounded(rows []Row) map[string]Picture {
	most := 0.0
	for i := range rows {
		m, _ := rows[i].Param("m")
		most = max(most, m)
	}
	var list []Series
	for _, view := range []string{"own", "reported", "spill"} {
		s, ok := curve(rows, view, "c", "peak/mean", func(r *Row) bool {
			m, _ := r.Param("m")
			return r.paramText("view") == view && m == most
		})
		if ok {
			list = append(list, s)
		}
	}
	if len(list) > 0 {
		law := Series{Name: "c", X: list[0].X, Y: list[0].X, Law: true}
		list = append(list, law)
	}
	return pictureOf("bounded", Picture{Title: "Longest queue under a bound, by what 100 clients see", X: "c", Y: "longest queue / mean", Series: list})
}

// plotHotKeys is the busiest node by the number of replicas.
func plotHotKeys(rows []Row) map[string]Picture {
	var list []Series
	for _, m := range []float64{1, 20} {
		s, ok := curve(rows, fmt.Sprint(m, " clients"), "replicas", "busiest/mean", func(r *Row) bool {
			x, _ := r.Param("m")
			return x == m
		})
		if ok {
			list = append(list, s)
		}
	}
	return pictureOf("hotkeys", Picture{Title: "Busiest of 50 nodes by replicas of every key", X: "replicas", Y: "requests / mean", Right: true, Series: list})
}

// plotLocalityCurve is the mean of both servers by the load.
func plotLocalityCurve(rows []Row) map[string]Picture {
	var list []Series
	for _, c := range []struct{ name, metric string }{{"first server", "mean_ms_1"}, {"second server", "mean_ms_2"}} {
		if s, ok := curve(rows, c.name, "rate", c.metric, func(*Row) bool { return true }); ok {
			list = append(list, s)
		}
	}
	return pictureOf("lalb-curve", Picture{Title: "LALB on two servers that slow down with load", X: "requests a second", Y: "mean, ms", Right: true, Bottom: true, Series: list})
}

// plotSWRR is how far ahead of its share the heaviest of 4:3:2:1 is over two periods.
func plotSWRR([]Row) map[string]Picture {
	weights := []float64{4, 3, 2, 1}
	var list []Series
	for _, policy := range []string{"swrr", "wrr-expanded", "edf"} {
		turns, err := takeTurns(policy, weights, 20)
		if err != nil {
			return nil
		}
		s, picks := Series{Name: policy, X: []float64{0}, Y: []float64{0}}, 0.0
		for t, i := range turns {
			if i == 0 {
				picks++
			}
			s.X, s.Y = append(s.X, float64(t+1)), append(s.Y, picks-float64(t+1)*4/10)
		}
		list = append(list, s)
	}
	return pictureOf("swrr", Picture{Title: "Weights 4:3:2:1: picks of the first node beyond its share", X: "turns", Y: "picks", Room: true, Series: list})
}

// plotCaches is the hit rate by window of some changes, of one seed.
func plotCaches([]Row) map[string]Picture {
	var list []Series
	for _, c := range changes() {
		if c.fence || c.algorithm != "slots" || c.what != "add" && c.what != "restart" {
			continue
		}
		run, _, err := playWindows(c, 20, 1)
		if err != nil {
			return nil
		}
		s := Series{Name: c.what + ", " + c.how}
		for w, x := range run.hits {
			s.X, s.Y = append(s.X, float64(w)), append(s.Y, x)
		}
		list = append(list, s)
	}
	return pictureOf("cachefleet", Picture{Title: "Hit rate of 20 caches after a change at 0", X: "windows of 10,000 requests", Y: "hit rate", Right: true, Bottom: true, Series: list})
}

// pictureOf is p under a name, or nothing if it has no curves.
func pictureOf(name string, p Picture) map[string]Picture {
	if len(p.Series) == 0 {
		return nil
	}
	return map[string]Picture{name: p}
}
