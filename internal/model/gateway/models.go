package gateway

import (
	"cmp"
	"net/http"
	"strings"
)

// A modelInfo describes a model to the clients of OpenAI and of Anthropic, which ask at the same path.
type modelInfo struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int    `json:"created"`
	OwnedBy     string `json:"owned_by"`
	Type        string `json:"type"`
	DisplayName string `json:"display_name"`
	CreatedAt   string `json:"created_at"`
}

type geminiModel struct {
	Name        string   `json:"name"`
	DisplayName string   `json:"displayName"`
	Methods     []string `json:"supportedGenerationMethods"`
}

func newModelInfo(name string) modelInfo {
	return modelInfo{name, "model", 0, "assay", "model", name, "1970-01-01T00:00:00Z"}
}

func newGeminiModel(name string) geminiModel {
	return geminiModel{"models/" + name, name, []string{"generateContent", "streamGenerateContent"}}
}

// CatalogRoutes are the patterns of requests for the list of models, and for one of them.
var CatalogRoutes = []string{
	"GET /v1/models", "GET /v1/models/{model...}", "GET /v1beta/models", "GET /v1beta/models/{model...}",
}

// Catalog returns the body that describes the model that the path of r names or, if it names none,
// the models with those names.
func Catalog(r *http.Request, names []string) any {
	name, gemini := r.PathValue("model"), strings.Contains(r.Pattern, "/v1beta/")
	switch {
	case name != "" && gemini:
		return newGeminiModel(name)
	case name != "":
		return newModelInfo(name)
	case gemini:
		list := struct {
			Models []geminiModel `json:"models"`
		}{[]geminiModel{}}
		for _, n := range names {
			list.Models = append(list.Models, newGeminiModel(n))
		}
		return list
	}
	list := struct {
		Object  string      `json:"object"`
		Data    []modelInfo `json:"data"`
		HasMore bool        `json:"has_more"`
	}{"list", []modelInfo{}, false}
	for _, n := range names {
		list.Data = append(list.Data, newModelInfo(n))
	}
	return list
}

// CatalogKey returns the key of a request for models, wherever a protocol has it, or "".
func CatalogKey(h http.Header) string {
	return cmp.Or(Bearer(h), h.Get("X-Api-Key"), h.Get("X-Goog-Api-Key"), h.Get("Api-Key"))
}
