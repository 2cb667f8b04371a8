"""Credentials of a node, an API key or a login: how they are sent, and how they are masked in texts."""

from __future__ import annotations

import base64
import html
import re
from functools import cached_property
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import unquote

from toolkit._present.text import ELLIPSIS
from toolkit.errors import InputError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MASK = "***"

# Shorter secrets are not masked: that would hide plain words.
_MIN_SECRET = 4
# Any this many successive characters of a secret are masked; of a shorter secret, all of it.
_FRAGMENT = 8
# Maximum number of characters that are searched; the rest of a text is cut off.
_MAX_TEXT = 20_000
# Maximum number of times a text is decoded: an answer may quote JSON inside JSON inside a URL.
_MAX_LAYERS = 4
# The mark at the end of a text that was cut; see `toolkit._present.messages.cut_text`.
_CUT = re.compile(rf"{ELLIPSIS}(?: \([0-9,]+ more characters\))?\Z")
_ESCAPE = re.compile(
    r"""(?P<percent>(?:%[0-9a-fA-F]{2})+)
      | (?P<bytes>(?:\\x[0-9a-fA-F]{2})+)
      | (?P<pair>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})
      | \\u(?P<u4>[0-9a-fA-F]{4})
      | \\(?P<plain>["'/\\])
      | (?P<entity>&(?:\#[0-9]{1,7};?|\#[xX][0-9a-fA-F]{1,6};?|[a-zA-Z]{2,31};))""",
    re.VERBOSE,
)


class Credentials:
    """An API key, or the login of a URL, for one node. The repr shows neither, and it cannot be pickled.

    Parameters
    ----------
    api_key : str, optional
        Sent as a bearer token.
    login : str, optional
        ``user:password``, percent-encoded as in a URL; sent if there is no API key.
    unsent : bool, default False
        Whether the environment has an API key that is not sent to this node.
    proxies : iterable of str
        Logins of proxies, percent-encoded as in a URL. They are masked only: a proxy's error page may echo one.

    Raises
    ------
    InputError
        If the API key cannot be sent in a header. The message does not show it.

    Examples
    --------
    >>> Credentials("secret-key").mask("the node answered: unknown key secret-key")
    'the node answered: unknown key ***'
    """

    def __init__(
        self,
        api_key: str | None = None,
        login: str | None = None,
        *,
        unsent: bool = False,
        proxies: Iterable[str] = (),
    ) -> None:
        if api_key is not None and not _fits_a_header(api_key):
            raise InputError(
                "api_key has a line break, surrounding space or another character that cannot be sent in a header"
            )
        self.api_key = api_key
        self.login = login
        self.unsent = unsent
        self.proxies = tuple(proxies)

    def __repr__(self) -> str:
        kind = "an API key" if self.api_key is not None else "a login" if self.login is not None else "none"
        return f"<Credentials: {kind}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("credentials cannot be pickled; pickle the node instead")

    @cached_property
    def authorization(self) -> str | None:
        """Value of the ``Authorization`` header, or None without credentials."""
        if self.api_key is not None:
            return f"Bearer {self.api_key}"
        return None if self.login is None else f"Basic {_base64(unquote(self.login))}"

    def mask(self, text: str) -> str:
        r"""Return a text with every part of the secrets replaced by ``***``.

        Secrets are found in any case, percent-encoded, with JSON escapes (``\u0041``, ``\/``) or HTML entities, with
        several of these encodings combined, in base64 and base64url (also of ``user:password``), and in pieces of 8 or
        more characters, as texts that were cut have them. Texts of more than 20,000 characters are cut.

        Parameters
        ----------
        text : str
            Text of an answer, or of a library that quotes one. Not for texts of the toolkit: a short password may be
            one of their words.

        Returns
        -------
        str
        """
        if not self._forms:
            return text
        shown = layer = text[:_MAX_TEXT] + ELLIPSIS if len(text) > _MAX_TEXT else text
        for _ in range(_MAX_LAYERS):
            masked = self._masked(layer)
            if masked != layer:  # shown as it is decoded here: less decoded, it shows other parts of the secret
                shown = masked
            before, layer = layer, _ESCAPE.sub(_meaning, layer)
            if layer == before:
                break
        return shown

    def mask_error(self, error: SchemaError) -> SchemaError:
        """Mask the message and the column of an error that quotes an answer, in place; return the error.

        The errors behind it quote the answer too and are removed. Tracebacks do not show them, but Dask pickles them.
        """
        error.args = tuple(self.mask(part) if isinstance(part, str) else part for part in error.args)
        error.column = None if error.column is None else self.mask(error.column)
        error.__cause__ = error.__context__ = None
        return error

    @cached_property
    def _forms(self) -> list[_Form]:
        secrets = {*_secrets(self.api_key, self.login)}.union(*(_secrets(None, login) for login in self.proxies))
        # A secret that contains an escape such as %41 is decoded together with the text around it.
        secrets |= {decoded for secret in secrets if len(decoded := _ESCAPE.sub(_meaning, secret)) >= _MIN_SECRET}
        return [_Form(secret) for secret in sorted(secrets)]

    def _masked(self, text: str) -> str:
        """Return a text with every part of the secrets replaced that is in it without further escapes."""
        folded = _folded(text)
        parts: list[str] = []
        reached = 0
        for start, end in sorted(place for form in self._forms for place in form.found(folded)):
            if start > reached or not parts:
                parts += [text[reached:start], MASK]
            reached = max(reached, end)
        return "".join([*parts, text[reached:]]) if parts else text


