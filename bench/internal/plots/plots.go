// Package plots draws the curves of the pages as SVG.
package plots

import (
	"bytes"
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Series is one curve.
type Series struct {
	Name string
	X, Y []float64
	// Law draws a thin black dashed line without marks, for what theory says.
	// Give it after what it is the law of, so that it is seen.
	Law bool
	// Faint draws in grey, for what the plot is not about.
	Faint bool
}

// Plot is a picture of several curves.
type Plot struct {
	Title, X, Y string
	// LogX and LogY choose logarithmic axes.
	LogX, LogY bool
	// Right puts the legend to the right of the middle instead of the left.
	Right bool
	// Bottom puts the legend at the bottom instead of the top.
	Bottom bool
	// Room makes the vertical axis longer, so that the legend covers no curve.
	Room   bool
	Series []Series
}

// width and height are those of every plot.
const (
	width  = 18 * vg.Centimeter
	height = 11 * vg.Centimeter
)

// palette is Okabe and Ito's, which colour-blind people can tell apart.
var palette = [...]color.RGBA{
	{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255},
	{230, 159, 0, 255}, {86, 180, 233, 255}, {0, 0, 0, 255}, {148, 103, 189, 255},
}

// SVG draws the plot. It refuses a curve without points, with different
// numbers of X and Y, or with values that a logarithmic axis has no place for.
func (p Plot) SVG() ([]byte, error) {
	g, err := p.build()
	if err != nil {
		return nil, err
	}
	canvas := vgsvg.New(width, height)
	g.Draw(draw.New(canvas))
	var b bytes.Buffer
	_, err = canvas.WriteTo(&b)
	return b.Bytes(), err
}

// PNG draws the plot as an image of 150 dots an inch; errors are SVG's.
func (p Plot) PNG() ([]byte, error) {
	g, err := p.build()
	if err != nil {
		return nil, err
	}
	canvas := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(150))
	g.Draw(draw.New(canvas))
	var b bytes.Buffer
	_, err = vgimg.PngCanvas{Canvas: canvas}.WriteTo(&b)
	return b.Bytes(), err
}

func (p Plot) build() (*plot.Plot, error) {
	g := plot.New()
	g.Title.Text, g.X.Label.Text, g.Y.Label.Text = p.Title, p.X, p.Y
	g.BackgroundColor = color.White
	g.X.Tick.Marker, g.Y.Tick.Marker = linear{}, linear{}
	if p.LogX {
		g.X.Scale, g.X.Tick.Marker = plot.LogScale{}, logarithmic{}
	}
	if p.LogY {
		g.Y.Scale, g.Y.Tick.Marker = plot.LogScale{}, logarithmic{}
	}
	g.Title.Padding, g.Legend.Padding = vg.Points(6), vg.Points(2)
	g.Legend.Top, g.Legend.Left = !p.Bottom, !p.Right
	g.Add(grid())
	for i, s := range p.Series {
		if err := p.add(g, s, i); err != nil {
			return nil, err
		}
	}
	if p.Room {
		g.Y.Max = p.roomy(g.Y.Min, g.Y.Max)
	}
	return g, nil
}

// roomy is the end of an axis from low to high that leaves a twentieth of it
// free for each entry of the legend.
func (p Plot) roomy(low, high float64) float64 {
	free := min(.6, float64(len(p.Series))/20)
	longer := free / (1 - free)
	if p.LogY {
		return high * math.Pow(high/low, longer)
	}
	return high + (high-low)*longer
}

func grid() *plotter.Grid {
	g := plotter.NewGrid()
	g.Vertical.Color, g.Horizontal.Color = color.Gray{225}, color.Gray{225}
	return g
}

func (p Plot) add(g *plot.Plot, s Series, i int) error {
	points, err := p.points(s)
	if err != nil {
		return err
	}
	line, marks, err := plotter.NewLinePoints(points)
	if err != nil {
		return fmt.Errorf("plots: %s: %w", s.Name, err)
	}
	line.Color, line.Width = palette[i%len(palette)], vg.Points(1.5)
	marks.Color, marks.Shape, marks.Radius = line.Color, draw.CircleGlyph{}, vg.Points(2.5)
	if s.Faint {
		line.Color, marks.Color, line.Width = color.Gray{170}, color.Gray{170}, vg.Points(1)
	}
	if s.Law {
		line.Color, line.Width = color.Black, vg.Points(1)
		line.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
		g.Add(line)
		g.Legend.Add(s.Name, line)
		return nil
	}
	g.Add(line, marks)
	g.Legend.Add(s.Name, line, marks)
	return nil
}

func (p Plot) points(s Series) (plotter.XYs, error) {
	if len(s.X) == 0 || len(s.X) != len(s.Y) {
		return nil, fmt.Errorf("plots: %s has %d x and %d y; give it equal numbers of both", s.Name, len(s.X), len(s.Y))
	}
	points := make(plotter.XYs, len(s.X))
	for i := range points {
		if p.LogX && s.X[i] <= 0 || p.LogY && s.Y[i] <= 0 {
			return nil, fmt.Errorf("plots: %s: (%v, %v) has no place on a logarithmic axis", s.Name, s.X[i], s.Y[i])
		}
		points[i].X, points[i].Y = s.X[i], s.Y[i]
	}
	return points, nil
}
