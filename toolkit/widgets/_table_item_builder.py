"""A form that reads a table item, given the account whose resource holds the table, or the handle and types."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd
import traitlets
from msgspec.structs import replace
from traitlets import Instance, Unicode

from toolkit import move
from toolkit._present.text import plural, short_addresses, visible
from toolkit.client._accounts import account_tables
from toolkit.client._fetch import fetch_table_items, fetch_transactions
from toolkit.client._node_errors import NO_ITEM
from toolkit.client._warnings import collected_warnings
from toolkit.errors import InputError, InvalidRequest, NodeError, NotFound, SchemaError, ToolkitError
from toolkit.frames._transactions import table_keys
from toolkit.move._codecs import is_closed
from toolkit.move._ids import parse_table_handle
from toolkit.move._type_tags import wire_type
from toolkit.move._values import DeclaredTable, encode_argument
from toolkit.widgets import _messages as parts
from toolkit.widgets._fields import Findings, blank, field, read_leaf, validated
from toolkit.widgets._functions import in_step
from toolkit.widgets._programs import connect_line, curl_lines
from toolkit.widgets._readings import READ_ACTIONS, VERSION_FIELDS, ReadDraft, ReadForm, Reading, Wanted, parse_plan
from toolkit.widgets._results import brief, item_pages, missing_item_pages
from toolkit.wire import TableItemRequest
from toolkit.wire._models import wire_argument

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolkit.client._calls import TableItem
    from toolkit.client._node import Node
    from toolkit.move import Layout


_MAX_KEYS = 100  # buttons; the browser slows down with thousands of them
_MAX_KEY = 60  # characters, so that a button fits in a narrow form
_TYPES = ("key_type", "value_type")


class TableItemDraft(ReadDraft, frozen=True):
    """Entries for a table item; ``arguments`` holds the draft of the key's field, and ``raw`` the key as JSON."""

    owner: str = ""
    table: str = ""
    handle: str = ""
    key_type: str = ""
    value_type: str = ""
    key_range: str = "-1000:"


