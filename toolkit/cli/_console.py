"""Options that commands share, and functions that print and write facts, frames and files. Text is escaped."""

from __future__ import annotations

import json
import re
import sys
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, TextIO

from typer import Argument, BadParameter, Option

from toolkit._present.files import replacing
from toolkit._present.messages import did_you_mean, not_installed
from toolkit._present.tables import (
    csv_table,
    fact_text,
    fitted_columns,
    json_rows,
    json_value,
    terminal_width,
    text_table,
    wrapped,
)
from toolkit._present.text import plural, utc, version_span, without_padding
from toolkit.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    import pandas as pd

    from toolkit.client._node import Node
    from toolkit.gas._study import Study

JSON_FORMAT = 1  # of the structure that ``--json`` prints; it increases when the structure changes

Texts = list[str] | None  # of an option that may be repeated

PLAN = re.compile(r"-?\d+:(-?\d+)?[:/\d]*").fullmatch  # a version plan, which is often given without its option
_MAX_ROWS = 40  # about a screen; --out writes all
_ENDINGS = (".parquet", ".csv", ".json", ".jsonl", ".xlsx")


def _function(text: str) -> str:
    """Return the text of a FUNCTION, which must be a function id."""
    from toolkit.wire._models import function_id

    _check(function_id, text)
    return text


def _types(texts: Texts) -> Texts:
    """Return the texts of ``--type``, which must be Move types."""
    from toolkit.move import parse_type_tag

    for text in texts or ():
        _check(parse_type_tag, text)
    return texts


def check_version(text: str | None) -> str | None:
    """Return the text of a version, which must be a number, or a date or time."""
    from toolkit.client._versions import moment

    if text is not None and not (text.isascii() and text.isdigit()):
        _check(moment, text, "expected a ledger version, such as 1000, or a date, such as 2026-05-01")
    return text


def _check(parse: Callable[[str], Any], text: str, expected: str = "") -> None:
    """Raise the error of the command line, which names the option, if a text cannot be parsed."""
    try:
        parse(text)
    except InputError as error:
        raise BadParameter(f"{expected}, got {text!r:.80}" if expected else str(error)) from None


FunctionArgument = Annotated[str, Argument(help="address::module::function", callback=_function)]
NODES = "embedded, mainnet, testnet, devnet, local, or an http(s) URL."
NodeOption = Annotated[str, Option("--node", help=NODES)]
StudyNodeOption = Annotated[
    Texts, Option("--node", help="Node to read instead of the study's, using the API key; may be repeated.")
]
StudyArgument = Annotated[str, Argument(help="TOML file of a study, or demo for the built-in study.")]
UseKeyOption = Annotated[bool, Option("--use-api-key", help="Send LEDGER_TOOLKIT_API_KEY to the study's URLs.")]
JsonOption = Annotated[bool, Option("--json", help="Print JSON, with integers beyond 2^53 as text.")]
QuietOption = Annotated[bool, Option("--quiet", help="Do not show a progress bar.")]
TypesOption = Annotated[
    Texts,
    Option("--type", "-t", help="Type argument, such as 0x1::aptos_coin::AptosCoin; may be repeated.", callback=_types),
]
VersionOption = Annotated[
    str | None,
    Option(help="Ledger version to read, or a date for the state then; by default, the head.", callback=check_version),
]
VersionArgument = Annotated[str, Argument(help="Ledger version, or a date such as 2026-05-01.", callback=check_version)]
TimesOption = Annotated[
    bool | None,
    Option(help="Fill in ledger_timestamp, with one request per block; by default, for a version plan with dates."),
]
AddressOption = Annotated[str | None, Option(help="Only rows that mention this account, module, function or type.")]
VersionsOption = Annotated[str | None, Option(help="Version plan, such as 0:-1/200; one row per version.")]


def _with_known_ending(place: Path | None) -> Path | None:
    """Return the file of ``--out``. Raise InputError before any request if the file's extension is not supported."""
    if place is not None and place.suffix.lower() not in _ENDINGS:
        got = repr(place.suffix) if place.suffix else "no ending"
        known = f"{', '.join(_ENDINGS[:-1])} or {_ENDINGS[-1]}"
        raise InputError(f"--out {place}: the file name must end in {known}; got {got}")
    if place is not None and place.suffix.lower() == ".xlsx" and find_spec("openpyxl") is None:
        raise InputError(not_installed("--out *.xlsx", "openpyxl", "excel"))
    return place


