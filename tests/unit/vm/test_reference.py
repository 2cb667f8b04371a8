"""The page of the reference is true: its example runs, and its table is what the code says."""

from __future__ import annotations

import re
from pathlib import Path

from toolkit.vm import _features
from toolkit.vm._code import MAX_VERSION, MIN_VERSION, OPCODES
from toolkit.vm._natives import NATIVES
from toolkit.vm._schedule import MAX_GAS_VERSION, MIN_GAS_VERSION

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "vm.md"


def supported_table() -> str:
    """Return what the machine implements: versions, feature flags and natives as Markdown."""
    flags = {value for name, value in vars(_features).items() if name.isupper() and type(value) is int}
    flags |= set(_features.FORMATS.values())
    by_module: dict[str, list[str]] = {}
    for name in sorted(NATIVES):
        module, _, function = name.rpartition("::")
        by_module.setdefault(module, []).append(function)
    rows = [
        ("bytecode", f"versions {MIN_VERSION} to {MAX_VERSION}, {len(OPCODES)} instructions"),
        ("gas feature versions", f"{MIN_GAS_VERSION} to {MAX_GAS_VERSION}"),
        ("feature flags with an effect here", ", ".join(map(str, sorted(flags)))),
        *((f"natives of `{module}`", ", ".join(f"`{one}`" for one in names)) for module, names in by_module.items()),
    ]
    return "\n".join(["| what | supported |", "|---|---|", *(f"| {what} | {which} |" for what, which in rows)])


def test_the_table_of_the_page_is_made_from_the_code():
    assert supported_table() in PAGE.read_text("utf-8"), f"docs/reference/vm.md must contain:\n{supported_table()}"


def test_the_example_of_the_page_runs(capsys):
    (code, output) = re.findall(r"```(?:python|text)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    exec(code, {})  # noqa: S102 - the page's own code
    assert capsys.readouterr().out == output