class TableItemBuilder(ReadForm):
    """Read an item of a table at the node's head, at a ledger version, or over many versions.

    Select the table by the account whose resource holds it, or by its handle and types. With an account, the types come
    from the resource's declaration. Neither constructing the form nor setting its traits makes a request. In a browser,
    entering an account reads its tables; from Python, `check` and `read` read them.

    Parameters
    ----------
    node : Node
        Node that reads the items; available as ``node``.
    owner : str, optional
        Account or object whose resource holds the table.
    handle : str, optional
        Table handle.
    request : TableItemRequest, optional
        Initial key and types.

    Attributes
    ----------
    owner : str
        Account or object, as typed. If its resources hold several tables, `handle` selects one; by default, the first.
    handle : str
        Table handle, as typed: 0x and 64 hex digits.
    key_type, value_type : str
        Move types, as typed. If `owner` holds the table, they are set to the types that its resource declares.
    key : str
        Key, as typed: JSON or plain text.
    versions : int, str, list of int or None
        None reads the head, an int reads one version, and a str or list is a version plan, as for `fetch_table_items`.
        Setting any other value raises `InputError`.
    key_range : str
        Version plan of the transactions in which `list_keys` searches for keys.
    found_keys : DataFrame or None
        The keys that `list_keys` found, as a frame like that of `toolkit.table_keys`; None once another table or key
        type is chosen. Read only.
    request : TableItemRequest or None
        Key and types from the last valid entries. Set it to fill the form.
    errors : dict of str to str
        Error messages by field, such as ``handle`` or ``key_type``; ``node`` holds the error that the node returned.
        Read only.
    error : str
        All error messages as one text; empty if there is none. Read only.
    python : str
        A Python program that performs the same read; empty while `request` is None. Read only.
    result : TableItem, DataFrame or None
        The last result. For a version plan, it is a frame with one column per struct field; for an item that does not
        exist, a frame with one row. It is kept if a later read is cancelled or fails (see `errors`). Read only.
    busy : bool
        True while a request is in progress. Read only.

    Examples
    --------
    >>> import toolkit
    >>> builder = toolkit.widgets.TableItemBuilder(toolkit.connect(), owner="0xcafe")
    >>> builder.key = "alice"
    >>> builder.read()
    >>> builder.key_type, builder.result.value["registered_at"]
    ('0x1::string::String', 1767334464)

    An item that does not exist is a result, not an error:

    >>> builder.key = "nobody"
    >>> builder.read()
    >>> builder.result["presence"].tolist()
    ['missing']
    """

    _form = parts.About(
        "Read an item of a table",
        actions=READ_ACTIONS,
        words=parts.Words(form="The item", note="reading changes nothing"),
        look=("owner", "table", "key_type", "value_type"),
    )
    _blank = TableItemDraft()
    _mirrored = ("owner", "handle", "key_type", "value_type", "key", "key_range", "versions")

    owner = Unicode()
    handle = Unicode()
    key_type = Unicode()
    value_type = Unicode()
    key = Unicode()
    key_range = Unicode("-1000:")
    found_keys: Any = traitlets.Any(allow_none=True, read_only=True)
    request = Instance(TableItemRequest, allow_none=True)

    def __init__(
        self,
        node: Node,
        *,
        owner: str | None = None,
        handle: str | None = None,
        request: TableItemRequest | None = None,
    ) -> None:
        self._tables: dict[str, list[tuple[str, DeclaredTable]]] = {}
        self._layouts: dict[str, Layout] = {}
        self._key_layout: Layout | None = None
        self._last_layout: Layout | None = None
        self._handle = ""
        self._keys_of = ("", "")
        self._chosen_for: str | None = None
        super().__init__(node, request=request)
        if owner is not None:
            self.owner = owner
        if handle is not None:
            self.handle = handle

    # what is read ----------------------------------------------------------------------------------------

    def _wanted(self) -> Wanted:
        return Wanted(self.request, self._versions, self._handle)

    def _read_one(self, node: Node, wanted: Wanted, version: int | None) -> TableItem | pd.DataFrame:
        request, types = wanted.request, _types_of(wanted.request)
        try:
            return node.table_item(wanted.place, request.key, **types, ledger_version=version)
        except NotFound as error:
            if error.error_code != NO_ITEM:
                raise
            head = node.ledger() if error.ledger is None else error.ledger
            return self._read_many(node, wanted, [head.version if version is None else version])

    def _read_many(self, node: Node, wanted: Wanted, versions: Sequence[int]) -> pd.DataFrame:
        options: dict[str, Any] = {"versions": versions, "flatten": True, "progress": False}
        return fetch_table_items(node, wanted.place, [wanted.request.key], **_types_of(wanted.request), **options)

    def _cause_of(self, error: ToolkitError) -> str:
        # A node answers with an internal error if the stored value does not have the type.
        if isinstance(error, SchemaError) or (isinstance(error, NodeError) and error.error_code == "internal_error"):
            return "value_type"
        if not isinstance(error, InputError | InvalidRequest):
            return "node"
        shown = self._draft.arguments
        return "arguments.0" if shown and isinstance(shown[0], str) else "raw"

    def list_keys(self) -> None:
        """Read the transactions in `key_range` and list the table keys that they changed; sets `found_keys`.

        A node cannot list the keys of a table. Keys that no transaction in these versions changed are therefore missed.
        """
        with self._busy_while("Reading transactions"):
            self._look()
            with self._state():
                self._blamed = {}
                wrong = self._found.errors | self._found.missing
                of = handle, kind = self._draft.handle.strip(), self._draft.key_type.strip()
                for path in {"handle", "key_type"} & wrong.keys():
                    self._blame(path, wrong[path])
                    self._say("error", self._count_words())
            if self._blamed:
                return
            path = "key_range"
            try:
                with collected_warnings():  # about versions that were clipped or could not be read
                    changed = fetch_transactions(self._asked, parse_plan(self._draft.key_range), progress=False)
                path = "key_type"
                abis = self._asked.abis.at(self._asked.ledger().version)
                keys = table_keys(changed, handle, key_type=kind, abis=abis)
            except ToolkitError as error:
                self._blame(path if isinstance(error, InputError | SchemaError) else "node", str(error))
                return
            with self._state():
                self._keys_of = of
                self.set_trait("found_keys", keys.sort_values("last_version", ascending=False, kind="stable"))
                self._take(self._draft)
                found, among = plural(len(keys), "key"), plural(len(changed.transactions), "transaction")
                more = "choose one below" if len(keys) else "try older versions"
                if self.found_keys is not None:  # the form still shows the same table
                    self._say("good" if len(keys) else "hint", f"{found} changed in {among}: {more}.")

    # what is asked of the node ---------------------------------------------------------------------------

    def _needs_look(self, **_about: bool) -> bool:
        return True  # the tables of the owner complete the entries

    def _look(self) -> None:
        """Read the tables of the owner, then the layouts of the types."""
        owner = _canonical(self._draft.owner)
        path = "owner"
        try:
            if owner is not None and owner not in self._tables:
                found = account_tables(self._asked, owner, self._asked.ledger().version)
                with self._state():
                    self._tables[owner] = found
            with self._state():
                self._look_errors = {}
                self._take(self._draft)
                typed = [(name, getattr(self._draft, name).strip()) for name in _TYPES]
            for path, kind in typed:  # noqa: B007 - named in the message
                if kind and self._layout(kind) is None:
                    with suppress(InputError):  # the field shows the error
                        tag = move.parse_type_tag(kind)
                        layout = self._asked.abis.at(self._asked.ledger().version).layout(tag)
                        with self._state():
                            self._layouts[str(tag)] = layout
        except (InputError, SchemaError, ToolkitError) as error:
            with self._state():
                self._look_errors = {path: str(error)}
        with self._state():
            self._take(self._draft)

    def _layout(self, kind: str) -> Layout | None:
        """Return the layout of a type, or None if it is not known; types without structs are always known."""
        with suppress(InputError):
            tag = move.parse_type_tag(kind)
            layout = self._layouts.get(str(tag)) or move.resolve_layout(tag, move.AbiMap({}))
            return layout if str(tag) in self._layouts or is_closed(layout) else None
        return None

    def _forget_node(self) -> None:
        super()._forget_node()
        self._tables, self._layouts, self._chosen_for = {}, {}, None
        self.set_trait("found_keys", None)

    # the draft -------------------------------------------------------------------------------------------

    def _read_draft(
        self, draft: TableItemDraft, found: Findings, *, typed: bool
    ) -> tuple[TableItemDraft, TableItemRequest | None]:
        if typed and (draft.owner, draft.table) != (self._taken.owner, self._taken.table):
            self._look_errors = {}
        draft = self._choose_table(draft, found)
        handle = _read(parse_table_handle, draft, "handle", "the table handle, 0x and 64 hex digits", found)
        wanted = "a Move type, such as address"
        types: dict[str, Any] = {name: _read(move.parse_type_tag, draft, name, wanted, found) for name in _TYPES}
        if (draft.handle.strip(), draft.key_type.strip()) != self._keys_of:
            self.set_trait("found_keys", None)
        draft, key = self._read_key(draft, types["key_type"], found)
        request = None
        if found.good and handle is not None:
            self._handle = handle
            make = partial(TableItemRequest, key, **types)
            request = validated(make, found, "raw", {name: name for name in _TYPES})
        self._read_at(draft, found)
        return draft, request

    def _choose_table(self, draft: TableItemDraft, found: Findings) -> TableItemDraft:
        """Select one of the owner's tables, as entered or else the first, and fill in its handle and types."""
        owner, before = _canonical(draft.owner), self._taken
        if draft.owner.strip():
            read_leaf(move.Address(), draft.owner, "owner", found)
        tables = self._tables.get(owner or "", [])
        if owner in self._tables and not tables:
            found.notes["owner"] = "its resources contain no tables"
        if owner != _canonical(before.owner) and before.table:  # its types belong to the previous owner
            draft = replace(draft, table="", handle="", key_type="", value_type="")
        named, known = "", {table.handle: str(place) for place, (_, table) in enumerate(tables)}
        chosen = draft.table
        with suppress(InputError):
            named = known.get(parse_table_handle(draft.handle.strip()), "")
        if tables and owner != self._chosen_for:
            self._chosen_for = owner
            chosen = named if draft.handle.strip() else "0"
        elif not chosen and draft.handle != before.handle:
            chosen = named
        if not chosen or int(chosen) >= len(tables):
            return replace(draft, table="")
        table = tables[int(chosen)][1]
        types = {name: _short(getattr(table, name)) for name in _TYPES}
        return replace(draft, table=chosen, handle=table.handle, **types)

    def _read_key(self, draft: TableItemDraft, kind: str | None, found: Findings) -> tuple[TableItemDraft, Any]:
        """Synchronize the key's field with its JSON; return the draft and the key."""
        layout = None if kind is None else self._layout(kind)
        changed = layout is not None and self._last_layout not in {None, layout}
        if changed and _encoded(layout, self._key_value(draft.raw, layout)) is None:
            draft = replace(draft, raw="")  # a key of the previous table
        before, self._key_layout, self._last_layout = self._key_layout, layout, layout or self._last_layout
        if layout is not None and draft.lead == "raw" and not draft.raw.strip() and not isinstance(layout, move.String):
            draft = replace(draft, arguments=(blank(layout),), lead="fields")  # its field shows what it accepts
        draft = in_step(
            draft,
            None if layout is None else [layout],
            found,
            before=None if before is None or before != layout else [before],
            parse=lambda raw: [self._key_value(raw, layout)],
            encode=lambda keys: [encode_argument(layout, key, where="key") for key in keys if layout is not None],
            spell=lambda keys: _key_text(keys[0]),
        )
        key = self._key_value(draft.raw, layout)
        if layout is None and not draft.raw.strip():
            found.missing["raw"] = "expected the key, as JSON or plain text"
        elif layout is not None and draft.lead == "raw":
            validated(partial(encode_argument, layout, key, where="key"), found, "raw")
        return draft, key

    def _key_value(self, typed: str, layout: Layout | None) -> Any:
        """Return the value of a typed key, which is JSON or plain text; an unchanged key keeps its value."""
        last = self.request
        if last is not None and typed == _key_text(last.key):
            return last.key
        try:
            value = json.loads(typed)
        except (ValueError, RecursionError):
            return typed.strip()
        return typed.strip() if isinstance(layout, move.String) and not isinstance(value, str) else value

    def _write_draft(self, request: TableItemRequest | None) -> TableItemDraft:
        draft: TableItemDraft = replace(self._draft, arguments=(), raw="", lead="raw")
        if request is None:
            return draft
        types = {name: _short(getattr(request, name)) for name in _TYPES}
        same = all(kind == getattr(draft, name) for name, kind in types.items())
        return replace(draft, **types, raw=_key_text(request.key), table=draft.table if same else "")

    def _entered(self, draft: TableItemDraft, name: str, value: Any) -> Any:
        if name == "key":
            return replace(draft, raw=value, lead="raw")
        if name in {"handle", *_TYPES}:
            draft = replace(draft, table="")
        return super()._entered(draft, name, value)

    def _trait_of(self, name: str, draft: TableItemDraft) -> Any:
        return draft.raw if name == "key" else super()._trait_of(name, draft)

    def _fields(self, draft: TableItemDraft) -> parts.Group:
        by_hand = ("table", ("",))
        about = "an account or object whose resource holds the table; leave empty to enter a handle"
        tables = self._tables.get(_canonical(draft.owner) or "", [])
        names = {str(place): _table_name(*one) for place, one in enumerate(tables)} | {"": "another table, by handle"}
        raw = parts.mono("Key", "JSON, or plain text", rows=2)
        key: list[tuple[str, parts.Part]] = [("raw", raw)]
        if self._key_layout is not None:
            twin = parts.group(("raw", replace(raw, label="JSON")), label="Key as JSON", fold=True)
            key = [("arguments", parts.group((0, field(self._key_layout, "Key")))), ("", twin)]
        return parts.group(
            ("owner", parts.mono("Account", about, placeholder="0xcafe")),
            *([("table", parts.select("Table", names))] if tables else []),
            ("handle", parts.mono("Table handle", when=by_hand)),
            ("key_type", parts.mono("Key type", when=by_hand, placeholder="address")),
            ("value_type", parts.mono("Value type", when=by_hand, placeholder="u64")),
            *key,
            *VERSION_FIELDS,
            ("", self._key_fields()),
        )

    def _key_fields(self) -> parts.Group:
        """Return the controls that list the keys that transactions changed."""
        hint = "nodes cannot list a table's keys; these transactions are searched for changed keys instead"
        keys = [] if self.found_keys is None else list(self.found_keys.itertuples())
        buttons = []
        for place, row in enumerate(keys[:_MAX_KEYS]):
            ended = f"{'deleted' if row.deleted else 'changed'} at {row.last_version:,}"
            key = visible(short_addresses(_key_text(row.key)), _MAX_KEY)
            buttons.append(parts.Button(f"{key} ({ended})", place))
        note = f"the latest {_MAX_KEYS} keys; in Python, found_keys has all keys" if len(keys) > _MAX_KEYS else ""
        listed = parts.Actions("Keys, most recently changed first", do="pick", buttons=tuple(buttons), hint=note)
        return parts.group(
            ("key_range", parts.mono("Transactions at versions", hint, placeholder="-1000:")),
            ("", parts.Actions("Search", do="keys", buttons=(parts.Button("List keys"),))),
            *([("", listed)] if buttons else []),
            label="Keys that transactions changed",
            fold=True,
        )

    # display ---------------------------------------------------------------------------------------------

    def _programs_of(self, request: TableItemRequest) -> dict[str, str]:
        types = {name: _short(getattr(request, name)) for name in _TYPES}
        options = ", ".join(f"{name}={kind!r}" for name, kind in types.items())
        one = f"table_item({self._handle!r}, {request.key!r}, {options})"
        more = f"versions={self._versions!r}, flatten=True"
        many = f"fetch_table_items(node, {self._handle!r}, [{request.key!r}], {options}, {more})"
        line = self._read_statement("item", one, many)
        key = _encoded(self._layout(request.key_type), request.key)
        body = types | {"key": wire_argument(request.key) if key is None else key}
        return {
            "Python": f"import toolkit\n\n{connect_line(self.node)}\n{line}",
            "curl": curl_lines(self.node, f"tables/{self._handle}/item", body, self._versions),
            "JSON": json.dumps(body, indent=2, ensure_ascii=False),
        }

    def _facts(self) -> list[tuple[str, Any]]:
        at = "the head" if self._versions is None else self._versions
        types = [("Key type", self.key_type), ("Value type", self.value_type)]
        return [("Account", self.owner), ("Table handle", self.handle), *types, ("Key", self.key), ("Read at", at)]

    def _subject(self) -> str | None:
        if self.request is None:
            return None
        return f"item {visible(_key_text(self.request.key), 40)} of table {short_addresses(self._handle)}"

    def _checked_words(self) -> str:
        return "The key fits its type." if self._key_layout is not None else "The key was not checked: type unknown."

    def _after(self, reading: Reading) -> None:
        super()._after(reading)
        if not reading.wanted.single and reading.result["presence"].isin(["missing", "deleted"]).all():
            self._say("good", f"No item with this key at any of {plural(len(reading.result), 'version')}")

    def _read_words(self, reading: Reading) -> str:
        if isinstance(reading.result, pd.DataFrame):
            return f"No item with this key at version {reading.result['ledger_version'].iloc[0]}"
        return f"Found at version {reading.result.ledger_version}"

    def _one_pages(self, reading: Reading) -> dict[str, str]:
        if isinstance(reading.result, pd.DataFrame):
            return dict(missing_item_pages(self._read_words(reading)))
        return dict(item_pages(reading.result, reading.wanted.request.value_type))

    def _compared(self, result: Any) -> dict[str, Any]:
        if isinstance(result, pd.DataFrame):
            return {}
        facts = {"Table": short_addresses(result.handle), "Key": brief(result.key), "Value": brief(result.value)}
        return facts | {"Version": f"{result.ledger_version:,}"}

    # messages of the browser -----------------------------------------------------------------------------

    def _do_keys(self, _message: parts.Message) -> None:
        self._background.start("keys", self.list_keys)

    def _do_pick(self, message: parts.Message) -> None:
        if self.found_keys is not None and 0 <= message.place < len(self.found_keys):
            self.key = _key_text(self.found_keys["key"].iloc[message.place])


