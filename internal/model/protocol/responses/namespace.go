package responses

import (
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/wire"
)

// functionsOf returns the functions in tools, and the members of namespaces among them by the names
// that they are offered under. Models know no namespaces, and other protocols have none. So each member
// has one name, which no other function has and every endpoint accepts.
func functionsOf(tools []tool) ([]assay.Function, map[string]gateway.Member) {
	var all []assay.Function
	offered := make(map[string]bool)
	for _, t := range tools {
		offered[t.Name] = offered[t.Name] || t.Type == "function"
	}
	members, seen := make(map[string]gateway.Member), make(map[gateway.Member]bool)
	for _, t := range tools {
		if t.Type == "function" {
			all = append(all, assay.Function{
				Name: t.Name, Description: t.Description, Parameters: t.Parameters,
			})
		}
		for _, inner := range t.Tools {
			m := gateway.Member{Namespace: t.Name, Name: inner.Name}
			if t.Type != namespace || inner.Type != "function" || seen[m] {
				continue
			}
			whole := joined(m)
			name := whole
			for n := 2; offered[name]; n++ {
				number := "_" + strconv.Itoa(n)
				name = whole[:min(len(whole), longestName-len(number))] + number
			}
			seen[m], offered[name], members[name] = true, true, m
			all = append(all, assay.Function{
				Name: name, Description: inner.Description, Parameters: inner.Parameters,
			})
		}
	}
	return all, members
}

const namespace = "namespace" // a type of tools

// longestName is the longest that a name of [wire.SendableName] can be.
const longestName = 64

// joined is the name of a member, unless another function has it: as agents without namespaces spell
// the tools of a server.
func joined(m gateway.Member) string {
	return wire.SendableName(strings.TrimSuffix(m.Namespace, "__") + "__" + m.Name)
}

// flatten gives the calls of members the names that the model knows them by.
func flatten(items []item, members map[string]gateway.Member) {
	names := make(map[gateway.Member]string)
	for name, m := range members {
		names[m] = name
	}
	for i := range items {
		it := &items[i]
		m := gateway.Member{Namespace: it.Namespace, Name: it.Name}
		if name, ok := names[m]; ok {
			it.Name = name
		} else if it.Namespace != "" { // it is no longer offered
			it.Name = joined(m)
		}
	}
}
