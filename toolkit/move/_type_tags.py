"""Move types as frozen, hashable values: parsing, substitution of type parameters, and printing in canonical form."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import msgspec

from toolkit._present.messages import describe, did_you_mean, shorten
from toolkit.errors import InputError
from toolkit.move._ids import check_identifier, parse_address, wire_address

if TYPE_CHECKING:
    from collections.abc import Sequence


# Deepest nesting of a type that a node accepts: ``u8`` has depth 0 on its own and depth 1 in ``vector<u8>``.
MAX_TYPE_DEPTH = 8

# What the error for a type that nests too deeply says.
TOO_DEEP = f"nests deeper than {MAX_TYPE_DEPTH} types"

ABILITIES = ("copy", "drop", "store", "key")  # names of the abilities in the order of their bits in BCS

UNSIGNED = ("u8", "u16", "u32", "u64", "u128", "u256")
SIGNED = ("i8", "i16", "i32", "i64", "i128", "i256")
PRIMITIVES = frozenset(("bool", *UNSIGNED, *SIGNED, "address", "signer"))  # names of the built-in types

MAX_NUMBER_BITS = 32  # the widest integers that are JSON numbers; wider ones are strings

# Structs of ``0x1`` that may be written without address and module: the module, and the number of type arguments.
SHORT_FORMS = {"String": ("string", 0), "Option": ("option", 1), "Object": ("object", 1)}


class _Tree(msgspec.Struct, frozen=True, cache_hash=True):
    """Base class of types that contain other types. Their hash is computed once, because they are keys of caches."""

    def __str__(self) -> str:
        return _format(self, wire=False)  # type: ignore[arg-type]  # subclasses are tags


class Primitive(msgspec.Struct, frozen=True):
    """A built-in type: bool, an integer type, address or signer.

    Parameters
    ----------
    name : str
        Name of the type.

    Raises
    ------
    InputError
        If `name` is not the name of a built-in type.

    Examples
    --------
    >>> from toolkit.move import Primitive, parse_type_tag
    >>> parse_type_tag("u64") == Primitive("u64")
    True
    """

    name: str

    def __post_init__(self) -> None:
        if self.name not in PRIMITIVES:
            raise InputError(f"unknown type {shorten(self.name)}")

    def __str__(self) -> str:
        return self.name


class Vector(_Tree, frozen=True):
    """``vector<element>``.

    Parameters
    ----------
    element : TypeTag
        Type of the elements.

    Examples
    --------
    >>> from toolkit.move import Primitive, Vector
    >>> str(Vector(Primitive("u8")))
    'vector<u8>'
    """

    element: TypeTag


class StructTag(_Tree, frozen=True):
    """The type of a struct or enum, ``address::module::name<type_arguments>``.

    Parameters
    ----------
    address : str
        Address in any form. The canonical form is stored, so that equal types compare equal.
    module, name : str
        Names of the module and of the struct.
    type_arguments : tuple of TypeTag, default ()
        Type arguments.

    Raises
    ------
    InputError
        If `address` is not an address, or a name is not a Move identifier.

    Examples
    --------
    >>> str(StructTag("0x01", "coin", "CoinStore", (Primitive("u8"),)))
    '0x1::coin::CoinStore<u8>'
    """

    address: str
    module: str
    name: str
    type_arguments: tuple[TypeTag, ...] = ()

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "address", parse_address(self.address))
        msgspec.structs.force_setattr(self, "type_arguments", tuple(self.type_arguments))
        check_identifier(self.module, "module name")
        check_identifier(self.name, "struct name")

    @property
    def base(self) -> str:
        """The tag without its type arguments, as text."""
        return f"{self.address}::{self.module}::{self.name}"


class TypeParameter(msgspec.Struct, frozen=True):
    """A generic type parameter, such as ``T0``. It occurs only in ABIs.

    Parameters
    ----------
    index : int
        Number of the parameter, starting at 0.
    name : str
        Its name in the source, if it is known; by default, ``T`` and the number are shown.

    Examples
    --------
    >>> from toolkit.move import Primitive, Vector
    >>> from toolkit.move._type_tags import TypeParameter, substitute
    >>> str(substitute(Vector(TypeParameter(0)), [Primitive("u8")]))
    'vector<u8>'
    """

    index: int
    name: str = ""

    def __str__(self) -> str:
        return self.name or f"T{self.index}"


class Reference(_Tree, frozen=True):
    """A reference, ``&T`` or ``&mut T``. It occurs only in ABIs.

    Parameters
    ----------
    target : TypeTag
        The type ``T``.
    mutable : bool, default False
        Whether the reference is ``&mut``.

    Examples
    --------
    >>> from toolkit.move import parse_type_tag
    >>> reference = parse_type_tag("&mut u64", abi=True)
    >>> reference.mutable, reference.target
    (True, Primitive(name='u64'))
    """

    target: TypeTag
    mutable: bool = False


class FunctionType(_Tree, frozen=True):
    """The type of a function value, ``|arguments|results``. Nodes print it without its abilities.

    Parameters
    ----------
    arguments, results : tuple of TypeTag
        Types of the arguments and results.
    abilities : tuple of str, default ()
        Abilities in the order of `ABILITIES`.

    Examples
    --------
    >>> from toolkit.move import parse_type_tag
    >>> kind = parse_type_tag("|u64|bool", abi=True)
    >>> kind.arguments, kind.results
    ((Primitive(name='u64'),), (Primitive(name='bool'),))
    """

    arguments: tuple[TypeTag, ...]
    results: tuple[TypeTag, ...] = ()
    abilities: tuple[str, ...] = ()


TypeTag: TypeAlias = Primitive | Vector | StructTag | TypeParameter | Reference | FunctionType


def wire_type(tag: TypeTag) -> str:
    """Return a type as the REST API writes it: addresses without leading zeros, function types without abilities.

    Parameters
    ----------
    tag : TypeTag
        The type.

    Returns
    -------
    str

    Examples
    --------
    >>> wire_type(parse_type_tag("0x0000abc::m::S"))
    '0xabc::m::S'
    """
    return _format(tag, wire=True)


def _format(tag: TypeTag, *, wire: bool) -> str:
    """Return the text of a type, with addresses in the REST API's form or in canonical form."""
    match tag:
        case Vector(element):
            return f"vector<{_format(element, wire=wire)}>"
        case StructTag(address, module, name, arguments):
            base = f"{wire_address(address) if wire else address}::{module}::{name}"
            inner = ", ".join(_format(argument, wire=wire) for argument in arguments)
            return f"{base}<{inner}>" if arguments else base
        case Reference(target, mutable):
            return f"&{'mut ' if mutable else ''}{_format_operand(target, wire=wire)}"
        case FunctionType(arguments, results, abilities):
            inner, text = (", ".join(_format_operand(one, wire=wire) for one in side) for side in (arguments, results))
            has = f" has {' + '.join(abilities)}" if abilities and not wire else ""
            return f"|{inner}|{f'({text})' if len(results) > 1 else text}{has}"
        case _:
            return str(tag)


