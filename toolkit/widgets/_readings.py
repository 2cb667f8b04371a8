"""Reads of state at the head, at a version or over a version plan: their fields, pages, figure and shell commands.

What `ViewBuilder` and `TableItemBuilder` share. Nothing here asks a node, except `ReadForm.read`.
"""

from __future__ import annotations

import base64
import io
import json
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pandas as pd
import traitlets
from matplotlib.figure import Figure
from msgspec.structs import replace
from traitlets import Bool

from toolkit._present.tables import json_value
from toolkit._present.text import ELLIPSIS, number, plural, visible
from toolkit.client._fetch import block_times, resolved_plan
from toolkit.client._versions import FindSteps, VersionPlan, as_version, resolve_versions
from toolkit.client._warnings import collected_warnings
from toolkit.errors import FailedReadsWarning, InputError, NodeError, ToolkitError
from toolkit.frames._display import show
from toolkit.plots import _style as style
from toolkit.plots._labels import figure_text
from toolkit.widgets._fields import Findings, validated
from toolkit.widgets._form import Form
from toolkit.widgets._functions import FunctionDraft, ValuesDraft
from toolkit.widgets._messages import Part, Switch, Text, select
from toolkit.widgets._results import Html, code, folded, has_model_gas, model_note, paragraph, safe, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from toolkit.client._node import Node
    from toolkit.client._versions import ResolvedPlan, Versions
    from toolkit.widgets._messages import Message


READ_ACTIONS = (("read", "Read"), ("check", "Check"))
_AT = {"head": "at the head", "version": "at one version", "plan": "over many versions"}
_LIST = re.compile(r"\s*\[?\s*-?\d{1,20}(?:\s*,\s*-?\d{1,20})+\s*,?\s*\]?\s*")
_ONE = "expected a ledger version, such as 4000, or -1 for the head"
_MANY = "expected versions, such as 0:-1/50, 100:200, -1000:, 2026-05-01..2026-06-01/20, or 100, 200, 300"
_MAX_TEXT = 600  # characters of a value that is not folded: some ten lines
_MAX_LARGE = 80  # characters of a value in large type: two lines
_ANY_HEAD = 2**64  # for checks of plans whose length does not depend on the head
_ROWS, _MAX_ROWS = 10, 200  # of a frame: shown at once, and when unfolded
_MAX_PANELS = 3  # of a figure that fits beside the form
_MAX_FAILURES = 20  # kinds of failures that are listed


# which versions ------------------------------------------------------------------------------------------------------


def version_fields(*, times: bool) -> list[tuple[str | int, Part]]:
    """Return the fields that say at which versions state is read; `times` adds the option of that name."""
    many = ("at", ("plan",))
    hint = _MANY.removeprefix("expected ")
    fields: list[tuple[str | int, Part]] = [
        ("at", select("Read", _AT)),
        ("version", Text("Version", mono=True, placeholder="4000", hint="-1 is the head", when=("at", ("version",)))),
        ("plan", Text("Versions", mono=True, placeholder="0:-1/50", hint=hint, when=many)),
        ("flatten", Switch("One column per field of structs", when=many)),
        ("times", Switch("Times of the versions, one request per block", when=many)),
    ]
    return fields if times else fields[:-1]


class ReadDraft(ValuesDraft, frozen=True):
    """What is typed about a read; ``at`` says which of the two texts of versions is meant, ``head`` none of them."""

    at: Literal["head", "version", "plan"] = "head"
    version: str = ""
    plan: str = ""
    flatten: bool = False
    times: bool = False


class ViewDraft(FunctionDraft, frozen=True):
    """What is typed about a view: a function, and the fields of `ReadDraft`."""

    at: Literal["head", "version", "plan"] = "head"
    version: str = ""
    plan: str = ""
    flatten: bool = False
    times: bool = False


def read_versions(draft: ReadDraft | ViewDraft, found: Findings) -> Versions | None:
    """Return the versions of a draft: None for the head, an int for one version, or a version plan.

    Parameters
    ----------
    draft : ReadDraft or ViewDraft
    found : Findings
        Receives what does not fit or is missing, with the sentence of the plan's parser, and what the plan means.
    """
    if draft.at == "head":
        return None
    read, typed, expected = (
        (_one_version, draft.version, _ONE) if draft.at == "version" else (parse_plan, draft.plan, _MANY)
    )
    if not typed.strip():
        found.missing[draft.at] = expected
        return None
    versions: Versions | None = validated(partial(read, typed.strip()), found, draft.at)
    if versions is not None and draft.at == "plan":
        found.notes["plan"] = f"= {plan_words(versions)}"
    return versions


