"""Result pages of the forms: simulations, reads at one or many versions, and runs of studies."""

from __future__ import annotations

import json
from decimal import Decimal
from html import escape
from itertools import pairwise
from math import nan
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pandas as pd

from toolkit._present import text as forms_of
from toolkit._present.tables import json_value
from toolkit._present.text import ELLIPSIS, counted, number, percent, plural, short_addresses, visible
from toolkit.frames._calls import Presence
from toolkit.frames._display import show
from toolkit.gas import _sentences as sentences
from toolkit.gas._observations import Failure, ReadAt, Source, failures_of
from toolkit.gas._series import is_model, series_of
from toolkit.gas._steps import StepGroup, step_groups
from toolkit.move import encode_json, parse_type_tag
from toolkit.move._type_tags import wire_type
from toolkit.widgets import _html as html
from toolkit.widgets._changes import (
    ADDRESS,
    Known,
    balance_rows,
    changes_page,
    events_page,
    time_words,
    type_html,
    value_tree,
)
from toolkit.widgets._html import MAX_ROWS, Html
from toolkit.widgets._messages import Page
from toolkit.wire import EntryFunction
from toolkit.wire._aborts import Abort
from toolkit.wire._gas import APT_METADATA

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from toolkit.client._calls import TableItem, ViewResult
    from toolkit.client._simulation import Simulation
    from toolkit.gas._study import Run


WOULD_FAIL = "would fail"  # the outcome in a comparison
_MAX_TEXT = 600  # characters of a value that is not folded: some ten lines
_MAX_LARGE = 80  # characters of a value in large type: two lines
_MAX_PANELS = 3  # of a figure that fits beside the form
_MAX_FAILURES = 20  # kinds of failures that are listed
_SIZE = (4.8, 3.6)  # of the figure of a run, in inches
_TALL = 4.6  # if kinds of committed transactions are in its legend
_MAX_OPEN_STEPS = 3  # whose causes are shown at once; of more, only that of the largest
_ENDS = (("Before", "After"), ("Total before", "Total after"))
_MAX_LINES = 12  # calls in one pair of axes of the figure, see `gas_by_version`
_COMMITTED = (
    "Committed transactions are compared with others of their kind: with the same outcome, and as many new slots, the "
    "items of state that they create. The totals before and after are mean gas of the nearest transactions. Each part "
    "that changed (execution, io, storage) is one step; its change is a range that includes rounding."
)

# simulations ---------------------------------------------------------------------------------------------------------


def simulation_pages(
    simulation: Simulation,
    known: Known,
    *,
    model: bool,
    failure: str = "",
    diff: pd.DataFrame | None = None,
    links: bool = False,
    before: Sequence[tuple[Simulation, str]] = (),
    reason: str = "",
) -> list[Page]:
    """Return the pages of a simulation, in the order of the tabs.

    Parameters
    ----------
    simulation : Simulation
    known : Known
        Known assets, account names and layouts.
    model : bool
        Whether gas comes from the embedded node's model.
    failure : str
        HTML that explains why the transaction would fail; empty if it would succeed.
    diff : DataFrame, optional
        The result of `Simulation.diff`, which adds the state before each change.
    links : bool, default False
        Whether to add buttons that open table items in another form.
    before : sequence of tuple
        What ran on the same fork before, each with the reason why it would fail.
    reason : str
        Why the transaction would fail, in one line.
    """
    return [
        Page("Outcome", _outcome_page(simulation, known, failure)),
        *([_sequence_page([*before, (simulation, reason)], known.names)] if before else []),
        Page("Gas", _gas_page(simulation, known, model=model)),
        Page("Changes", changes_page(simulation, known, diff, links=links), len(simulation.changes)),
        Page("Events", events_page(simulation, known), len(simulation.events)),
    ]


def _sequence_page(runs: Sequence[tuple[Simulation, str]], names: Mapping[str, str]) -> Page:
    """Return the page with the outcomes of calls that ran one after another."""
    rows: list[tuple[Any, ...]] = []
    for place, (one, reason) in enumerate(runs):
        word, kind = ("Success", "good") if one.success else (reason, "bad")
        badge = Html(f'<span class="ltk-{kind}">{html.safe(word)}</span>')
        call = html.breakable(html.called_words(one.request, names))
        rows.append((place + 1, call, badge, html.number(one.gas_used)))
    total = html.number(sum(one.gas_used for one, _ in runs))
    rows.append(("", Html("<b>All calls</b>"), "", Html(f"<b>{total}</b>")))
    columns = {"#": "number", "Call": "wide", "Outcome": "", "Gas used": "number"}
    failed = sum(not one.success for one, _ in runs)
    listed = html.page(html.table(columns, rows, "Calls on one fork, in order"))
    return Page("Sequence", listed, len(runs), failed=failed, kept=True)


