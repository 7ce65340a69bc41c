package assay

import (
	"regexp"
	"strings"
	"time"
)

// SameModel reports whether served, the model name in a response, names the model that was ordered.
// It ignores the parts that endpoints add to a name or leave out: a vendor in front (openai/), a
// route behind (:free), a date or revision at the end, and case. Two vendors or two dates have to
// agree. Ignored lists the ignored parts, such as "vendor, date". It is empty if the names are
// equal.
func SameModel(ordered, served string) (ignored string, ok bool) {
	if ordered == served {
		return "", true
	}
	o, s := partsOf(ordered), partsOf(served)
	oneVendor := o.vendor == "" || s.vendor == "" || strings.EqualFold(o.vendor, s.vendor)
	// A short date agrees with the long one that ends in it, and every date with an absent one.
	oneDate := strings.HasSuffix(o.date, s.date) || strings.HasSuffix(s.date, o.date)
	if o.core == "" || !strings.EqualFold(o.core, s.core) || !oneVendor || !oneDate {
		return "", false
	}
	var notes []string
	for _, n := range []struct {
		name    string
		differs bool
	}{
		{"vendor", !strings.EqualFold(o.vendor, s.vendor)},
		{"route", !strings.EqualFold(o.route, s.route)},
		{"date", o.date != s.date || o.alias != s.alias},
	} {
		if n.differs {
			notes = append(notes, n.name)
		}
	}
	if len(notes) == 0 {
		notes = []string{"spelling"}
	}
	return strings.Join(notes, ", "), true
}

// nameParts are the parts of a model's name, as in openai/gpt-4o-2024-07-18:free.
type nameParts struct {
	vendor, core, route string
	date                string // digits only
	alias               string // -latest
}

var (
	routeText = regexp.MustCompile(`(?i):(free|nitro|floor|online|beta|extended|exacto|latest)$`)
	aliasText = regexp.MustCompile(`(?i)[-@](latest|default)$`)
	dateText  = regexp.MustCompile(
		`[-@](\d{4}-\d\d-\d\d|\d\d-\d{4}|\d\d-\d\d|\d{8}|\d{6}|\d{4}|00\d)$`)
)

func partsOf(name string) (p nameParts) {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		p.vendor, name = name[:i], name[i+1:]
	}
	cut := func(text *regexp.Regexp) string {
		found := text.FindString(name)
		name = strings.TrimSuffix(name, found)
		return found
	}
	p.route, p.alias = cut(routeText), cut(aliasText)
	if found := dateText.FindString(name); found != "" && isDate(found[1:]) {
		p.date = strings.ReplaceAll(found[1:], "-", "")
		name = strings.TrimSuffix(name, found)
	}
	p.core = name
	return p
}

// isDate reports whether the end of a name is a date or a revision such as 002. Four digits are
// a month with a day or a year with a month.
func isDate(s string) bool {
	if len(s) == len("002") {
		return true
	}
	for _, layout := range []string{
		"2006-01-02", "20060102", "01-2006", "01-02", "060102", "0102", "0601",
	} {
		if _, err := time.Parse(layout, s); err == nil {
			return true
		}
	}
	return false
}
