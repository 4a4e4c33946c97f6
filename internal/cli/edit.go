package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/topology"
)

// editFlags are the flags of every command that edits.
type editFlags struct {
	ifMatch string
	why     string
	by      string
	create  bool // refuse if the cluster is there
}

func (e *editFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&e.ifMatch, "if-match", "", "edit only if the cluster still has this entity tag (shardd get shows it); 1.3+7 without the part from @ on compares the number of edits only")
	e.registerNote(cmd)
}

// registerNote registers the flags that only tell.
func (e *editFlags) registerNote(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&e.why, "why", "", "why, for the history of versions")
	f.StringVar(&e.by, "by", "", "who, for the history of versions; default USER@HOST")
}

func (e *editFlags) options() (api.EditOptions, error) {
	o := api.EditOptions{Why: e.why, By: e.by, Create: e.create}
	if e.ifMatch == "" {
		return o, nil
	}
	tag, err := api.ParseETag(e.ifMatch)
	if err != nil {
		return o, usagef("--if-match: %w", err)
	}
	o.IfMatch = tag
	return o, nil
}

// printEdit shows what an edit did; warnings go to standard error. An edit that
// no version answers in time is a failure, though it stands: a script must not
// take it for done.
func (a *app) printEdit(r api.EditResult) error {
	for _, w := range r.Warnings {
		if r.Published { // else the error below says the same
			a.talk("warning: %s; %s", w.Message, w.Hint)
		}
	}
	if err := a.emit(r, func(w io.Writer) { editTable(w, r) }); err != nil {
		return err
	}
	if !r.Published && r.Ramp != nil && r.Ramp.Back {
		a.talk("the steps turn back; the edit is answered by the last of them: see shardd ramp")
		return nil
	}
	if !r.Published {
		return fmt.Errorf("the edit stands as generation %d, but no version answers it yet; see shardd get, and the log of the leading server", r.Generation)
	}
	return nil
}

func editTable(w io.Writer, r api.EditResult) {
	name := r.Cluster
	if r.Created {
		name += " (new)"
	}
	pairs := []string{"cluster", name, "version", versionStep(r), "etag", r.ETag().String()}
	if r.Movement != nil && r.From != r.Version {
		pairs = append(pairs, "cause", r.Movement.Cause, "moved", moved(r.Movement.Summary))
	}
	if r.Ramp != nil {
		pairs = append(pairs, "ramp", describeRamp(*r.Ramp))
	}
	facts(w, append(pairs, "peak/mean", peak(r.Peak))...)
}

func versionStep(r api.EditResult) string {
	switch {
	case !r.Published && r.Ramp != nil:
		return r.Version.String()
	case !r.Published:
		return "not published yet; newest is " + versionText(r.Version)
	case r.From == r.Version:
		return r.Version.String() + " (unchanged)"
	case r.From.IsZero():
		return r.Version.String()
	}
	return r.From.String() + " -> " + r.Version.String()
}

func versionText(v topology.Version) string {
	if v.IsZero() {
		return "none"
	}
	return v.String()
}