def _profile_table(profile: Any) -> Html:
    """Return the gas that each function is charged itself, without the functions that it calls."""
    frame = profile.to_frame()
    own = frame.groupby("function", sort=False)["own_gas" if "own_gas" in frame else "internal_gas"].sum()
    total = max(int(own.sum()), 1)
    largest = own[own > 0].sort_values(ascending=False, kind="stable")
    rows = [
        (type_html(name), number(int(gas)), percent(100 * gas / total, ".1f"))
        for name, gas in largest.head(MAX_ROWS).items()
    ]
    columns = {"Function": "", "Internal gas": "number", "Share": "number"}
    rest = f"The {MAX_ROWS} largest of {plural(len(largest), 'function')}. " if len(largest) > MAX_ROWS else ""
    note = html.paragraph(f"{rest}A function's gas does not include that of the functions it calls.")
    return html.page(html.table(columns, rows, "Gas by function"), note)


def simulation_facts(simulation: Simulation, known: Known, arguments: str) -> dict[str, Any]:
    """Return the facts in which simulations are compared, in the order of the rows; `arguments` are in words."""
    gas, payload, sender = simulation.gas, simulation.request.payload, simulation.request.sender
    named = f" {known.names[sender]}" if sender in known.names else ""
    facts = {
        "Function": short_addresses(payload.function) if isinstance(payload, EntryFunction) else None,
        "Arguments": arguments if isinstance(payload, EntryFunction) else None,
        "Sender": f"{short_addresses(sender)}{named}",
        "Outcome": "success" if simulation.success else WOULD_FAIL,
        "Gas used": simulation.gas_used,
        "Execution": gas and gas.execution_gas_units,
        "IO": gas and gas.io_gas_units,
        **({} if gas is None else known.fact("Storage fee", gas.storage_fee_octas, APT_METADATA)),
        **({} if gas is None else known.fact("Cost", gas.net_octas, APT_METADATA)),
        "Version": f"{simulation.ledger_version:,}",
    }
    return {name: value for name, value in facts.items() if value is not None}


def brief(value: Any) -> str:
    """Return a value as short JSON."""
    text = short_addresses(json.dumps(json_value(value), ensure_ascii=False))
    return text if len(text) <= _MAX_LARGE else f"{text[:_MAX_LARGE]}{ELLIPSIS}"


def recent_page(facts: Sequence[dict[str, Any]]) -> Html:
    """Return a table of a form's recent results, one per column; differences from the previous one are marked."""
    rows: list[list[Any]] = []
    outcomes = [one.get("Outcome") for one in facts]
    alike = [one == before for one, before in zip(outcomes, [outcomes[0], *outcomes], strict=False)]
    for name in dict.fromkeys(name for one in facts for name in one):
        values = [one.get(name) for one in facts]
        pairs = zip(values, [values[0], *values], alike, strict=False)
        rows.append([name, *(_compared(value, before, alike=same) for value, before, same in pairs)])
    again = '<button type="button" class="ltk-small" data-send="again" data-number="{}">Fill in again</button>'
    rows.append(["", *(Html(again.format(place)) for place in range(len(facts)))])
    columns = {"": "brief"} | {f"Call {place + 1}": "" for place in range(len(facts))}
    return html.page(html.table(columns, rows, "Recent calls, the latest on the right"))


def _compared(value: Any, before: Any, *, alike: bool) -> Html:
    """Return a value, marked if it differs, with the difference if both outcomes are `alike`."""
    form = ",f" if isinstance(value, Decimal) else ","
    shown = html.breakable(f"{value:{form}}" if isinstance(value, int | Decimal) else value)
    if value == WOULD_FAIL:
        shown = Html(f'<span class="ltk-bad">{shown}</span>')
    if value == before:
        return shown
    both = alike and isinstance(value, int | Decimal) and isinstance(before, int | Decimal)
    return Html(f"<b>{shown}</b>{f' ({forms_of.signed(value - before, form)})' if both else ''}")


def _outcome_page(simulation: Simulation, known: Known, failure: str) -> Html:
    """Return the page with the outcome, starting with the reason for a failure, and the cost."""
    word, kind = ("Success", "good") if simulation.success else ("Would fail", "bad")
    payload = simulation.request.payload
    function = payload.function if isinstance(payload, EntryFunction) else None
    what = type_html(function) if function else f"the {type(payload).__name__} payload"
    called = Html(f"{what} from {known.address(simulation.request.sender)}")
    head = f'<strong class="ltk-title">{called}</strong>' if simulation.success else failure
    balances, gas = simulation.balance_changes, simulation.gas
    cost = html.safe("nothing: the transaction was discarded before it ran")
    if gas is not None:
        units = f"{plural(gas.total_charge_gas_units, 'gas unit')} at {plural(gas.gas_unit_price, 'octa')}"
        refund = ", less a storage refund" if gas.storage_fee_refund_octas else ""
        cost = Html(f"{known.amount(gas.net_octas, APT_METADATA)} ({units}{refund})")
    facts = [
        *([] if simulation.success else [("Call", called)]),
        ("Cost", cost),
    ]
    columns = {"Balance of": "", "Change, with the fee": "number", "After": "number"}
    moved = html.table(columns, balance_rows(balances, known, MAX_ROWS), "Balance changes")
    more = f"The first {MAX_ROWS} of {len(balances):,} balance changes." if len(balances) > MAX_ROWS else ""
    return html.page(
        f'<p><span class="ltk-badge ltk-{kind}">{word}</span> {head}</p>',
        html.pairs(facts, "What it does"),
        moved if len(balances) else "",
        html.paragraph(more) if more else "",
        html.response(
            json.dumps(json.loads(msgspec.json.encode(simulation.transaction)), indent=1, ensure_ascii=False)
        ),
    )


