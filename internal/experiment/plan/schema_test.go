package plan_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v4"

	"github.com/assay-eval/assay/internal/agent/bridge"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/lane"
)

// fromYAML reads YAML as the JSON value that a schema describes.
func fromYAML(t *testing.T, text string) any {
	t.Helper()
	var in, v any
	if err := yaml.Load([]byte(text), &in); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestSchemaFieldsMatchStructs checks that the schemas and the structs have the
// same fields at every level.
func TestSchemaFieldsMatchStructs(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text []byte
		into any
	}{{plan.ExperimentSchema(), plan.Experiment{}}, {plan.ProvidersSchema(), plan.Providers{}}} {
		f := parseSchema(t, tc.text)
		if f.root["$schema"] != "https://json-schema.org/draft/2020-12/schema" {
			t.Errorf("%T: draft %v", tc.into, f.root["$schema"])
		}
		f.compare(t, reflect.TypeOf(tc.into).Name(), f.root, reflect.TypeOf(tc.into))
	}
}

func (f schemaFile) compare(t *testing.T, path string, s schema, typ reflect.Type) {
	t.Helper()
	s = f.resolve(s)
	switch typ.Kind() {
	case reflect.Pointer:
		f.compare(t, path, s, typ.Elem())
	case reflect.Map:
		f.compare(t, path+".*", sub(s, "additionalProperties"), typ.Elem())
	case reflect.Slice:
		if typ.Elem().Kind() == reflect.Struct {
			f.compare(t, path+"[]", sub(s, "items"), typ.Elem())
			return
		}
		f.compareValue(t, path, s, typ)
	case reflect.Struct:
		if alternatives := list(s, "anyOf"); len(alternatives) > 0 {
			s = f.resolve(alternatives[0].(map[string]any))
		}
		f.compareStruct(t, path, s, typ)
	default:
		f.compareValue(t, path, s, typ)
	}
}

var wrongType = regexp.MustCompile(`: got [a-z]+, want `)

func (f schemaFile) compareValue(t *testing.T, path string, s schema, typ reflect.Type) {
	t.Helper()
	if reflect.PointerTo(typ).NumMethod() > 0 {
		return // it has its own UnmarshalYAML, which TestSchemaAgreesWithLoad covers
	}
	if why := f.violation(t, s, sample(typ)); wrongType.MatchString(why) {
		t.Errorf("%s is a %s: %s", path, typ, why)
	}
}

func (f schemaFile) compareStruct(t *testing.T, path string, s schema, typ reflect.Type) {
	t.Helper()
	if s["additionalProperties"] != false {
		t.Errorf("%s allows unknown fields", path)
	}
	var fields []string
	for _, field := range reflect.VisibleFields(typ) {
		name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if !field.IsExported() || field.Anonymous || name == "-" {
			continue
		}
		fields = append(fields, name)
		p := sub(sub(s, "properties"), name)
		if p["description"] == nil {
			t.Errorf("%s.%s has no description", path, name)
		}
		f.compare(t, path+"."+name, p, field.Type)
	}
	properties := slices.Collect(maps.Keys(sub(s, "properties")))
	if diff := cmp.Diff(fields, properties, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("%s: fields of the struct (-) and of the schema (+):\n%s", path, diff)
	}
}

// sample returns some JSON value of a type.
func sample(typ reflect.Type) any {
	switch typ.Kind() {
	case reflect.String:
		return ""
	case reflect.Slice:
		return []any{sample(typ.Elem())}
	case reflect.Float64:
		return 0.5
	case reflect.Bool:
		return true
	default:
		return 1.0
	}
}

// known returns the names that a field may hold according to the loader's error
// for an unknown name.
func known(t *testing.T, load func(text string) error, text string) []string {
	t.Helper()
	err := load(text)
	if err == nil {
		t.Fatalf("%q: no error", text)
	}
	_, names, ok := strings.Cut(err.Error(), "known are ")
	if !ok {
		t.Fatalf("%q: the error lists no names: %v", text, err)
	}
	return strings.Split(names, ", ")
}