def _format_operand(tag: TypeTag, *, wire: bool) -> str:
    """Return the text of a nested type. A function type gets parentheses, to separate its bars from those around it."""
    text = _format(tag, wire=wire)
    return f"({text})" if isinstance(tag, FunctionType) else text


def is_signer(tag: TypeTag) -> bool:
    """Return whether a parameter is a signer or a reference to one, which callers do not pass.

    Parameters
    ----------
    tag : TypeTag
        Type of the parameter.

    Returns
    -------
    bool

    Examples
    --------
    >>> from toolkit.move import parse_type_tag
    >>> from toolkit.move._type_tags import is_signer
    >>> is_signer(parse_type_tag("&signer", abi=True)), is_signer(parse_type_tag("address"))
    (True, False)
    """
    return is_signer(tag.target) if isinstance(tag, Reference) else tag == Primitive("signer")


def substitute(tag: TypeTag, type_arguments: Sequence[TypeTag]) -> TypeTag:
    """Replace the type parameters ``T0``, ``T1``, ... of a type.

    Parameters
    ----------
    tag : TypeTag
        The type.
    type_arguments : sequence of TypeTag
        Replacement for each parameter. A parameter beyond the end of the sequence stays unchanged.

    Returns
    -------
    TypeTag

    Examples
    --------
    >>> str(substitute(parse_type_tag("vector<T0>", abi=True), [Primitive("u8")]))
    'vector<u8>'
    """
    match tag:
        case TypeParameter(index):
            return type_arguments[index] if index < len(type_arguments) else tag
        case Vector(element):
            return Vector(substitute(element, type_arguments))
        case StructTag(address, module, name, arguments) if arguments:
            return StructTag(address, module, name, tuple(substitute(a, type_arguments) for a in arguments))
        case Reference(target, mutable):
            return Reference(substitute(target, type_arguments), mutable)
        case FunctionType(arguments, results, abilities):
            taken, given = (tuple(substitute(one, type_arguments) for one in side) for side in (arguments, results))
            return FunctionType(taken, given, abilities)
        case _:
            return tag


