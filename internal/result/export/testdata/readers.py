"""Opens the Parquet files of an export with pyarrow, pandas and DuckDB.

Reads {"file", "columns"} as JSON from standard input, with the columns as a
manifest describes them, and writes the problems it sees and what each reader
sums up: the same sums as python_test.go makes of what it wrote.
"""

import json
import sys

import duckdb
import pandas
import pyarrow
import pyarrow.parquet

PYARROW = {
    "string": {"string"},
    "int64": {"int64"},
    "double": {"double"},
    "bool": {"bool"},
    "timestamp": {"timestamp[ns, tz=UTC]"},
    "json": {"extension<arrow.json>", "string"},
    "list<string>": {"list<element: string not null>", "list<element: string>"},
}
PANDAS = {
    "string": {"str", "object"},
    "int64": {"int64"},
    "double": {"float64"},
    "bool": {"bool"},
    "timestamp": {"datetime64[ns, UTC]"},
    "json": {"str", "object"},
    "list<string>": {"object"},
}
DUCKDB = {
    "string": {"VARCHAR"},
    "int64": {"BIGINT"},
    "double": {"DOUBLE"},
    "bool": {"BOOLEAN"},
    "timestamp": {"TIMESTAMPTZ_NS", "TIMESTAMP WITH TIME ZONE"},
    "json": {"JSON", "VARCHAR"},
    "list<string>": {"VARCHAR[]"},
}


# pandas has no null for whole numbers and truth values, so columns with nulls have other types.
NULLABLE = {"int64": {"float64"}, "bool": {"object"}}


def compare(reader, want, allowed, got, problems):
    if [c["name"] for c in want] != list(got):
        problems.append(f"{reader}: columns are {list(got)}")
        return
    for c in want:
        types = allowed[c["type"]]
        if reader == "pandas" and c["nullable"]:
            types = types | NULLABLE.get(c["type"], set())
        if got[c["name"]] not in types:
            problems.append(f"{reader}: {c['name']} is {got[c['name']]}, not {c['type']}")


def sums_of(rows):
    """Adds up rows, dictionaries of plain values, modulo 2^64."""
    total = {}
    for row in rows:
        for name, value in row.items():
            if value is None or isinstance(value, float) and value != value:
                total[name + " null"] = total.get(name + " null", 0) + 1
                continue
            if isinstance(value, bool):
                value = int(value)
            elif isinstance(value, float):
                value = round(value * 1e6)
            elif isinstance(value, str):
                value = len(value.encode())
            elif isinstance(value, list):
                value = sum(len(s.encode()) + 1 for s in value)
            total[name] = total.get(name, 0) + value
    return {name: (value + 2**63) % 2**64 - 2**63 for name, value in total.items()}


def main():
    task = json.load(sys.stdin)
    file, want = task["file"], task["columns"]
    problems, result = [], {"versions": {m.__name__: m.__version__ for m in (pyarrow, pandas, duckdb)}}

    opened = pyarrow.parquet.ParquetFile(file)
    compare("pyarrow", want, PYARROW, {f.name: str(f.type) for f in opened.schema_arrow}, problems)
    result["metadata"] = {k.decode(): v.decode() for k, v in opened.metadata.metadata.items() if k.startswith(b"assay.")}
    table = opened.read()
    times = {c["name"] for c in want if c["type"] == "timestamp"}
    for name in times:
        i = table.schema.get_field_index(name)
        table = table.set_column(i, name, table.column(i).cast(pyarrow.timestamp("ns")).cast(pyarrow.int64()))
    result["pyarrow"] = sums_of(table.to_pylist())

    frame = pandas.read_parquet(file)
    compare("pandas", want, PANDAS, {name: str(t) for name, t in frame.dtypes.items()}, problems)
    plain = {}
    for c in want:
        column = frame[c["name"]]
        if c["type"] == "timestamp":
            plain[c["name"]] = [None if pandas.isna(v) else v.value for v in column]
        elif c["type"] == "list<string>":
            plain[c["name"]] = [None if v is None else list(v) for v in column]
        elif c["type"] == "int64" and c["nullable"]:
            plain[c["name"]] = [None if pandas.isna(v) else int(v) for v in column]
        else:
            plain[c["name"]] = column.tolist()
    result["pandas"] = sums_of(dict(zip(plain, row)) for row in zip(*plain.values()))

    db = duckdb.connect()
    described = db.execute("select column_name, column_type from (describe select * from read_parquet(?))", [file]).fetchall()
    compare("duckdb", want, DUCKDB, dict(described), problems)
    exact = dict(described)
    names = ", ".join(
        f'epoch_ns("{c["name"]}") as "{c["name"]}"' if c["type"] == "timestamp" and exact.get(c["name"]) == "TIMESTAMPTZ_NS"
        else f'epoch_us("{c["name"]}") * 1000 as "{c["name"]}"' if c["type"] == "timestamp"
        else f'"{c["name"]}"'
        for c in want
    )
    rows = db.execute(f"select {names} from read_parquet(?)", [file]).fetchall()
    result["duckdb"] = sums_of(dict(zip((c["name"] for c in want), row)) for row in rows)

    if "coverage" in plain:
        mean = db.execute("select avg(coverage) from read_parquet(?)", [file]).fetchone()[0]
        result["coverage"] = {"pandas": frame["coverage"].mean(), "duckdb": mean}
    result["rows"], result["problems"] = opened.metadata.num_rows, problems
    result["types"] = {"pyarrow": sorted({str(f.type) for f in opened.schema_arrow}), "pandas": sorted({str(t) for t in frame.dtypes}), "duckdb": sorted(set(exact.values()))}
    json.dump(result, sys.stdout)


main()
