package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/run/terminal"
)

// orders lists the orders that a viewer may give to a run.
var orders = []string{"pause", "resume", "set", "requeue", "cancel", "drain"}

// An orderBody is the content of the page that describes an order before it is carried out.
type orderBody struct {
	Order session.Order
	// Effect describes the changes by the order.
	Effect string
	// Limits are the present limits of the lane, if the order does not have the new ones yet.
	Limits []limitField
	// Done is the reply of the run after the order, or "".
	Done string
}

// A limitField is a limit that can be changed.
type limitField struct {
	Bucket string
	Now    int
}

var errNoControl = assay.WithHint(errors.New("this server only shows"), assay.HintControl)

// parseOrder reads an order from a form.
func parseOrder(v url.Values) (o session.Order, err error) {
	o.Do = v.Get("do")
	if !slices.Contains(orders, o.Do) {
		return o, fmt.Errorf("unknown order %q; known are %s", o.Do, strings.Join(orders, ", "))
	}
	for _, name := range v["name"] {
		if name != "" {
			o.Names = append(o.Names, name)
		}
	}
	if o.Do == "drain" && len(o.Names) == 0 {
		return o, errors.New("drain needs the name of a worker")
	}
	if o.Do == "cancel" && len(o.Names) == 0 {
		return o, errors.New("cancel needs the name of a trial or a model")
	}
	for _, b := range lane.Buckets {
		text := strings.TrimSpace(v.Get(string(b)))
		if text == "" || o.Do != "set" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return o, fmt.Errorf("%s is %q, not a whole number; 0 removes the limit", b, text)
		}
		if o.Limits == nil {
			o.Limits = make(map[assay.Bucket]int)
		}
		o.Limits[b] = n
	}
	return o, nil
}

// preview describes an order without carrying it out.
func (s *Server) preview(w http.ResponseWriter, r *http.Request) {
	o, err := parseOrder(r.URL.Query())
	p, gone := s.now(r.Context())
	switch {
	case gone != nil:
		return
	case !s.options.Control:
		s.fail(w, r, http.StatusForbidden, errNoControl)
		return
	case err != nil:
		s.fail(w, r, http.StatusBadRequest, err)
		return
	}
	body := orderBody{Order: o, Effect: p.effect(o, s.effectOn(r.Context(), p, o))}
	if o.Do == "set" && len(o.Limits) == 0 {
		body.Limits, body.Effect = p.limits(o), ""
	}
	s.show(w, r, http.StatusOK, "order.html", s.frame("", "Before it is done", body))
}

// order carries an order out. The run logs it.
func (s *Server) order(w http.ResponseWriter, r *http.Request) {
	if !s.options.Control {
		s.fail(w, r, http.StatusForbidden, errNoControl)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	if err := r.ParseForm(); err != nil {
		s.fail(w, r, http.StatusBadRequest, err)
		return
	}
	o, err := parseOrder(r.PostForm)
	if err == nil && o.Do == "set" && len(o.Limits) == 0 {
		err = errors.New("no limit to set")
	}
	if err != nil {
		s.fail(w, r, http.StatusBadRequest, err)
		return
	}
	reply, err := session.Send(r.Context(), s.store, o)
	if err != nil {
		s.fail(w, r, http.StatusConflict, err)
		return
	}
	body := orderBody{Order: o, Done: reply.Text}
	s.show(w, r, http.StatusOK, "order.html", s.frame("", "Done", body))
}

// matched returns the lanes that an order is for, with their models.
func (m *moment) matched(o session.Order) (lanes []terminal.LaneState, models []string, all int) {
	if m.Run == nil {
		return nil, nil, 0
	}
	for _, model := range m.Run.Models {
		for _, l := range model.Lanes {
			all++
			if !session.Matches(o, model.Model, l.Lane) {
				continue
			}
			lanes = append(lanes, l)
			if !slices.Contains(models, model.Model) {
				models = append(models, model.Model)
			}
		}
	}
	return lanes, models, all
}

// effectOn asks the run for the effect of an order on its lanes. It returns nil if that is unknown.
func (s *Server) effectOn(ctx context.Context, p *livePages, o session.Order) *session.Effect {
	if p.Run == nil || o.Do == "requeue" || o.Do == "cancel" || o.Do == "drain" {
		return nil
	}
	o.Preview = true
	reply, err := session.Send(ctx, s.store, o)
	if err != nil {
		return nil // the order itself will show why
	}
	return reply.Effect
}

// finishAfter describes how an effect moves the end of the run.
func (m *moment) finishAfter(e *session.Effect) string {
	left := m.Run.Left
	switch {
	case e == nil:
		return ""
	case len(e.Still) > 0:
		return " No lane would serve " + strings.Join(e.Still, ", ") +
			" then, so the run would not end by itself."
	case e.Times == 0:
		return ""
	case e.Times > .99 && e.Times < 1.01:
		return " The end stays where it is, by a simulation of the rest of the run."
	}
	text := fmt.Sprintf(" The rest of the run takes %.2f times as long, by a simulation", e.Times)
	if left != nil {
		text += fmt.Sprintf(": the end moves from about %s to about %s",
			clock(m.in(left.Seconds)), clock(m.in(left.Seconds*e.Times)))
	}
	return text + "."
}

// effect describes the changes that an order would make.
func (m *moment) effect(o session.Order, on *session.Effect) string {
	lanes, models, all := m.matched(o)
	if m.Run == nil {
		return "No run is working on this store now, so the order would be refused."
	}
	left := ""
	if pending := m.Pending; pending > 0 {
		left = fmt.Sprintf(" %d trials are pending.", pending)
	}
	of := fmt.Sprintf("%d of %d lanes (%s)", len(lanes), all, strings.Join(models, ", "))
	inFlight := 0
	for _, l := range lanes {
		inFlight += l.InFlight
	}
	switch o.Do {
	case "pause":
		return fmt.Sprintf("%s start no further request until they are resumed. %d requests in "+
			"flight end as usual.", of, inFlight) + left + m.finishAfter(on)
	case "resume":
		return of + " start requests again, within their limits." + left + m.finishAfter(on)
	case "set":
		return "The new limits hold at once for " + of + ", and replace what was learned for " +
			"them. 0 removes a limit; an empty field leaves it." + left + m.finishAfter(on)
	case "requeue":
		return fmt.Sprintf("Parked and cancelled trials run again in this run: %d are parked.",
			m.Parked)
	case "drain":
		return strings.Join(o.Names, ", ") + " takes no more attempts, finishes those it has, and " +
			"ends. Others carry out the rest." + left
	}
	return "The trials stop now, stay pending, and do not start again in this run."
}

// limits returns the fields of the limits of the first lane that an order is for.
func (m *moment) limits(o session.Order) (all []limitField) {
	lanes, _, _ := m.matched(o)
	for _, b := range lane.Buckets {
		f := limitField{Bucket: string(b)}
		if len(lanes) > 0 {
			f.Now = *lanes[0].Limits.Of(b)
		}
		all = append(all, f)
	}
	return all
}