OutOption = Annotated[
    Path | None,
    Option(
        metavar="FILE",
        help="File for the rows: .parquet, .csv, .json, .jsonl or .xlsx. Missing folders are created.",
        callback=_with_known_ending,
    ),
]


def address_of_name(node: Node, text: str) -> str | None:
    """Return the address of a known account by its name, such as alice on the embedded node."""
    from toolkit.client._accounts import known_names

    return {name: known for known, name in known_names(node).items()}.get(text)


def address(node: Node, text: str, option: str) -> str:
    """Return an address, written as such or as a name. Raise InputError that names the option for any other text."""
    from toolkit.move import parse_address

    try:
        return address_of_name(node, text) or parse_address(text)
    except InputError as error:
        from toolkit.client._accounts import known_names

        listed = "`ledger-toolkit account` lists the names of accounts" if node.name == "embedded" else ""
        hint = did_you_mean(text, known_names(node).values()) or listed
        raise InputError(f"{option}: {error}{hint and f'; {hint}'}") from None


def version(node: Node, text: str | None) -> int | None:
    """Return the ledger version in a text that was checked: a number, or a date, which is read as in a version plan."""
    if text is None or text.isdigit():
        return None if text is None else int(text)
    from toolkit.client._fetch import resolved_plan

    return resolved_plan(node, text)[0].versions[0]


def connected(where: str) -> Node:
    """Connect to the node named by ``--node``."""
    from toolkit.client._node import connect

    return connect(where)


def loaded_study(source: str, nodes: list[str] | None, *, use_api_key: bool) -> Study:
    """Load the study of a command. Nodes named on the command line receive the API key, as in other commands."""
    from toolkit.gas._study import Study

    return Study.load(source, nodes=nodes or None, use_api_key=use_api_key or bool(nodes))


def argument(text: str) -> Any:
    """Parse an argument as JSON if possible; otherwise return it as text, so that names need no quotes.

    Raises
    ------
    InputError
        If the argument is JSON that is nested too deeply for Python's parser.
    """
    try:
        return json.loads(text, parse_float=str, parse_constant=str)  # Move has no fractions, and a float would round
    except ValueError:
        return text
    except RecursionError:
        raise InputError(f"argument {text[:40]!r}... is nested too deeply") from None


def print_facts(facts: Mapping[str, Any], *, as_json: bool) -> None:
    """Print named values, one per line or as JSON."""
    if as_json:
        print_json(facts)
        return
    rows = []
    for name, value in facts.items():
        plain = isinstance(value, list) and all(isinstance(one, str) for one in value)
        text = fact_text(name, ", ".join(value) if plain else value, 2_000)
        text = utc(value) if isinstance(value, datetime) else text
        rows.append((name, text if isinstance(value, bytes) else without_padding(text)))
    print_text("\n".join(text_table(rows)))


def print_text(text: object, file: TextIO | None = None) -> None:
    """Print sentences. In a terminal, their lines end between words; a pipe or a file gets each line whole."""
    file = file or sys.stdout
    if file is None or not file.isatty():  # None: the stream was closed
        print(text, file=file)
        return
    print(wrapped(str(text), get_terminal_size().columns), file=file)


def print_done(text: str, *, as_json: bool, **facts: Any) -> None:
    """Print a message about what was done, or the facts in it as JSON."""
    if as_json:
        print_json(facts)
    else:
        print(text)


def print_json(content: Mapping[str, Any]) -> None:
    """Print JSON in ASCII, so that text from the chain cannot control a terminal."""
    print(json.dumps({"format": JSON_FORMAT, **json_value(dict(content))}, indent=1, ensure_ascii=True))


def print_frame(frame: pd.DataFrame, *, as_json: bool, whole: bool = False) -> None:
    """Print a frame as JSON, or as text like `show`. Text has at most 40 rows unless `whole` is set."""
    if as_json:
        print_json({"rows": records(frame)})
        return
    from toolkit.frames import show

    shown = show(frame, rows=max(len(frame), 2) if whole else _MAX_ROWS)
    print(shown.fitted(terminal_width(piped=True)))


