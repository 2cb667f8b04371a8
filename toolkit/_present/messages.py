"""Text for messages: values that may be huge or hostile, lines of the user's code, and complete tracebacks."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import FrameType

# Environment variable that shows whole tracebacks, on the command line and in notebooks.
DEBUG = "LEDGER_TOOLKIT_DEBUG"

# Maximum length of a text that a node wrote (messages, VM status, build) in errors, frames and reports.
MAX_TEXT = 2_000

# Maximum length of a type, a name or a list of them that a message quotes; a type of a node has up to 65,536.
MAX_NAMED = 400

_MAX_FOREIGN = 200  # characters of the text of a foreign exception
_MAX_MEANT = 2  # a third guess is rarely right and makes the message longer
_JSON_KINDS: dict[type, str] = {bool: "boolean", str: "string", bytes: "bytes", dict: "object"}
_JSON_KINDS |= dict.fromkeys((int, float), "number") | dict.fromkeys((list, tuple), "array")


def not_installed(what: str, package: str, extra: str) -> str:
    """Return a message that says what to install for a part of the toolkit whose package is missing."""
    return f"{what} needs {package}, which is not installed: pip install 'ledger-toolkit[{extra}]'"


def shorten(value: Any, limit: int = 80) -> str:
    """Return a value as ASCII text for a message.

    Parameters
    ----------
    value : object
        Any value, of any size. Objects other than the JSON types and bytes are shown by the name of their type.
    limit : int, default 80
        Maximum number of characters shown. The size of a longer value is stated after them.

    Returns
    -------
    str

    Examples
    --------
    >>> shorten("a" * 100, 5)
    "'aaaa... (100 characters)"
    >>> shorten([1, 2]), shorten(list(range(1000)))
    ('[1, 2]', 'list of 1000')
    """
    if isinstance(value, str):
        text = ascii(value[:limit])
        return f"{text[:limit]}... ({len(value)} characters)" if len(value) > limit else text
    if isinstance(value, (bytes, bytearray, memoryview)):
        head = bytes(value[: limit // 2]).hex()
        return f"0x{head}... ({len(value)} bytes)" if len(value) > limit // 2 else f"0x{head}"
    if isinstance(value, int) and value.bit_length() > 4 * limit:
        # Python does not print integers of more than some thousand digits.
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, (list, tuple, dict)):
        with suppress(ValueError, RecursionError):  # a very large int, or very deep nesting
            # An item takes at least two characters.
            if 2 * len(value) <= limit and len(text := ascii(value)) <= limit:
                return text
        return f"{type(value).__name__} of {len(value)}"
    text = ascii(value) if isinstance(value, (int, float, type(None))) else type(value).__name__
    return f"{text[:limit]}..." if len(text) > limit else text


def describe(value: Any) -> str:
    """Return the JSON kind of a value followed by the value, truncated.

    Examples
    --------
    >>> describe(5), describe("x"), describe(None), describe([1, 2, 3])
    ('number 5', "string 'x'", 'null', 'array of 3')
    """
    if value is None:
        return "null"
    if (kind := _JSON_KINDS.get(type(value))) is None:
        return f"a Python {type(value).__name__}"
    if isinstance(value, bool):
        return "boolean true" if value else "boolean false"
    if isinstance(value, (list, tuple, dict)):
        return f"{kind} of {len(value)}"
    return f"{kind} {shorten(value)}"


def escape(text: object) -> str:
    r"""Return the text of a foreign exception, which may quote hostile input, as ASCII of at most 200 characters.

    Examples
    --------
    >>> escape(ValueError("bad\x1b[2J"))
    'bad\\x1b[2J'
    """
    return ascii(str(text))[1:-1][:_MAX_FOREIGN]


def refusal(detail: Mapping[str, Any], expected: Mapping[str, str]) -> str:
    """Return why pydantic refused a value: what our own check says, or what was expected and what was given.

    Parameters
    ----------
    detail : mapping
        An item of ``ValidationError.errors()``.
    expected : mapping of str to str
        What to say in place of pydantic's message, by the type of the error; bounds are filled in.
    """
    context = detail.get("ctx", {})
    if detail["type"] == "value_error":  # raised by a validator of ours, whose message is complete
        return str(context["error"])
    words = expected.get(detail["type"], "").format(**context)
    return f"{words or detail['msg'].replace('Input should be', 'expected')}, got {shorten(detail['input'])}"


def cut_text(text: str, limit: int = MAX_TEXT) -> str:
    """Truncate a text from a node to a length that is reasonable in every row of a frame.

    Parameters
    ----------
    text : str
        Any text.
    limit : int, default 2,000
        Maximum number of characters returned.

    Returns
    -------
    str
        The text, or its start and the number of missing characters.

    Examples
    --------
    >>> cut_text("a" * 10, 4)
    'aaaa… (6 more characters)'
    """
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit:,} more characters)"


def debugging() -> bool:
    """Return whether the environment variable named by `DEBUG` is set, and not to 0."""
    return os.environ.get(DEBUG, "0") not in {"", "0"}


def whole_traceback(error: BaseException) -> list[str]:
    """Return the traceback of an error and of its causes, including those hidden by ``raise ... from None``."""
    import traceback

    summary = shown = traceback.TracebackException.from_exception(error)
    while (behind := shown.__cause__ or shown.__context__) is not None:
        shown.__suppress_context__ = False
        shown = behind
    return "".join(summary.format()).splitlines()


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question that suggests the known names closest to a misspelt one, or an empty string.

    Parameters
    ----------
    name : str
        The unknown name; case is ignored.
    known : iterable of str
        The known names.

    Examples
    --------
    >>> did_you_mean("dept", ["depth", "size"])
    'did you mean `depth`?'
    >>> did_you_mean("x", ["depth", "size"])
    ''
    """
    from difflib import get_close_matches

    spelt: dict[str, list[str]] = {}
    for one in dict.fromkeys(known):
        spelt.setdefault(one.lower(), []).append(one)
    wanted = name.lower()
    # Names are similar if at least 65 % of their letters are equal.
    close = [wanted] if wanted in spelt else get_close_matches(wanted, spelt, n=_MAX_MEANT, cutoff=0.65)
    meant = [one for key in close for one in spelt[key]][:_MAX_MEANT]
    return f"did you mean {' or '.join(f'`{one}`' for one in meant)}?" if meant else ""


# -- lines of the user's code ------------------------------------------------------------------------------------------


def raised_at(error: BaseException) -> str:
    """Return the line of the contract in which an error was raised, such as ``" (shop.py, line 7)"``.

    For a notebook cell, there is a line but no file.
    """
    import traceback

    walked = traceback.walk_tb(error.__traceback__)
    frames = [(frame.f_code.co_filename, line) for frame, line in walked if _is_users(frame)]
    return place(*frames[-1]) if frames else ""


def _is_users(frame: FrameType) -> bool:
    return not str(frame.f_globals.get("__name__")).startswith("toolkit.")


def place(file: str, line: int) -> str:
    """Describe a line of a file or of a notebook cell, in the form of `raised_at`."""
    from pathlib import Path

    source = Path(file)
    return f" ({source.name}, line {line})" if source.is_file() else f" (line {line})"
