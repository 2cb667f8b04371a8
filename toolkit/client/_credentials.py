"""Credentials of a node, an API key or a login: how they are sent, and how texts that quote them are masked."""

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
    from collections.abc import Iterable

MASK = "*** (not shown: it quotes the credentials)"

# Shorter secrets are not masked: that would hide plain words.
_MIN_SECRET = 4
# Any this many successive characters of a secret are a part of it; of a shorter secret, all of it.
_FRAGMENT = 8
# Maximum number of characters that are searched; the rest of a text is cut off.
_MAX_TEXT = 20_000
# Maximum number of times a text is decoded: an answer may quote JSON inside JSON inside a URL.
_MAX_LAYERS = 4
# The mark at the end of a text that was cut; see `toolkit._present.messages.cut_text`.
_CUT = re.compile(rf"{ELLIPSIS}(?: \([0-9,]+ more characters\))?\Z")
_ESCAPE = re.compile(r"""\\(?:u([0-9a-fA-F]{4})|(["'/\\]))""")
_URL_SAFE = str.maketrans("+/", "-_")


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
    '*** (not shown: it quotes the credentials)'
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
        r"""Return a text, or `MASK` in its place if it quotes a secret or a part of one.

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
        if not self._pieces:
            return text
        shown = layer = text[:_MAX_TEXT] + ELLIPSIS if len(text) > _MAX_TEXT else text
        for _ in range(_MAX_LAYERS):
            folded = layer.lower()
            # A text may have been cut within a secret.
            if any(piece in folded for piece in self._pieces) or _CUT.sub("", folded).endswith(self._beginnings):
                return MASK
            before, layer = layer, _decoded(layer)
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
    def _forms(self) -> set[str]:
        """The secrets in every form that a text may have once it is decoded."""
        found = {*_secrets(self.api_key, self.login)}.union(*(_secrets(None, login) for login in self.proxies))
        for _ in range(_MAX_LAYERS):  # a secret that contains an escape such as %41 is decoded with the text around it
            found |= {decoded for secret in found if len(decoded := _decoded(secret)) >= _MIN_SECRET}
        return {secret.lower() for secret in found}

    @cached_property
    def _pieces(self) -> list[str]:
        size = _FRAGMENT
        return sorted({one[at : at + size] for one in self._forms for at in range(max(1, len(one) - size + 1))})

    @cached_property
    def _beginnings(self) -> tuple[str, ...]:
        return tuple({one[:size] for one in self._forms for size in range(_MIN_SECRET, min(_FRAGMENT, len(one)))})


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


def _base64(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "surrogateescape")).decode("ascii")


def _fits_a_header(text: str) -> bool:
    return text.isascii() and text.isprintable() and text.strip() == text != ""


def _decoded(text: str) -> str:
    """Return a text with its HTML entities, percent-encoding, and escapes of JSON and Python decoded once."""
    plain = unquote(html.unescape(text).replace("\\x", "%"))
    found = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)) if escape[1] else escape[2], plain)
    return found.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # pairs of \\u escapes are one character


NO_CREDENTIALS = Credentials()
