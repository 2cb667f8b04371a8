"""The base model of study files, and error messages that name the call and the key."""

from __future__ import annotations

import ast
import inspect
import re
from difflib import get_close_matches
from itertools import pairwise
from textwrap import dedent
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from toolkit._present.messages import shorten
from toolkit._present.text import visible
from toolkit.errors import InputError, StudyError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection


T = TypeVar("T")

# Keys for the top of a study file. TOML assigns a key that is written further down to the table above it.
TOP_LEVEL_KEYS = ("title", "node", "nodes", "requests_per_second")

# What a file must have, by the type of pydantic's error, whose message would say "dictionary" for a table.
_EXPECTED = {
    "string_type": "expected text",
    "list_type": "expected a list",
    "tuple_type": "expected a list",
    "dict_type": "expected a table",
    "model_type": "expected a table",
    "missing": "this key is required",
}
# The beginning of a message that already names a place within the part.
_STARTS_WITH_PLACE = re.compile(r"(?:`[\w.]+`:|grid entry \d+[,:]) ")
# Characters of a name in a message, which is one line.
_MAX_NAME = 60


class FileModel(BaseModel):
    """Base class of the models of a study file.

    Models are immutable and reject unknown keys. The docstring of a field is its description in the JSON Schema.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, given: Any) -> Any:
        """Reject unknown keys here, because the message of ``extra="forbid"`` does not suggest the intended key."""
        unknown = [key for key in given if key not in cls.model_fields] if isinstance(given, dict) else []
        if unknown:
            raise ValueError(misspelt(unknown[0], cls.model_fields))
        return given

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: Any) -> dict[str, Any]:
        """Return the JSON Schema with the docstrings of the fields.

        pydantic can read them too, but does so whenever the classes are made, which takes a tenth of a second.
        """
        schema, docstrings = handler(core), _field_docstrings(cls)
        for name, field in handler.resolve_ref_schema(schema)["properties"].items():
            field["description"] = docstrings[name]
        return schema  # type: ignore[no-any-return]  # of a handler without annotations


def _field_docstrings(model: type[FileModel]) -> dict[str, str]:
    """Return the docstrings of a model's fields, inherited ones included."""
    found: dict[str, str] = {}
    for one in reversed([base for base in model.__mro__ if issubclass(base, FileModel)]):
        body = ast.parse(dedent(inspect.getsource(one))).body[0].body  # type: ignore[attr-defined]  # of a class
        for field, text in pairwise(body):
            match field, text:
                case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(docstring))):
                    found[name] = inspect.cleandoc(docstring)
    return found


def placed(place: str, make: Callable[..., T], *given: Any) -> T:
    """Create a part of a study; error messages name the place of the part.

    Parameters
    ----------
    place : str
        Where the part is, such as ``call 3 ('transfer')``.
    make : callable
        Creates the part.
    *given
        Arguments for `make`.

    Returns
    -------
    object
        The part.

    Raises
    ------
    StudyError
        If `make` raises `InputError`, `TypeError` or pydantic's `ValidationError`.
    """
    try:
        return make(*given)
    except ValidationError as error:
        raise StudyError(_complaint(place, error)) from None
    except (InputError, TypeError) as error:
        raise StudyError(_joined(place, str(error))) from None


def misspelt(key: object, known: Collection[str], where: str = "here") -> str:
    """Return the message about an unknown key, with the closest known key, or all keys if none is close."""
    if key in TOP_LEVEL_KEYS and key not in known:
        return f"`{key}` is not a key {where}; it is a key of the whole study: write it above the first [table]"
    close = get_close_matches(str(key), known, n=1)
    choices = f"did you mean `{close[0]}`?" if close else f"the keys are {', '.join(sorted(known))}"
    return f"`{visible(key, _MAX_NAME)}` is not a key {where}; {choices}"


def named_place(what: str, number: int, name: object) -> str:
    """Return the place of a list entry, counted from 1: ``call 3 ('transfer')``."""
    if isinstance(name, str) and name:
        return f"{what} {number} ({visible(name, _MAX_NAME)!r})"
    return f"{what} {number}"


def _complaint(place: str, error: ValidationError) -> str:
    """Return the message for the first validation error, with its place and the number of further errors."""
    first = error.errors(include_url=False)[0]
    keys = [str(part + 1) if isinstance(part, int) else part for part in first["loc"]]
    place = f"{place}, `{'.'.join(keys)}`" if keys else place
    more = f" (further errors: {error.error_count() - 1})" if error.error_count() > 1 else ""
    if first["type"] == "value_error":  # raised by our own validators: the message is complete
        words = first["msg"].removeprefix("Value error, ")
    else:
        words = _EXPECTED.get(first["type"]) or first["msg"].replace("Input should be", "expected")
        words = re.sub(r"^expected (greater|less)", r"expected a number \1", words)
        if first["type"] != "missing":
            words += f", got {shorten(first['input'])}"
    return f"{_joined(place, words)}{more}"


def _joined(place: str, text: str) -> str:
    """Join a place and a message, which may itself start with a key or a grid entry."""
    return f"{place}, {text}" if _STARTS_WITH_PLACE.match(text) else f"{place}: {text}"
