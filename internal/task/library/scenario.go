package library

import (
	"fmt"
	"hash/fnv"
)

// A scenario is the small world in which a built-in task plays.
type scenario struct {
	// slug names the scenario in paths and hosts.
	slug string
	// things are the records, in the plural.
	things string
	// key is the field that identifies a record, prefix starts its values.
	key, prefix string
	// label is a field with a few values; the first of them is the one that
	// tasks look for.
	label  string
	values []string
	// measure is a field of whole numbers from low to high.
	measure   string
	low, high int
	// team is who wants the work done, system the external system that the
	// records come from.
	team, system string
}

// scenarios are the worlds of the built-in tasks. A new one goes to the end:
// the position decides which tasks play there.
var scenarios = []scenario{
	{"orders", "customer orders", "order_id", "ORD", "status", []string{"open", "paid", "refunded"}, "amount", 12, 940, "sales desk", "shop"},
	{"sensors", "greenhouse sensor readings", "reading_id", "SEN", "zone", []string{"north", "south", "nursery"}, "humidity", 31, 96, "growers", "greenhouse"},
	{"invoices", "supplier invoices", "invoice_id", "INV", "state", []string{"overdue", "settled", "disputed"}, "total", 80, 12500, "accounting team", "ledger"},
	{"tickets", "support tickets", "ticket_id", "TCK", "priority", []string{"urgent", "normal", "low"}, "age_hours", 1, 190, "support desk", "helpdesk"},
	{"loans", "library loans", "loan_id", "LN", "branch", []string{"central", "harbour", "university"}, "days_out", 1, 60, "librarians", "lending"},
	{"flights", "flight delays", "flight_id", "FL", "cause", []string{"weather", "crew", "technical"}, "delay_minutes", 5, 310, "airport operations", "departures"},
	{"shipments", "parcel shipments", "parcel_id", "PCL", "carrier", []string{"road", "rail", "air"}, "weight_grams", 150, 24000, "dispatchers", "warehouse"},
	{"patients", "clinic appointments", "visit_id", "VIS", "clinic", []string{"cardiology", "dental", "pediatrics"}, "wait_minutes", 2, 95, "clinic managers", "appointments"},
	{"payroll", "payroll entries", "entry_id", "PAY", "department", []string{"assembly", "research", "sales"}, "hours", 8, 190, "payroll office", "staff"},
	{"energy", "smart meter readings", "meter_id", "MTR", "tariff", []string{"peak", "night", "weekend"}, "kilowatt_hours", 3, 870, "energy planners", "metering"},
	{"stock", "stock counts", "item_id", "SKU", "shelf", []string{"cold", "dry", "bulk"}, "units", 0, 640, "store managers", "inventory"},
	{"surveys", "survey answers", "answer_id", "SUR", "segment", []string{"students", "commuters", "retirees"}, "score", 1, 100, "researchers", "panel"},
	{"rainfall", "rain gauge readings", "gauge_id", "RG", "basin", []string{"upper", "middle", "lower"}, "millimetres", 0, 140, "flood watch", "hydrology"},
	{"claims", "insurance claims", "claim_id", "CLM", "kind", []string{"water", "fire", "theft"}, "damage", 200, 48000, "claims adjusters", "policy"},
	{"bookings", "hotel bookings", "booking_id", "BKG", "room", []string{"suite", "double", "single"}, "nights", 1, 21, "front office", "reservation"},
	{"grades", "exam grades", "exam_id", "EXM", "course", []string{"algebra", "chemistry", "history"}, "points", 10, 100, "exam board", "campus"},
	{"harvest", "harvest yields", "field_id", "FLD", "crop", []string{"barley", "maize", "rye"}, "kilograms", 300, 9800, "farm advisers", "cooperative"},
	{"donations", "charity donations", "gift_id", "GFT", "campaign", []string{"winter", "school", "relief"}, "euros", 5, 2500, "fundraisers", "donor"},
	{"rides", "bike share rides", "ride_id", "RID", "district", []string{"riverside", "oldtown", "station"}, "metres", 300, 14000, "mobility office", "docking"},
	{"defects", "production defects", "defect_id", "DEF", "line", []string{"welding", "paint", "packing"}, "pieces", 1, 85, "quality circle", "plant"},
	{"recipes", "catering recipes", "recipe_id", "RCP", "diet", []string{"vegan", "halal", "regular"}, "calories", 90, 1250, "kitchen crew", "menu"},
	{"trades", "bond trades", "trade_id", "TRD", "desk", []string{"rates", "credit", "repo"}, "lots", 1, 750, "risk officers", "clearing"},
	{"emails", "newsletter deliveries", "mail_id", "EML", "verdict", []string{"bounced", "opened", "unread"}, "clicks", 0, 48, "newsletter editors", "mailing"},
	{"permits", "building permits", "permit_id", "PRM", "stage", []string{"appeal", "granted", "review"}, "floors", 1, 34, "city planners", "registry"},
	{"tides", "tide gauge readings", "tide_id", "TID", "port", []string{"eastquay", "ferrydock", "marina"}, "centimetres", 40, 620, "harbour pilots", "portwatch"},
	{"tolls", "motorway tolls", "toll_id", "TOL", "vehicle", []string{"truck", "car", "bus"}, "cents", 90, 5400, "toll operators", "gantry"},
	{"genomes", "gene samples", "sample_id", "GEN", "strain", []string{"alpha", "beta", "wildtype"}, "reads", 1000, 90000, "genetics lab", "sequencing"},
	{"matches", "league matches", "match_id", "MCH", "venue", []string{"home", "away", "neutral"}, "spectators", 120, 41000, "league office", "fixtures"},
	{"sessions", "website visits", "visit_id", "WEB", "device", []string{"tablet", "phone", "desktop"}, "seconds", 4, 3600, "growth team", "clickstream"},
	{"alarms", "fire alarms", "alarm_id", "ALM", "building", []string{"hospital", "museum", "school"}, "response_seconds", 20, 900, "fire brigade", "alarm"},
	{"contracts", "leasing contracts", "lease_id", "LSE", "phase", []string{"expiring", "running", "draft"}, "months", 6, 84, "leasing agents", "fleet"},
	{"waste", "recycling pickups", "pickup_id", "REC", "material", []string{"glass", "paper", "metal"}, "litres", 60, 4800, "recycling yard", "collection"},
	{"lectures", "podcast downloads", "episode_id", "POD", "show", []string{"science", "politics", "music"}, "listeners", 30, 88000, "podcast producers", "media"},
	{"turbines", "wind turbine readings", "turbine_id", "WTB", "park", []string{"offshore", "hilltop", "coastal"}, "kilowatts", 0, 3400, "turbine crew", "telemetry"},
	{"returns", "product returns", "return_id", "RET", "reason", []string{"damaged", "wrongsize", "late"}, "price", 5, 480, "returns desk", "refund"},
	{"visits", "museum admissions", "admission_id", "ADM", "fare", []string{"family", "adult", "senior"}, "guests", 1, 45, "museum curators", "ticketing"},
	{"pollen", "pollen counts", "count_id", "PLN", "plant", []string{"birch", "grass", "ragweed"}, "grains", 0, 930, "allergy service", "biometeo"},
	{"trains", "train punctuality reports", "train_id", "TRN", "corridor", []string{"coast", "alpine", "metro"}, "minutes_late", 0, 125, "timetable planners", "rail"},
	{"leads", "sales leads", "lead_id", "LEA", "origin", []string{"fair", "referral", "webinar"}, "seats", 1, 900, "account managers", "crm"},
	{"wells", "groundwater samples", "well_id", "WEL", "aquifer", []string{"shallow", "deep", "karst"}, "nitrate", 1, 98, "water authority", "laboratory"},
	{"auctions", "auction bids", "bid_id", "BID", "hall", []string{"antiques", "coins", "prints"}, "offer", 20, 16000, "auctioneers", "bidding"},
	{"vaccines", "vaccine batches", "batch_id", "VAC", "depot", []string{"frozen", "chilled", "ambient"}, "doses", 40, 5200, "pharmacists", "coldchain"},
}

