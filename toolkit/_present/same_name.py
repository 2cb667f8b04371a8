"""A check for another distribution that installs a package named `toolkit` and overwrites files of this one."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def same_name_problem() -> str | None:
    """Return a message that says what to do if a distribution named `toolkit` is also installed, or None."""
    # A distribution of this name exists on PyPI. Looking through the files of every installed distribution would find
    # others too, and would take longer than `connect` itself.
    other = next(_PACKAGE.parent.glob("toolkit-*.dist-info"), None)
    if other is None:
        return None
    name = other.name.removesuffix(".dist-info").replace("-", " ")
    return (
        f"the distribution {name} is installed too, and both install a package named toolkit in {_PACKAGE}, where "
        "files of one replace those of the other. Use an environment without it: pip uninstall toolkit, then "
        "pip install --force-reinstall --no-deps ledger-toolkit"
    )