_DISCARDED = "No gas was charged: the transaction was discarded before it ran, so there is no FeeStatement."


def _gas_page(simulation: Simulation, known: Known, *, model: bool) -> Html:
    """Return the page with the gas by part, as a bar and as a table, the fee, and on a fork the gas by function."""
    split = simulation.gas
    if split is None:  # discarded before it ran
        return html.page(html.paragraph(_DISCARDED))
    price = split.gas_unit_price
    octas = {"Fee": split.fee_octas, "Storage fee (included)": split.storage_fee_octas}
    if split.storage_fee_refund_octas:
        octas |= {"Storage refund": split.storage_fee_refund_octas, "Net": split.net_octas}
    fee = [("Gas unit price", html.safe(html.number(price, "octas")))]
    fee += [(name, known.amount(units, APT_METADATA)) for name, units in octas.items()]
    parts = {
        "Execution": float(split.execution_gas_units),
        "IO": float(split.io_gas_units),
        "Storage": split.storage_fee_octas / price if price else 0.0,  # storage is paid in octas
    }
    whole = max(sum(parts.values()), 1.0)
    note = Html("")
    if not split.reconciles:
        note = html.paragraph("The parts do not add up to the total gas charged.", "error")
    elif sum(parts.values()) != split.total_charge_gas_units:
        note = html.paragraph("Each part is rounded up, so the parts may exceed the total by up to 2 gas units.")
    words, bar, rows = [], "", []
    for place, (name, units) in enumerate(parts.items()):
        share = percent(100 * units / whole, ".0f")
        words.append(f"{name} {share}")
        bar += f'<span class="ltk-part{place}" style="width:{units / whole:.2%}"></span>'
        dot = Html(f'<span class="ltk-dot ltk-part{place}" aria-hidden="true"></span>{html.safe(name)}')
        rows.append((dot, number(units), share))
    rows.append((Html("<b>Charged</b>"), Html(f"<b>{html.safe(html.number(split.total_charge_gas_units))}</b>"), ""))
    listed = html.table({"Part": "brief", "Gas units": "number", "Share": "number"}, rows, "Gas by part")
    stacked = f'<div class="ltk-stack" role="img" aria-label="Gas: {", ".join(words)}">{bar}</div>'
    profile = getattr(simulation, "profile", None)  # of a simulation on a fork
    of_functions = "" if profile is None else _profile_table(profile)
    return html.page(stacked, listed, note, html.pairs(fee, "Fee"), of_functions, html.model_note() if model else "")


# reads at one version ------------------------------------------------------------------------------------------------


def view_pages(result: ViewResult, known: Known, *, asset: str | None, model: bool) -> list[Page]:
    """Return the pages of a view at one version.

    Parameters
    ----------
    result : ViewResult
    known : Known
        Assets, and names of accounts.
    asset : str or None
        The asset whose amount the view returns; None if it returns something else.
    model : bool
        Whether gas comes from the embedded node's model.
    """
    kinds = [type_html(kind) for kind in result.types or ["JSON"] * len(result.values)]
    if len(result.values) == 1:
        counted = asset in known.assets and isinstance(result.value, int)
        coins = html.paragraph(f"= {known.words(result.value, str(asset))}") if counted else ""
        value = Html(f"<p>Returned {kinds[0]}</p>{_answer(result.value, known)}{coins}")
    else:
        cells = zip(kinds, result.values, strict=True)
        rows = [(place, kind, value_html(one, known)) for place, (kind, one) in enumerate(cells)]
        value = html.table({"#": "number", "Type": "", "Value": "wide"}, rows, "Return values")
    facts = html.pairs([("Gas used", html.number(result.gas_used, "gas units"))], "How it was read")
    note = html.model_note() if model and result.gas_used else ""
    if not result.types:
        note = html.paragraph("The node returned no ABI for this module: the types shown are JSON types.")
    return [Page("Value", html.page(value, facts, note, html.response(result.raw)))]


def item_pages(item: TableItem, value_type: str, known: Known) -> list[Page]:
    """Return the pages of a table item at one version; `known` has the names of accounts."""
    kind = f"<p>Value <code>{html.safe(wire_type(parse_type_tag(value_type)))}</code></p>"
    raw = json.dumps(encode_json(item.value_layout, item.value), indent=1, ensure_ascii=False)
    return [Page("Item", html.page(kind, _answer(item.value, known), html.response(raw)))]


