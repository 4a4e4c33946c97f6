package placements

import (
	"fmt"
	"slices"

	"github.com/shardd/shardd/bench/internal/ours"
)

// own is one of this module's mappings and the list of its nodes.
type own struct {
	ours.Mapping
	names []string
}

func newOwn(s ours.Subject, names []string) (Instance, error) {
	m, err := s.New(names)
	return &own{m, names}, err
}

func (o *own) Add(name string) error {
	i, found := slices.BinarySearch(o.names, name)
	if found {
		return fmt.Errorf("placements: %s is there already", name)
	}
	return o.update(slices.Insert(slices.Clone(o.names), i, name))
}

func (o *own) Remove(name string) error {
	i, found := slices.BinarySearch(o.names, name)
	if !found {
		return fmt.Errorf("placements: %s is not there", name)
	}
	return o.update(slices.Delete(slices.Clone(o.names), i, i+1))
}

func (o *own) update(names []string) error {
	m, err := o.With(names)
	if err != nil {
		return err
	}
	o.Mapping, o.names = m, names
	return nil
}
