"""Study files: their model, reading TOML, checking its keys, and the JSON Schema for editors."""

from __future__ import annotations

import json
import os
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, SupportsIndex

from pydantic import ConfigDict, Field, field_validator, model_validator

from toolkit._present.files import open_descriptor, read_text_file, replacing
from toolkit._present.messages import shorten
from toolkit._present.text import HIDDEN, visible
from toolkit.client._versions import FindSteps, VersionPlan, listed_versions
from toolkit.errors import InputError, StudyError
from toolkit.gas._calls import KINDS, CallEntry
from toolkit.gas._file_model import TOP_LEVEL_KEYS, FileModel, misspelt
from toolkit.gas._rules import Threshold, Waiver, read_waivers

if TYPE_CHECKING:
    from datetime import datetime

# Names of the studies that are part of the package.
SHIPPED = ("demo",)

# How to get a file that is missing.
_MISSING = {
    "study": "`ledger-toolkit study new {path}` writes one; `demo` is a study in the package",
    "snapshot": "`ledger-toolkit snapshot STUDY --out {path}` writes one",
}
# The file may be someone else's; a megabyte has room for thousands of calls.
_MAX_BYTES = 1_000_000
# Longer lines are not read as labels: a label has at most a few hundred characters.
_MAX_LINE = 2_000
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
_LONG_KEY = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){64}""")


class VersionChoice(FileModel):
    """The ledger versions at which views are read: either `plan` or `find_steps`."""

    plan: str | list[int] | None = None
    """A version plan, such as "0:-1/200" for 200 evenly spaced versions (-1 is the head), or a list of versions."""
    find_steps: str | None = None
    """A range such as "0:-1"; only the versions needed to locate the steps between `initial` readings are read."""
    initial: int = 33
    """Number of evenly spaced versions with which the search starts."""
    max_requests: int = 2000
    """Maximum number of requests of the search per call; steps not resolved by then are reported as intervals."""

    @field_validator("plan", mode="before")
    @classmethod
    def _text_or_versions(cls, plan: Any) -> Any:
        if plan is None or isinstance(plan, str):
            return plan
        if isinstance(plan, list) and all(isinstance(one, SupportsIndex) and not isinstance(one, bool) for one in plan):
            return plan
        raise ValueError(f"expected a version plan such as '0:-1/200' or a list of whole numbers, got {shorten(plan)}")

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.plan is None) == (self.find_steps is None):
            raise ValueError("give either plan or find_steps, not both")
        # Both are parsed now, so that the error names their place in the file.
        _ = self.parsed, self.search
        return self

    @property
    def words(self) -> str:
        """The choice in a few words."""
        if self.find_steps is not None:
            return f"search for steps in {self.find_steps}"
        return self.plan if isinstance(self.plan, str) else f"a list of {len(self.plan or ()):,}"

    @property
    def written(self) -> str | list[int] | None:
        """The range of a step search, or the plan, as given."""
        return self.find_steps or self.plan

    @cached_property
    def parsed(self) -> VersionPlan | Sequence[int | datetime]:
        """The range of a step search, or the plan, in parsed form; a list of versions is returned as given."""
        if isinstance(self.written, str):
            return listed_versions(self.written) or VersionPlan.parse(self.written)
        return self.written or [-1]

    @cached_property
    def search(self) -> FindSteps | None:
        """The step search, or None if the versions are a plan."""
        if self.find_steps is None:
            return None
        return FindSteps(self.find_steps, initial=self.initial, max_requests=self.max_requests)

    @classmethod
    def of(cls, versions: Any) -> VersionChoice:
        """Return a choice from any form that the Python interface accepts.

        Parameters
        ----------
        versions : VersionChoice, FindSteps, mapping, str or iterable of int

        Raises
        ------
        InputError
            If `versions` has any other form.
        """
        if isinstance(versions, cls):
            return versions
        if isinstance(versions, FindSteps):
            return cls(find_steps=versions.versions, initial=versions.initial, max_requests=versions.max_requests)
        if isinstance(versions, Mapping):
            return cls.model_validate(dict(versions))
        if isinstance(versions, str):
            return cls(plan=versions)
        if not isinstance(versions, Iterable):
            raise InputError(
                "expected a version plan such as '0:-1/200', FindSteps, or a list or range of whole numbers, "
                f"got {shorten(versions)}"
            )
        return cls(plan=list(versions))


class StudyFields(FileModel):
    """The fields that a study file and a `Study` have in common."""

    title: str = "Gas study"
    """The title of reports."""
    requests_per_second: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Maximum number of requests started per second on each node; unlimited by default."""
    versions: VersionChoice
    """The ledger versions at which views are read."""
    thresholds: Threshold | None = None
    """How much more gas any call may use before a comparison fails."""


