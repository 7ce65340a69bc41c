package export

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// readParquet reads a Parquet file from r. The buffer in has already read its
// beginning.
func readParquet[R any](
	r io.Reader, in *bufio.Reader, t *table[R], yield func(R, error) bool,
) (err error) {
	file, size, err := inPlace(r, in)
	if err != nil {
		return err
	}
	p, err := openParquet(t, file, size)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	for {
		records, end := p.next()
		for i := range records {
			if !yield(records[i], nil) {
				return nil
			}
		}
		if end == io.EOF {
			return nil
		}
		if end != nil {
			return end
		}
	}
}

// inPlace returns a reader with random access that starts at the first unread
// byte of in. It uses r itself if possible, and otherwise a copy in memory.
func inPlace(r io.Reader, in *bufio.Reader) (io.ReaderAt, int64, error) {
	if file, ok := r.(interface {
		io.ReaderAt
		io.Seeker
	}); ok {
		here, err := file.Seek(0, io.SeekCurrent)
		end, err2 := file.Seek(0, io.SeekEnd)
		if err == nil && err2 == nil { // seeking fails for a pipe
			here -= int64(in.Buffered())
			return io.NewSectionReader(file, here, end-here), end - here, nil
		}
	}
	all, err := io.ReadAll(in)
	return bytes.NewReader(all), int64(len(all)), err
}

type parquetReader[R any] struct {
	table  *table[R]
	file   io.ReaderAt
	size   int64
	groups []parquet.RowGroup
	chunks [][]format.ColumnChunk // by row group
	// order holds the columns in the order of the file, which may be any, and
	// kinds their physical types.
	order []*fieldColumn[R]
	kinds []parquet.Kind

	rows    parquet.Rows // rows of the current row group, or nil
	left    int64        // number of its rows that are unread
	number  int          // number of rows read
	buffer  []parquet.Row
	records []R
}

func openParquet[R any](t *table[R], r io.ReaderAt, size int64) (p *parquetReader[R], err error) {
	defer rescue(&err)
	if err := checkEnd(r, size); err != nil {
		return nil, err
	}
	file, err := parquet.OpenFile(r, size, parquet.SkipBloomFilters(true),
		parquet.SkipPageIndex(true))
	if err != nil {
		return nil, err
	}
	p = &parquetReader[R]{
		table: t, file: r, size: size, groups: file.RowGroups(),
		buffer: make([]parquet.Row, batchRows),
	}
	for _, g := range file.Metadata().RowGroups {
		p.chunks = append(p.chunks, g.Columns)
	}
	return p, p.parseSchema(file.Schema())
}

// checkEnd refuses a truncated file. Without it, the library would trust the
// footer length in the last bytes, which can be up to 4 GB.
func checkEnd(r io.ReaderAt, size int64) error {
	var end [8]byte
	if size < int64(len(magic)+len(end)) {
		return errors.New("the file is truncated")
	}
	if _, err := r.ReadAt(end[:], size-int64(len(end))); err != nil && err != io.EOF {
		return err
	}
	footer := int64(binary.LittleEndian.Uint32(end[:]))
	if string(end[4:]) != magic || footer > size-int64(len(magic)+len(end)) {
		return errors.New("the file is truncated")
	}
	return nil
}

// Limits on the memory for a column of a row group. They are far above the
// needs of our files; in a damaged file, lengths can be anything up to 2^31.
const (
	maxValues = 16 << 20
	maxPage   = 256 << 20 // bytes
)

// checkPages reads the headers of a column's pages. It refuses sizes that the
// file cannot contain, because the library would allocate memory for them.
func checkPages(r io.ReaderAt, size int64, m *format.ColumnMetaData) error {
	start, length := m.DataPageOffset, m.TotalCompressedSize
	if m.DictionaryPageOffset > 0 {
		start = min(start, m.DictionaryPageOffset)
	}
	switch {
	case m.Codec != format.Zstd:
		return fmt.Errorf("unsupported compression %v, want ZSTD", m.Codec)
	case m.NumValues < 0 || m.NumValues > maxValues:
		return fmt.Errorf("the file is damaged: %d values in a row group", m.NumValues)
	case start < 0 || length < 0 || start > size || length > size-start:
		return errors.New("the file is damaged: the column is outside the file")
	}
	section := io.NewSectionReader(r, start, length)
	in := bufio.NewReaderSize(section, 512)
	decoder := thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(in))
	for at := int64(0); at < length; {
		var h format.PageHeader
		if err := decoder.Decode(&h); err != nil {
			return fmt.Errorf("the file is damaged: header of a page: %w", err)
		}
		values := max(h.DataPageHeader.V.NumValues, h.DataPageHeaderV2.V.NumValues,
			h.DictionaryPageHeader.V.NumValues)
		here, err := section.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		at = here - int64(in.Buffered()) + int64(h.CompressedPageSize)
		if h.CompressedPageSize < 0 || at > length || h.UncompressedPageSize > maxPage ||
			int64(values) > m.NumValues {
			return errors.New("the file is damaged: a page is too large")
		}
		if _, err := section.Seek(at, io.SeekStart); err != nil {
			return err
		}
		in.Reset(section)
	}
	return nil
}

