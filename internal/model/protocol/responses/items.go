package responses

import (
	"bytes"
	"encoding/json"
	"sync"

	"github.com/assay-eval/assay/internal/model/gateway"
)

// Items keeps the items of the replies of a conversation. Clients of Responses that expect the
// server to store replies send references to items instead of the items. The zero value is ready
// to use.
type Items struct {
	mu   sync.Mutex
	byID map[string]json.RawMessage
}

const reference = "item_reference"

// Keep keeps the items of a reply if the dialect is Responses.
func (k *Items) Keep(d gateway.Dialect, r gateway.Reply) {
	if _, ok := d.(Dialect); !ok {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byID == nil {
		k.byID = make(map[string]json.RawMessage)
	}
	for _, item := range itemsOf(r) {
		k.byID[item.ID] = gateway.Encode(item)
	}
}

// Resolve returns the body of a request with the items to which it refers. It leaves references to
// unknown items as they are.
func (k *Items) Resolve(d gateway.Dialect, body []byte) []byte {
	if _, ok := d.(Dialect); !ok || !bytes.Contains(body, []byte(reference)) {
		return body
	}
	var doc map[string]json.RawMessage
	var input []json.RawMessage
	if json.Unmarshal(body, &doc) != nil || json.Unmarshal(doc["input"], &input) != nil {
		return body // Decode describes the error
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, raw := range input {
		var it struct{ ID, Type string }
		if json.Unmarshal(raw, &it) != nil || it.Type != reference {
			continue
		}
		if kept := k.byID[it.ID]; kept != nil {
			input[i] = kept
		}
	}
	doc["input"] = gateway.Encode(input)
	return gateway.Encode(doc)
}
