"""A form that reads a table item, given the account whose resource holds the table, or the handle and types."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import pandas as pd
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
from toolkit.widgets import _fields as fields
from toolkit.widgets import _messages as parts
from toolkit.widgets._changes import Known
from toolkit.widgets._fields import Findings, field_text, validated
from toolkit.widgets._functions import ValuesDraft, in_step, read_type
from toolkit.widgets._programs import connect_line, curl_lines
from toolkit.widgets._readings import READ_ACTIONS, VERSION_FIELDS, ReadBuilder, Reading, ReadState, Wanted, parse_plan
from toolkit.widgets._results import brief, item_pages, missing_item_pages
from toolkit.wire import TableItemRequest
from toolkit.wire._models import wire_argument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.client._calls import TableItem
    from toolkit.client._node import Node
    from toolkit.move import Layout


_MAX_KEYS = 100  # buttons; the browser slows down with thousands of them
_MAX_UNFILTERED = 3  # keys of a list that needs no filter
_MAX_KEY = 60  # characters, so that a button fits in a narrow form
_TYPES = ("key_type", "value_type")
_NO_KEYS: dict[str, Any] = {"found_keys": None, "keys_said": ""}


class TableItemDraft(ValuesDraft, frozen=True):
    """Entries for a table item; ``arguments`` holds the draft of the key's field, and ``raw`` the key as JSON."""

    owner: str = ""
    table: str = ""
    handle: str = ""
    key_type: str = ""
    value_type: str = ""
    key_range: str = "-1000:"
    key_filter: str = ""


class KnownTable(NamedTuple):
    """A table in a resource of an account, and the type of the resource."""

    resource: str
    declared: DeclaredTable


