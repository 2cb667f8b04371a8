"""Registration with pandas and Arrow in either order, and what an import costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
USE = "assert pandas.array([2**100], dtype='u128')[0] == 2**100"
READ = "assert str(pyarrow.parquet.read_table(path, use_threads=False).schema.field('v').type).startswith('extension<toolkit.u128')"


def run(*lines):
    """Run lines in a fresh interpreter."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join(lines)], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "order",
    [
        ("pandas", "toolkit.dtypes"),
        # The first use of a name imports pyarrow, whose types are registered meanwhile.
        ("toolkit.dtypes; toolkit.dtypes.u128, toolkit.dtypes.i256, toolkit.dtypes.to_arrow", "pandas"),
    ],
)
def test_pandas_knows_the_dtypes_in_either_order(order):
    """`dtype="u128"` works with nothing but the two imports, whichever comes first."""
    done = run(*(f"import {name}" for name in order), USE)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "order", [("pyarrow.parquet", "toolkit.dtypes"), ("toolkit.dtypes", "pandas", "pyarrow.parquet")]
)
def test_arrow_restores_the_types_once_they_are_registered(order, tmp_path):
    """A Parquet file read by pyarrow alone has the extension type, once the package has been used, or pandas imported."""
    import pandas as pd

    from toolkit import dtypes

    path = tmp_path / "r.parquet"
    dtypes.write_parquet(pd.DataFrame({"v": pd.array([1], dtype="u128")}), path, wide="native")
    done = run(f"path = {str(path)!r}", *(f"import {name}" for name in order), READ)
    assert done.returncode == 0, done.stderr


def test_plain_pandas_without_this_package_reads_text_or_bytes(tmp_path):
    """A file of ours opens where the package is not installed: wide columns are text there, or bytes if native."""
    import pandas as pd

    from toolkit import dtypes

    path = tmp_path / "r.parquet"
    for wide, found in (("text", "5"), ("native", bytes(15) + b"\x05")):
        dtypes.write_parquet(pd.DataFrame({"v": pd.array([5], dtype="u128")}), path, wide=wide)
        done = run("import pandas", f"assert pandas.read_parquet({str(path)!r})['v'][0] == {found!r}")
        assert done.returncode == 0, done.stderr


def test_importing_loads_neither_pandas_nor_pyarrow():
    """The names are lazy, and a hook waits for the libraries."""
    done = run(
        "import sys, toolkit.dtypes",
        "assert not {'pandas', 'pyarrow', 'numpy'} & set(sys.modules)",
        "import pandas",
        "assert not [f for f in sys.meta_path if type(f).__name__ == '_AfterPandas']",
        USE,
    )
    assert done.returncode == 0, done.stderr


def test_names_are_listed_and_unknown_ones_refused():
    """Every public name loads; a wrong one is an AttributeError."""
    from toolkit import dtypes

    assert set(dtypes.__all__) <= set(dir(dtypes))
    assert all(getattr(dtypes, name) is not None for name in dtypes.__all__)
    with pytest.raises(AttributeError, match="no attribute 'u512'"):
        _ = dtypes.u512
