"""Speed of wide columns as ratios to plain Python ints, interleaved in one run, every result checked.

Run with ``python tests/benchmarks/dtypes/bench_wide_integers.py [rows]``; not part of the timed suite.
"""

from __future__ import annotations

import random
import statistics
import sys
import time

import pyarrow as pa

from toolkit import dtypes
from toolkit.dtypes import _arrow, _storage

BITS = {
    "u64 in u128": ("u128", 64),
    "u128": ("u128", 128),
    "i128": ("i128", 127),
    "u128 in u256": ("u256", 128),
    "mixed u256": ("u256", None),
    "full u256": ("u256", 256),
    "full i256": ("i256", 255),
}
ROUNDS = 3


def by_int(texts, kind):
    """Read text the plain way: one int at a time (digits not even checked)."""
    low, width = kind.low, kind.width
    return pa.array([(int(text) - low).to_bytes(width, "big") for text in texts], pa.binary(width))


def sample(name, bits, rows, source):
    """Draw numbers of a width, negative ones too where there are any."""
    sign = -1 if name[0] == "i" else 1
    return [source.choice((1, sign)) * source.getrandbits(bits or source.randint(1, 256)) for _ in range(rows)]


def timed(times, name, function, *arguments):
    """Call once and keep the seconds."""
    start = time.perf_counter()
    result = function(*arguments)
    times.setdefault(name, []).append(time.perf_counter() - start)
    return result


def main(rows):
    """Print one line a width: M values/s and ratios to int()."""
    source = random.Random(1)
    print(f"{rows:,} values, median of {ROUNDS} interleaved rounds, M values/s (x = times int())")
    print(
        f"{'width':14} {'int()':>6} {'list -> column':>15} {'Arrow text -> column':>21} {'column -> text':>15} {'sum':>6}"
    )
    for label, (name, bits) in BITS.items():
        numbers = sample(name, bits, rows, source)
        texts = [str(number) for number in numbers]
        arrow, wide, times = pa.array(texts), _arrow.wide_type(name), {}
        for _ in range(ROUNDS):
            expected = timed(times, "int", by_int, texts, _storage.KINDS[name])
            listed = timed(times, "list", dtypes.wide_from_text, texts, wide)
            column = timed(times, "arrow", dtypes.wide_from_text, arrow, wide)
            back = timed(times, "back", _arrow.wide_to_text, column)
            total = timed(times, "sum", dtypes.exact_sum, dtypes.to_pandas(pa.table({"v": column}))["v"])
            if not (listed.storage.equals(expected) and column.equals(listed) and back.equals(arrow)):
                raise SystemExit(f"{label}: results differ")
            if total != sum(numbers):
                raise SystemExit(f"{label}: the sum is wrong")
        speed = {key: rows / statistics.median(found) / 1e6 for key, found in times.items()}
        base = speed["int"]
        print(
            f"{label:14} {base:6.2f} {speed['list']:7.2f} ({speed['list'] / base:4.1f}x)"
            f" {speed['arrow']:13.2f} ({speed['arrow'] / base:4.1f}x) {speed['back']:15.2f} {speed['sum']:6.1f}"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
