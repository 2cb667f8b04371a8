"""The base model of study files, and error messages that name the call and the key."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from toolkit._present.messages import refusal
from toolkit._present.text import visible
from toolkit.errors import InputError, StudyError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator


T = TypeVar("T")
_Problem = tuple[tuple[str | int, ...], str]

# Keys for the top of a study file. TOML assigns a key that is written further down to the table above it.
TOP_LEVEL_KEYS = ("title", "node", "nodes", "requests_per_second")

# What a file must have, by the type of pydantic's error, whose message would say "dictionary" for a table.
_EXPECTED = {
    "string_type": "expected text",
    "list_type": "expected a list",
    "tuple_type": "expected a list",
    "dict_type": "expected a table",
    "model_type": "expected a table",
    "greater_than": "expected a number greater than {gt:g}",
    "greater_than_equal": "expected a number greater than or equal to {ge:g}",
    "less_than": "expected a number less than {lt:g}",
    "less_than_equal": "expected a number less than or equal to {le:g}",
}
# Characters of a name in a message, which is one line.
_MAX_NAME = 60


class FileModel(BaseModel):
    """Base class of the models of a study file.

    Models are immutable and reject unknown keys. The docstring of a field is its description in the JSON Schema.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, given: Any) -> Any:
        """Reject unknown keys here, because the message of ``extra="forbid"`` does not suggest the intended key."""
        unknown = [key for key in given if key not in cls.model_fields] if isinstance(given, dict) else []
        if unknown:
            raise key_problems(*(((), misspelt(key, cls.model_fields)) for key in unknown))
        return given


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
        raise _refused(place, _problems(error)) from None
    except StudyError as error:
        raise _refused(place, error.problems or [((), str(error))]) from None
    except (InputError, TypeError) as error:
        raise _refused(place, [((), str(error))]) from None


def key_problems(*problems: _Problem) -> InputError:
    """Return the error of a validator of several keys: what is wrong, each with its key and the index in its list."""
    error = InputError("; ".join(reason for _, reason in problems))
    error.problems = problems
    return error


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


def _problems(error: ValidationError) -> Iterator[_Problem]:
    """Yield the keys that are not valid, with the reasons."""
    for one in error.errors(include_url=False):
        reason = "this key is required" if one["type"] == "missing" else refusal(one, _EXPECTED)
        cause = one.get("ctx", {}).get("error")
        for keys, why in (isinstance(cause, InputError) and cause.problems) or [((), reason)]:
            names = [str(part + 1) if isinstance(part, int) else part for part in (*one["loc"], *keys)]
            yield (f"`{'.'.join(names)}`",) if names else (), why


def _refused(place: str, problems: Iterable[_Problem]) -> StudyError:
    """Return the error for a part of a study; what contains the part may add its own place in front."""
    placed_at = [((place, *path), reason) for path, reason in problems]
    error = StudyError(*(f"{', '.join(map(str, path))}: {reason}" for path, reason in placed_at))
    error.problems = tuple(placed_at)
    return error