def missing_item_pages(words: str, *, declared: bool) -> list[Page]:
    """Return the page for an item that does not exist; `words` says what was read, `declared` whether its types are."""
    wrong = "" if declared else " Nodes respond in the same way to a wrong key type."
    hint = html.paragraph(f"It may exist at other versions.{wrong}")
    return [Page("No item", html.page(f"<p><b>{html.safe(words)}.</b></p>", hint))]


def _answer(value: Any, known: Known) -> Html:
    """Return the HTML of a single value; short values are shown in large type."""
    brief = len(str(value)) <= _MAX_LARGE and not isinstance(value, dict | list)
    return Html(f'<p class="ltk-value">{value_html(value, known)}</p>') if brief else value_html(value, known)


def value_html(value: Any, known: Known) -> Html:
    """Return the HTML of a decoded value: numbers with separators, bytes as hex, containers as trees of fields."""
    if value is None:
        return Html('<span class="ltk-hint">none</span>')
    if isinstance(value, dict | list):
        return value_tree(json_value(value), known)
    if isinstance(value, str) and ADDRESS.fullmatch(value):
        return known.address(value)
    if isinstance(value, int):
        text = str(value).lower() if isinstance(value, bool) else f"{value:,}"
    else:
        text = f"0x{value.hex()}" if isinstance(value, bytes) else value or '""'
    if len(text) <= _MAX_TEXT:
        return Html(f"<code>{html.safe(text)}</code>")
    start = Html(f"<code>{html.safe(text[: _MAX_TEXT // 10])}{ELLIPSIS}</code>")
    return html.folded(start, html.code(text, "The value"))


# reads over versions -------------------------------------------------------------------------------------------------


def frame_pages(
    frame: pd.DataFrame,
    known: Known,
    *,
    asset: str | None,
    what: str,
    notes: Sequence[str],
    model: bool,
    unavailable: bool = False,
) -> list[Page]:
    """Return the pages of a frame of one call or item over versions: figure, rows and failures.

    Parameters
    ----------
    frame : DataFrame
        A frame from `fetch_views` or `fetch_table_items`.
    known : Known
        Assets that were read.
    asset : str or None
        The asset whose amount ``value`` is; None if it is something else.
    what : str
        What was read, for the title of the figure.
    notes : sequence of str
        Notes about clipped versions, and warnings.
    model : bool
        Whether gas comes from the embedded node's model.
    unavailable : bool, default False
        Whether the failed reads are of versions whose code does not have the function yet.
    """
    unit = None if asset is None or "value" not in frame else known.unit(asset)
    words, failed = frame_words(frame, unit, unavailable=unavailable), failures(frame)
    words = words[1:] or words  # the first one is the message beside the button
    # What is the same in each row, and what the page of failed reads says.
    told = ["key", "head_version", "status", "error_code", "vm_error_code", "error_message"]
    rows = frame.drop(columns=told, errors="ignore")
    in_coins = "" if unit is None else f"value in {unit[0]}"
    if unit is not None:
        coins = [None if pd.isna(one) else forms_of.in_whole_coins(int(one), unit[1]) for one in frame["value"]]
        rows["value"] = pd.Series(coins, index=rows.index, dtype=object)
        rows = rows.rename(columns={"value": in_coins})
    for name in _numeric_columns(rows):
        if name not in _quantities(rows):
            dated = [None if pd.isna(one) else _dated(name, int(one)) for one in rows[name]]
            rows[name] = pd.Series(dated, index=rows.index, dtype=object)
    lines = "".join(f"<li>{html.safe(line)}</li>" for line in [*notes, *words])
    figure = _history_figure(frame, what, unit, model=model)
    drawn = "" if figure is None else html.figure_html(figure, "; ".join(words))
    gas = html.model_note() if model and drawn and "gas_used" in frame else ""
    shown = show(rows, rows=MAX_ROWS)
    numbers = {in_coins, *(shown.columns[place] for place in shown.numbers)}
    cells: Sequence[Sequence[Any]] = shown.rows
    unread = {f"{version:,}" for version in failed["ledger_version"]}
    if unread and "ledger_version" in shown.columns:
        at = shown.columns.index("ledger_version")
        values = [place for place, name in enumerate(shown.columns) if name.startswith("value") or name == "gas_used"]
        word, kind = ("not available", "hint") if unavailable else ("failed", "bad")
        lost = Html(f'<span class="ltk-{kind}">{word}</span>')
        cells = [
            [lost if place in values and row[at] in unread else cell for place, cell in enumerate(row)]
            for row in shown.rows
        ]
    # Values keep the names of their fields, the other columns are words.
    names = [name if name.startswith("value") else name.replace("_", " ") for name in shown.columns]
    names = ["ledger time (UTC)" if name == "ledger timestamp" else name for name in names]
    kinds = ["number" if name in numbers else "brief" for name in shown.columns]
    listed = html.table(dict(zip(names, kinds, strict=True)), cells, "Rows of the frame")
    rest = html.paragraph("The result in Python has all rows.", "note ltk-python") if len(frame) > MAX_ROWS else ""
    return [
        Page("Figure" if drawn else "Outcome", html.page(drawn, f"<ul>{lines}</ul>", gas)),
        Page("Rows", html.page(listed, html.paragraph(shown.note), rest), len(frame)),
        *_failures_page(failed, "Not available" if unavailable else "Failed"),
    ]