// rescue turns a panic into an error. The library checks a lot, but some
// damaged files make it panic.
func rescue(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the file is damaged: %v", p)
	}
}

func (p *parquetReader[R]) parseSchema(got *parquet.Schema) error {
	paths := got.Columns()
	header := make([]string, len(paths))
	for i, path := range paths {
		header[i] = path[0]
	}
	order, err := parseHeader(p.table, header)
	if err != nil {
		return err
	}
	p.order = order
	want := parquet.NewSchema(string(p.table.name), newOrdered(p.table))
	leaves := make(map[string]parquet.LeafColumn)
	for _, path := range want.Columns() {
		leaves[path[0]], _ = want.Lookup(path...)
	}
	for i, path := range paths {
		leaf, ok := got.Lookup(path...)
		if want := leaves[header[i]]; !ok || !fits(leaf, want) {
			return fmt.Errorf("column %s has type %v, want %v",
				header[i], leaf.Node.Type(), want.Node.Type())
		}
		p.kinds = append(p.kinds, leaf.Node.Type().Kind())
	}
	return nil
}

// fits reports whether a column has a compatible type. Programs that rewrite
// our files, such as pandas and DuckDB, may change nullability and the names of
// string and 64-bit types.
func fits(got, want parquet.LeafColumn) bool {
	a, b := got.Node.Type(), want.Node.Type()
	return a.Kind() == b.Kind() && isTime(a) == isTime(b) &&
		len(got.Path) == len(want.Path) && got.MaxRepetitionLevel == want.MaxRepetitionLevel
}

func isTime(t parquet.Type) bool { return t.String() == nanoseconds }

var nanoseconds = parquet.Timestamp(parquet.Nanosecond).Type().String()

// next returns the next records, which are valid until the next call. The error
// is io.EOF or concerns the record after them.
func (p *parquetReader[R]) next() (records []R, err error) {
	p.records = p.records[:0]
	defer func() { records = p.records }()
	defer rescue(&err)
	if p.rows == nil {
		if len(p.groups) == 0 {
			return nil, io.EOF
		}
		for i := range p.chunks[0] {
			if err := checkPages(p.file, p.size, &p.chunks[0][i].MetaData); err != nil {
				return nil, fmt.Errorf("after row %d: column %s: %w",
					p.number, p.order[i].name, err)
			}
		}
		p.rows, p.left = p.groups[0].Rows(), p.groups[0].NumRows()
		p.groups, p.chunks = p.groups[1:], p.chunks[1:]
	}
	n, err := p.rows.ReadRows(p.buffer)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("row %d: %w", p.number+1, err)
	}
	for _, row := range p.buffer[:n] {
		p.number++
		r, err := p.parse(row)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", p.number, err)
		}
		p.records = append(p.records, r)
	}
	p.left -= int64(n)
	if n > 0 && p.left > 0 {
		return nil, nil
	}
	if p.left != 0 {
		return nil, fmt.Errorf("row %d: the file has fewer rows than its footer states",
			p.number)
	}
	err, p.rows = p.rows.Close(), nil
	return nil, err
}

func (p *parquetReader[R]) parse(row parquet.Row) (R, error) {
	var r, zero R
	var nulls []*fieldColumn[R]
	seen := 0
	for i, values := range row.Range {
		if values[0].Column() != i {
			break
		}
		seen++
		c, kind := p.order[i], p.kinds[i]
		if slices.ContainsFunc(values,
			func(v parquet.Value) bool { return !v.IsNull() && v.Kind() != kind }) {
			return zero, fmt.Errorf("column %s: value of a wrong type", c.name)
		}
		if err := c.take(&r, values); err != nil {
			return zero, fmt.Errorf("column %s: %w", c.name, err)
		}
		// A null is an empty list or the zero time in the columns of these types.
		if isNull(values) && c.kind != timestamp && c.kind != listOfStrings {
			nulls = append(nulls, c)
		}
	}
	for _, c := range nulls {
		if err := c.missing(&r); err != nil {
			return zero, err
		}
	}
	if seen != len(p.order) {
		return zero, fmt.Errorf("column %s: missing value", p.order[seen].name)
	}
	return p.table.plain(r), p.table.check(&r)
}

func (p *parquetReader[R]) close() (err error) {
	defer rescue(&err)
	if p.rows == nil {
		return nil
	}
	return p.rows.Close()
}
