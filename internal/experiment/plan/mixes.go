package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world"
)

// FaultMixes are the mixes of the faults of tools that an experiment compares. In a file, a single
// one is a map, and several are a list of maps.
type FaultMixes []assay.FaultMix

// UnmarshalYAML reads a map or a list of maps.
func (m *FaultMixes) UnmarshalYAML(unmarshal func(any) error) error {
	if unmarshal(new([]any)) == nil {
		return unmarshal((*[]assay.FaultMix)(m))
	}
	*m = make(FaultMixes, 1)
	return unmarshal(&(*m)[0])
}

// MarshalJSON writes a single mix as an object, and several as a list.
func (m FaultMixes) MarshalJSON() ([]byte, error) {
	if len(m) == 1 {
		return json.Marshal(m[0])
	}
	return json.Marshal([]assay.FaultMix(m))
}

// UnmarshalJSON reads the output of MarshalJSON.
func (m *FaultMixes) UnmarshalJSON(b []byte) error {
	return m.UnmarshalYAML(func(v any) error { return json.Unmarshal(b, v) })
}

// Texts returns the mixes as cells have them. Without a mix, that is one empty text.
func (m FaultMixes) Texts() []string {
	if len(m) == 0 {
		return []string{""}
	}
	var all []string
	for _, mix := range m {
		all = append(all, mix.String())
	}
	return all
}

// checkKinds checks the shares of the kinds of faults.
func (e *Experiment) checkKinds() error {
	const field = "failures.kinds"
	mixes := e.Failures.Kinds
	empty := func(m assay.FaultMix) bool { return len(m) == 0 }
	if e.has(field) && (len(mixes) == 0 || slices.ContainsFunc(mixes, empty)) {
		return e.FieldError(field, "no kinds are listed", kindsHint)
	}
	for i, mix := range mixes {
		at := field
		if e.has(field + "[0]") {
			at = fmt.Sprintf("%s[%d]", field, i)
		}
		if err := e.checkMix(at, mix); err != nil {
			return err
		}
		if texts := mixes.Texts(); slices.Index(texts, texts[i]) < i {
			return e.FieldError(at, "this mix is listed twice", "")
		}
	}
	return nil
}

// checkMix checks one mix of faults.
func (e *Experiment) checkMix(field string, mix assay.FaultMix) error {
	for _, kind := range slices.Sorted(maps.Keys(mix)) {
		if !slices.Contains(assay.ToolFaults, kind) {
			return e.source().AtKey("$."+field, string(kind),
				fmt.Sprintf("unknown kind of fault %q", kind), faultHint(string(kind)))
		}
		if share := mix[kind]; !(share >= 0 && share <= 1) {
			return e.FieldError(field+"."+string(kind),
				fmt.Sprintf("the share of %s is %v, want 0 to 1", kind, share), percentHint(share))
		}
	}
	for kind, share := range mix {
		if kind.Rule().Attacks && share > 0 && !world.Of(e.World).Environments {
			return e.source().AtKey("$."+field, string(kind),
				"the world "+e.World+" has no attackers who speak in results",
				"docs/environments.md has the environments with attackers")
		}
	}
	for _, kind := range assay.ToolFaultsThat(assay.ToolFaultRule.NeedsValues) {
		if mix[kind] > 0 && !world.Of(e.World).OwnTools {
			why := "nothing depends on the values in an answer, because results are passed on by reference, so " +
				"nobody needs to check them"
			if kind.Rule().Rescales {
				why = "no plan has a call with a quantity, which could have another unit"
			}
			return e.source().AtKey("$."+field, string(kind), "in the world "+e.World+" "+why,
				"leave "+string(kind)+" out, or use tools of your own or an environment: docs/own-tools.md")
		}
	}
	if err := mix.Check(); err != nil {
		return e.FieldError(field, err.Error(), kindsHint)
	}
	if lasts := mix.That(assay.ToolFaultRule.Lasts); lasts > 0 && e.Failures.Persistence+e.Failures.Burst > 0 {
		return e.FieldError(field, lasting+" cannot be combined with persistence or burst, because the "+
			"best possible rate would not be exact", "remove persistence and burst")
	}
	if mix.Happens() > 0 && e.Failures.Persistence > 0 && e.Failures.Burst > 0 {
		return e.FieldError(field, happening+" cannot be combined with "+
			"both persistence and burst, because the best possible rate would not be exact",
			"remove persistence or burst")
	}
	return nil
}

var (
	happening = assay.Enumerate(assay.ToolFaultsThat(func(r assay.ToolFaultRule) bool { return r.Happens && !r.Rereads }), "and")
	lasting   = assay.Enumerate(assay.ToolFaultsThat(assay.ToolFaultRule.Lasts), "and")
)

const kindsHint = "for example kinds: {after: 0.25, before: 0.75}"

// faultHint returns a hint for a misspelt kind of fault.
func faultHint(name string) string {
	var kinds []string
	for _, kind := range assay.ToolFaults {
		kinds = append(kinds, string(kind))
	}
	return assay.NameHint(name, kinds)
}