// records returns n records of the scenario for a period, always the same
// ones. The first has the value that tasks look for, the second has not.
func (s scenario) records(period string, n int) []map[string]any {
	rows := make([]map[string]any, n)
	for i := range rows {
		v := roll(len(s.values), s.slug, period, "label", i)
		if i < 2 {
			v = i
		}
		rows[i] = map[string]any{
			s.key:     fmt.Sprintf("%s-%d", s.prefix, 1001+i),
			s.label:   s.values[v],
			s.measure: s.low + roll(s.high-s.low+1, s.slug, period, "measure", i),
		}
	}
	return rows
}

// schema is the JSON schema that a list of the scenario's records satisfies.
func (s scenario) schema() map[string]any {
	return map[string]any{
		"type":     "object",
		"required": []string{"records"},
		"properties": map[string]any{"records": map[string]any{
			"type": "array",
			"items": map[string]any{
				"type":     "object",
				"required": []string{s.key, s.label, s.measure},
				"properties": map[string]any{
					s.key:     map[string]any{"type": "string"},
					s.label:   map[string]any{"type": "string", "enum": s.values},
					s.measure: map[string]any{"type": "integer", "minimum": s.low, "maximum": s.high},
				},
			},
		}},
	}
}

// roll picks a number in [0,n) that depends on nothing but the parts.
func roll(n int, parts ...any) int {
	h := fnv.New64a()
	fmt.Fprintln(h, parts...)
	return int((h.Sum64() >> 16) % uint64(n))
}
