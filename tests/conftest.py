"""Shared fixtures, none of which is automatic, and the settings of generated examples."""

from __future__ import annotations

import gc
import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from markupsafe import Markup

# An example may take as long as it takes: a busy machine is no mistake of the code.
# The suite says what a change breaks, so its 25 examples of a test are the same in each run (until the test is edited): a
# commit does not fail for an example that another one would have failed for, too. `--hypothesis-profile=thorough` draws
# new ones, to find what nobody has met yet.
settings.register_profile(
    "suite", max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", settings.get_profile("suite"), max_examples=1_000, derandomize=False)
settings.load_profile("suite")

# A shell starts background jobs with interrupts ignored, and tests of interrupts would then wait forever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Garbage is collected between tests. In the middle of a test it could be 990 levels deep in a hostile answer, where the
# finalizers of what earlier tests left fail for want of stack, and that test with them.
gc.disable()
_GARBAGE = 300_000  # new objects

SHARED_DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"


def pytest_collection_finish() -> None:
    """Spare the garbage collector the thousands of tests that were collected."""
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Close the figures of a test, and collect the garbage of the tests so far once there is enough of it.

    More than 20 open figures are a warning, which fails the test that opens one more. Objects that outlived a collection,
    such as the ledgers of fixtures, are looked at only now and then, as Python's own collector does: a second for each
    collection.
    """
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")
    young, _, collections = gc.get_count()
    if young > _GARBAGE:
        gc.collect(2 if collections >= gc.get_threshold()[2] else 1)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of recorded answers beside the repository, or skip with the reason."""
    if not SHARED_DATA.is_dir():
        pytest.skip("recorded answers are not beside this checkout (../shared/data)")
    return SHARED_DATA


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave figures out of a report where a test is not about them: drawing takes a second a page."""
    monkeypatch.setattr("toolkit.reports._to_html._svg", lambda *_, **__: Markup("<svg></svg>"))


@pytest.fixture(scope="session")
def expected_cells() -> Callable[[Any, list[Any]], list[Any]]:
    """Return what a column of a layout shows for Python values, found value by value and without Arrow."""
    from toolkit.move import EnumOf, FunctionValue, Int, OptionOf, StructOf, UInt, Untyped, VectorOf

    def cell(layout, value, nested=True):  # noqa: PLR0911, FBT002  # one case per kind of layout
        if value is None:
            return None
        match layout:
            case UInt(bits) | Int(bits):
                return str(value) if nested and bits > 64 else value
            case VectorOf(element):
                return [cell(element, item) for item in value]
            case OptionOf(OptionOf() as element):
                return {"vec": [cell(element, item) for item in value["vec"]]}
            case OptionOf(element):
                return cell(element, value, nested)
            case StructOf(_, fields):
                return {name: cell(inner, value[name]) for name, inner in fields}
            case EnumOf(_, variants):
                kinds = {}
                for _, fields in variants:
                    for name, inner in fields:
                        kinds.setdefault(name, set()).add(inner)
                shown = {"__variant__": value["__variant__"]}
                for variant, fields in variants:
                    for name, inner in fields:
                        key = name if len(kinds[name]) == 1 else f"{variant}.{name}"
                        here = cell(inner, value[name]) if variant == value["__variant__"] else None
                        shown[key] = here if here is not None else shown.get(key)
                return shown
            case FunctionValue() | Untyped():
                return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
            case _:
                return value

    return lambda layout, values: [cell(layout, value, nested=False) for value in values]
