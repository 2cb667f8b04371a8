"""A form that simulates a transaction: an anywidget whose controls are in ``form.js``, everything else in Python.

The state is one draft, a JSON object. The browser edits it; each edit is read here without asking the node. What the
node is asked for is asked for by messages: ``look`` reads the ABI of the function that was typed, ``check`` and
``simulate`` do what the methods of these names do.
"""

from __future__ import annotations

import keyword
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anywidget
from traitlets import Bool, Dict, Instance, List, Unicode, observe

from toolkit._present.text import cleaned
from toolkit.client._resimulation import rebuild_request
from toolkit.client._results import Simulation, failure_reason
from toolkit.errors import InputError, SchemaError, ToolkitError
from toolkit.move import FunctionId
from toolkit.widgets import _fields
from toolkit.widgets._drafts import (
    BLANK,
    arguments_text,
    calls_function,
    estimates_of,
    form_fields,
    parse_arguments,
    read_request,
    read_types,
    write_request,
)
from toolkit.widgets._fields import Findings
from toolkit.widgets._functions import Hit, address_of, find_function, listed_modules, matching, signature
from toolkit.widgets._results import pages, picture, programs, request_as_python
from toolkit.wire import EntryFunction, Multisig, SimulationRequest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolkit.client._node import Node
    from toolkit.move import ModuleAbi
    from toolkit.widgets._functions import ResolvedCall, ResolvedFunction

__all__ = ["SimulationBuilder"]

_ESTIMATES = ("estimate_max_gas_amount", "estimate_gas_unit_price", "estimate_prioritized_gas_unit_price")
_TEXTS = ("sender", "function")
_MIRRORED = (*_TEXTS, "type_arguments", "arguments", *_ESTIMATES)
_MAX_RECENT = 8
_FRAMEWORK = "0x1"

_CAUSES = {
    "SEQUENCE_NUMBER": ("sequence_number", "replay"),
    "NONCE": ("nonce", "replay"),
    "TRANSACTION_EXP": ("expiration",),
    "MAX_GAS_UNITS": ("max_gas_amount", "estimate_max_gas_amount"),
    "Out of gas": ("max_gas_amount", "estimate_max_gas_amount"),
    "GAS_UNIT_PRICE": ("gas_unit_price", "estimate_gas_unit_price"),
    "SENDING_ACCOUNT": ("sender",),
    "INVALID_AUTH_KEY": ("sender_key.shape",),
    "NUMBER_OF_SIGNER": ("secondary",),
    "SIGNERS_CONTAIN": ("secondary",),
    "NOT_MULTISIG": ("multisig_address",),
    "LINKER_ERROR": ("function",),
    "Move abort": ("function",),
}
"""The field that caused a failure, by what the status contains; the second if the first is not shown."""


def _plain(name: str) -> str:
    """Return a file of this folder without indentation and whole-line comments: each form sends it to the browser."""
    lines = [line.strip() for line in (Path(__file__).parent / name).read_text("utf-8").splitlines()]
    return "\n".join(line for line in lines if line and not line.startswith(("//", "/**")))


