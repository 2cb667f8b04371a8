"""Type tags from text: a tokenizer and a recursive descent with a depth limit. Also the house's one door to tags."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple, NoReturn

from toolkit._present.messages import describe, shorten
from toolkit.errors import InputError
from toolkit.move.address import parse_address
from toolkit.move.tag_types import (
    ABILITIES,
    MAX_TYPE_DEPTH,
    PRIMITIVES,
    FunctionType,
    Primitive,
    Reference,
    StructTag,
    TypeParameter,
    TypeTag,
    Vector,
    check_identifier,
    is_signer,
    substitute,
    wire_type,
)

__all__ = [
    "ABILITIES",
    "MAX_TYPE_DEPTH",
    "PRIMITIVES",
    "FunctionType",
    "Primitive",
    "Reference",
    "StructTag",
    "TypeParameter",
    "TypeTag",
    "Vector",
    "check_identifier",
    "is_signer",
    "parse_type_tag",
    "substitute",
    "wire_type",
]

_TOKEN = re.compile(r"[ \t\r\n]*(?:([A-Za-z0-9_$]+)|(::|[<>,&|()+]))")
_SPACE = re.compile(r"[ \t\r\n]*")
_PARAMETER = re.compile(r"T(0|[1-9][0-9]{0,4})")
_MAX_TEXT = 65_536


class _Token(NamedTuple):
    """A word or a mark, and where it starts; the end of the text is the empty mark."""

    text: str
    position: int
    is_word: bool


def parse_type_tag(text: str, *, abi: bool = False) -> TypeTag:
    """Read a type from its text; spaces do not matter.

    Parameters
    ----------
    text : str
        Such as ``u64``, ``vector<u8>``, ``0x1::coin::CoinStore<0x1::aptos_coin::AptosCoin>``.
    abi : bool, default False
        Whether to allow what only ABIs have: ``&T``, ``&mut T``, ``T0`` and function types.

    Returns
    -------
    TypeTag
        Frozen and hashable; ``str()`` of it is the canonical text.

    Raises
    ------
    InputError
        If the text is no type, or nests deeper than `MAX_TYPE_DEPTH`; it names the position.

    Examples
    --------
    >>> str(parse_type_tag("0x01::m::S<u8,vector< bool >>"))
    '0x1::m::S<u8, vector<bool>>'
    """
    try:
        return _parse(text, abi)
    except TypeError:  # an unhashable or otherwise impossible text
        raise InputError(f"a type is written as text, got {describe(text)}") from None


@lru_cache(maxsize=4096)
def _parse(text: str, abi: bool) -> TypeTag:  # noqa: FBT001  # one call site, which takes it by keyword
    """Read one type and nothing after it."""
    if len(text) > _MAX_TEXT:
        raise InputError(f"type {shorten(text, 40)}: longer than {_MAX_TEXT} characters")
    parser = _Parser(text, abi=abi)
    tag = parser.type_at(0)
    parser.expect("", "nothing after the type")
    return tag


class _Parser:
    """One pass over the tokens of one text."""

    def __init__(self, text: str, *, abi: bool) -> None:
        self.text = text
        self.abi = abi
        self.tokens = self._tokens()
        self.next = 0

    def _tokens(self) -> list[_Token]:
        tokens: list[_Token] = []
        position = 0
        while (match := _TOKEN.match(self.text, position)) is not None:
            word = match[1]
            tokens.append(_Token(word or match[2], match.start(1 if word else 2), bool(word)))
            position = match.end()
        end = _SPACE.match(self.text, position)
        position = end.end() if end else position
        if position < len(self.text):
            self.fail(position, f"unexpected character {shorten(self.text[position])}")
        return [*tokens, _Token("", position, is_word=False)]

    def fail(self, position: int, reason: str) -> NoReturn:
        """Refuse the text at a position, counted from 0."""
        raise InputError(f"type {shorten(self.text)}, position {position}: {reason}")

    def take(self) -> _Token:
        """Return the current token and step over it."""
        token = self.tokens[self.next]
        self.next += 1
        return token

    def accept(self, mark: str) -> bool:
        """Step over `mark` if it comes next."""
        found = not self.tokens[self.next].is_word and self.tokens[self.next].text == mark
        self.next += found
        return found

    def accept_word(self, word: str) -> bool:
        """Step over `word` if it comes next."""
        found = self.tokens[self.next].is_word and self.tokens[self.next].text == word
        self.next += found
        return found

    def expect(self, mark: str, wanted: str) -> None:
        """Step over `mark`, or refuse."""
        if not self.accept(mark):
            token = self.tokens[self.next]
            self.fail(token.position, f"expected {wanted}, got {_name(token)}")

    def type_at(self, depth: int) -> TypeTag:
        """Read one type that is nested in `depth` others."""
        token = self.take()
        if depth > MAX_TYPE_DEPTH:
            self.fail(token.position, f"nests deeper than the limit of {MAX_TYPE_DEPTH} types")
        if not token.is_word:
            return self._marked(token, depth)
        if self.accept("::"):
            return self._struct(token, depth)
        if token.text == "vector":
            self.expect("<", "'<' after vector")
            tag = Vector(self.type_at(depth + 1))
            self.expect(">", "'>'")
            return tag
        if token.text in PRIMITIVES:
            return Primitive(token.text)
        parameter = _PARAMETER.fullmatch(token.text) if self.abi else None
        if parameter:
            return TypeParameter(int(parameter[1]))
        return self.fail(
            token.position,
            f"unknown type {shorten(token.text, 40)} (expected bool, u8..u256, i8..i256, address, signer, "
            "vector<..> or address::module::Name)",
        )

    def _marked(self, token: _Token, depth: int) -> TypeTag:
        """Read what starts with a mark: references and function types."""
        if token.text in {"&", "|"} and not self.abi:
            kind = "reference" if token.text == "&" else "function type"
            self.fail(token.position, f"a {kind} cannot be used here (only ABIs have it)")
        if token.text == "&":
            mutable = self.accept_word("mut")
            return Reference(self.type_at(depth + 1), mutable)
        if token.text == "|":
            return self._function(depth)
        if token.text == "(" and self.abi:
            # Only a function type comes in brackets, where its bars would run into those around it.
            self.expect("|", "a function type in the brackets")
            tag = self._function(depth)
            self.expect(")", "')'")
            return tag
        return self.fail(token.position, f"expected a type, got {_name(token)}")

    def _struct(self, address: _Token, depth: int) -> StructTag:
        """Read the rest of a struct tag, after its address and '::'."""
        try:
            canonical = parse_address(address.text)
        except InputError:
            self.fail(address.position, f"{shorten(address.text, 40)} is not an address")
        module = self._identifier("a module name")
        self.expect("::", "'::' and a struct name")
        name = self._identifier("a struct name")
        arguments: tuple[TypeTag, ...] = ()
        if self.accept("<"):
            arguments = self._list(">", depth + 1)
            if not arguments:
                self.fail(self.tokens[self.next - 1].position, "expected a type, got '>'")
        return StructTag(canonical, module, name, arguments)

    def _identifier(self, wanted: str) -> str:
        token = self.take()
        try:
            return check_identifier(token.text)
        except InputError:
            self.fail(token.position, f"expected {wanted}, got {_name(token)}")

    def _list(self, closing: str, depth: int) -> tuple[TypeTag, ...]:
        """Read types separated by commas up to `closing`."""
        if self.accept(closing):
            return ()
        types = [self.type_at(depth)]
        while self.accept(","):
            types.append(self.type_at(depth))
        self.expect(closing, f"',' or '{closing}'")
        return tuple(types)

    def _function(self, depth: int) -> FunctionType:
        """Read the rest of a function type, after its first '|'."""
        arguments = self._list("|", depth + 1)
        results: tuple[TypeTag, ...] = ()
        following = self.tokens[self.next]
        if self.accept("("):
            results = self._list(")", depth + 1)
        elif following.text in {"&", "|"} or (following.is_word and following.text != "has"):
            results = self._results(depth)
        return FunctionType(arguments, results, self._abilities())

    def _results(self, depth: int) -> tuple[TypeTag, ...]:
        """Read results without brackets: one, or at the outermost level several, as a node prints them."""
        results = [self.type_at(depth + 1)]
        while depth == 0 and self.accept(","):
            results.append(self.type_at(depth + 1))
        return tuple(results)

    def _abilities(self) -> tuple[str, ...]:
        if not self.accept_word("has"):
            return ()
        found = set()
        while True:
            token = self.take()
            if token.text not in ABILITIES:
                self.fail(token.position, f"expected an ability ({', '.join(ABILITIES)}), got {_name(token)}")
            found.add(token.text)
            if not self.accept("+"):
                return tuple(ability for ability in ABILITIES if ability in found)


def _name(token: _Token) -> str:
    return shorten(token.text, 40) if token.text else "the end"