// TestSchemaEnumsMatchLoader checks that a schema offers every name that the
// loader knows, and that the loader accepts every name that a schema offers,
// including group names.
func TestSchemaEnumsMatchLoader(t *testing.T) {
	t.Parallel()
	experiment := parseSchema(t, plan.ExperimentSchema())
	partOf := func(field string) schema {
		return sub(sub(sub(experiment.property("parts"), "items"), "properties"), field)
	}
	loop := list(sub(experiment.property("loops"), "additionalProperties"),
		"anyOf")[0].(map[string]any)
	providers := parseSchema(t, plan.ProvidersSchema())
	endpoint := providers.resolve(sub(providers.property("providers"), "additionalProperties"))
	loadProviders := func(text string) error {
		_, err := plan.LoadProviders(write(t, "p.yaml", text), env(nil))
		return err
	}
	load := func(text string) error {
		_, err := plan.Load(write(t, "e.yaml", text))
		return err
	}
	for _, tc := range []struct {
		field  string
		schema schema
		load   func(string) error
		text   string // with %s for the name
	}{
		{"variants", experiment.property("variants"), load, "models: [a]\nvariants: [%s]\n"},
		{
			"variants of a part", partOf("variants"), load,
			"models: [a]\nparts: [{name: x, variants: %s}]\n",
		},
		{
			"severities", experiment.property("severities"), load,
			"models: [a]\nvariants: [flawed]\nseverities: [%s]\n",
		},
		{
			"severities of a part", partOf("severities"), load,
			"models: [a]\nvariants: [flawed]\nparts: [{name: x, severities: %s}]\n",
		},
		{
			"difficulties", experiment.property("difficulties"), load,
			"models: [a]\ndifficulties: %s\n",
		},
		{
			"difficulties of a part", partOf("difficulties"), load,
			"models: [a]\nparts: [{name: x, difficulties: %s}]\n",
		},
		{"task_types", experiment.property("task_types"), load, "models: [a]\ntask_types: %s\n"},
		{
			"task_types of a part", partOf("task_types"), load,
			"models: [a]\nparts: [{name: x, task_types: %s}]\n",
		},
		{
			"several_calls", experiment.property("several_calls"), load,
			"models: [a]\nseveral_calls: %s\n",
		},
		{
			"loops", sub(experiment.property("loops"), "propertyNames"), load,
			"models: [a]\nloops: {%s: off}\n",
		},
		{
			"then of a loop", sub(sub(loop, "properties"), "then"), load,
			"models: [a]\nloops: {repeat: {then: %s}}\n",
		},
		{"world", experiment.property("world"), load, "models: [a]\nworld: %s\n"},
		{"protocol", experiment.property("protocol"), load, "models: [a]\nprotocol: %s\n"},
		{"tools", experiment.property("tools"), load, "models: [a]\ntools: %s\n"},
		{
			"per of hopeless", experiment.property("stop.hopeless.per"), load,
			"models: [a]\nstop: {hopeless: {per: %s}}\n",
		},
		{
			"per of malformed", experiment.property("stop.malformed.per"), load,
			"models: [a]\nstop: {malformed: {per: %s}}\n",
		},
		{
			"protocol of a provider", sub(sub(endpoint, "properties"), "protocol"), loadProviders,
			"providers: {p: {protocol: %s, base_url: 'http://h', api_version: v, keys: [K], " +
				"models: {m: {}}}}\n",
		},
	} {
		offered := experiment.offered(tc.schema)
		if len(offered) == 0 {
			t.Errorf("%s: no enum", tc.field)
		}
		for _, name := range offered {
			if err := tc.load(fmt.Sprintf(tc.text, name)); err != nil {
				t.Errorf("%s: the schema offers %v: %v", tc.field, name, err)
			}
		}
		for _, name := range known(t, tc.load, fmt.Sprintf(tc.text, strings.Repeat("?", 30)+"x")) {
			if !slices.Contains(offered, any(name)) {
				t.Errorf("%s: the schema does not offer %s", tc.field, name)
			}
		}
	}
}

