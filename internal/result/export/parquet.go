package export

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
)

// Limits on memory. A row group ends when it reaches groupRows or groupBytes. A
// batch is encoded column by column.
const (
	groupBytes = 64 << 20
	batchRows  = 256
)

var groupRows = 64 << 10 // tests have fewer

// The keys of a file's metadata.
const (
	keyTable    = "assay.table"
	keyVersion  = "assay.format_version"
	keyProgram  = "assay.program"
	keySnapshot = "assay.snapshot"
)

type parquetWriter[R any] struct {
	table *table[R]
	file  *parquet.GenericWriter[any]
	// levels are the definition levels of non-null values by column.
	levels []int
	batch  []R
	cells  cells
	group  int   // number of records in the row group
	start  int64 // offset of the row group in the file
}

func newParquet[R any](w io.Writer, t *table[R], from Origin) *parquetWriter[R] {
	schema := parquet.NewSchema(string(t.name), newOrdered(t))
	p := &parquetWriter[R]{
		table: t,
		file: parquet.NewGenericWriter[any](w, schema, parquet.Compression(newZstd()),
			parquet.KeyValueMetadata(keyTable, string(t.name)),
			parquet.KeyValueMetadata(keyVersion, strconv.Itoa(Version)),
			parquet.KeyValueMetadata(keyProgram, from.Program),
			parquet.KeyValueMetadata(keySnapshot, from.Snapshot)),
		levels: make([]int, len(t.columns)),
	}
	for i, path := range schema.Columns() {
		leaf, _ := schema.Lookup(path...)
		p.levels[i] = leaf.MaxDefinitionLevel
	}
	return p
}

// A checkedZstd is the library's zstd with a checksum in each frame, which every
// decoder verifies. Without it, a damaged dictionary could be read as different
// words.
type checkedZstd struct {
	compress.Codec
	zstd *zstd.Encoder
}

func newZstd() checkedZstd {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithZeroFrames(true),
		zstd.WithEncoderCRC(true))
	if err != nil {
		panic("export: " + err.Error()) // the options above are wrong
	}
	return checkedZstd{&parquet.Zstd, z}
}

func (c checkedZstd) Encode(dst, src []byte) ([]byte, error) {
	return c.zstd.EncodeAll(src, dst[:0]), nil
}

// An ordered group keeps its fields in the order of a table's columns, each of
// which is one leaf. The library would sort them alphabetically.
type ordered struct {
	parquet.Group
	fields []parquet.Field
}

func newOrdered[R any](t *table[R]) ordered {
	place := make(map[string]int)
	group := make(parquet.Group)
	for i, c := range t.columns {
		place[c.name], group[c.name] = i, c.node
	}
	fields := group.Fields()
	slices.SortFunc(fields,
		func(a, b parquet.Field) int { return cmp.Compare(place[a.Name()], place[b.Name()]) })
	return ordered{group, fields}
}

func (o ordered) Fields() []parquet.Field { return o.fields }

func (p *parquetWriter[R]) add(r *R) error {
	p.batch = append(p.batch, *r)
	if len(p.batch) < batchRows {
		return nil
	}
	return p.encode()
}

// encode moves the batch into the row group, and writes a large enough row
// group to the file.
func (p *parquetWriter[R]) encode() error {
	leaves := p.file.ColumnWriters()
	for i := range p.table.columns {
		c := &p.table.columns[i]
		p.cells.reset(i, p.levels[i])
		for j := range p.batch {
			if err := c.put(&p.cells, &p.batch[j]); err != nil {
				return fmt.Errorf("%s: %s: %w", p.table.label(&p.batch[j]), c.name, err)
			}
		}
		if len(p.batch) == 0 {
			continue
		}
		if _, err := leaves[i].WriteRowValues(p.cells.values); err != nil {
			return err
		}
	}
	p.group += len(p.batch)
	p.batch = p.batch[:0]
	if p.group < groupRows && p.file.Size()-p.start < groupBytes {
		return nil
	}
	err := p.file.Flush()
	p.group, p.start = 0, p.file.Size()
	return err
}

// finish completes the file. An unfinished Parquet file cannot be read.
func (p *parquetWriter[R]) finish(all bool) error {
	if !all {
		return nil
	}
	if err := p.encode(); err != nil {
		return err
	}
	return p.file.Close()
}
