package tables

import (
	"slices"

	"github.com/shardd/shardd/bench/internal/exact"
	"github.com/shardd/shardd/bench/internal/peertable"
	"github.com/shardd/shardd/bench/internal/plots"
)

// exactPlots are the plots of the exact figures, by file name.
func exactPlots() (map[string]plots.Plot, error) {
	list := map[string]plots.Plot{}
	for name, draw := range map[string]func() (plots.Plot, error){
		"ring.svg": ringPlot, "jump.svg": jumpPlot, "rendezvous.svg": rendezvousPlot,
		"maglev.svg": maglevPlot, "slots.svg": slotsPlot,
	} {
		p, err := draw()
		if err != nil {
			return nil, err
		}
		list[name] = p
	}
	return list, nil
}

func series(name string, points []exact.Point) plots.Series {
	s := plots.Series{Name: name}
	for _, p := range points {
		s.X, s.Y = append(s.X, p.X), append(s.Y, p.Y)
	}
	return s
}

func law(name string, points []exact.Point) plots.Series {
	s := series(name, points)
	s.Law = true
	return s
}

func ringPlot() (plots.Plot, error) {
	measured, theory, err := exact.RingCurve()
	return plots.Plot{
		Title: "ring: unevenness of 100 equal nodes", X: "points a node", Y: "cv of the shares", LogX: true, LogY: true, Right: true,
		Series: []plots.Series{series("mean of 64 sets of names", measured), law("sqrt((N-1)/(NV+1))", theory)},
	}, err
}

func jumpPlot() (plots.Plot, error) {
	steps, theory, values, err := exact.JumpCurve()
	return plots.Plot{
		Title: "jump: work of a lookup", X: "buckets", Y: "steps, random values", LogX: true,
		Series: []plots.Series{series("classic: steps", steps), series("back: random values", values), law("H_n", theory)},
	}, err
}

func rendezvousPlot() (plots.Plot, error) {
	measured, theory, err := exact.RendezvousCurve()
	return plots.Plot{
		Title: "rendezvous, table form: unevenness of 100 equal nodes", X: "slots", Y: "cv of the shares", LogX: true, LogY: true, Right: true,
		Series: []plots.Series{series("computed", measured), law("sqrt((N-1)/slots)", theory)},
	}, err
}

func maglevPlot() (plots.Plot, error) {
	anew, refilled, err := exact.MaglevCurve()
	return plots.Plot{
		Title: "maglev: what the loss of one node of 100 moves", X: "entries a node", Y: "multiple of the minimum", LogX: true, Right: true,
		Series: []plots.Series{series("table filled anew, as in the paper", anew), series("table refilled", refilled)},
	}, err
}

func slotsPlot() (plots.Plot, error) {
	small, err := exact.SlotsCurve(1 << 14)
	if err != nil {
		return plots.Plot{}, err
	}
	large, err := exact.SlotsCurve(1 << 16)
	return plots.Plot{
		Title: "slots: largest share over the mean", X: "nodes", Y: "peak", LogX: true,
		Series: []plots.Series{series("16384 slots", small), series("65536 slots", large)},
	}, err
}

// measuredPlots are the plots of measured ratios, by file name.
func measuredPlots(r peertable.Report) map[string]plots.Plot {
	list := map[string]plots.Plot{}
	for name, families := range map[string][]string{
		"peers-ring.svg": {"ring"}, "peers-computed.svg": {"jump", "rendezvous"}, "peers-tables.svg": {"maglev", "slots", "partitions"},
	} {
		if p := ratioPlot(r, families); len(p.Series) > 0 {
			list[name] = p
		}
	}
	return list
}

// ratioPlot draws every subject of the families that was measured at more than
// one number of nodes.
func ratioPlot(r peertable.Report, families []string) plots.Plot {
	p := plots.Plot{Title: "time of a lookup", X: "nodes", Y: "multiple of the floor", LogX: true, LogY: true, Room: true}
	at := map[string]int{}
	for _, row := range r.Placements {
		if row.Speed == nil || !slices.Contains(families, row.Family) {
			continue
		}
		i, ok := at[row.Subject]
		if !ok {
			i = len(p.Series)
			at[row.Subject] = i
			p.Series = append(p.Series, plots.Series{Name: row.Subject})
		}
		s := &p.Series[i]
		s.X, s.Y = append(s.X, float64(row.Nodes)), append(s.Y, row.Speed.Ratio)
	}
	return p
}
