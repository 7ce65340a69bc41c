package assay

import "cmp"

// The interfaces of tools: how far names, results and values differ from the tools' own. Each changes
// what the one before it does, and more. The severities [Medium] and [Severe] name two of them, too.
const (
	PlainInterface = "plain"
	MildInterface  = "mild"
)

// Interfaces lists the interfaces, the tools' own first.
var Interfaces = []string{PlainInterface, MildInterface, Medium, Severe}

// InterfaceName names the interface of a cell.
func InterfaceName(in string) string { return cmp.Or(in, PlainInterface) }

// InterfaceOf returns the interface with a name as cells have it, in which the tools' own is empty.
func InterfaceOf(name string) string {
	if name == PlainInterface {
		return ""
	}
	return name
}