def _one_version(typed: str) -> int:
    plain = typed.replace("_", "").replace(",", "")
    if not re.fullmatch(r"-?\d{1,20}", plain):
        raise InputError(f"{_ONE}, got {visible(typed, 40)!r}")
    return as_version(int(plain), least=-(2**64))


def parse_plan(typed: str) -> Versions:
    """Return the plan of a text: versions separated by commas as a list, anything else as it is."""
    if _LIST.fullmatch(typed):
        return [as_version(int(one), least=-(2**64)) for one in re.findall(r"-?\d+", typed)]
    plan = VersionPlan.parse(typed)
    ends = [one for one in (plan.first, plan.last) if isinstance(one, int)]
    if len({one < 0 for one in ends}) == 1 and len(ends) == 2:  # noqa: PLR2004 - its length does not depend on the head
        resolve_versions(plan, head=_ANY_HEAD)
    return typed


def checked_versions(versions: Any) -> Versions | None:
    """Return versions that were set in Python: None, a text, an int, a range, or a list of ints.

    Raises
    ------
    InputError
        If it is something else, has no version, or has one that is not a whole number.
    """
    if versions is None or isinstance(versions, str):
        return versions
    if isinstance(versions, FindSteps):
        raise InputError("versions: FindSteps searches for steps in gas: use GasExplorer, or toolkit.fetch_views")
    try:
        if isinstance(versions, range) and versions:
            as_version(versions[0], least=-(2**64))
            as_version(versions[-1], least=-(2**64))
            return versions
        if not hasattr(versions, "__iter__"):
            return as_version(versions, least=-(2**64))
        listed = [] if isinstance(versions, bytes | dict) else [as_version(one, least=-(2**64)) for one in versions]
    except InputError as error:
        raise InputError(f"versions: {str(error).partition('; ')[0]}") from None
    if listed:
        return listed
    raise InputError(
        "versions: expected None for the head, a ledger version, a list of them, or a plan such as '0:-1/50', "
        f"got {versions!r:.80}"
    )


def write_versions(versions: Any) -> dict[str, Any]:
    """Return the draft of versions as the fetch functions take them; None is the head, an int one version."""
    if versions is None:
        return {"at": "head"}
    if isinstance(versions, str):
        return {"at": "plan", "plan": versions}
    if hasattr(versions, "__index__"):
        return {"at": "version", "version": str(int(versions))}
    if isinstance(versions, range) and len(versions) > 1 and versions.step > 0 and versions[0] >= 0:
        return {"at": "plan", "plan": f"{versions[0]}:{versions[-1]}:{versions.step}"}
    listed = ", ".join(str(one) for one in versions)
    return {"at": "plan", "plan": listed if "," in listed else f"{listed}:{listed}"}


def plan_words(plan: Versions) -> str:
    """Return in words which versions a plan has.

    Examples
    --------
    >>> plan_words("0:-1/50"), plan_words("100:200:10"), plan_words([5, 7])
    ('50 evenly spaced versions from 0 to the head', 'every 10th version from 100 to 200', '2 versions')
    """
    if not isinstance(plan, str):
        return plural(len([plan] if isinstance(plan, int) else plan), "version")
    parsed = VersionPlan.parse(plan)
    first, last = _bound(parsed.first), _bound(parsed.last)
    if first == last:
        return first if first == "the head" else f"version {first}"
    if parsed.count is not None:
        return f"{parsed.count:,} evenly spaced versions from {first} to {last}"
    ending = {1: "st", 2: "nd", 3: "rd"}.get(parsed.step % 10 if parsed.step % 100 not in {11, 12, 13} else 0, "th")
    every = "every version" if parsed.step == 1 else f"every {parsed.step:,}{ending} version"
    return f"{every} from {first} to {last}"


def _bound(bound: int | datetime) -> str:
    if isinstance(bound, datetime):
        return f"{bound:%Y-%m-%d %H:%M} UTC" if (bound.hour, bound.minute) != (0, 0) else f"{bound:%Y-%m-%d}"
    return str(bound) if bound >= 0 else "the head" if bound == -1 else f"the head - {-bound - 1}"


# values --------------------------------------------------------------------------------------------------------------


