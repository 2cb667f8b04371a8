"""What the machine implements, as a table for the documentation: made from the code, so that it is true."""

from __future__ import annotations

from toolkit.vm import _features
from toolkit.vm._code import MAX_VERSION, MIN_VERSION, OPCODES
from toolkit.vm._natives import NATIVES
from toolkit.vm._schedule import MAX_GAS_VERSION, MIN_GAS_VERSION


def supported_table() -> str:
    """Return versions, feature flags and natives as Markdown."""
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