def failures(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of failed reads; an item that does not exist is not a failure."""
    failed = frame[frame["error_code"].notna()]
    return failed[failed["presence"].isna() | (failed["presence"] == "pruned")] if "presence" in frame else failed


def frame_outcome(frame: pd.DataFrame, *, unavailable: bool = False) -> tuple[str, str]:
    """Return the kind of message and the words that describe the outcome of a read over versions."""
    count, words = len(failures(frame)), frame_words(frame, unavailable=unavailable)[0]
    nothing = count == len(frame)
    if unavailable:
        return "hint" if nothing else "good", words
    return "bad" if nothing else "mixed" if count else "good", words


def _failures_page(failures: pd.DataFrame, title: str, *, counted: str = "Reads") -> list[Page]:
    """Return the page of what failed, if anything did, rows with the same message in one."""
    if failures.empty:
        return []
    rows = []
    of, coded = ["label"] if "label" in failures else [], failures["error_code"].notna().any()
    kinds = failures.groupby([*of, "error_code", "error_message"], sort=False, dropna=False)["ledger_version"]
    for (*call, kind, message), versions in list(kinds)[:_MAX_FAILURES]:
        first, last = versions.min(), versions.max()
        at = f"{first:,}" if first == last else f"{first:,} to {last:,}"
        error = [Html(f"<code>{html.safe(kind)}</code>")] if coded else []
        rows.append((*map(html.breakable, call), html.number(len(versions)), at, *error, message))
    columns = dict.fromkeys(["Call"] * len(of), "") | {counted: "number", "Versions": "brief"}
    columns |= {"Error": "brief"} if coded else {}
    listed = html.page(html.table(columns | {"Message": ""}, rows, f"{counted}: {title[:1].lower()}{title[1:]}"))
    return [Page(title, listed, len(failures), kept=True)]


def frame_words(frame: pd.DataFrame, unit: tuple[str, int] | None = None, *, unavailable: bool = False) -> list[str]:
    """Describe a frame of one call or item over versions, one text per line.

    `unit` has the symbol and the decimals of the asset whose amount ``value`` is.
    """
    failed = len(failures(frame))
    span = version_words(frame["ledger_version"])
    how = "not available" if unavailable else "failed"
    words = [f"{plural(len(frame), 'read')}, {span}" + (f"; {failed:,} {how}" if failed else "")]
    if "presence" in frame and (there := (frame["presence"] == "present").sum()) < len(frame) - failed:
        words[0] += f"; found at {there:,}"
    words += _presence_words(frame) if "presence" in frame else []
    columns = _numeric_columns(frame)
    for column in [*columns[:_MAX_PANELS], *(["gas_used"] if "gas_used" in frame else [])]:
        known = frame[frame[column].notna()].sort_values("ledger_version")
        if known.empty:
            continue
        values = [int(one) for one in known[column]]
        name = "gas" if column == "gas_used" else column
        of, said = " gas units" if column == "gas_used" else "", {one: _dated(column, one) for one in values}
        if unit is not None and column == "value":
            of, said = f" {unit[0]}", {one: forms_of.in_whole_coins(one, unit[1]) for one in values}
        if len(said) == 1:
            words.append(f"{name}: {said[values[0]]}{of} at {_where(known, frame)}")
            continue
        first, last = known["ledger_version"].iloc[0], known["ledger_version"].iloc[-1]
        ends = f"{said[values[0]]}{of} at version {first:,}, {said[values[-1]]}{of} at version {last:,}"
        more = f"; {len(said):,} different values from {said[min(said)]} to {said[max(said)]}"
        if len(values) == 2:  # noqa: PLR2004 - both are said
            moved = values[1] - values[0]
            plain = (
                forms_of.signed(moved) if unit is None or column != "value" else forms_of.in_whole_coins(moved, unit[1])
            )
            more = "" if time_words(column, values[0]) else f" ({'+' if moved > 0 and plain[0] != '+' else ''}{plain})"
        words.append(f"{name}: {ends}{more}")
    others = [name for name in frame.columns if str(name).startswith("value") and name not in columns]
    for column in others[:_MAX_PANELS]:
        known = frame[frame[column].notna()]
        texts = {brief(one).strip('"') for one in known[column]}
        same = f"{min(texts)} at {_where(known, frame)}" if len(texts) == 1 else f"{len(texts):,} different values"
        words += [f"{column}: {same}"] * bool(texts)
    if (quantities := _quantities(frame)) and frame[quantities].isna().any(axis=None):
        words.append("versions without a value are crosses in the figure")
    if len(columns) > _MAX_PANELS:
        words.append(f"the figure shows {_MAX_PANELS} of {len(columns)} numeric columns")
    return words


def _where(known: pd.DataFrame, frame: pd.DataFrame) -> str:
    """Return at which of the versions of a frame something is known."""
    if len(known) == 1:
        return version_words(known["ledger_version"])
    return "every version" if len(known) == len(frame) else f"each of {plural(len(known), 'version')}"


def _presence_words(frame: pd.DataFrame) -> list[str]:
    """Return at how many versions an item was found, and where it was not there or could not be read."""
    there = frame.loc[frame["presence"] == "present", "ledger_version"]
    absent = frame["presence"][frame["presence"] != "present"].value_counts()
    if absent.empty:
        return []
    words = [f"found at {len(there):,} of {plural(len(frame), 'version')}"]
    if len(there) <= absent.get("missing", -1):  # the fewer ones are named
        absent = absent.drop("missing")
        words[0] += f" ({forms_of.both([f'{one:,}' for one in sorted(there)])})" if len(there) else ""
    for kind, n in absent.items():
        at = frame.loc[frame["presence"] == kind, "ledger_version"]
        where = version_words(at) if n == 1 else plural(int(n), "version")
        deleted = kind == Presence.DELETED  # at one of these versions, or between two that were read
        words.append(f"not there at {where} ({_deletion_words(at, there)})" if deleted else f"{kind} at {where}")
    return ["; ".join(words)]


def _deletion_words(gone: pd.Series, there: pd.Series) -> str:
    """Return what the versions without a deleted item, and those with it, say of when it was first deleted."""
    first, before = int(gone.min()), there[there < gone.min()]
    if before.empty:
        return f"deleted by version {first:,}"
    last = int(before.max())
    return f"deleted at version {first:,}" if last == first - 1 else f"last found at {last:,}"


def _dated(column: str, value: int) -> str:
    time = time_words(column, value)
    return f"{value:,} ({time})" if time else f"{value:,}"


def version_words(versions: pd.Series) -> str:
    """Describe the range of versions: ``version 5``, ``versions 5 and 9``, or ``versions 5 to 9``."""
    first, last = versions.min(), versions.max()
    between = "to" if versions.between(first, last, inclusive="neither").any() else "and"
    return f"version {first:,}" if first == last else f"versions {first:,} {between} {last:,}"


def _numeric_columns(frame: pd.DataFrame) -> list[str]:
    """Return the names of the numeric value columns."""
    values = frame[[name for name in frame.columns if str(name).startswith("value")]].select_dtypes("number")
    return [name for name in values.columns if values[name].notna().any()]


def _quantities(frame: pd.DataFrame) -> list[str]:
    """Return the names of the numeric value columns that a figure shows; a time is not a quantity."""
    columns = _numeric_columns(frame)
    return [name for name in columns if not time_words(name, int(frame[name].dropna().iloc[0]))]


def _history_figure(
    frame: pd.DataFrame, what: str, unit: tuple[str, int] | None = None, *, model: bool
) -> Figure | None:
    """Return a figure of a frame's numeric columns by ledger version, one panel each, with gas in the last panel.

    With a `unit`, the symbol and the decimals of an asset, ``value`` is drawn in whole coins. `model` is whether the
    gas comes from a model.

    Returns None if neither values nor gas are numeric. Matplotlib's global settings are not changed, since it may run
    in a thread.
    """
    from matplotlib.figure import Figure  # here, since forms open half a second earlier without it

    from toolkit.plots import _style as style
    from toolkit.plots._labels import figure_text

    columns = _quantities(frame)[:_MAX_PANELS]
    panels = [*columns, *(["gas_used"] if "gas_used" in frame and frame["gas_used"].notna().any() else [])]
    if not panels:
        return None
    figure = Figure(figsize=(4.8, 0.6 + 1.45 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), sharex=True, squeeze=False)[:, 0]
    for ax, column in zip(axes, panels, strict=True):
        symbol, decimals = unit if unit is not None and column == "value" else ("", 0)
        _draw(ax, frame, column, 10**decimals, colour=style.VERMILLION if column == "gas_used" else style.BLUE)
        name = (
            style.gas_label(model=model).capitalize()
            if column == "gas_used"
            else what
            if columns == ["value"]
            else column
        )
        name = f"{name} ({symbol})" if symbol else name
        ax.set_title(figure_text(name, 60), loc="left", fontsize=9, fontweight="bold")
    axes[-1].set_xlabel("ledger version", fontsize=9)
    axes[-1].xaxis.set_major_formatter(style.NUMBERS)
    axes[-1].locator_params(axis="x", nbins=6, integer=True)
    return figure


def _draw(ax: Axes, frame: pd.DataFrame, column: str, scale: int, *, colour: str) -> None:
    """Draw one column, divided by `scale`, as points, joined by steps only where two versions follow each other.

    Nothing is known of the versions between other reads, so nothing is drawn there.
    """
    from toolkit.plots import _style as style

    ax.spines[["top", "right"]].set_visible(False)
    known = frame[frame[column].notna()].sort_values("ledger_version")
    absent = [int(one) for one in frame.loc[frame[column].isna(), "ledger_version"]]
    x = [int(one) for one in known["ledger_version"]]
    y = [int(one) / scale for one in known[column]]
    apart = [place for place, (one, two) in enumerate(pairwise(x), start=1) if two - one > 1]
    size = 3 if len(frame) <= 80 else 1.5  # noqa: PLR2004 - larger dots would touch
    ax.plot(x, y, color=colour, linewidth=0, marker="o", markersize=size, gid=column)
    joined = np.insert(np.array(x, float), apart, nan), np.insert(np.array(y, float), apart, nan)
    ax.plot(*joined, color=colour, linewidth=1.2, drawstyle="steps-post")
    if absent:
        foot = ax.get_xaxis_transform()
        on_axis: dict[str, Any] = {"transform": foot, "clip_on": False, "zorder": 3}  # not a point: below the values
        ax.plot(absent, [0] * len(absent), "x", color=style.ink(), markersize=5, gid="absent", **on_axis)
    ax.yaxis.set_major_formatter(style.NUMBERS)
    ax.locator_params(axis="y", nbins=4, integer=scale == 1)
    if column == "gas_used":
        ax.set_ylim(bottom=0)
    ax.set_axisbelow(True)
    ax.grid(visible=True, axis="y", linewidth=0.5)


# runs of studies -----------------------------------------------------------------------------------------------------


def run_pages(run: Run, named: Callable[[str], str]) -> list[Page]:
    """Return the pages of a run: its figure, and below it the steps; then what failed. `named` adds accounts' names."""
    frame = run.observations
    pages = [Page("Gas", html.page(_run_gas(run), _run_notes(run)))]
    if not is_one_version(frame):
        pages = [Page("Steps", html.page(_run_figure(run), _run_gas(run), _run_steps(run, named)))]
    for kind, rows in failures_of(frame, run.steps).rows.items():
        lost = rows.assign(error_message=rows["error_message"].fillna(rows["vm_status"]))
        pages += _failures_page(lost, kind.capitalize(), counted="Observations")
    return pages


def is_one_version(observations: pd.DataFrame) -> bool:
    """Return whether all calls were read at the same version only: gas has no history, and no figure."""
    return len(observations["ledger_version"].unique()) == 1


def _run_figure(run: Run) -> Html:
    """Return a run's figure, an image that needs neither a style sheet nor a script."""
    from matplotlib.figure import Figure

    from toolkit.plots._gas_by_version import gas_by_version

    observations = run.observations
    if observations.empty:
        return html.paragraph("Nothing was read.")
    observations = observations[observations["source"] != Source.SIMULATE]  # at the head, which may be far away
    levels: dict[str, Any] = {"levels": run.levels, "timeline": run.timeline} if len(run.levels) else {}
    count = observations["label"].nunique()
    size = _SIZE if count <= _MAX_LINES else (_SIZE[0], 1.2 + 1.2 * -(-count // 3))
    size = (_SIZE[0], _TALL) if levels and count <= _MAX_LINES else size
    figure = Figure(figsize=size, layout="constrained")
    axes = gas_by_version(observations, ax=figure.subplots(), steps=run.steps, title="", **levels)
    for text in [text for text in axes.texts if text.get_gid() == "note"]:
        text.remove()
    return html.figure_html(figure, f"Gas of {plural(count, 'call')} by ledger version")


def _run_gas(run: Run) -> Html:
    """Return a table with the gas of each call at the first and the last version at which it was read.

    The first may be one that was read to locate the step that made the call available.

    Committed transactions have other arguments and senders at either end, so their gas is not compared: of them, the
    table has the number, the least and the most.
    """
    rows, observations, steps = [], run.observations, run.steps
    located = steps[steps["exact"] & steps["gas_before"].isna() & steps["gas_after"].notna()]
    for series in series_of(observations)[:MAX_ROWS]:
        gas, at = (values[series.answered].astype(int).tolist() for values in (series.gas, series.versions))
        began = located[(located["label"] == series.label) & (located["source"] == series.source)]
        for step in began[:1].to_dict("records"):
            if at and step["version_after"] < at[0]:
                gas, at = [int(step["gas_after"]), *gas], [step["version_after"], *at]
        read, change = Source(series.source).label, ""
        ends = list(dict.fromkeys(f"{gas[end]:,} at version {at[end]:,}" for end in (0, -1) if gas))
        if series.source == Source.COMMITTED:
            read = plural(len(gas), "transaction")
            ends = [forms_of.version_range(min(gas), max(gas))] if gas else []
        elif not gas or not series.success[series.answered][-1]:
            mine = (observations["label"] == series.label) & (observations["source"] == series.source)
            why = visible(reason_of(observations[mine].sort_values("ledger_version").iloc[-1]), _MAX_LARGE)
            why = html.safe(why).replace("_", "_<wbr>")  # the name of a status
            ends.append(f'<span class="ltk-bad">{Failure.SIMULATION if gas else Failure.READ}: {why}</span>')
        elif len(gas) > 1:
            change = "no change" if gas[0] == gas[-1] else forms_of.relative_change(gas[0], gas[-1])
        rows.append((html.breakable(series.name), read, Html("<br>".join(ends)), change))
    columns = {"Call": "", "Read as": "brief", "Gas": "number"}
    if any(change for *_, change in rows):
        columns["Change"] = "number"
    return html.table(columns, [row[: len(columns)] for row in rows], "Gas of each call")


def reason_of(observation: Mapping[str, Any] | pd.Series) -> str:
    """Return why an observation failed: the contract's reason, or else the status or the node's message."""
    words = observation["vm_status"] if pd.isna(observation["error_message"]) else observation["error_message"]
    abort = Abort.find(str(words))
    return (abort and abort.reason) or str(words)


def _run_steps(run: Run, named: Callable[[str], str]) -> Html:
    """Return the list of the steps, with their causes in sections that open, and notes."""
    groups = step_groups(run.steps)
    shown = sentences.weightiest(groups, sentences.MAX_GROUPS)
    several = len(run.observations["label"].unique()) > 1
    opened = shown if len(shown) <= _MAX_OPEN_STEPS else sentences.weightiest(shown, 1)
    items = "".join(
        f'<details class="ltk-fold ltk-step"{" open" if group in opened else ""}>'
        f"<summary>{_step_title(group, several=several)}</summary>{_step_details(group, named)}</details>"
        for group in shown
    )
    rest = html.paragraph(f"The {len(shown)} largest of {len(groups):,} steps.") if len(groups) > len(shown) else ""
    return html.page(Html(items) or html.paragraph("No steps were found."), rest, _run_notes(run))


def _run_notes(run: Run) -> Html:
    """Return what limits the findings of a run."""
    committed = run.record.committed_series if run.complete else ()
    # What was read at the head is in the table of the calls.
    elsewhere = [one for one in run.coverage.unjudged if Source(one.source).read_at is not ReadAt.HEAD]
    notes = [
        *([] if run.complete else ["The run was stopped before it looked for causes."]),
        *([_COMMITTED] if committed else []),
        *map(html.safe, sentences.not_located_sentences(run.steps)),
        *sentences.not_compared_sentences(committed, _name),
        *sentences.not_steps_sentences(committed, _name),
        *sentences.unjudged_sentences(elsewhere, _name),
        *map(html.safe, [*(note for node in run.record.nodes for note in node.notes), *run.notes]),
    ]
    model = html.model_note() if is_model(run.observations) else ""
    return html.page("".join(f"<p>{note}</p>" for note in notes), model)


def _name(text: str, limit: int = 300, /) -> str:
    """Return text from users or the chain as escaped HTML."""
    return escape(visible(text, limit))


def _step_title(group: StepGroup, *, several: bool) -> str:
    """Return a step's version, cause and largest change, which names the call if there are `several`."""
    from toolkit.plots import _style as style

    largest, more = group.changes[0], sentences.others_text(group)
    colour = style.CAUSE_MARKS[group.cause].colour or style.INK  # in dark pages inverted, as the figure is
    dot = f'<span class="ltk-dot" style="background:{colour}" aria-hidden="true"></span>'
    before, after = largest.gas_before, largest.gas_after
    was, now = sentences.gas_text(before), sentences.gas_text(after)
    words = sentences.change_text(largest, _name)
    if largest.parts and before is not None and after is not None and was != now:  # the parts are in the table
        doubt = ", uncertain" if largest.uncertain else ""
        words = f"from {was} to {counted(now, 'gas unit')} ({forms_of.relative_change(before, after)}{doubt})"
    call = f"{sentences.change_name(largest, _name)}: " if several or largest.stratum else ""
    return (
        f"<b>{escape(sentences.versions_text(group))}</b> "
        f'<span class="ltk-cause">{dot}{escape(group.cause.label)}</span> '
        f"{call}{words}{', ' * bool(more)}{more}"
    )


def _step_details(group: StepGroup, named: Callable[[str], str]) -> str:
    """Return the evidence of a step's cause, its transaction, and the change of each call if there are several."""
    rows = [
        (
            html.breakable(Html(name)),
            change.error_before if change.gas_before is None else sentences.gas_text(change.gas_before),
            change.error_after if change.gas_after is None else sentences.gas_text(change.gas_after),
            Html(sentences.short_change(change, _name)),
        )
        for change, name in zip(group.changes, sentences.change_names(group.changes, _name), strict=True)
    ]
    text = _name(named(sentences.evidence_text(group)), sentences.MAX_EXPLANATION) or sentences.group_text(group, _name)
    # A row may be one part of the gas of transactions; its columns hold the total.
    total = any(change.parts for change in group.changes)
    columns = {"Call": "", **dict.fromkeys(_ENDS[total], "number"), "Change": ""}
    time = [] if group.time is None else [f"ledger time {group.time:%Y-%m-%d %H:%M:%S} UTC"]
    about = [*time, *([] if group.transaction_hash is None else [html.short_id(group.transaction_hash)])]
    listed = html.table(columns, rows, "Gas before and after") if len(rows) > 1 or total else ""
    return f"<p>{text[:1].upper()}{text[1:]}.</p>{html.paragraph(Html(', '.join(about)))}{listed}"