class SimulationBuilder(anywidget.AnyWidget):
    """Build, check and simulate a transaction: an entry function, a script, or a payload of a multisig account.

    Neither constructing the form nor setting its traits makes a request. In a browser, the ABI of the function is read
    when it has been typed, so that each argument has a field of its own; from Python, `check` and `simulate` read it.

    Parameters
    ----------
    node : Node
        Runs the simulations; available as ``node``.
    request : SimulationRequest, optional
        Initial content of the form.

    Attributes
    ----------
    sender : str
        As typed.
    function : str
        As typed: ``address::module::function``.
    type_arguments : str
        As typed: Move types, one per line or separated by commas.
    arguments : str
        As typed: a JSON array without the signers.
    estimate_max_gas_amount, estimate_gas_unit_price, estimate_prioritized_gas_unit_price : bool
        Estimates that the node is asked for.
    request : SimulationRequest or None
        The request made from the last valid entries. Set it to fill the form; any request can be shown.
    errors : dict of str to str
        Error messages by field, such as ``sender`` or ``arguments.1``; ``node`` holds the error that the node returned.
        Read only.
    error : str
        All error messages as one text; empty if there is none. Read only.
    python : str
        A Python program that sends `request`; empty without a request. Read only.
    simulation : Simulation or None
        The last result, with its frames ``transactions``, ``changes`` and ``events``. Read only.
    busy : bool
        True while a request is in progress. Read only.

    Examples
    --------
    >>> import toolkit
    >>> builder = toolkit.widgets.SimulationBuilder(toolkit.connect())
    >>> builder.sender, builder.function = "0xa11ce", "0x1::aptos_account::transfer"
    >>> builder.arguments = '["0xb0b", 100]'
    >>> builder.simulate()
    >>> builder.simulation.success
    True
    """

    _esm = _plain("form.js")
    _css = _plain("form.css")

    sender = Unicode()
    function = Unicode()
    type_arguments = Unicode()
    arguments = Unicode()
    estimate_max_gas_amount = Bool(default_value=True)
    estimate_gas_unit_price = Bool(default_value=True)
    estimate_prioritized_gas_unit_price = Bool(default_value=False)
    request = Instance(SimulationRequest, allow_none=True)
    errors = Dict(read_only=True)
    error = Unicode(read_only=True)
    python = Unicode(read_only=True)
    simulation = Instance(Simulation, allow_none=True, read_only=True)
    busy = Bool(default_value=False, read_only=True).tag(sync=True)

    # What the browser shows; only `_draft` is also written by it.
    _node_name = Unicode().tag(sync=True)
    _spec = Dict().tag(sync=True)
    _draft = Dict().tag(sync=True)
    _findings = Dict().tag(sync=True)
    _status = Dict().tag(sync=True)
    _pages: Any = List().tag(sync=True)
    _stale = Bool(default_value=False).tag(sync=True)
    _programs: Any = List().tag(sync=True)
    _hits = Dict().tag(sync=True)

    def __init__(self, node: Node, *, request: SimulationRequest | None = None) -> None:
        self.node = node
        self._setting = True
        self._strict = False
        self._shown_call: ResolvedCall | None = None
        self._functions: dict[str, ResolvedFunction | None] = {}
        self._calls: dict[tuple[str, tuple[str, ...]], ResolvedCall] = {}
        self._modules: dict[str, list[ModuleAbi]] = {}
        self._recent: list[Hit] = []
        self._blamed: dict[str, str] = {}
        self._look_errors: dict[str, str] = {}
        self._before: Simulation | None = None
        self._name = ""
        self._found = Findings()
        self._taken = dict(BLANK)
        super().__init__(_draft=dict(BLANK), _node_name=node.name, _status={"kind": "hint", "text": ""})
        self._setting = False
        self.on_msg(self._on_message)
        self.request = request
        if request is None:
            self._take(dict(self._draft))

    def __repr__(self) -> str:
        return f"SimulationBuilder(Node({self.node.name!r}), {self._subject() or 'no request yet'})"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Return the form, and a picture of it for places without a kernel."""
        bundle = super()._repr_mimebundle_(**kwargs)
        if isinstance(bundle, tuple):
            bundle[0]["text/html"] = self._picture()
        return bundle

    def _picture(self) -> str:
        facts = [("Sender", self.sender), ("Function", self.function), ("Arguments", self.arguments)]
        shown = [f"<h4>{title}</h4>{html}" for title, html in self._pages if title in {"Outcome", "Gas"}]
        about = [(name, value) for name, value in facts if value]
        return f"<style>{self._css}</style>" + picture("Simulate a transaction", about, self.python, shown)

    def _subject(self) -> str | None:
        payload = None if self.request is None else self.request.payload
        if isinstance(payload, Multisig):
            payload = payload.transaction_payload or payload
        if isinstance(payload, EntryFunction):
            return payload.function
        return None if payload is None else f"a {type(payload).__name__} payload"

    # actions -------------------------------------------------------------------------------------------

    def check(self) -> bool:
        """Check the entries against the ABI at the node's head, and set `errors`.

        Returns
        -------
        bool
            True if the entries can be simulated. If the node returns no ABI of the module, arguments are not
            checked.

        Notes
        -----
        Source: ``GET /v1`` and ``GET /v1/accounts/{address}/module/{name}``; ABIs are cached.
        """
        with self._busy_while("Checking"):
            good = self._check()
            if good:
                self._say("good", self._checked_words())
        return good

    def simulate(self) -> None:
        """Check the entries, simulate the request and show the result; sets `errors` and `simulation`."""
        with self._busy_while("Simulating"):
            if not self._check() or self.request is None:
                return
            before = self.simulation
            self.set_trait("simulation", None)
            try:
                found = self.node.simulate(self.request)
            except ToolkitError as error:
                self._blame("node", str(error))
                return
            same = before is not None and _called(before.request) == _called(found.request)
            self._before = before if same else None
            self.set_trait("simulation", found)
            self._after(found)

    def close(self) -> None:
        """Remove the form from the page, and all observers."""
        self.on_msg(self._on_message, remove=True)
        self.unobserve_all()
        self.layout.close()
        super().close()

    def _check(self) -> bool:
        self._strict = True
        self._blamed = {}
        self._take(dict(self._draft))
        if self.errors:
            self._say("error", self._count_words())
            return False
        if calls_function(self._draft):
            self._look()
        if self.errors:
            self._say("error", self.errors.get("node") or self._count_words())
        return not self.errors

    def _checked_words(self) -> str:
        function, call = self._known(self._draft)
        if call is not None:
            return f"Matches {call.signature} at version {call.ledger_version:,}"
        if calls_function(self._draft) and function is None:
            return "The node returns no ABI of this module: the arguments were not checked."
        return "The entries make a request; only the node can check its payload."

    def _count_words(self) -> str:
        count = len(self.errors)
        return f"{count} {'entry needs' if count == 1 else 'entries need'} attention."

    def _after(self, simulation: Simulation) -> None:
        """Show the outcome of a simulation, and a failure at the field that caused it."""
        words = f"{simulation.gas_used:,} gas units at version {simulation.ledger_version:,}"
        if simulation.success:
            self._say("good", f"Success: {words}")
        else:
            why = failure_reason(simulation.request, simulation.transaction) or simulation.vm_status
            cause = next((paths for words, paths in _CAUSES.items() if words in simulation.vm_status), ())
            shown = [path for path in cause if self._draft_has(path)]
            if shown:
                self._blame(shown[0], f"{why[:1].upper()}{why[1:]}.")
            self._say("bad", f"Would fail: {why}")
        self._remember()

    def _draft_has(self, path: str) -> bool:
        """Return whether a field is shown."""
        draft = self._draft
        hidden = {
            "sequence_number": draft["replay"] != "number",
            "nonce": draft["replay"] != "nonce",
            "max_gas_amount": draft["estimate_max_gas_amount"],
            "gas_unit_price": draft["estimate_gas_unit_price"],
            "function": not calls_function(draft),
        }
        return not hidden.get(path, False)

    def _blame(self, path: str, words: str) -> None:
        self._blamed[path] = words
        self._show_findings(self._found)
        if path == "node":
            self._say("error", words)

    def _remember(self) -> None:
        """Put the function in front of those that were used."""
        function, _ = self._known(self._draft)
        if function is not None:
            hit = Hit(FunctionId.parse(function.name).wire, signature(function.abi))
            self._recent = [hit, *(one for one in self._recent if one.name != hit.name)][:_MAX_RECENT]

    # drafts and request -----------------------------------------------------------------------------------------

    @observe("_draft")
    def _on_draft(self, _change: object) -> None:
        if self._setting:
            return
        if self._draft.get("seq", 0) > self._taken["seq"]:
            self._blamed = {}
            self._say("hint", "")
            self._take(BLANK | self._draft, typed=True)
        else:  # an edit that a message has brought before, or that something set in Python has overtaken
            with self._without_feedback():
                self._draft = dict(self._taken)

    @observe(*_MIRRORED)
    def _on_entry(self, change: Any) -> None:
        if self._setting:
            return
        draft = self._draft | {"seq": self._draft["seq"] + 1}
        if change["name"] == "type_arguments":
            draft["type_arguments"] = _split_types(change["new"])
        else:
            draft["raw" if change["name"] == "arguments" else change["name"]] = change["new"]
        if change["name"] == "arguments":
            draft["lead"] = "raw"
        self._blamed = {}
        self._say("hint", "")
        self._take(draft)

    @observe("request")
    def _on_request(self, _change: object) -> None:
        self.set_trait("python", "" if self.request is None else request_as_python(self.request, self.node))
        if not self._setting:
            self._strict = False
            self._blamed = {}
            self._say("hint", "")
            self._shown_call = None
            self._take(write_request(self.request) | {"seq": self._draft["seq"] + 1})

    def _take(self, draft: dict[str, Any], *, typed: bool = False) -> None:
        """Read a draft: bring arguments and their JSON in step, set the request and show what was found.

        Parameters
        ----------
        draft : dict
        typed : bool, default False
            Whether it comes from the browser: arguments of the function of before are then left out.
        """
        found, before = Findings(), self._taken
        typed_anew = draft["function"] != before["function"]
        if typed and typed_anew and self._shown_call is not None and draft["lead"] == "fields":
            draft |= {"raw": "", "type_arguments": []}
        function, call = self._known(draft)
        self._keep_in_step(draft, call, found)
        if function is not None:
            self._fit_types(draft, function, found)
        request = read_request(draft, self.request, call if draft["lead"] == "raw" else None, found)
        if request is not None:
            draft |= {f"estimate_{name}": asked for name, asked in estimates_of(request)._asdict().items()}
        with self._without_feedback(), self.hold_sync():
            self._found, self._taken = found, dict(draft)
            self._spec, self._draft = form_fields(function, call), draft
            self._mirror(draft)
            if request is not None:
                self.request = request
            if typed_anew:
                self._look_errors = {}
            self._show_findings(found)
            self._show_programs(call)

    def _keep_in_step(self, draft: dict[str, Any], call: ResolvedCall | None, found: Findings) -> None:
        """Bring the fields of the arguments and their JSON in step: the one that was edited last leads."""
        if call is None:
            draft |= {"arguments": [], "lead": "raw"}
        elif call is not self._shown_call or len(draft["arguments"]) != len(call.layouts):
            draft["arguments"] = [_fields.blank(layout) for layout in call.layouts]
            draft["lead"] = "raw"
        self._shown_call = call
        if call is not None and draft["lead"] == "raw":
            self._fields_from_raw(draft, call)
        if call is not None and draft["lead"] == "fields":
            self._raw_from_fields(draft, call, found)

    @staticmethod
    def _fit_types(draft: dict[str, Any], function: ResolvedFunction, found: Findings) -> None:
        """Give each type parameter a field."""
        wanted, got = len(function.abi.generic_type_params), len(draft["type_arguments"])
        draft["type_arguments"] = [*draft["type_arguments"], *[""] * (wanted - got)]
        if got > wanted:
            plural = "s" * (wanted != 1)
            found.errors["type_arguments"] = f"{function.name} takes {wanted} type argument{plural}, got {got}"

    def _fields_from_raw(self, draft: dict[str, Any], call: ResolvedCall) -> None:
        """Fill the fields from the JSON, if it fits."""
        values = parse_arguments(draft["raw"], Findings())
        if not draft["raw"].strip() and call.layouts:
            draft["lead"] = "fields"
            return
        with suppress(InputError, SchemaError):
            encoded = call.encode(values or ())
            pairs = zip(call.layouts, encoded, strict=True)
            draft |= {"arguments": [_fields.write(layout, value) for layout, value in pairs], "lead": "fields"}

    def _raw_from_fields(self, draft: dict[str, Any], call: ResolvedCall, found: Findings) -> None:
        """Write the JSON from the fields, if they are good. Arguments that stay the same stay as they were written."""
        drafts = zip(call.layouts, draft["arguments"], strict=False)
        values = [
            _fields.read(layout, typed, f"arguments.{place}", found) for place, (layout, typed) in enumerate(drafts)
        ]
        if not found.good:
            return
        encoded = call.encode(values)
        old = parse_arguments(draft["raw"], Findings()) or ()
        try:
            if call.encode(old) == encoded:
                return
        except (InputError, SchemaError):
            pass
        draft["raw"] = arguments_text(values)

    def _mirror(self, draft: dict[str, Any]) -> None:
        for name in (*_TEXTS, *_ESTIMATES):
            setattr(self, name, draft[name])
        self.arguments = draft["raw"]
        if _split_types(self.type_arguments) != [text for text in draft["type_arguments"] if text.strip()]:
            self.type_arguments = "\n".join(draft["type_arguments"])

    @contextmanager
    def _without_feedback(self) -> Iterator[None]:
        """Set traits without triggering the update of the others."""
        self._setting = True
        try:
            yield
        finally:
            self._setting = False

    # what is asked of the node --------------------------------------------------------------------------

    def _known(self, draft: dict[str, Any]) -> tuple[ResolvedFunction | None, ResolvedCall | None]:
        """Return function and call of a draft, as far as their ABIs were read."""
        if not calls_function(draft):
            return None, None
        try:
            name = str(FunctionId.parse(draft["function"].strip()))
        except InputError:
            return None, None
        function = self._functions.get(name)
        types = read_types(draft["type_arguments"], Findings())
        return function, None if types is None else self._calls.get((name, types))

    def _look(self) -> None:
        """Read the ABI of the function, then the layouts of its parameters."""
        self._look_errors = {}
        place = "function"
        try:
            name = str(FunctionId.parse(self._draft["function"].strip()))
            function = self._functions[name] = find_function(self.node, name)
            self._take(dict(self._draft))
            types = read_types(self._draft["type_arguments"], Findings())
            place = "type_arguments"
            if function is not None and types is not None and len(types) == len(function.abi.generic_type_params):
                call = function.with_types(types)
                if self._calls.get((name, types)) != call:
                    self._calls[name, types] = call
        except (InputError, SchemaError) as error:
            self._look_errors = {place: str(error)}
        except ToolkitError as error:
            self._blame("node", str(error))
        self._take(dict(self._draft))

    def _search(self, query: str) -> None:
        """Find functions for what was typed."""
        owner = address_of(query) or _FRAMEWORK
        found = [hit for hit in self._recent if query.strip().lower() in hit.name.lower()]
        try:
            if query.strip() and owner not in self._modules:
                self._modules[owner] = listed_modules(self.node, owner)
        except ToolkitError as error:
            self._hits = {"query": query, "hits": [list(hit) for hit in found], "error": str(error)}
            return
        if query.strip():
            modules = [module for listed in self._modules.values() for module in listed]
            names = {hit.name for hit in found}
            found += [hit for hit in matching(modules, query) if hit.name not in names]
        self._hits = {"query": query, "hits": [list(hit) for hit in found], "error": ""}

    def start_from(self, transaction: int | str) -> None:
        """Fill the form with a committed transaction. Its signatures become zeros.

        Parameters
        ----------
        transaction : int or str
            Ledger version, or hash.

        Raises
        ------
        InputError
            If it is not a user transaction, or its payload cannot be simulated.
        NotFound, NodeError, NodeUnreachable
            If the node does not have it, refuses, or does not answer.
        """
        committed = self.node.transaction(transaction)
        request, _ = rebuild_request(committed, lambda version: self.node.abis.at(version, lenient=True))
        self.request = request
        if calls_function(self._draft):
            self._look()

    def _start_from(self, typed: str) -> None:
        text = typed.strip().replace(",", "").replace("_", "")
        try:
            self.start_from(int(text) if text.isdecimal() else text)
        except ToolkitError as error:
            self._blame("committed", str(error))

    def hand_over(self, name: str) -> None:
        """Store the simulation in the notebook under a name.

        Parameters
        ----------
        name : str
            A Python identifier; ``<name>.changes`` is then a frame.

        Raises
        ------
        InputError
            If it is not a name for a variable, or that of a variable with something other than a simulation; if nothing
            was simulated yet, or outside of a notebook.
        """
        if not name.isidentifier() or keyword.iskeyword(name):
            raise InputError(f"expected a name for a variable, such as simulation, got {name!r:.60}")
        shell = _shell()
        if self.simulation is None or shell is None:
            raise InputError("nothing was simulated yet" if shell is not None else "this is not a notebook")
        if not isinstance(held := shell.user_ns.get(name, self.simulation), Simulation):
            raise InputError(f"{name} is a variable of this notebook already ({type(held).__name__}); use another name")
        shell.user_ns[name] = self.simulation
        self._name = name
        self._show_pages()

    # messages of the browser ----------------------------------------------------------------------------

    def _on_message(self, _widget: object, content: dict[str, Any], _buffers: object) -> None:
        draft = content.get("draft")
        if isinstance(draft, dict) and draft.get("seq", 0) > self._taken["seq"]:
            self._draft = draft
        match content.get("do"):
            case "simulate":
                self.simulate()
            case "check":
                self.check()
            case "look":
                with self._busy_while(""):
                    self._look()
            case "search":
                self._search(str(content.get("query", "")))
            case "load":
                with self._busy_while("Loading"):
                    self._start_from(self._draft["committed"])
            case "diff":
                self._show_pages(with_diff=True)
            case "hand":
                try:
                    self.hand_over(str(content.get("name", "")))
                    self._say("good", f"The notebook has it as {self._name}: {self._name}.changes is a frame.")
                except InputError as error:
                    self._say("error", str(error))

    @contextmanager
    def _busy_while(self, words: str) -> Iterator[None]:
        """Set `busy` and show a message while the block runs."""
        self.set_trait("busy", value=True)
        self._say("hint", f"{words}\N{HORIZONTAL ELLIPSIS}" if words else "")
        try:
            yield
        finally:
            self.set_trait("busy", value=False)
            if self._status["text"].startswith(words) and self._status["kind"] == "hint":
                self._say("hint", "")

    # display --------------------------------------------------------------------------------------------

    def _say(self, kind: str, words: str) -> None:
        self._status = {"kind": kind, "text": cleaned(words)}

    def _show_findings(self, found: Findings) -> None:
        errors = found.errors | self._look_errors | self._blamed
        required = found.missing if self._strict or self.request is not None else {}
        self.set_trait("errors", errors | required)
        self.set_trait("error", "; ".join(f"{name}: {text}" for name, text in self.errors.items()))
        self._findings = {
            "errors": errors,
            "missing": found.missing,
            "notes": found.notes,
            "strict": self._strict,
        }
        self._show_stale()

    def _show_programs(self, call: ResolvedCall | None) -> None:
        if self.request is None:
            self._programs = []
            return
        made = programs(self.request, self.node, self._encoded(call))
        self._programs = [[name, text] for name, text in made.items()]

    def _encoded(self, call: ResolvedCall | None) -> Sequence[Any] | None:
        """Return the arguments as the node reads them from JSON; None if the ABI is unknown or they do not fit."""
        payload: Any = None if self.request is None else self.request.payload
        payload = payload.transaction_payload if isinstance(payload, Multisig) else payload
        if call is None or not isinstance(payload, EntryFunction) or payload.function != call.function.name:
            return None
        with suppress(InputError, SchemaError):  # a request set by the user may not fit; the entry shows the error
            return call.encode(payload.arguments)
        return None

    @observe("simulation")
    def _on_simulation(self, _change: object) -> None:
        self._show_pages()
        self._show_stale()

    def _show_pages(self, *, with_diff: bool = False) -> None:
        if self.simulation is None:
            self._pages = []
            return
        diff = None
        if with_diff:
            try:
                diff = self.simulation.diff()
            except ToolkitError as error:
                self._say("error", f"The state before cannot be read: {error}")
                return
        name = self._name or _name_of(self)
        shown = pages(self.simulation, self.node, name=name, before=self._before, diff=diff)
        self._pages = [[title, str(html)] for title, html in shown.items()]

    def _show_stale(self) -> None:
        done = self.simulation
        self._stale = done is not None and (done.request != self.request or bool(self._found.errors))


def _called(request: SimulationRequest) -> object:
    payload = request.payload
    return payload.function if isinstance(payload, EntryFunction) else type(payload)


def _split_types(text: str) -> list[str]:
    """Split at line breaks and at commas outside angle brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "<") - (character == ">")
        if character == "\n" or (character == "," and depth == 0):
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def _shell() -> Any:
    """Return the notebook's shell, None outside of a notebook."""
    module = sys.modules.get("IPython")
    return None if module is None else module.get_ipython()


def _name_of(builder: SimulationBuilder) -> str:
    """Return how the reader reaches the simulation: by the variable that holds the form."""
    shell = _shell()
    names = [] if shell is None else [name for name, value in list(shell.user_ns.items()) if value is builder]
    own = [name for name in names if not name.startswith("_")]
    return f"{own[0]}.simulation" if own else "<this form>.simulation"
