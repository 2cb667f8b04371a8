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


@pytest.fixture
def native(tmp_path):
    """Return the path of a file with a wide column of the extension type."""
    import pandas as pd

    from toolkit import dtypes

    path = tmp_path / "r.parquet"
    dtypes.write_parquet(pd.DataFrame({"v": pd.array([1], dtype="u128")}), path, wide="native")
    return str(path)


@pytest.mark.parametrize(
    "lines",
    [
        ("import pandas, toolkit.dtypes, pyarrow.parquet", USE, READ),
        ("import pyarrow.parquet, toolkit.dtypes", READ, "import pandas", USE),
        # The first use of a name imports pyarrow, whose types are registered meanwhile.
        ("import toolkit", "toolkit.dtypes.u128, toolkit.dtypes.to_arrow", "import pandas, pyarrow.parquet", USE, READ),
    ],
    ids=["pandas first", "pyarrow first", "a name first"],
)
def test_pandas_and_arrow_know_the_types_in_any_order(lines, native):
    """`dtype="u128"` works, and a file read by pyarrow alone has the extension type, whichever is imported first."""
    done = run(f"path = {native!r}", *lines)
    assert done.returncode == 0, done.stderr


def test_importing_loads_neither_library_and_leaves_pandas_as_it_is(native):
    """The names are lazy, and a hook waits for the libraries; later pandas' loader is its own, and the finder is gone."""
    done = run(
        "import sys, toolkit.dtypes",
        "assert not {'pandas', 'pyarrow', 'numpy'} & set(sys.modules)",
        "import pandas",
        "assert {f._library for f in sys.meta_path if type(f).__name__ == '_AfterImport'} == {'dask.dataframe.extensions'}",
        "assert 'exec_module' not in vars(pandas.__loader__)",
        "assert [one for one in sys.meta_path if 'toolkit' in type(one).__module__ and one._library == 'pandas'] == []",
        f"import pyarrow.parquet; path = {native!r}",
        READ,
        USE,
    )
    assert done.returncode == 0, done.stderr


def test_plain_pandas_without_this_package_reads_text_or_bytes(tmp_path):
    """A file of ours opens where the package is not installed: wide columns are text there, or bytes if native."""
    import pandas as pd

    from toolkit import dtypes

    expected = {"text": "5", "native": bytes(15) + b"\x05"}
    for wide in expected:
        dtypes.write_parquet(pd.DataFrame({"v": pd.array([5], dtype="u128")}), tmp_path / wide, wide=wide)
    read = f"found = {{wide: pandas.read_parquet(wide)['v'][0] for wide in {list(expected)}}}"
    done = run("import os, pandas", f"os.chdir({str(tmp_path)!r})", read, f"assert found == {expected!r}, found")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("imported", ["dask.dataframe, toolkit.dtypes", "toolkit.dtypes, dask.dataframe"])
def test_dask_computes_what_pandas_does(imported, tmp_path):
    """Sums, groups, extremes, arithmetic and files, whichever is imported first."""
    done = run(
        f"import {imported}, dask, pandas",
        "dask.config.set(scheduler='synchronous')",
        "frame = pandas.DataFrame({'k': list('aabb'), 'v': pandas.array([2**100, 1, None, 5], dtype='u128')})",
        "lazy = dask.dataframe.from_pandas(frame, npartitions=2)",
        "for work in (",
        "    lambda f: f['v'].sum(), lambda f: f['v'].max(), lambda f: f['v'] - 1, lambda f: f['v'].mean(),",
        "    lambda f: f.groupby('k')['v'].sum(), lambda f: f[f['v'] > 3], lambda f: f['v'].count(),",
        "    lambda f: f.groupby('k')['v'].agg(['sum', 'min', 'max']), lambda f: f.merge(f, on='k')[['k', 'v_x']],",
        "):",
        "    found, expected = work(lazy).compute(), work(frame)",
        "    plain = lambda value: sorted(map(str, value.values.tolist())) if hasattr(value, 'values') else value",
        "    assert plain(found) == plain(expected), (found, expected)",
        "import warnings; warnings.simplefilter('ignore')  # Dask uses what pandas deprecates",
        f"lazy.to_parquet({str(tmp_path)!r})",
        f"back = pandas.read_parquet({str(tmp_path)!r})['v'].astype('u128')",
        "assert back.tolist() == frame['v'].tolist()",
    )
    assert done.returncode == 0, done.stderr


def test_names_are_listed_and_unknown_ones_refused():
    """Every public name loads; a wrong one is an AttributeError."""
    from toolkit import dtypes

    assert set(dtypes.__all__) <= set(dir(dtypes))
    assert all(getattr(dtypes, name) is not None for name in dtypes.__all__)
    with pytest.raises(AttributeError, match="u512"):
        _ = dtypes.u512
