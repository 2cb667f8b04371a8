"""What the machine implements, as a table for the documentation: made from the code, so that it is true."""

from __future__ import annotations

from toolkit.vm import _schedule
from toolkit.vm._instructions import MAX_VERSION, MIN_VERSION, OPCODES
from toolkit.vm._natives import NATIVES


def supported_table() -> str:
    """Return versions, feature flags and natives as Markdown."""
    flags: set[int] = set(_schedule.FORMATS.values())
    for name, value in vars(_schedule).items():
        if name.isupper() and not name.endswith("_VERSION"):
            flags |= {one for one in (value if isinstance(value, tuple) else (value,)) if type(one) is int}
    by_module: dict[str, list[str]] = {}
    for name in sorted(NATIVES):
        module, _, function = name.rpartition("::")
        by_module.setdefault(module, []).append(function)
    rows = [
        ("bytecode", f"versions {MIN_VERSION} to {MAX_VERSION}, {len(OPCODES)} instructions"),
        ("gas feature versions", f"{_schedule.MIN_GAS_VERSION} to {_schedule.MAX_GAS_VERSION}"),
        ("feature flags with an effect here", ", ".join(map(str, sorted(flags)))),
        *((f"natives of `{module}`", ", ".join(f"`{one}`" for one in names)) for module, names in by_module.items()),
    ]
    return "\n".join(["| what | supported |", "|---|---|", *(f"| {what} | {which} |" for what, which in rows)])
