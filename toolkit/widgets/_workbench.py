"""The builders in tabs, below the node and the state of its ledger. The controls are in ``workbench.js``."""

from __future__ import annotations

import threading
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, unquote

import msgspec
from msgspec import Struct
from traitlets import Bool, Dict, Enum, Instance, List, Unicode, observe, validate

from toolkit._present.notebook import running_marimo
from toolkit.client._http import base_url
from toolkit.client._node import Node, connect
from toolkit.errors import InputError, ToolkitError
from toolkit.move import FunctionId
from toolkit.widgets._form import Background, Builder, Pictured, asked_node, is_given_up, picture, source_of, words_of
from toolkit.widgets._messages import Message, NodeShown, shown
from toolkit.widgets._state import Restored
from toolkit.wire import NodeInfo, TableItemRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.widgets._gas_explorer import GasExplorer
    from toolkit.widgets._readings import ViewBuilder
    from toolkit.widgets._simulation_builder import SimulationBuilder
    from toolkit.widgets._table_item_builder import TableItemBuilder

_MAX_CHARACTERS = 100_000  # of a link's fragment; browsers have similar limits
# Entries that links omit: signatures and keys, and the count of edits.
_LEFT_OUT = frozenset({"seq", "of", "signature", "signature_json", "sender_key", "fee_payer_key"})


class Link(Struct, frozen=True):
    """The open tab, the name of the network if it has one, and per tab the entries that differ from an empty form."""

    tab: str
    target: str = ""
    forms: dict[str, dict[str, Any]] = {}


def write_link(tab: str, target: str, forms: Mapping[str, Any]) -> str:
    """Return the URL fragment that describes the entries of forms, by tab."""
    return quote(msgspec.json.encode(Link(tab, target, {name: _differing(entries) for name, entries in forms.items()})))


def _differing(entries: Any) -> dict[str, Any]:
    """Return the entries that differ from those of an empty form, without signatures and keys."""
    typed, blank = msgspec.to_builtins(entries), msgspec.to_builtins(type(entries)())
    differing = {name: value for name, value in typed.items() if value != blank[name] and name not in _LEFT_OUT}
    if "secondary" in differing:
        differing["secondary"] = [{"address": one["address"]} for one in differing["secondary"]]
    return differing


def read_link(fragment: str) -> Link:
    """Return the content of a URL fragment.

    Raises
    ------
    InputError
        If the fragment was not written by `write_link`.
    """
    try:
        link = msgspec.json.decode(unquote(fragment[:_MAX_CHARACTERS]), type=Link)
    except ValueError:  # DecodeError of msgspec is one
        link = Link("")
    if {link.tab, *link.forms} - _BUILDERS.keys():
        raise InputError("the link is incomplete or was not created by this workbench")
    return link


_TARGETS = (
    ("embedded", "Embedded node"),
    ("mainnet", "Mainnet"),
    ("testnet", "Testnet"),
    ("devnet", "Devnet"),
    ("local", "Local node, port 8080"),
    ("", "Another URL"),
)
# Title, class and attribute of each builder, by the name of its tab. A class is imported when its tab is first opened.
_BUILDERS = {
    "simulation": ("Simulation", "SimulationBuilder", "simulation_builder"),
    "view": ("View", "ViewBuilder", "view_builder"),
    "table_item": ("Table item", "TableItemBuilder", "table_item_builder"),
    "gas": ("Gas", "GasExplorer", "gas_explorer"),
}


