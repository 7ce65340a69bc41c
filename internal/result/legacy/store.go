package legacy

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/assay-eval/assay/internal/store"
)

// Kind names the original's databases among the imports of a store.
const Kind = "pilot master_database V3"

// An Import is a database that a store holds, apart from its trials.
type Import struct {
	store.Import
	*Database
}

// Save stores a database under the name of its file. It returns [store.ErrImported] if the store
// holds the file already. Program is the version of this program.
func (d *Database) Save(ctx context.Context, db *store.DB, name, program string) error {
	body, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	return db.Import(ctx, store.Import{
		Kind: Kind, Name: name, SHA256: d.Source, At: time.Now().UTC(),
		Program: program, Body: body,
	})
}

// Stored returns the databases that a store holds.
func Stored(ctx context.Context, db *store.DB) (all []Import, err error) {
	imports, err := db.Imports(ctx)
	if err != nil {
		return nil, err
	}
	for _, i := range imports {
		if i.Kind != Kind {
			continue
		}
		d := new(Database)
		if err := json.Unmarshal(i.Body, d); err != nil {
			return nil, fmt.Errorf("import %s: %w", i.Name, err)
		}
		all = append(all, Import{i, d})
	}
	return all, nil
}