class _Form:
    """One form of a secret, prepared for searching."""

    def __init__(self, secret: str) -> None:
        folded = _folded(secret)
        self._size = size = min(len(folded), _FRAGMENT)
        self._pieces = {folded[at : at + size] for at in range(len(folded) - size + 1)}
        # Every piece of 8 characters contains one of these, so that most texts take only a few searches.
        short = max(1, (size + 1) // 2)
        self._signs = sorted({folded[at : at + short] for at in range(0, len(folded) - short + 1, short)})
        self._beginnings = [folded[:length] for length in range(size - 1, _MIN_SECRET - 1, -1)]

    def found(self, folded: str) -> Iterator[tuple[int, int]]:
        size = self._size
        if any(sign in folded for sign in self._signs):
            last = len(folded) - size
            yield from ((at, at + size) for at in range(last + 1) if folded[at : at + size] in self._pieces)
        whole = _CUT.sub("", folded)
        for beginning in self._beginnings:  # at the end of a text that was cut
            if whole.endswith(beginning):
                yield len(whole) - len(beginning), len(whole)
                return


def _secrets(api_key: str | None, login: str | None) -> Iterable[str]:
    """Yield the secrets, plain and in base64: the key, the password or, if there is none, the user name."""
    user, _, password = (login or "").partition(":")
    for secret in (api_key or "", unquote(password or user)):
        if len(secret) >= _MIN_SECRET:
            yield secret
            yield secret.replace(" ", "+")
            yield _base64(secret).rstrip("=")
            yield _base64(secret).rstrip("=").translate(_URL_SAFE)
    if login is not None and len(login) >= _MIN_SECRET:
        whole = _base64(unquote(login)).rstrip("=")
        yield whole
        yield whole.translate(_URL_SAFE)


_URL_SAFE = str.maketrans("+/", "-_")


def _base64(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "surrogateescape")).decode("ascii")


def _fits_a_header(text: str) -> bool:
    return text.isascii() and text.isprintable() and text.strip() == text != ""


def _folded(text: str) -> str:
    """Return a text in lower case, of the same length."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(one.lower() if len(one.lower()) == 1 else one for one in text)


def _meaning(match: re.Match[str]) -> str:
    """Return the decoded text of an escape."""
    whole = match.group()
    if match["percent"] or match["bytes"]:
        coded = bytes.fromhex(whole.replace("%", "").replace("\\x", ""))
        try:
            return coded.decode()
        except UnicodeDecodeError:
            return coded.decode("latin-1")
    if match["pair"]:
        return chr(0x10000 + ((int(whole[2:6], 16) - 0xD800) << 10) + int(whole[8:12], 16) - 0xDC00)
    if match["u4"]:
        return chr(int(match["u4"], 16))
    return match["plain"] or html.unescape(whole)


NO_CREDENTIALS = Credentials()