def _read(
    read: Callable[[str], object], draft: TableItemDraft, path: str, expected: str, found: Findings
) -> str | None:
    """Return an entry parsed by `read`, or None; an invalid or missing entry is reported in `found`."""
    typed = getattr(draft, path).strip()
    if not typed:
        found.missing[path] = f"expected {expected}"
        return None
    made = validated(partial(read, typed), found, path)
    return None if made is None else str(made)


def _types_of(request: TableItemRequest) -> dict[str, Any]:
    return {name: getattr(request, name) for name in _TYPES}


def _short(kind: str) -> str:
    """Return a type with short addresses."""
    return wire_type(move.parse_type_tag(kind))


def _canonical(typed: str) -> str | None:
    """Return the canonical form of a typed address, or None if it is not an address."""
    with suppress(InputError):
        return move.parse_address(typed.strip())
    return None


def _encoded(layout: Layout | None, value: Any) -> Any:
    """Return a key in the JSON form that the node accepts; None if its type is not known or it does not fit."""
    if layout is None:
        return None
    with suppress(InputError, SchemaError):
        return encode_argument(layout, value, where="key")
    return None


def _key_text(key: Any) -> str:
    """Return a key as JSON, or as plain text unless that would be read as another type of value."""
    if isinstance(key, str):
        with suppress(ValueError, RecursionError):
            json.loads(key)
            return json.dumps(key, ensure_ascii=False)
        return key if key.strip() == key and key else json.dumps(key, ensure_ascii=False)
    return json.dumps(wire_argument(key), ensure_ascii=False)


def _table_name(kind: str, table: DeclaredTable) -> str:
    """Return a readable name of a table: resource, field and types."""
    resource = _short(kind).partition("<")[0].partition("::")[2]
    types = re.sub(r"\w+::", "", f"{table.key_type}, {table.value_type}")
    return visible(f"{resource}, {table.field}: Table<{types}>", 120)