// TestSchemaDefaultsMatchLoader checks that a file with every default of the
// schema written out equals a file without them.
func TestSchemaDefaultsMatchLoader(t *testing.T) {
	t.Parallel()
	f := parseSchema(t, plan.ExperimentSchema())
	stated := defaults(f.root)
	stated["models"] = []string{"a"}
	stated["limits"] = defaults(f.property("limits"))
	stated["failures"] = defaults(f.property("failures"))
	stated["stop"] = map[string]any{
		"hopeless":  defaults(f.property("stop.hopeless")),
		"malformed": defaults(f.property("stop.malformed")),
	}
	b, err := json.Marshal(stated)
	if err != nil {
		t.Fatal(err)
	}
	got, err := plan.Load(write(t, "e.yaml", string(b)))
	if err != nil {
		t.Fatal(err)
	}
	want, err := plan.Load(write(t, "e.yaml", "models: [a]\nstop: {hopeless: {}, malformed: {}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(plan.Experiment{})); diff != "" {
		t.Errorf("defaults of the program (-) and of the schema (+):\n%s", diff)
	}
	serve := sub(sub(parseSchema(t, plan.ProvidersSchema()).root, "$defs"), "serve")
	unstated := defaults(sub(sub(serve, "properties"), "limits"))
	for _, b := range lane.Buckets {
		if unstated[string(b)] != 0.0 {
			t.Errorf("default of %s is %v, want 0 for an unknown limit", b, unstated[string(b)])
		}
	}
}

// defaults returns the defaults of an object's properties.
func defaults(s schema) map[string]any {
	values := make(map[string]any)
	for name, p := range sub(s, "properties") {
		if v, ok := p.(map[string]any)["default"]; ok {
			values[name] = v
		}
	}
	return values
}

// TestSchemaAgreesWithLoad gives the same files to the schema and the loader,
// which both have to accept or refuse them.
func TestSchemaAgreesWithLoad(t *testing.T) {
	t.Parallel()
	check := func(file []byte, files map[string]bool, load func(text string) error) {
		f := parseSchema(t, file)
		compiled := f.compile(t, f.root)
		for text, want := range files {
			err, why := load(text), compiled.Validate(fromYAML(t, text))
			if (why == nil) != want || (err == nil) != want {
				t.Errorf("%q: schema %v, loader %v, want accepted: %v", text, why, err, want)
			}
		}
	}
	check(plan.ExperimentSchema(), experimentFiles(), func(text string) error {
		_, err := plan.Load(write(t, "e.yaml", text))
		return err
	})
	check(plan.ProvidersSchema(), providersFiles(), func(text string) error {
		_, err := plan.LoadProviders(write(t, "p.yaml", text),
			env(map[string]string{"GATEWAY_URL": "http://h/v1"}))
		return err
	})
}

// TestDocumentedFields checks that docs/files.md has a row for every field of
// an experiment file and that its examples can be loaded.
func TestDocumentedFields(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../../docs/files.md")
	if err != nil {
		t.Fatal(err)
	}
	page, _, _ := strings.Cut(string(b), "## Learned limits")
	for field := range sub(parseSchema(t, plan.ExperimentSchema()).root, "properties") {
		if !strings.Contains(page, "\n| `"+field+"` |") {
			t.Errorf("no row for %s", field)
		}
	}
	examples := 0
	for block := range strings.SplitSeq(page, "```yaml\n") {
		text, _, ok := strings.Cut(block, "```")
		if !ok {
			continue
		}
		examples++
		if strings.HasPrefix(text, "providers:") {
			path := write(t, "p.yaml", strings.Replace(text, "\nprices: prices.yaml", "", 1))
			_, err := plan.LoadProviders(path, env(map[string]string{"GATEWAY": "h"}))
			if err != nil {
				t.Error(err)
			}
			continue
		}
		if strings.Contains(text, "{input: ") {
			if _, err := plan.LoadPrices(write(t, "p.yaml", text)); err != nil {
				t.Error(err)
			}
			continue
		}
		if !strings.Contains(text, "models:") {
			text = "models: [a]\n" + text
		}
		load(t, text)
	}
	if examples < 4 {
		t.Errorf("%d examples, want at least parts, failures, loops and budgets",
			examples)
	}
}

// TestDocsNameEveryLimit checks that a limit of lanes, which has a row in package lane, is in the docs.
func TestDocsNameEveryLimit(t *testing.T) {
	t.Parallel()
	docs, err := os.ReadFile("../../../docs/files.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range lane.Buckets {
		if !strings.Contains(string(docs), "`"+string(b)+"`") {
			t.Errorf("docs/files.md does not name the limit `%s` among those of lanes; it counts %s", b, lane.Unit(b))
		}
	}
}

// An editor knows each preset and each sandbox.
func TestSchemaNames(t *testing.T) {
	t.Parallel()
	var schema struct {
		Defs struct {
			Agent struct {
				Properties map[string]struct{ Enum []string }
			}
		} `json:"$defs"`
	}
	if err := json.Unmarshal(plan.ProvidersSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	agent := schema.Defs.Agent.Properties
	var sandboxes []string
	for _, s := range bridge.Sandboxes {
		sandboxes = append(sandboxes, string(s))
	}
	if diff := cmp.Diff(bridge.Presets(), agent["preset"].Enum); diff != "" {
		t.Errorf("presets (-program +schema):\n%s", diff)
	}
	if diff := cmp.Diff(sandboxes, agent["sandbox"].Enum); diff != "" {
		t.Errorf("sandboxes (-program +schema):\n%s", diff)
	}
}