@dataclass(frozen=True, kw_only=True)
class TableItemState(ReadState):
    """The state of a `TableItemBuilder`.

    Attributes
    ----------
    tables : mapping of str to list of KnownTable
        Tables that were looked up, by canonical address of the owner.
    layouts : mapping of str to Layout
        Layouts that were looked up, by canonical type.
    owner : str or None
        Canonical address of the owner whose tables are in the form.
    key_layout : Layout or None
        Layout of the key; None if it is not known.
    last_layout : Layout or None
        The last known layout of the key.
    found_keys : DataFrame or None
        Keys that were found, those of the handle and key type in `keys_of`.
    keys_said : str
        The message beside the button that lists keys.
    """

    entries: TableItemDraft = field(default_factory=TableItemDraft)
    tables: Mapping[str, list[KnownTable]] = field(default_factory=dict)
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    owner: str | None = None
    key_layout: Layout | None = None
    last_layout: Layout | None = None
    found_keys: pd.DataFrame | None = None
    keys_of: tuple[str, str] = ("", "")
    keys_said: str = ""

    def forgotten(self) -> Self:
        """Return the state without what was read from the node."""
        return dataclasses.replace(self, tables={}, layouts={}, owner=None, **_NO_KEYS)

    def read(self, before: Self, *, typed: bool = False) -> Self:
        """Return the state with what follows from its entries."""
        found, was, given = Findings(names=self.names), before.entries, self.entries
        looked = {} if typed and (given.owner, given.table) != (was.owner, was.table) else self.looked
        now = self.with_table(was, found)
        draft = now.entries
        handle = None
        if not draft.handle.strip():
            found.missing["handle"] = "enter the table handle, 0x and 64 hex digits"
        else:
            handle = validated(partial(parse_table_handle, draft.handle.strip()), found, "handle")
        types: dict[str, Any] = {name: read_type(getattr(draft, name), name, found) for name in _TYPES}
        now, key = now.with_key(types["key_type"], found)
        if found.good and handle is not None:
            make = partial(TableItemRequest, key, **types)
            request = validated(make, found, "raw", {name: name for name in _TYPES})
            if request is not None:
                now = dataclasses.replace(now, request=request, place=handle)
        if not _by_hand(draft):  # the account comes first: what it gives cannot be missing
            found.missing = {} if "owner" in found.errors else {"owner": now.needed_owner}
        now = now.with_versions(found)
        same = (draft.handle.strip(), draft.key_type.strip()) == self.keys_of
        about = {"found_keys": self.found_keys, "keys_said": self.keys_said} if same else _NO_KEYS
        now = dataclasses.replace(now, findings=found, looked=looked, **about)
        return dataclasses.replace(now, fields=now.controls)

    def written(self, request: TableItemRequest | None) -> Self:
        """Return the state with the entries of a request; table, handle and versions are kept."""
        draft: TableItemDraft = replace(self.entries, arguments=(), raw="", lead="raw")
        if request is not None:
            types = {name: _short(getattr(request, name)) for name in _TYPES}
            same = all(kind == getattr(draft, name) for name, kind in types.items())
            draft = replace(draft, **types, raw=_key_text(request.key), table=draft.table if same else "")
        return self.with_entries(draft)

    def entered(self, name: str, value: Any) -> Any:
        """Return the entries after a trait was set."""
        if name == "key":
            return replace(self.entries, raw=value, lead="raw")
        entries = super().entered(name, value)
        return replace(entries, table="") if name in {"handle", *_TYPES} else entries

    def trait(self, name: str) -> Any:
        """Return the value of a trait."""
        return self.entries.raw if name == "key" else super().trait(name)

    def layout(self, kind: str) -> Layout | None:
        """Return the layout of a type, or None if it is not known; types without structs are always known."""
        with suppress(InputError):
            tag = move.parse_type_tag(kind)
            layout = self.layouts.get(str(tag)) or move.resolve_layout(tag, move.AbiMap({}))
            return layout if str(tag) in self.layouts or is_closed(layout) else None
        return None

    def with_table(self, was: TableItemDraft, found: Findings) -> Self:
        """Return the state with one of the owner's tables, as entered or else the first, and its handle and types."""
        draft, shown = self.entries, self.owner
        owner = found.address(draft.owner)
        if draft.owner.strip():
            fields.read_leaf(move.Address(), draft.owner, "owner", found)
        tables = self.tables.get(owner or "", [])
        if owner is not None and owner in self.tables and not tables:
            named = found.notes.get("owner", "")
            found.notes["owner"] = f"{named}{named and '; '}the resources of {short_addresses(owner)} contain no tables"
        if draft.table and owner != shown is not None:  # it is one of the previous owner's, and so are its types
            draft = replace(draft, table="", handle="", key_type="", value_type="")
        handles = {table.declared.handle: str(place) for place, table in enumerate(tables)}
        named, chosen = "", draft.table
        with suppress(InputError):
            named = handles.get(parse_table_handle(draft.handle.strip()), "")
        # An edit that began before the tables were known has none of them: it does not choose a table by hand.
        if tables and (owner != shown or not _by_hand(draft)):
            shown, chosen = owner, named if draft.handle.strip() else chosen or "0"
        elif not chosen and draft.handle != was.handle:
            chosen = named
        if chosen and int(chosen) < len(tables):
            table = tables[int(chosen)].declared
            types = {name: _short(getattr(table, name)) for name in _TYPES}
            draft = replace(draft, table=chosen, handle=table.handle, **types)
        else:
            draft = replace(draft, table="")
        return dataclasses.replace(self, entries=draft, owner=shown)

    @property
    def needed_owner(self) -> str:
        """What to enter for the account, as long as the form has no table."""
        typed = self.entries.owner.strip()
        owner = Findings(names=self.names).address(typed) or ""
        if typed and owner not in self.tables:
            return "its tables have not been read yet"
        whose = f"the resources of {self.names.get(owner) or short_addresses(owner)}"
        another = f"{whose} contain no tables: enter another account" if typed else "enter an account"
        return f"{another}, or the handle of a table below"

    def with_key(self, kind: str | None, found: Findings) -> tuple[Self, Any]:
        """Return the state with the key's field and its JSON synchronized, and the key."""
        draft, layout = self.entries, None if kind is None else self.layout(kind)
        changed = layout is not None and self.last_layout not in {None, layout}
        if changed:
            draft = replace(draft, arguments=())  # of the previous table
            fits = _encoded(layout, self._key_value(draft.raw, layout)) is not None
            draft = draft if fits else replace(draft, raw="")
        before = self.key_layout
        if layout is not None and draft.lead == "raw" and not draft.raw.strip() and not isinstance(layout, move.String):
            draft = replace(draft, arguments=(fields.blank(layout),), lead="fields")  # its field shows what it accepts
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
            found.missing["raw"] = "enter the key, as JSON or plain text"
        elif layout is not None and draft.lead == "raw":
            validated(partial(encode_argument, layout, key, where="key"), found, "raw")
        last = layout or self.last_layout
        return dataclasses.replace(self, entries=draft, key_layout=layout, last_layout=last), key

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

    @property
    def controls(self) -> parts.Group:
        """The controls of the form."""
        by_hand = ("table", ("",))
        about = "whose resources hold the table: an address"
        tables = self.tables.get(Findings(names=self.names).address(self.entries.owner) or "", [])
        names = {str(place): _table_name(one) for place, one in enumerate(tables)} | {"": "another table, by handle"}
        raw = parts.mono("Key", "JSON, or plain text", rows=2)
        key: list[tuple[str, parts.Part]] = [("raw", raw)]
        if self.key_layout is not None:
            twin = parts.group(("raw", replace(raw, label="JSON")), label="Key as JSON", fold=True)
            key = [("arguments", parts.group((0, fields.field(self.key_layout, "Key")))), ("", twin)]
        typed: list[tuple[str, parts.Part]] = [
            ("handle", parts.mono("Table handle", when=by_hand)),
            ("key_type", parts.mono("Key type", when=by_hand, placeholder="address")),
            ("value_type", parts.mono("Value type", when=by_hand, placeholder="u64")),
        ]
        by_handle = parts.group(*typed, label="A table by its handle", fold=True, filled=_by_hand(self.entries))
        return parts.group(
            ("owner", parts.mono("Account", about, placeholder="0xcafe", names=True)),
            *([("table", parts.select("Table", names)), *typed] if tables else [("", by_handle)]),
            *key,
            *VERSION_FIELDS,
            ("", self._key_list()),
        )

    def _key_list(self) -> parts.Group:
        """Return the controls that list the keys that transactions changed."""
        hint = "-1000: for the last 1,000, or 100:200; nodes cannot list a table's keys, so these are searched for them"
        said = parts.Actions("Search", do="keys", buttons=(parts.Button("List keys"),), hint=self.keys_said)
        return parts.group(
            ("key_range", parts.mono("Transactions at versions", hint, placeholder="-1000:", hinted=True)),
            ("", said),
            *self._found_keys(),
            label="Find keys in transactions",
            fold=True,
        )

    def _found_keys(self) -> list[tuple[str, parts.Part]]:
        """Return a button for each key that was found and has the words of the filter, and the filter if needed."""
        if self.found_keys is None or self.found_keys.empty:
            return []
        words, total = self.entries.key_filter.lower().split(), len(self.found_keys)
        hits: list[int] = list(range(total))
        if words:
            texts = [f"{text} {short_addresses(text)}".lower() for text in map(_key_text, self.found_keys["key"])]
            hits = [place for place in hits if all(word in texts[place] for word in words)]
        buttons = []
        for place, row in zip(hits, self.found_keys.iloc[hits[:_MAX_KEYS]].itertuples(), strict=False):
            ended = f"{'deleted' if row.deleted else 'changed'} at {row.last_version:,}"
            key = visible(short_addresses(_key_text(row.key)), _MAX_KEY)
            buttons.append(parts.Button(f"{key} ({ended})", place))
        listed = parts.Actions("Keys, most recently changed first", do="pick", buttons=tuple(buttons))
        first = f"; the {_MAX_KEYS} changed last are below" if len(hits) > _MAX_KEYS else ""
        hint = f"{len(hits):,} of {plural(total, 'key')}{first}"
        shown = parts.Text("Filter", hint=hint, placeholder="part of a key")
        return [*([("key_filter", shown)] if total > _MAX_UNFILTERED else []), *([("", listed)] if buttons else [])]