def value_html(value: Any) -> Html:
    """Return a decoded value: numbers grouped, bytes as hex, containers as JSON."""
    if value is None:
        return Html('<span class="ltk-hint">none</span>')
    if isinstance(value, bool):
        return Html(f"<code>{str(value).lower()}</code>")
    if isinstance(value, int):
        return Html(f"<code>{value:,}</code>")
    if isinstance(value, bytes):
        return _long(f"0x{value.hex()}")
    if isinstance(value, str):
        return _long(value or '""')
    return code(json.dumps(json_value(value), indent=1, ensure_ascii=False), "The value as JSON")


def _long(content: str) -> Html:
    if len(content) <= _MAX_TEXT:
        return Html(f"<code>{safe(content)}</code>")
    return folded(Html(f"<code>{safe(content[: _MAX_TEXT // 10])}{ELLIPSIS}</code>"), code(content, "The value"))


def answer_html(value: Any) -> Html:
    """Return the one value of an answer: what is short is large."""
    shown = value_html(value)
    brief = len(str(value)) <= _MAX_LARGE and not isinstance(value, dict | list)
    return Html(f'<p class="ltk-value">{shown}</p>') if brief else shown


# pages of a frame ----------------------------------------------------------------------------------------------------


def frame_pages(frame: pd.DataFrame, *, what: str, name: str, notes: Sequence[str], model: bool) -> dict[str, Html]:
    """Return the pages of a frame of one call, or of one item, over versions: figure, rows and failures.

    Parameters
    ----------
    frame : DataFrame
        As of `fetch_views` or `fetch_table_items`.
    what : str
        What was read, for the figure.
    name : str
        How the reader reaches the frame.
    notes : sequence of str
        What was clipped, and warnings.
    model : bool
        Whether gas is that of the embedded node's model.
    """
    words = frame_words(frame)
    lines = "".join(f"<li>{safe(line)}</li>" for line in [*words, *notes])
    figure = history_figure(frame, what)
    drawn = "" if figure is None else figure_html(figure, "; ".join(words))
    gas = model_note() if model and drawn and "gas_used" in frame else ""
    page = Html(f'<div class="ltk-page">{drawn}<ul>{lines}</ul>{gas}{_as_frame(name)}</div>')
    found = {"Figure" if drawn else "Outcome": page}
    found[f"Rows ({len(frame):,})"] = Html(f'<div class="ltk-page">{rows_html(frame)}{_as_frame(name)}</div>')
    failed = failures(frame)
    if len(failed):
        found[f"Failed ({len(failed):,})"] = Html(f'<div class="ltk-page">{_failures_html(failed)}</div>')
    return found


def _as_frame(name: str) -> Html:
    return paragraph(Html(f"The frame: <code>{safe(name)}</code>"))


def rows_html(frame: pd.DataFrame) -> Html:
    """Return the first and last rows of a frame, and more of them folded."""
    first = _rows_table(frame, _ROWS)
    if len(frame) <= _ROWS:
        return first
    more = f"All {len(frame):,} rows" if len(frame) <= _MAX_ROWS else f"{_MAX_ROWS} of {len(frame):,} rows"
    return Html(f"{first}{folded(more, _rows_table(frame, _MAX_ROWS))}")


def _rows_table(frame: pd.DataFrame, rows: int) -> Html:
    shown = show(frame, rows=rows)
    columns = {name: "number" if place in shown.numbers else "" for place, name in enumerate(shown.columns)}
    return Html(f"{table(columns, shown.rows, f'Rows of the frame, at most {rows}')}{paragraph(shown.note)}")


