"""An archive beside other ways to hold the same transactions: JSON in DuckDB, a DuckDB table, and files as cryo makes them.

    python tests/benchmarks/archive/beside.py --versions 20000

cryo reads other chains, so its way is imitated: one LZ4 file per 1,000 versions, its defaults. Prints one line of JSON per
way: seconds to make it from what comes before, its size, and the median seconds of the same query in a fresh connection.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from urllib.request import urlopen

PAGE = 100
# A node prints short addresses, the toolkit stores them with 64 digits.
FUNCTIONS = [f"0x{address}::registry::register" for address in ("cafe", "cafe".zfill(64))]
QUERY = "select count(*), sum({gas}), quantile_disc({gas}, 0.9) from {table} where list_contains($1, {function})"
CRYO_VERSIONS = 1_000


def seconds(work) -> tuple[float, object]:
    """Run something; return how long it took, and what it returned."""
    began = time.perf_counter()
    found = work()
    return round(time.perf_counter() - began, 2), found


def size(place: Path) -> float:
    """Return the megabytes of a file or of the files of a folder."""
    files = [place] if place.is_file() else [file for file in place.rglob("*") if file.is_file()]
    return round(sum(file.stat().st_size for file in files) / 1e6, 1)


def main() -> None:
    """Print the figures."""
    import duckdb
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    import toolkit
    from toolkit import embedded

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--versions", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    ledger = embedded.Ledger.with_history(seed=7, versions=options.versions, cache=True)
    last = options.versions - 1
    with tempfile.TemporaryDirectory() as name, embedded.serve(ledger) as url:
        place = Path(name)
        pages, folder, cryo = place / "pages", place / "archive", place / "cryo"
        pages.mkdir()

        def fetch() -> None:
            for first in range(0, last + 1, PAGE):
                with urlopen(f"{url}/transactions?start={first}&limit={PAGE}") as answer:
                    (pages / f"{first:09}.json").write_bytes(answer.read())

        def sync() -> None:
            with toolkit.connect(url, cache=None) as node:
                toolkit.sync(node, folder, f"0:{last}", progress=False)

        def imitate() -> None:
            for table in ("transactions", "events", "changes"):
                rows = toolkit.Archive(folder).scan(table).to_table()
                (cryo / table).mkdir(parents=True)
                for first in range(0, last + 1, CRYO_VERSIONS):
                    at = pc.field("ledger_version")
                    some = rows.filter((at >= first) & (at < first + CRYO_VERSIONS))
                    pq.write_table(some, cryo / table / f"{table}__{first:09}.parquet", compression="lz4")

        def load(statement: str, file: str) -> None:
            with duckdb.connect(place / file, config={"memory_limit": "4GB", "threads": 2}) as connection:
                connection.execute("set preserve_insertion_order = false")
                connection.execute(statement)

        raw_function = "payload.function"
        raw = f"create table raw as from read_json('{pages}/*.json')"
        native = "; ".join(
            f"create table {table} as from read_parquet('{folder}/{table}/*.parquet', union_by_name = true)"
            for table in ("transactions", "events", "changes")
        )
        ways = {
            "JSON in DuckDB": (lambda: load(raw, "raw.duckdb"), "raw.duckdb", "raw", "gas_used::ubigint", raw_function),
            "archive": (sync, "archive", f"read_parquet('{folder}/transactions/*.parquet')", "gas_used", "function"),
            "DuckDB tables of the archive": (
                lambda: load(native, "native.duckdb"),
                "native.duckdb",
                "transactions",
                "gas_used",
                "function",
            ),
            "as cryo": (imitate, "cryo", f"read_parquet('{cryo}/transactions/*.parquet')", "gas_used", "function"),
        }
        print(json.dumps({"way": "pages", "seconds": seconds(fetch)[0], "mb": size(pages)}), flush=True)
        files = {}
        for way, (make, file, *_) in ways.items():
            files[way] = {"seconds": seconds(make)[0], "mb": size(place / file)}
        queries: dict[str, list[float]] = {way: [] for way in ways}
        answers = set()
        for _ in range(options.rounds):  # interleaved, so that other work on the machine meets all of them
            for way, (_, file, table, gas, function) in ways.items():
                database = place / file if file.endswith(".duckdb") else ":memory:"

                def ask(database=database, table=table, gas=gas, function=function):
                    with duckdb.connect(database) as connection:
                        return connection.execute(
                            QUERY.format(gas=gas, table=table, function=function), [FUNCTIONS]
                        ).fetchone()

                took, found = seconds(ask)
                queries[way].append(took)
                answers.add(found)
        for way, figures in files.items():
            print(json.dumps({"way": way, **figures, "query_s": statistics.median(queries[way])}), flush=True)
        print(json.dumps({"same answers": len(answers) == 1}))
        shutil.rmtree(place / "pages")


if __name__ == "__main__":
    main()
