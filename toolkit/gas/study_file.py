"""Study files: reading one from disk, its keys, and the JSON Schema for editors."""

from __future__ import annotations

import re
import tomllib
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from toolkit._present.files import read_file
from toolkit._present.text import visible
from toolkit.errors import InputError, StudyError
from toolkit.gas.calls import CallEntry
from toolkit.gas.file_model import FileModel, misspelt
from toolkit.gas.thresholds import Threshold, Waiver, read_waivers
from toolkit.gas.versions import VersionChoice

__all__ = ["SHIPPED", "StudyFile", "checked_keys", "file_schema", "read_toml", "read_waiver_file", "write_starter"]

SHIPPED = ("demo",)
"""Studies that come with the package."""

_MOST_BYTES = 1_000_000
_STARTER = "starter.toml"
_LONG_KEY = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){64}""")


class StudyFile(FileModel):
    """A gas study: which calls to observe on which nodes at which ledger versions."""

    model_config = ConfigDict(json_schema_extra={"not": {"required": ["node", "nodes"]}})

    title: str = "Gas study"
    """What reports are headed with."""
    node: str = "embedded"
    """Where to read: embedded, mainnet, testnet, devnet, local, or an http(s) URL."""
    nodes: Annotated[list[str], Field(min_length=1)] | None = None
    """Several nodes, instead of `node`."""
    requests_per_second: Annotated[float, Field(gt=0)] | None = None
    """Most requests started per second on each node; unlimited by default."""
    versions: VersionChoice
    """Which ledger versions the views are read at."""
    call: Annotated[list[CallEntry], Field(min_length=1)]
    """The calls; write [[call]] before each."""
    thresholds: Threshold | None = None
    """How much dearer any call may become before a comparison fails."""
    waiver: tuple[Waiver, ...] = ()
    """Calls that are excused, or sources that need not be judged, for a time; write [[waiver]] before each."""


def read_toml(source: str | Path, what: str) -> dict[str, Any]:
    """Read a TOML file that may be anything.

    Parameters
    ----------
    source : str or Path
    what : str
        ``study``, or what else is read, for texts.

    Returns
    -------
    dict

    Raises
    ------
    StudyError
        If there is no such file, or it is no TOML of a reasonable size.
    """
    text = _text(source, what)
    if _LONG_KEY.search(text):  # tomllib takes time by the square of a key's parts
        raise StudyError(f"{what} {source}: a key with more than 64 parts is no key of a {what}")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise StudyError(f"{what} {source}: nested too deeply to be a {what}") from None
    except ValueError as error:  # also for a number of thousands of digits
        raise StudyError(f"{what} {source}: not TOML: {str(error)[:200]}") from None


def read_waiver_file(source: str | Path) -> tuple[Waiver, ...]:
    """Read a TOML file of ``[[waiver]]`` entries and nothing else.

    Raises
    ------
    StudyError
        If the file cannot be read, or something in it cannot be used, naming the place.
    """
    document = read_toml(source, "waivers")
    for key in document:
        if key != "waiver":
            raise StudyError(f"waivers {source}: {misspelt(key, ['waiver'], 'of a file of waivers')}")
    try:
        return read_waivers(document.get("waiver", []))
    except InputError as error:
        raise StudyError(f"waivers {source}: {error}") from None


def checked_keys(document: Any) -> None:
    """Refuse a document whose keys or tables are not those of a study file, naming the key."""
    known = StudyFile.model_fields
    for key in document:
        if key == "use_api_key":
            raise StudyError(
                f"`{key}` is not a key of a study file, which may come from somebody else: who runs it says so, with "
                "--use-api-key or Study.load(..., use_api_key=True)"
            )
        if key not in known:
            raise StudyError(misspelt(key, known, "of a study file"))
    if not isinstance(document.get("versions"), dict):
        raise StudyError('`versions`: expected a table such as [versions] with plan = "0:-1/200"')
    if not isinstance(document.get("thresholds", {}), dict):
        raise StudyError("`thresholds`: expected a table such as [thresholds] with percent = 2")
    for name in ("call", "waiver"):
        if isinstance(document.get(name), dict):
            raise StudyError(f"`{name}`: a study has a list of them; write [[{name}]] with two brackets before each")


def file_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of study files."""
    schema = StudyFile.model_json_schema()
    call = schema["$defs"]["CallEntry"]
    call["oneOf"] = [{"required": [name]} for name in ("view", "simulate", "committed")]
    by_grid = {"required": ["grid"], "properties": {"grid": {"required": ["sender"]}}}
    call |= {"if": {"required": ["simulate"]}, "then": {"anyOf": [{"required": ["sender"]}, by_grid]}}
    schema["$defs"]["Waiver"]["oneOf"] = [{"required": ["call"]}, {"required": ["source"]}]
    versions = schema["$defs"]["VersionChoice"]
    versions["oneOf"] = [{"required": [name]} for name in ("plan", "find_steps")]
    schema["$comment"] = "written by: ledger-toolkit study schema"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_without_null(schema)}


def write_starter(path: str | Path) -> Path:
    """Write a commented study file to start from, which runs as it is.

    Raises
    ------
    StudyError
        If there is something at the path already, or nothing can be written there.
    """
    place = Path(path)
    text = resources.files("toolkit.gas").joinpath("studies", _STARTER).read_text("utf-8")
    try:
        with place.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise StudyError(f"{place} exists already and is left as it is; choose another name") from None
    except OSError as error:
        raise StudyError(f"{place} cannot be written: {error.strerror}") from None
    return place


def _text(source: str | Path, what: str) -> str:
    if what == "study" and str(source) in SHIPPED:
        return resources.files("toolkit.gas").joinpath("studies", f"{source}.toml").read_text("utf-8")
    path = Path(source)
    try:
        content = read_file(path, limit=_MOST_BYTES + 1)
    except OSError as error:
        more = f", or one that ships: {', '.join(SHIPPED)}" if what == "study" else ""
        raise StudyError(f"{what} {path}: {error.strerror}; give a TOML file{more}") from None
    except ValueError:  # a NUL, which no path has
        raise StudyError(f"{what} {visible(path)}: no path of a file") from None
    if len(content) > _MOST_BYTES:
        raise StudyError(f"{what} {path}: the file is larger than {_MOST_BYTES:,} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise StudyError(f"{what} {path}: not UTF-8 text") from None


def _without_null(schema: Any) -> Any:
    """Drop the null of optional keys: TOML has none, and an editor would offer it."""
    if isinstance(schema, list):
        return [_without_null(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: _without_null(item) for name, item in schema.items() if not (name == "default" and item is None)}
    choices = kept.get("anyOf")
    if choices and {"type": "null"} in choices:
        choices = [choice for choice in choices if choice != {"type": "null"}]
        del kept["anyOf"]
        kept = {**choices[0], **kept} if len(choices) == 1 else {"anyOf": choices, **kept}
    return kept