_TOKEN = re.compile(r"[A-Za-z0-9_$]+|::|[^ \t\r\n]")
_MARKS = ("", "::", *"<>,&|()+")  # the empty one is the end of the text
_WORD = re.compile(r"[A-Za-z0-9_$]")
_PARAMETER = re.compile(r"T(0|[1-9][0-9]{0,4})")
_MAX_TEXT = 65_536  # characters; parsing takes time and memory in proportion, and types come from nodes


def parse_type_tag(text: str, *, abi: bool = False, short: bool = True) -> TypeTag:
    """Parse the text of a type; white space is ignored.

    ``String``, ``Option<...>`` and ``Object<...>`` are short for the types of the same name in ``0x1``, including
    inside other types, as in ``vector<String>``. Other structs do not have a short form.

    Parameters
    ----------
    text : str
        For example ``u64``, ``vector<u8>`` or ``0x1::coin::CoinStore<0x1::aptos_coin::AptosCoin>``.
    abi : bool, default False
        Whether to allow the types that occur only in ABIs: ``&T``, ``&mut T``, ``T0`` and function types. This disables
        short forms, which nodes never print.
    short : bool, default True
        Whether to allow the short forms, which nodes do not accept.

    Returns
    -------
    TypeTag
        Frozen and hashable; ``str()`` returns the canonical text.

    Raises
    ------
    InputError
        If the text is not a type, or nests deeper than `MAX_TYPE_DEPTH`; the message names the position.

    Examples
    --------
    >>> str(parse_type_tag("0x01::m::S<u8,vector< bool >>"))
    '0x1::m::S<u8, vector<bool>>'
    >>> str(parse_type_tag("Option<String>"))
    '0x1::option::Option<0x1::string::String>'
    """
    try:
        return _parse(text, abi=abi, short=short and not abi)
    except TypeError:  # not a string, perhaps not hashable
        raise InputError(f"a type must be a string, got {describe(text)}") from None


@lru_cache(maxsize=4096)
def _parse(text: str, *, abi: bool, short: bool) -> TypeTag:
    """Parse the text of one type."""
    if len(text) > _MAX_TEXT:
        raise InputError(f"type {shorten(text, 40)} is longer than {_MAX_TEXT:,} characters")
    parser = _Parser(text, abi=abi, short=short)
    tag = parser.type_at(0)
    parser.expect("", "nothing after the type")
    return tag