def print_table(rows: Sequence[Sequence[str]], *, head: Sequence[str], right: Collection[int]) -> None:
    """Print rows of text as a table that fits in the terminal."""
    kept = fitted_columns([*zip(head, *rows, strict=True)], terminal_width(piped=True), right=right)
    names, *lines = zip(*kept.values(), strict=True)
    print(*text_table(lines, head=names, right={n for n, place in enumerate(kept) if place in right}), sep="\n")


def print_rows(
    frame: pd.DataFrame,
    out: Path | None,
    *,
    as_json: bool,
    columns: Sequence[str] | None = None,
    hidden: Collection[str] = (),
    unread: int | None = None,
    versions: Iterable[int] = (),
) -> None:
    """Write a frame to the file of ``--out`` and print a summary, or print the frame.

    Parameters
    ----------
    frame : DataFrame
    out : Path or None
    as_json : bool
    columns, hidden : sequence of str, optional
        Columns to print, by default all, and columns to omit. Empty columns are not printed, and neither are the last
        ones if the terminal is too narrow.
    unread : int, optional
        Number of versions that could not be read, if the frame has no rows for them.
    versions : iterable of int, optional
        The versions that were read.
    """
    read = _versions_text(versions)
    if out is None:
        names = [name for name in columns or frame.columns if name not in hidden]
        print_frame(frame if as_json else frame[names], as_json=as_json)
        if not as_json:
            part = len(frame) > _MAX_ROWS or (columns is not None and len(names) < frame.shape[1])
            rest = "--out writes all rows and columns." if part else ""
            print(*filter(None, (read, rest)), sep="\n", end="\n" if read or rest else "")
        return
    write_frame(frame, out)
    failed = int(frame["error_code"].notna().sum()) if "error_code" in frame.columns else unread or 0
    said = plural(failed, "failed read" if unread is None else "unread version") if failed else "all read"
    facts = {"rows": len(frame), "failed": failed, "out": str(out)}
    of = f" of {read}" if read else ""
    print_done(f"{plural(len(frame), 'row')}{of}, {said}: {out}", as_json=as_json, **facts)


def _versions_text(versions: Iterable[int]) -> str:
    """Return the range of versions that a command read, and their number if it is not the whole range."""
    read = sorted(set(versions))
    if not read:
        return ""
    span = version_span(read[0], read[-1])
    return span if read[-1] - read[0] == len(read) - 1 else f"{len(read):,} {span.replace(' ', ' from ', 1)}"


def print_found(
    facts: Mapping[str, Any], lines: Sequence[str], frame: pd.DataFrame, out: Path | None, *, as_json: bool
) -> None:
    """Print lines about a frame, or its facts and rows as JSON. With ``--out``, write the rows to a file instead."""
    if out is not None:
        write_frame(frame, out)
        lines = [*lines, f"{plural(len(frame), 'row')}: {out}"]
    if as_json:
        rows = {"rows": records(frame)} if out is None else {"rows": len(frame), "out": str(out)}
        print_json({**facts, **rows})
    elif lines:
        print_text("\n".join(lines))


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame as JSON values."""
    from toolkit.dtypes import to_arrow

    return json_rows(to_arrow(frame))


def write_frame(frame: pd.DataFrame, place: Path) -> None:
    """Write a frame as Parquet, CSV, JSON, JSON lines or an Excel workbook, by the file's extension.

    Raises
    ------
    InputError
        If the extension is not supported, or the file cannot be written.
    """
    _with_known_ending(place)
    from toolkit.dtypes import _tables, to_arrow

    suffix = place.suffix.lower()
    if suffix == ".parquet":
        _put(place, lambda file: _tables.write_frame(frame, file))
    elif suffix == ".xlsx":
        _put(place, lambda file: _tables.write_excel_file(frame, file))
    elif suffix == ".csv":
        write_text(csv_table(to_arrow(frame)), place)
    elif suffix == ".json":
        write_text(json.dumps(records(frame), ensure_ascii=False, indent=1) + "\n", place)
    else:
        lines = [json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in records(frame)]
        write_text("".join(f"{line}\n" for line in lines), place)


def write_text(text: str, place: Path) -> None:
    """Write text to a file.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    _put(place, lambda file: file.write(text.encode()))


def _put(place: Path, write: Callable[[BinaryIO], Any]) -> None:
    """Write a file completely or not at all."""
    try:
        with replacing(place, parents=True) as file:
            write(file)
    except OSError as error:
        raise InputError(f"--out {place}: cannot be written ({error.strerror or error})") from None