class TableItemBuilder(ReadBuilder):
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
        "Shows what a table holds under a key. Choose the account that has the table, then press Read.",
        actions=READ_ACTIONS,
        look=("owner", "table", "key_type", "value_type"),
    )
    _empty = TableItemState()
    _mirrored = ("owner", "handle", "key_type", "value_type", "key", "key_range", "versions")
    _listed: ClassVar[dict[str, str]] = {
        "Account": "owner",
        "Table handle": "handle",
        "Key type": "key_type",
        "Value type": "value_type",
        "Key": "key",
    }

    owner = Unicode()
    handle = Unicode()
    key_type = Unicode()
    value_type = Unicode()
    key = Unicode()
    key_range = Unicode("-1000:")
    request = Instance(TableItemRequest, allow_none=True)

    def __init__(
        self,
        node: Node,
        *,
        owner: str | None = None,
        handle: str | None = None,
        request: TableItemRequest | None = None,
    ) -> None:
        super().__init__(node, request=request)
        if owner is not None:
            self.owner = owner
        if handle is not None:
            self.handle = handle

    # what is read ----------------------------------------------------------------------------------------

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
        options: dict[str, Any] = {"flatten": True, "times": True, "progress": False, **_types_of(wanted.request)}
        return fetch_table_items(node, wanted.place, [wanted.request.key], versions, **options)

    def _cause_of(self, error: ToolkitError) -> str:
        # A node answers with an internal error if the stored value does not have the type.
        if isinstance(error, SchemaError) or (isinstance(error, NodeError) and error.error_code == "internal_error"):
            return "value_type"
        if not isinstance(error, InputError | InvalidRequest):
            return "node"
        shown = self._now.entries.arguments
        return "arguments.0" if shown and isinstance(shown[0], str) else "raw"

    def list_keys(self) -> None:
        """Read the transactions in `key_range` and list the table keys that they changed; sets `found_keys`.

        A node cannot list the keys of a table. Keys that no transaction in these versions changed are therefore missed.
        """
        with self._busy_while(""):  # the message beside Read is that of its result
            self._look()
            now = self._now
            wrong = now.findings.errors | now.findings.missing
            at_fault = [path for path in ("owner", "handle", "key_type") if path in wrong]
            for path in at_fault:
                self._refuse(path, wrong[path])
            if at_fault:
                return
            handle, kind, path = now.entries.handle.strip(), now.entries.key_type.strip(), "key_range"
            try:
                with collected_warnings():  # about versions that were clipped or could not be read
                    changed = fetch_transactions(self._asked, parse_plan(now.entries.key_range), progress=False)
                path = "key_type"
                abis = self._asked.abis.at(self._asked.ledger().version)
                keys = table_keys(changed, handle, key_type=kind, abis=abis)
            except ToolkitError as error:
                self._refuse(path if isinstance(error, InputError | SchemaError) else "node", field_text(error))
                return
            ordered = keys.sort_values("last_version", ascending=False, kind="stable")
            found, among = plural(len(keys), "key"), plural(len(changed.transactions), "transaction")
            more = "choose one below" if len(keys) else "try older versions"
            with self._locked():
                words = f"{found} changed in {among}: {more}."
                self._learn(found_keys=ordered, keys_said=words, keys_of=(handle, kind))

    @property
    def found_keys(self) -> pd.DataFrame | None:
        """The keys that `list_keys` found; None once another table or key type is chosen."""
        return self._now.found_keys  # type: ignore[no-any-return]

    # what is asked of the node ---------------------------------------------------------------------------

    def _needs_look(self, **_about: bool) -> bool:
        return True  # the tables of the owner complete the entries

    def _look(self) -> None:
        """Read the tables of the owner, then the layouts of the types."""
        owner, path = self._now.findings.address(self._now.entries.owner), "owner"
        try:
            if owner is not None and owner not in self._now.tables:
                read = account_tables(self._asked, owner, self._asked.ledger().version)
                with self._locked():
                    self._learn(tables={**self._now.tables, owner: [KnownTable(*one) for one in read]})
            now = self._learn(looked={})
            for path in _TYPES:
                kind = getattr(now.entries, path).strip()
                if kind and now.layout(kind) is None:
                    with suppress(InputError):  # the field shows the error
                        tag = move.parse_type_tag(kind)
                        layout = self._asked.abis.at(self._asked.ledger().version).layout(tag)
                        with self._locked():
                            now = self._learn(layouts={**self._now.layouts, str(tag): layout})
        except ToolkitError as error:
            self._learn(looked={path: str(error)})

    # display ---------------------------------------------------------------------------------------------

    def _programs_of(self, request: TableItemRequest) -> parts.Programs:
        types = {name: _short(getattr(request, name)) for name in _TYPES}
        options = ", ".join(f"{name}={kind!r}" for name, kind in types.items())
        now = self._now
        one = f"table_item({now.place!r}, {request.key!r}, {options})"
        many = f"fetch_table_items(node, {now.place!r}, [{request.key!r}], {options}"
        line = self._read_statement("item", one, many)
        key = _encoded(now.layout(request.key_type), request.key)
        body = types | {"key": wire_argument(request.key) if key is None else key}
        return {
            "Python": f"import toolkit\n\n{connect_line(self.node)}\n{line}",
            "curl": curl_lines(self.node, f"tables/{now.place}/item", body, now.versions),
            "JSON": json.dumps(body, indent=2, ensure_ascii=False),
        }

    def _subject(self) -> str | None:
        if self.request is None:
            return None
        return f"item {visible(_key_text(self.request.key), 40)} of table {short_addresses(self._now.place)}"

    def _checked_words(self) -> str:
        known = self._now.key_layout is not None
        return "The key fits its type." if known else "The key was not checked: type unknown."

    def _outcome(self, reading: Reading) -> tuple[str, str]:
        result = reading.result
        if not isinstance(result, pd.DataFrame):
            return "good", f"Found at version {result.ledger_version:,}"
        if reading.asked.single:
            return "hint", f"No item with this key at version {result['ledger_version'].iloc[0]:,}"
        if result["presence"].isin(["missing", "deleted"]).all():
            return "hint", f"No item with this key at any of {plural(len(result), 'version')}"
        return super()._outcome(reading)

    def _one_pages(self, reading: Reading) -> list[parts.Page]:
        if isinstance(reading.result, pd.DataFrame):
            return missing_item_pages(self._outcome(reading)[1], declared=bool(self._now.entries.table))
        return item_pages(reading.result, reading.asked.request.value_type, Known(names=self._now.names))

    def _compared(self, _wanted: Wanted, result: Any) -> dict[str, Any]:
        if isinstance(result, pd.DataFrame):
            return {}
        facts = {"Table": short_addresses(result.handle), "Key": brief(result.key), "Value": brief(result.value)}
        return facts | {"Version": f"{result.ledger_version:,}"}

    # messages of the browser -----------------------------------------------------------------------------

    def _do_keys(self, _message: parts.Message) -> None:
        self._background.start("keys", self.list_keys)

    def _do_pick(self, message: parts.Message) -> None:
        keys = self.found_keys
        if keys is not None and 0 <= message.number < len(keys):
            self.key = _key_text(keys["key"].iloc[message.number])


def _by_hand(draft: TableItemDraft) -> bool:
    return any(getattr(draft, name).strip() for name in ("handle", *_TYPES))


def _types_of(request: TableItemRequest) -> dict[str, Any]:
    return {name: getattr(request, name) for name in _TYPES}


def _short(kind: str) -> str:
    """Return a type with short addresses."""
    return wire_type(move.parse_type_tag(kind))


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


def _table_name(table: KnownTable) -> str:
    """Return a readable name of a table: module and name of its resource, field, and types."""
    tag, types = move.parse_type_tag(table.resource), (table.declared.key_type, table.declared.value_type)
    resource = f"{tag.module}::{tag.name}" if isinstance(tag, move.StructTag) else str(tag)
    written = ", ".join(re.sub(r"\w+::", "", one) for one in types)
    return visible(f"{resource}, {table.declared.field}: Table<{written}>", 120)