def failures(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of reads that failed; an item that does not exist is an answer."""
    failed = frame[frame["error_code"].notna()]
    return failed[failed["presence"].isna() | (failed["presence"] == "pruned")] if "presence" in frame else failed


def _failures_html(failed: pd.DataFrame) -> Html:
    rows = []
    kinds = failed.groupby(["error_code", "error_message"], sort=False, dropna=False)["ledger_version"]
    for (kind, message), versions in kinds:
        first, last = versions.min(), versions.max()
        at = str(first) if first == last else f"{first} to {last}"
        rows.append((number(len(versions)), at, Html(f"<code>{safe(kind)}</code>"), message))
    note = "" if len(rows) <= _MAX_FAILURES else f"The {_MAX_FAILURES} first of {len(rows):,} kinds. "
    columns = {"Reads": "number", "Versions": "brief", "Error": "brief", "Message": ""}
    hint = paragraph(f"{note}Reads that failed are rows of the frame, with null values and their error_code.")
    return Html(f"{table(columns, rows[:_MAX_FAILURES], 'Reads that failed')}{hint}")


def frame_words(frame: pd.DataFrame) -> list[str]:
    """Return in sentences what a frame of one call or item over versions has."""
    words = []
    versions = frame["ledger_version"]
    failed = failures(frame)
    span = f"from version {versions.min()} to {versions.max()}" if len(frame) > 1 else f"version {versions.min()}"
    words.append(f"{plural(len(frame), 'read')}, {span}" + (f"; {len(failed):,} failed" if len(failed) else ""))
    if "presence" in frame:
        kinds = frame["presence"].value_counts()
        absent = {kind: int(count) for kind, count in kinds.items() if kind != "present"}
        if absent:
            words.append("; ".join(f"{kind} at {plural(count, 'version')}" for kind, count in absent.items()))
    columns = numeric_columns(frame)
    for column in [*columns[:_MAX_PANELS], *(["gas_used"] if "gas_used" in frame else [])]:
        words += _column_words(frame, column)
    if not columns and frame["error_code"].isna().any():
        named = [str(one) for one in frame.columns if str(one).partition(".")[0].partition("_")[0] == "value"]
        words.append(f"{', '.join(named) or 'the value'} is not a number: see the rows")
    elif len(columns) > _MAX_PANELS:
        words.append(f"the figure has {_MAX_PANELS} of {len(columns)} columns of numbers")
    return words


def _column_words(frame: pd.DataFrame, column: str) -> list[str]:
    known = frame[frame[column].notna()].sort_values("ledger_version")
    if known.empty:
        return []
    name, unit = ("gas", " gas units") if column == "gas_used" else (column, "")
    values = [int(one) for one in known[column]]
    if len(set(values)) == 1:
        return [f"{name}: {values[0]:,}{unit} at all of them"]
    first, last = known["ledger_version"].iloc[0], known["ledger_version"].iloc[-1]
    ends = f"{values[0]:,} at version {first}, {values[-1]:,}{unit} at version {last}"
    return [f"{name}: {ends}; {len(set(values)):,} different values from {min(values):,} to {max(values):,}"]


def numeric_columns(frame: pd.DataFrame) -> list[str]:
    """Return the columns of values that are numbers."""
    return [
        name
        for name in frame.columns
        if str(name).startswith("value")
        and pd.api.types.is_numeric_dtype(frame[name].dtype)
        and not pd.api.types.is_bool_dtype(frame[name].dtype)
        and frame[name].notna().any()
    ]


# figure --------------------------------------------------------------------------------------------------------------


def figure_html(figure: Figure, words: str) -> Html:
    """Return a figure as an image without a background, which the style sheet inverts on dark pages."""
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=150, transparent=True)
    encoded = base64.b64encode(data.getvalue()).decode()
    width = round(100 * figure.get_figwidth())  # of sites that remove style sheets
    return Html(f'<img class="ltk-plot" width="{width}" alt="{safe(words)}" src="data:image/png;base64,{encoded}">')


def history_figure(frame: pd.DataFrame, what: str) -> Figure | None:
    """Return a figure of the numbers of a frame over ledger versions, one panel per column, the last one of gas.

    None without any number. Global settings of matplotlib are not changed, since it may run in a thread.
    """
    columns = numeric_columns(frame)[:_MAX_PANELS]
    gas = ["gas_used"] if "gas_used" in frame and frame["gas_used"].notna().any() else []
    if not [*columns, *gas]:
        return None
    figure = Figure(figsize=(4.8, 0.6 + 1.45 * len([*columns, *gas])), layout="constrained")
    axes = figure.subplots(len([*columns, *gas]), sharex=True, squeeze=False)[:, 0]
    for ax, column in zip(axes, [*columns, *gas], strict=True):
        _draw(ax, frame, column, colour=style.VERMILLION if column == "gas_used" else style.BLUE)
        name = "Gas used (gas units)" if column == "gas_used" else what if columns == ["value"] else column
        ax.set_title(figure_text(name, 60), loc="left", fontsize=9, fontweight="bold", color=style.INK)
    axes[-1].set_xlabel("ledger version", fontsize=9, color=style.INK)
    axes[-1].xaxis.set_major_formatter(style.VERSION_NUMBERS)
    axes[-1].locator_params(axis="x", nbins=6, integer=True)
    return figure


def _draw(ax: Axes, frame: pd.DataFrame, column: str, *, colour: str) -> None:
    """Draw one column: a dot per read, with a thin line that does not cross reads without a value."""
    style.dress(ax)
    ordered = frame.sort_values("ledger_version")
    x = [float(one) for one in ordered["ledger_version"]]
    y = [float("nan") if pd.isna(one) else float(int(one)) for one in ordered[column]]
    few = len(x) <= 80  # noqa: PLR2004 - more dots would touch
    ax.plot(x, y, color=colour, linewidth=1.2, marker="o" if few else "", markersize=3, gid=column)
    absent = [at for at, value in zip(x, y, strict=True) if value != value]  # noqa: PLR0124 - not a number
    if absent:
        foot = ax.get_xaxis_transform()
        ax.plot(absent, [0.03] * len(absent), "|", transform=foot, color=style.MUTED, markersize=6, gid="absent")
    ax.yaxis.set_major_formatter(style.GAS_NUMBERS)
    ax.locator_params(axis="y", nbins=4, integer=True)
    style.grid(ax, "y")


# the form ------------------------------------------------------------------------------------------------------------


class Wanted(NamedTuple):
    """What a form asks for; two that are equal have the same answer.

    Attributes
    ----------
    request : ViewFunction or TableItemRequest
    versions : version plan, int or None
        As `read_versions` returns them.
    options : tuple
        What else a builder asks for.
    """

    request: Any
    versions: Versions | None
    options: tuple[Any, ...] = ()

    @property
    def single(self) -> bool:
        """Whether one version is read."""
        return self.versions is None or isinstance(self.versions, int)


@dataclass(frozen=True)
class Reading:
    """The answer to a read.

    Attributes
    ----------
    wanted : Wanted
    result : object
        A `ViewResult` or `TableItem`, or the frame over versions.
    time : datetime or None
        Time of the version that was read.
    notes : tuple of str
        What was clipped, and warnings.
    """

    wanted: Wanted
    result: Any
    time: datetime | None = None
    notes: tuple[str, ...] = ()


class ReadForm(Form):
    """A form that reads state at the head, at a version or over a plan. A builder says how one and many are read."""

    _pictured = frozenset({"Value", "Item", "Figure", "Outcome"})

    versions: Any = traitlets.Any(allow_none=True)
    flatten = Bool(default_value=False)
    result: Any = traitlets.Any(allow_none=True, read_only=True)

    _versions: Versions | None = None  # of the last good draft
    _reading: Reading | None = None

    # what a builder says ---------------------------------------------------------------------------------

    def _wanted(self) -> Wanted:
        """Return what the form asks for."""
        return Wanted(self.request, self._versions, (self.flatten,))

    def _read_one(self, node: Node, wanted: Wanted, version: int | None) -> Any:
        """Return the result at a version; None is the head. Touches no trait: it may run in a thread."""
        raise NotImplementedError

    def _read_many(self, node: Node, wanted: Wanted, versions: Sequence[int]) -> pd.DataFrame:
        """Return the frame over versions. Touches no trait."""
        raise NotImplementedError

    def _one_pages(self, reading: Reading, name: str) -> dict[str, str]:
        """Return the pages of a single result."""
        raise NotImplementedError

    def _read_words(self, reading: Reading) -> str:
        """Return the outcome of a single read in a sentence."""
        raise NotImplementedError

    def _cause_of(self, error: ToolkitError) -> str:
        """Return the path of the field that caused an error; ``node`` if none did."""
        raise NotImplementedError

    # reading ---------------------------------------------------------------------------------------------

    def read(self) -> None:
        """Check the entries, read, and show the answer; sets `errors` and `result`."""
        with self._busy_while("Reading"):
            wanted = self._wanted() if self._check() else None
            if wanted is None or wanted.request is None:
                return
            self._await_result()
            path = "plan"
            try:
                plan = None if wanted.single else resolved_plan(self._asked, wanted.versions)[0]
                path = "function"
                reading = self._answered(self._asked, wanted, plan)
            except ToolkitError as error:
                with self._state():
                    self._fail(error, path)
                return
            with self._state():
                self._reading = reading
                self._show_result(reading.result)
                self._after(reading)

    def _answered(self, node: Node, wanted: Wanted, plan: ResolvedPlan | None) -> Reading:
        """Read at the versions of a plan, or at the one that is wanted. Touches no trait."""
        if plan is None:
            at = wanted.versions
            result = self._read_one(node, wanted, node.at(at).ledger_version if isinstance(at, int) else None)
            return Reading(wanted, result, _time_of(node, result))
        with collected_warnings() as said:
            frame = self._read_many(node, wanted, plan.versions)
        notes = dict.fromkeys(text for category, text in said if not issubclass(category, FailedReadsWarning))
        return Reading(wanted, frame, None, (*plan.notes, *notes))

    def _after(self, reading: Reading) -> None:
        """Say what the answer is."""
        if reading.wanted.single:
            self._say("good", self._read_words(reading))
            return
        failed = len(failures(reading.result))
        [words, *_] = frame_words(reading.result)
        self._say("bad" if failed == len(reading.result) else "good", words)

    def _fail(self, error: ToolkitError, path: str) -> None:
        """Show a failure at the field that caused it; `path` is the one of an error in what was entered."""
        words = str(error)
        if isinstance(error, NodeError) and error.error_code in {"version_not_found", "version_pruned"}:
            path, words = self._draft.at, _unreadable(error)
            path = "node" if path == "head" else path
        elif path != "plan" or not isinstance(error, InputError):
            path = self._cause_of(error)
            if isinstance(error, NodeError) and path != "node":
                words = error.message or words
        self._blame(path, words)
        if path != "node":
            self._say("bad", f"Not answered: {words}")

    # what the form is about ------------------------------------------------------------------------------

    @traitlets.validate("versions")
    def _check_versions(self, proposal: Any) -> Versions | None:
        return checked_versions(proposal["value"])

    def _read_at(self, draft: ReadDraft | ViewDraft, found: Findings) -> None:
        """Read the versions of a draft."""
        mine = Findings()
        versions = read_versions(draft, mine)
        if mine.good:
            self._versions = versions
        found.add(mine)

    def _entered(self, draft: Any, name: str, value: Any) -> Any:
        if name == "versions":
            return replace(draft, **write_versions(value))
        return super()._entered(draft, name, value)

    def _trait_of(self, name: str, draft: Any) -> Any:
        """Return the value of a trait by the draft; `versions` that do not fit stay text."""
        if name != "versions":
            return super()._trait_of(name, draft)
        found = Findings()
        versions = read_versions(draft, found)
        return versions if found.good else getattr(draft, draft.at)

    def _is_stale(self, result: Any) -> bool:
        del result
        return self._reading is None or self._reading.wanted != self._wanted()

    def _result_pages(self, result: Any, name: str, **about: Any) -> dict[str, str]:
        del result, about
        reading = self._reading
        if reading is None:
            return {}
        if reading.wanted.single:
            return self._one_pages(reading, name)
        what, model = self._subject() or "value", has_model_gas(self.node)
        return dict(frame_pages(reading.result, what=what, name=name, notes=reading.notes, model=model))

    def _handed_words(self, name: str) -> str:
        if isinstance(self.result, pd.DataFrame):
            return f"The notebook has it as {name}: a frame of {plural(len(self.result), 'row')}."
        return f"The notebook has it as {name}: {name}.value is the value, {name}.to_frame() a frame."

    def _do_read(self, _message: Message) -> None:
        self._start("read", self.read)


def _unreadable(error: NodeError) -> str:
    """Return why a version cannot be read, with the versions that the node has."""
    ledger = error.ledger
    if ledger is None:
        return str(error)
    why = "does not exist yet" if error.error_code == "version_not_found" else "is pruned"
    return f"this version {why}: the node has {ledger.oldest_version} to {ledger.version}"


def _time_of(node: Node, result: Any) -> datetime | None:
    """Return the time of the version that was read, None if it is not known, as without an item."""
    if isinstance(result, pd.DataFrame):
        return None
    version, ledger = getattr(result, "ledger_version", None), getattr(result, "ledger", None)
    time: datetime | None = None
    if version is not None and ledger is not None and ledger.version == version:
        time = ledger.timestamp
    elif version is not None:
        with suppress(ToolkitError):
            time = block_times(node, [version], show=False).get(version)
    return time


def version_pairs(reading: Reading) -> list[tuple[str, Any]]:
    """Return what a page says about the version that was read."""
    result = reading.result
    head = None if result.ledger is None else result.ledger.version
    at = f"{result.ledger_version}" + (" (the head)" if head == result.ledger_version else "")
    found: list[tuple[str, Any]] = [("Ledger version", at)]
    if reading.time is not None:
        found.append(("Its time", f"{reading.time:%Y-%m-%d %H:%M:%S} UTC"))
    if head is not None and head != result.ledger_version:
        found.append(("Head of the node", f"{head}"))
    return found