class _Parser:
    """A recursive descent parser of the tokens of one text."""

    def __init__(self, text: str, *, abi: bool, short: bool) -> None:
        self.text, self.abi, self.short = text, abi, short
        self.tokens = [(match[0], match.start()) for match in _TOKEN.finditer(text)] + [("", len(text))]
        self.next = 0
        for token, position in self.tokens:
            if token not in _MARKS and not _WORD.match(token):
                self.fail(position, f"unexpected character {shorten(token)}")

    def fail(self, position: int, reason: str) -> NoReturn:
        """Raise an error for the text at a position, counted from 0."""
        raise InputError(f"type {shorten(self.text)}, position {position}: {reason}")

    def take(self) -> tuple[str, int]:
        """Return the current token and its position, and advance."""
        self.next += 1
        return self.tokens[self.next - 1]

    def accept(self, text: str) -> bool:
        """Advance if the next token is `text`; return whether it is."""
        found = self.tokens[self.next][0] == text
        self.next += found
        return found

    def expect(self, mark: str, wanted: str) -> None:
        """Advance past `mark`, or raise an error if the next token is something else."""
        if not self.accept(mark):
            token, position = self.tokens[self.next]
            self.fail(position, f"expected {wanted}, got {_name(token)}")

    def type_at(self, depth: int) -> TypeTag:  # noqa: PLR0911  # one return per form
        """Parse one type nested in `depth` others."""
        word, position = self.take()
        if depth > MAX_TYPE_DEPTH:
            self.fail(position, TOO_DEEP)
        if word in _MARKS:
            return self._marked(word, position, depth)
        if self.accept("::"):
            return self._struct(word, position, depth)
        if word == "vector":
            self.expect("<", "'<' after vector")
            tag = Vector(self.type_at(depth + 1))
            self.expect(">", "'>'")
            return tag
        if word in PRIMITIVES:
            return Primitive(word)
        if self.abi and (parameter := _PARAMETER.fullmatch(word)):
            return TypeParameter(int(parameter[1]))
        if self.short and word in SHORT_FORMS:
            module, count = SHORT_FORMS[word]
            arguments = self._list(">", depth + 1) if self.accept("<") else ()
            if len(arguments) != count:
                expected = f"{word}<..> with one type argument" if count else f"{word} without type arguments"
                self.fail(position, f"expected {expected}, got {len(arguments)}")
            return StructTag("0x1", module, word, arguments)
        if word == "AptosCoin":
            self.fail(position, "expected address::module::Name, such as 0x1::aptos_coin::AptosCoin")
        meant = did_you_mean(word, [*sorted(PRIMITIVES), *(SHORT_FORMS if self.short else ())])
        forms = ", String, Option<..>, Object<..>" if self.short else ""
        hint = f"{'; ' if meant else ''}{meant}"
        expected = f"bool, u8..u256, i8..i256, address, signer, vector<..>{forms} or address::module::Name"
        return self.fail(position, f"unknown type {shorten(word, 40)}{hint} (expected {expected})")

    def _marked(self, mark: str, position: int, depth: int) -> TypeTag:
        """Parse a type that starts with a punctuation mark: a reference or a function type."""
        if mark in {"&", "|"} and not self.abi:
            self.fail(position, f"a {'reference' if mark == '&' else 'function type'} is only allowed in ABIs")
        if mark == "&":
            mutable = self.accept("mut")
            return Reference(self.type_at(depth + 1), mutable)
        if mark == "|":
            return self._function(depth)
        if mark == "(" and self.abi:
            # Only function types are written in brackets.
            self.expect("|", "a function type in the parentheses")
            tag = self._function(depth)
            self.expect(")", "')'")
            return tag
        return self.fail(position, f"expected a type, got {_name(mark)}")

    def _struct(self, address: str, position: int, depth: int) -> StructTag:
        """Parse the rest of a struct tag, after its address and '::'."""
        try:
            canonical = parse_address(address)
        except InputError:
            text = f"{shorten(address, 40)} is not an address; a struct is written address::module::Name"
            self.fail(position, text)
        module = self._identifier("a module name")
        self.expect("::", "'::' and a struct name")
        name = self._identifier("a struct name")
        generic = self.accept("<")
        arguments = self._list(">", depth + 1) if generic else ()
        if generic and not arguments:
            self.fail(self.tokens[self.next - 1][1], "expected a type, got '>'")
        return StructTag(canonical, module, name, arguments)

    def _identifier(self, wanted: str) -> str:
        token, position = self.take()
        try:
            return check_identifier(token)
        except InputError:
            self.fail(position, f"expected {wanted}, got {_name(token)}")

    def _list(self, closing: str, depth: int) -> tuple[TypeTag, ...]:
        """Parse types separated by commas up to the mark `closing`."""
        if self.accept(closing):
            return ()
        types = [self.type_at(depth)]
        while self.accept(","):
            types.append(self.type_at(depth))
        self.expect(closing, f"',' or '{closing}'")
        return tuple(types)

    def _function(self, depth: int) -> FunctionType:
        """Parse the rest of a function type, after its first '|'."""
        arguments = self._list("|", depth + 1)
        results: list[TypeTag] = []
        following = self.tokens[self.next][0]
        if self.accept("("):
            results += self._list(")", depth + 1)
        elif following in {"&", "|"} or following not in {*_MARKS, "has"}:
            results.append(self.type_at(depth + 1))
            while depth == 0 and self.accept(","):  # nodes return several without brackets at the outermost level
                results.append(self.type_at(depth + 1))
        abilities = self._abilities() if self.accept("has") else set()
        return FunctionType(arguments, tuple(results), tuple(one for one in ABILITIES if one in abilities))

    def _abilities(self) -> set[str]:
        """Parse abilities separated by '+'."""
        found = set()
        while True:
            token, position = self.take()
            if token not in ABILITIES:
                self.fail(position, f"expected an ability ({', '.join(ABILITIES)}), got {_name(token)}")
            found.add(token)
            if not self.accept("+"):
                return found


def _name(token: str) -> str:
    return shorten(token, 40) if token else "the end of the text"
