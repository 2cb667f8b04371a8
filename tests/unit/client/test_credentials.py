"""Secrets in texts that came from elsewhere: found in every spelling, and nothing else is touched."""

from __future__ import annotations

import base64
import html
import json
import pickle
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.client._http import MASK, NO_CREDENTIALS, Credentials
from toolkit.errors import InputError, SchemaError

KEY = 'aB3/x+Y9"q=7\\zT&4%<k'
PASSWORD = "pw/é \"'&<+=日9%41"  # noqa: S105 - invented
LOGIN = f"me:{quote(PASSWORD, safe='')}"


def lower_hex(text):
    quoted = quote(text, safe="")
    return "".join(f"%{part[:2].lower()}{part[2:]}" if place else part for place, part in enumerate(quoted.split("%")))


SPELLINGS = {
    "as it is": str,
    "upper case": str.upper,
    "percent-encoded": lambda text: quote(text, safe=""),
    "percent-encoded in part": quote,
    "lower-case hex": lower_hex,
    "every byte percent-encoded": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "percent-encoded twice": lambda text: quote(quote(text, safe=""), safe=""),
    "JSON": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "JSON in ASCII": lambda text: json.dumps(text)[1:-1],
    "JSON with slashes escaped": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    "JSON, all escapes": lambda text: "".join(f"\\u{ord(one):04x}" for one in text),
    "JSON in JSON": lambda text: json.dumps(json.dumps(text)[1:-1])[1:-1],
    "HTML": html.escape,
    "HTML, decimal": lambda text: "".join(f"&#{ord(one)};" for one in text),
    "HTML, hexadecimal": lambda text: "".join(f"&#x{ord(one):X};" for one in text),
    "HTML of a URL": lambda text: html.escape(quote(text, safe="")),
    "repr": lambda text: repr(text)[1:-1],
    "repr of bytes": lambda text: repr(text.encode())[2:-1],
    "ascii": lambda text: ascii(text)[1:-1],
}


def encoded(text, *, url_safe, padded):
    coded = (base64.urlsafe_b64encode if url_safe else base64.b64encode)(text.encode()).decode()
    return coded if padded else coded.rstrip("=")


@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS)
@pytest.mark.parametrize(("credentials", "secret"), [(Credentials(KEY), KEY), (Credentials(None, LOGIN), PASSWORD)])
def test_a_text_with_a_secret_in_any_spelling_is_not_shown(credentials, secret, spell):
    """The whole text is replaced: no part of it can give the secret away."""
    assert credentials.mask(f"bad key: [{spell(secret)}], sorry") == MASK


@pytest.mark.parametrize("url_safe", [False, True])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("password", ["hunter2-hunter2", "ÿþ?>~~ÿ¿", PASSWORD])
def test_base64_of_a_login_is_masked(password, url_safe, padded):
    """Both alphabets, with padding and without."""
    credentials = Credentials(None, f"me:{quote(password, safe='')}")
    coded = encoded(f"me:{password}", url_safe=url_safe, padded=padded)
    assert credentials.mask(f"Basic {coded} refused") == MASK
    assert credentials.mask(f"{credentials.authorization}") == MASK


@pytest.mark.parametrize("length", [8, 12, 19])
def test_pieces_are_masked(length):
    """A gateway shows the beginning of a key, its end, or a text is cut within it."""
    credentials = Credentials(KEY)
    for piece in (KEY[:length], KEY[-length:], KEY[1 : length + 1]):
        assert credentials.mask(f"key {piece}... is unknown") == MASK


@pytest.mark.parametrize("length", range(4, len(KEY)))
def test_a_text_that_is_cut_within_a_key_does_not_show_its_beginning(length):
    """However short the beginning at the end of the text."""
    assert Credentials(KEY).mask(f"bad key {KEY[:length]}") == MASK


def test_texts_without_a_secret_are_the_same_object():
    """Nothing is copied, decoded or re-encoded."""
    text = "table item not found: 100%, \\u0041 &amp; %41 " * 100
    assert Credentials(KEY, LOGIN).mask(text) is text
    assert NO_CREDENTIALS.mask(KEY) is KEY


def test_a_login_without_a_password_hides_its_name():
    """A token that stands where the user name does."""
    assert Credentials(None, "t0ken-t0ken").mask("no such user t0ken-t0ken") == MASK
    assert Credentials(None, "t0ken-t0ken:").mask("no such user t0ken-t0ken") == MASK
    assert Credentials(None, "somebody:pa55word").mask("no such user somebody") == "no such user somebody"


def test_what_is_too_short_to_be_a_secret_hides_no_plain_words():
    """Three characters are not masked."""
    assert Credentials("key").mask("bad key") == "bad key"


@given(secret=st.text(st.characters(codec="ascii", categories=("L", "N", "P", "S")), min_size=8), text=st.text())
def test_any_key_is_masked_in_any_text(secret, text):
    """No spelling of the key is left, whatever stands around it; and masking twice changes nothing more."""
    credentials = Credentials(secret)
    for spell in SPELLINGS.values():
        shown = credentials.mask(f"{text} {spell(secret)} {text}")
        assert secret.lower() not in shown.lower()
        assert credentials.mask(shown) == shown


def test_an_error_that_quotes_an_answer_is_masked_in_place():
    """Message and column; class and rows stay."""
    error = SchemaError(f"expected u64, got {KEY!r}", column=f"value.{KEY}", rows=[3])
    assert Credentials(KEY).mask_error(error) is error
    assert (str(error), error.column, error.rows) == (MASK, MASK, (3,))


def test_credentials_show_and_pickle_nothing():
    """Neither repr nor pickle has them."""
    for credentials in (Credentials(KEY), Credentials(None, LOGIN)):
        assert KEY not in repr(credentials)
        assert "pw" not in repr(credentials)
        with pytest.raises(TypeError, match="pickle the node"):
            pickle.dumps(credentials)


def test_a_key_that_no_header_can_carry_is_refused():
    """The message does not show it."""
    with pytest.raises(InputError, match="header") as caught:
        Credentials("secret\nsecret")
    assert "secret" not in str(caught.value)
