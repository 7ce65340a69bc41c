package environment

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// A Condition compares a field of an environment's last observation with a value, such as
// reward >= 1, done == true or observation.status == "solved".
type Condition struct {
	path []string
	sign string
	want any // a float64, a string or a bool
}

var conditionText = regexp.MustCompile(`^\s*([A-Za-z_][\w.]*)\s*(>=|<=|==|!=|>|<)\s*(.+?)\s*$`)

// ParseCondition reads a condition.
func ParseCondition(text string) (Condition, error) {
	parts := conditionText.FindStringSubmatch(text)
	if parts == nil {
		return Condition{}, fmt.Errorf("%q does not compare a field with a value", text)
	}
	c := Condition{path: strings.Split(parts[1], "."), sign: parts[2]}
	if top := c.path[0]; top != "reward" && top != "done" && top != "observation" {
		return c, fmt.Errorf("%q is not reward, done or observation.FIELD", parts[1])
	}
	_ = json.Unmarshal([]byte(parts[3]), &c.want) // without a value, it is nil
	switch c.want.(type) {
	case float64:
	case string, bool:
		if c.sign != "==" && c.sign != "!=" {
			return c, fmt.Errorf("%s compares numbers only", c.sign)
		}
	default:
		return c, fmt.Errorf("%s is not a number, a text in quotes, true or false", parts[3])
	}
	return c, nil
}

// field returns the field's value.
func (c Condition) field(state json.RawMessage) (value any, there bool) {
	if json.Unmarshal(state, &value) != nil {
		return nil, false
	}
	for _, name := range c.path {
		object, _ := value.(map[string]any)
		if value, there = object[name]; !there {
			return nil, false
		}
	}
	return value, there
}

// Holds reports whether the condition holds. It does not hold for a field that is missing or null.
func (c Condition) Holds(state json.RawMessage) bool {
	value, _ := c.field(state)
	switch value.(type) {
	case nil, map[string]any, []any:
		return value != nil && c.sign == "!="
	}
	switch c.sign {
	case "==":
		return value == c.want
	case "!=":
		return value != c.want
	}
	got, number := value.(float64)
	want := c.want.(float64) // as ParseCondition has checked
	switch c.sign {
	case ">=":
		return number && got >= want
	case "<=":
		return number && got <= want
	case ">":
		return number && got > want
	}
	return number && got < want
}

// OfReward reports whether the condition is on the reward.
func (c Condition) OfReward() bool { return c.path[0] == "reward" }

// Applies reports whether the field is there.
func (c Condition) Applies(state json.RawMessage) bool {
	_, there := c.field(state)
	return there
}

// Told words the condition and the field's value.
func (c Condition) Told(state json.RawMessage) string {
	name, got := strings.Join(c.path, "."), "missing"
	if value, there := c.field(state); there {
		got = asText(value)
	}
	return fmt.Sprintf("%s is %s, and success is %s %s %s", name, got, name, c.sign, asText(c.want))
}

func asText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic("environment: " + err.Error()) // it was read from JSON
	}
	return string(text)
}