class StudyFile(StudyFields):
    """A gas study: which calls are observed on which nodes at which ledger versions."""

    model_config = ConfigDict(json_schema_extra={"not": {"required": ["node", "nodes"]}})

    node: str = "embedded"
    """Where to read: embedded, mainnet, testnet, devnet, local, or an http(s) URL."""
    nodes: Annotated[list[str], Field(min_length=1)] | None = None
    """Several nodes to use instead of `node`."""
    call: Annotated[list[CallEntry], Field(min_length=1)]
    """The calls of the study; write [[call]] above each one."""
    waiver: tuple[Waiver, ...] = ()
    """Calls whose regressions are excused, or sources that need not be judged, for a time; write [[waiver]] above each
    one.
    """


def read_toml(source: str | Path, what: str) -> dict[str, Any]:
    """Read a TOML file from an untrusted source.

    Parameters
    ----------
    source : str or Path
    what : str
        What is read, for messages, such as ``study``, which may also be the name of a study in the package.

    Returns
    -------
    dict

    Raises
    ------
    StudyError
        If the file does not exist, cannot be read, is too large, or is not TOML.
    """
    return toml_of(text_of(source, what), source, what)


def toml_of(text: str, source: str | Path, what: str) -> dict[str, Any]:
    """Return the content of a TOML file; `source` and `what` name it in messages.

    Raises
    ------
    StudyError
        If the text is not TOML.
    """
    if _LONG_KEY.search(text):  # the time of tomllib is quadratic in the parts of a key
        raise StudyError(f"{what} {source}: a key must have at most 64 parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise StudyError(f"{what} {source}: nested too deeply to be a {what}") from None
    except ValueError as error:  # also for an integer with thousands of digits
        raise StudyError(f"{what} {source}: not TOML: {str(error)[:200]}") from None


def read_waiver_file(source: str | Path) -> tuple[Waiver, ...]:
    """Read a TOML file that has only ``[[waiver]]`` entries.

    Raises
    ------
    StudyError
        If the file cannot be read, or a value in it is not valid; the message names the place.
    """
    document = read_toml(source, "waivers")
    for key in document:
        if key != "waiver":
            raise StudyError(f"waivers {source}: {misspelt(key, ['waiver'], 'of a waiver file')}")
    try:
        return read_waivers(document.get("waiver", []))
    except InputError as error:
        raise StudyError(f"waivers {source}: {error.args[0]}", *error.args[1:]) from None


def label_lines(path: str | Path) -> dict[str, int]:
    """Return the line number of each label in a study file, except for calls of grids and calls without a label."""
    found: dict[str, int] = {}
    for number, line in enumerate(text_of(path, "study").split("\n"), start=1):
        # As a document of its own, whatever its quotes and comments are; other lines that are not TOML have no label.
        with suppress(ValueError, RecursionError):
            if line.lstrip().startswith("label") and len(line) <= _MAX_LINE:
                found.setdefault(str(tomllib.loads(line.strip()).get("label")), number)
    return found


def checked_keys(document: Any) -> None:
    """Raise StudyError for a document with a key or a table that a study file does not have."""
    known = StudyFile.model_fields
    for key in document:
        if key == "use_api_key":
            raise StudyError(
                f"`{key}` cannot be set in a study file, which someone else may have written; use the option "
                "--use-api-key or Study.load(..., use_api_key=True)"
            )
        if key not in known:
            raise StudyError(misspelt(key, known, "of a study file"))
    for name in ("call", "waiver"):
        if isinstance(document.get(name), dict):
            raise StudyError(f"`{name}`: expected a list; write [[{name}]], in double brackets, above each entry")


def file_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of study files."""
    schema = StudyFile.model_json_schema()
    call, versions = schema["$defs"]["CallEntry"], schema["$defs"]["VersionChoice"]
    call["oneOf"] = [{"required": [name]} for name in KINDS]
    by_grid = {"required": ["grid"], "properties": {"grid": {"required": ["sender"]}}}
    call |= {"if": {"required": ["simulate"]}, "then": {"anyOf": [{"required": ["sender"]}, by_grid]}}
    schema["$defs"]["Waiver"]["oneOf"] = [{"required": ["call"]}, {"required": ["source"]}]
    versions["oneOf"] = [{"required": [name]} for name in ("plan", "find_steps")]
    schema["$comment"] = "written by: ledger-toolkit study schema"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def write_starter(path: str | Path) -> Path:
    """Write a commented study file to start from; it can be run unchanged.

    Raises
    ------
    StudyError
        If the path exists, or cannot be written.
    """
    return write_study(_shipped("starter"), path)


def toml_value(value: Any) -> str:
    """Return a value as TOML; None, an empty Option, becomes the form that nodes accept."""
    match value:
        case None:
            return "{ vec = [] }"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            shown = json.dumps(value, ensure_ascii=False)
            # What a reader would not see is escaped; half a surrogate pair has no escape in TOML.
            kinds = HIDDEN - {"Cs"}
            return "".join(rf"\U{ord(one):08X}" if unicodedata.category(one) in kinds else one for one in shown)
        case Mapping():
            return "{ " + ", ".join(f"{_toml_key(name)} = {toml_value(one)}" for name, one in value.items()) + " }"
    return "[" + ", ".join(toml_value(one) for one in value) + "]"


def _toml_key(name: str) -> str:
    return name if _PLAIN_KEY.fullmatch(name) else toml_value(name)


def written_study(document: Mapping[str, Any]) -> str:
    """Return the content of a study file as TOML text.

    Parameters
    ----------
    document : mapping
        The document as returned by `Study.document`; keys with default values may be omitted.
    """
    given = {name: value for name, value in document.items() if value is not None}
    parts = ["\n".join(f"{name} = {toml_value(given[name])}" for name in TOP_LEVEL_KEYS if name in given)]
    parts += [_toml_table(f"[{name}]", given[name]) for name in ("versions", "thresholds") if name in given]
    parts += [_toml_table(f"[[{name}]]", entry) for name in ("call", "waiver") for entry in given.get(name, ())]
    return "\n\n".join(part for part in parts if part) + "\n"


def _toml_table(head: str, content: Mapping[str, Any]) -> str:
    return "\n".join([head, *(f"{_toml_key(name)} = {toml_value(value)}" for name, value in content.items())])


def write_study(text: str, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write the text of a study file atomically; see `Study.save`."""
    place = Path(path)
    new = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        content = text.encode()
    except UnicodeEncodeError:
        raise StudyError(f"{visible(place)} cannot be written: its text cannot be encoded as UTF-8") from None
    try:
        with replacing(place) if overwrite else os.fdopen(open_descriptor(place, new), "wb") as file:
            file.write(content)
    except FileExistsError:
        raise StudyError(f"{visible(place)} already exists; choose another name, or remove it first") from None
    except OSError as error:
        raise StudyError(f"{visible(place)} cannot be written: {error.strerror}") from None
    return place


def _shipped(name: str) -> str:
    return resources.files("toolkit.gas").joinpath("studies", f"{name}.toml").read_text("utf-8")


def text_of(source: str | Path, what: str) -> str:
    """Return the text of a TOML file; see `read_toml`."""
    if what == "study" and str(source) in SHIPPED:
        return _shipped(str(source))
    path = Path(source)
    try:
        content = read_text_file(path, limit=_MAX_BYTES + 1)
    except OSError as error:
        missing = _MISSING.get(what) if isinstance(error, FileNotFoundError) else None
        advice = (missing or "expected a TOML file").format(path=path)
        raise StudyError(f"{what} {path}: {error.strerror}; {advice}") from None
    if len(content) > _MAX_BYTES:
        raise StudyError(f"{what} {path}: the file is larger than {_MAX_BYTES:,} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise StudyError(f"{what} {path}: not UTF-8 text") from None