class Workbench(Pictured):
    """All builders in tabs, below a header with the node and the state of its ledger.

    Constructing a workbench makes no request. Press Connect, or call `connect`, to connect to a node. A builder is
    created when its tab or attribute is first used.

    Parameters
    ----------
    node : Node, optional
        Node used by all builders.

    Attributes
    ----------
    node : Node or None
        The current node. Setting it passes the new node to all builders, which keep their entries.
    info : NodeInfo or None
        The node and its ledger, from the last `refresh`. Read only.
    selected : str
        Name of the open tab: ``simulation``, ``view``, ``table_item`` or ``gas``.
    error : str
        Reason why the last `connect` or `refresh` failed; empty if it succeeded. Read only.
    busy : bool
        True while a request is in progress. Read only.

    Examples
    --------
    >>> import toolkit
    >>> workbench = toolkit.widgets.Workbench()
    >>> workbench.connect("embedded")
    >>> workbench.info.ledger.version
    4999
    >>> workbench.simulation_builder.sender = "0xa11ce"
    >>> workbench.close()
    """

    _esm = source_of("common.js", "workbench.js")
    _css = Builder._css + "\n" + source_of("workbench.css")  # noqa: SLF001 - one style for all

    node = Instance(Node, allow_none=True)
    info = Instance(NodeInfo, allow_none=True, read_only=True)
    selected = Enum(list(_BUILDERS), default_value="simulation").tag(sync=True)

    _targets: Any = List([list(one) for one in _TARGETS]).tag(sync=True)
    _tabs: Any = List([[name, title] for name, (title, *_) in _BUILDERS.items()]).tag(sync=True)
    _children = Dict().tag(sync=True)
    _node = shown(NodeShown())
    _facts: Any = List().tag(sync=True)
    _has_call = Bool().tag(sync=True)  # whether the open tab has a call whose gas can be studied
    _link = Unicode().tag(sync=True)  # the entries as the fragment of a link

    def __init__(self, node: Node | None = None) -> None:
        self._builders: dict[str, Any] = {}
        self._own: Node | None = None
        self._arrived: Node | None = None  # the node that the background has connected to
        self._background: Background | None = None
        self._lock = threading.RLock()
        super().__init__()
        self.on_msg(self._on_message)
        self.node = node
        if running_marimo() is not None:  # it creates widgets only while a cell runs, not when a tab is opened
            if node is None:
                raise InputError("in marimo, pass the node: Workbench(toolkit.connect())")
            for name in _BUILDERS:
                self._builder(name)

    def __repr__(self) -> str:
        return f"Workbench({'no node yet' if self.node is None else repr(self.node)})"

    def _picture(self) -> str:
        made = self._builders.get(self.selected)
        parts = [] if made is None else [made._picture()]  # noqa: SLF001 - a part of the same widget
        facts = [("Node", self._node.name or "none yet"), *map(tuple, self._facts)]
        return picture("Workbench", facts, "", parts, caption="The node")

    @property
    def simulation_builder(self) -> SimulationBuilder:
        """The builder on the Simulation tab.

        Raises
        ------
        InputError
            If the workbench has no node yet.
        """
        return cast("SimulationBuilder", self._builder("simulation"))

    @property
    def view_builder(self) -> ViewBuilder:
        """The builder on the View tab.

        Raises
        ------
        InputError
            If the workbench has no node yet.
        """
        return cast("ViewBuilder", self._builder("view"))

    @property
    def table_item_builder(self) -> TableItemBuilder:
        """The builder on the Table item tab.

        Raises
        ------
        InputError
            If the workbench has no node yet.
        """
        return cast("TableItemBuilder", self._builder("table_item"))

    @property
    def gas_explorer(self) -> GasExplorer:
        """The explorer on the Gas tab.

        Raises
        ------
        InputError
            If the workbench has no node yet.
        """
        return cast("GasExplorer", self._builder("gas"))

    def connect(self, target: str) -> None:
        """Connect to a node, read the state of its ledger, and pass the node to all builders.

        On failure, `error` states the reason and the workbench keeps its current node.

        Parameters
        ----------
        target : str
            Network name or URL, as for `toolkit.connect`.
        """
        self._read(target)
        self._wait()

    def refresh(self) -> None:
        """Refresh the state of the node's ledger; on failure, `error` states the reason.

        Raises
        ------
        InputError
            If the workbench has no node yet.
        """
        self._needed()
        self._read()
        self._wait()

    def study_gas(self) -> None:
        """Open the call of the current tab in the Gas tab.

        From the View tab, this is the view; from the Simulation tab, a sample of the function's committed transactions.
        The call is added to the study if it is missing; if the study has no calls yet, it gets the view's versions.

        Raises
        ------
        InputError
            If the open tab has no valid call, or the Gas tab is busy.
        """
        from toolkit.gas._calls import Call
        from toolkit.widgets._gas_explorer import SAMPLE

        if self.selected not in {"simulation", "view"}:
            raise InputError("open the Simulation or View tab first")
        builder = self._builder(self.selected)
        if not builder._now.has_call:  # noqa: SLF001 - a part of the same widget
            raise InputError(f"the {_BUILDERS[self.selected][0]} tab has no complete call of a function yet")
        entries, versions = builder._now.entries, ""  # noqa: SLF001 - a part of the same widget
        if self.selected == "simulation":
            call = Call(committed=str(FunctionId.parse(builder.function.strip())), versions=SAMPLE)
        else:
            call = Call.of(builder.request)
            versions = entries.plan if entries.at == "plan" else ""
        if self.gas_explorer.busy:
            raise InputError("the Gas tab is busy; wait for it to finish, or stop it")
        self.gas_explorer._open_call(call, versions)  # noqa: SLF001 - a part of the same widget
        self.selected = "gas"

    def open_item(self, handle: str, request: TableItemRequest) -> None:
        """Open a table item in the Table item tab.

        Parameters
        ----------
        handle : str
        request : TableItemRequest
            Key and types.
        """
        builder = self.table_item_builder
        builder.owner, builder.handle, builder.request = "", handle, request
        self.selected = "table_item"

    @observe("selected")
    def _write_link(self, _change: object = None) -> None:
        """Update what follows from the entries of the forms: the link, and whether the open tab has a call."""
        if self.node is not None:
            states = {name: builder._now for name, builder in self._builders.items()}  # noqa: SLF001
            self._has_call = self.selected in states and states[self.selected].has_call
            forms = {name: now.saved() for name, now in states.items()}
            self._link = write_link(self.selected, _target_of(self.node), forms)

    def _open_link(self, fragment: str) -> None:
        """Fill the forms with the entries from a link, and connect to the link's node if it is a known network."""
        try:
            link = read_link(fragment)
            with self.hold_sync():  # the browser shows a form once it has its entries
                for tab, entries in link.forms.items():
                    builder = self._builder(tab)
                    builder._apply(Restored(entries))  # noqa: SLF001 - a part of the same widget
                    if entries:
                        builder._say("hint", _restored_words(builder._form.actions[0][1], entries.get("kept", 0)))  # noqa: SLF001
                self.selected = link.tab
        except InputError as error:
            self._end(str(error))
            return
        if self.node is not None and link.target != _target_of(self.node) and dict(_TARGETS).get(link.target):
            self._read(link.target)

    def cancel(self) -> None:
        """Cancel the workbench's own requests; each builder has its own `cancel`."""
        if self._background is not None:
            self._background.give_up()
        self._end("")

    def close(self) -> None:
        """Close the builders and the node opened by `connect`, and remove the workbench from the page."""
        if self._background is not None:
            self._background.close()
        for builder in self._builders.values():
            builder.close()
        if self._own is not None:
            self._own.close()
        super().close()

    # the node --------------------------------------------------------------------------------------------

    def _read(self, target: str | None = None) -> None:
        """Read the state of the node's ledger in the background; if a target is given, connect to it first."""
        self.set_trait("busy", value=True)
        self.set_trait("error", "")
        self._say("hint", f"{'Reading' if target is None else 'Connecting'}\N{HORIZONTAL ELLIPSIS}")
        try:
            if target is not None:
                self._check_idle()
            node = self._needed() if target is None else connect(target)
        except ToolkitError as error:
            self._end(str(error))
            return
        if self._background is not None:
            self._background.close()
        self._background = made = Background(node, lambda error: self._end(words_of(error)))
        made.start("read", partial(self._answered, node, self.node))

    def _answered(self, node: Node, held: Node | None) -> None:
        """Read and show a node's state, and pass the node to all builders.

        Nothing is changed if the workbench's node has been replaced in the meantime.
        """
        info, error = None, ""
        try:
            info = asked_node(node).info()
        except ToolkitError as failure:
            error = str(failure)
        with self._lock:
            wanted = not is_given_up() and self.node is held
            if wanted and info is not None:
                self._arrived = self.node = node
                self._own = self._own if node is held else node
                self._show(info)
            elif node is not held:
                node.close()
            if wanted:
                self._end(error)

    @property
    def _idle(self) -> bool:
        """Whether nothing runs in the background, as in `Builder`; used by tests."""
        return self._background is None or self._background.idle

    def _wait(self) -> None:
        if self._background is not None:
            self._background.wait()

    def _end(self, error: str) -> None:
        self.set_trait("error", error)
        self._say("error" if error else "hint", error)
        self.set_trait("busy", value=False)

    def _needed(self) -> Node:
        if self.node is None:
            raise InputError("the workbench has no node yet; call connect('embedded'), or set node")
        return self.node

    def _check_idle(self) -> None:
        for name, builder in self._builders.items():
            if builder.busy:
                raise InputError(f"the {_BUILDERS[name][0]} tab is busy; wait for it to finish, or stop it")

    def _builder(self, name: str) -> Any:
        """Return the builder of a tab, which is created on first use."""
        with self._lock:
            if name not in self._builders:
                kind = getattr(import_module("toolkit.widgets"), _BUILDERS[name][1])
                builder = self._builders[name] = kind(self._needed())
                builder._holder, builder._held_as = self, _BUILDERS[name][2]  # noqa: SLF001 - a part of the same widget
                self._children = self._children | {name: f"anywidget:{builder.model_id}"}
                self._write_link()
            return self._builders[name]

    @validate("node")
    def _check_node(self, proposal: Any) -> Node | None:
        if proposal["value"] is not self.node:
            self._check_idle()
        return proposal["value"]  # type: ignore[no-any-return]

    @observe("node")
    def _on_node(self, _change: object) -> None:
        if self.node is None:
            return
        with self._lock:
            if self.node is not self._arrived:
                self.cancel()  # requests to the previous node
            before, self._own = self._own, None
            self.set_trait("info", None)
            self._facts = []
            self._node = NodeShown(self.node.name, _target_of(self.node))
            for builder in self._builders.values():
                builder.node = self.node
        if before is not None:
            before.close()

    def _show(self, info: NodeInfo) -> None:
        """Show the state of the ledger."""
        node, ledger = self._needed(), info.ledger
        model = (info.git_hash or "").startswith("embedded")
        self.set_trait("info", info)
        self._facts = [
            ["Chain id", f"{ledger.chain_id}"],
            ["Head version", f"{ledger.version:,}"],
            ["Ledger time", f"{ledger.timestamp:%Y-%m-%d %H:%M:%S} UTC"],
            ["Oldest version", f"{node.oldest_readable(ledger):,}"],
            ["Kind of node", "embedded (model gas)" if model else info.node_role.replace("_", " ") or "unknown"],
        ]

    def _do(self, message: Message) -> None:
        match message:
            case Message(do="connect") if not self.busy:
                self._read(message.target)
            case Message(do="refresh") if self.node is not None and not self.busy:
                self._read()
            case Message(do="gas") if self.node is not None:
                try:
                    self.study_gas()
                except InputError as error:
                    self._end(str(error))
            case Message(do="restore") if self.node is not None:
                self._open_link(message.name)
            case Message(do="cancel"):
                self.cancel()
            case Message(do="open") if message.tab in _BUILDERS and self.node is not None:
                self._builder(message.tab)


def _restored_words(action: str, kept: int) -> str:
    """Return what is said of a form that a link filled, which has lost the calls `kept` for a sequence."""
    calls = "the call" if kept == 1 else f"the {kept:,} calls"
    lost = f", without {calls} kept for the sequence" if kept else ""
    return f"Entries restored{lost}: press {action} for the result."


def _target_of(node: Node) -> str:
    """Return the value of a node in the menu of networks; empty if it is not in the menu."""
    named = (name for name, _ in _TARGETS if name and name != "embedded" and base_url(name) == node.url)
    return "embedded" if node.name == "embedded" else next(named, "")
