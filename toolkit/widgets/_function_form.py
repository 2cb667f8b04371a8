"""The part of a form that chooses a function and fills its arguments: search, ABI, a field each, and a JSON twin."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

from msgspec.structs import replace
from traitlets import Unicode

from toolkit._present.text import plural
from toolkit.errors import InputError, SchemaError, ToolkitError
from toolkit.move import FunctionAbi, FunctionId, ModuleAbi
from toolkit.widgets._fields import Findings
from toolkit.widgets._form import Form
from toolkit.widgets._functions import (
    FunctionDraft,
    FunctionKind,
    Hit,
    ResolvedCall,
    ResolvedFunction,
    address_of,
    arguments_text,
    checked_name,
    find_function,
    in_step,
    is_of,
    listed_modules,
    matching,
    parse_arguments,
    read_types,
    signature,
)
from toolkit.widgets._messages import Hits, Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.client._contracts import ContractFunction
    from toolkit.client._node import Node


_MAX_RECENT = 8  # functions that are offered before anything is typed, without scrolling
_RECENT: WeakKeyDictionary[Node, list[tuple[Hit, FunctionAbi]]] = WeakKeyDictionary()  # the last that forms have run
_FRAMEWORK = "0x1"
_PLACES = [Hit("0x1::", "framework"), Hit("0x3::", "tokens"), Hit("0x4::", "token objects")]  # where to begin


class FunctionForm(Form):
    """A form with a function.

    Its draft is a `FunctionDraft`. `_read_function` brings the fields of the arguments and their JSON in step;
    `_fields` of a subclass takes the fields from `function_fields` with `_function` and `_call`.

    Parameters
    ----------
    node : Node
    function : str or function of a Contract, optional
        Chosen at the start.
    request : object, optional
        Initial content of the form.

    Raises
    ------
    InputError
        If both `function` and `request` are given, or `function` is not a function that the form takes.
    """

    _kind: ClassVar[FunctionKind] = "entry"  # which functions are found

    function = Unicode()
    type_arguments = Unicode()
    arguments = Unicode()

    def __init__(self, node: Node, function: str | ContractFunction | None = None, *, request: Any = None) -> None:
        if function is not None and request is not None:
            raise InputError("expected either a function or a request, got both; a request names its function")
        name = (
            None if function is None else checked_name(function, self._kind_of(self._blank), form=type(self).__name__)
        )
        self._function: ResolvedFunction | None = None
        self._call: ResolvedCall | None = None
        self._functions: dict[str, ResolvedFunction | None] = {}
        self._calls: dict[tuple[str, tuple[str, ...]], ResolvedCall] = {}
        self._modules: dict[str, list[ModuleAbi]] = {}
        super().__init__(node, request=request)
        if name is not None:
            self.function = name

    def _kind_of(self, _draft: Any) -> FunctionKind:
        """Return which functions the draft can call."""
        return self._kind

    def _calls_function(self, _draft: Any) -> bool:
        """Return whether the draft calls a function at all."""
        return True

    def _start_over(self) -> None:
        super()._start_over()
        self._call = None

    def _forget_node(self) -> None:
        super()._forget_node()
        self._modules = {}

    # reading ---------------------------------------------------------------------------------------------

    def _read_function(self, draft: Any, found: Findings, *, typed: bool, before: Any = None) -> Any:
        """Return the draft with fields and JSON in step, and a field for each type parameter.

        Parameters
        ----------
        draft : FunctionDraft
        found : Findings
        typed : bool
            Whether the draft comes from the browser.
        before : FunctionDraft, optional
            The draft of before, by default that of the form.
        """
        before = before or self._taken
        other = draft.function != before.function
        if other or draft.type_arguments != before.type_arguments:
            self._look_errors = {}
        if typed and other and self._call is not None and draft.lead == "fields":
            draft = replace(draft, raw="", type_arguments=())  # arguments of the function before
        self._function, call = self._known(draft)
        same, self._call = call is not None and _same_fields(call, self._call), call
        draft = in_step(
            draft,
            None if call is None else call.layouts,
            found,
            same=same,
            parse=lambda raw: parse_arguments(raw, Findings()),
            encode=lambda values: [] if call is None else call.encode(values),
            spell=arguments_text,
        )
        if self._function is not None:
            wanted, got = len(self._function.constraints), len(draft.type_arguments)
            draft = replace(draft, type_arguments=(*draft.type_arguments, *[""] * (wanted - got)))
            if got > wanted:
                words = f"{self._function.name} takes {plural(wanted, 'type argument')}, got {got}"
                found.errors["type_arguments"] = words
        return draft

    def _leading(self, draft: FunctionDraft) -> ResolvedCall | None:
        """Return the call that the JSON is to be checked by, if its fields do not lead."""
        return self._call if draft.lead == "raw" else None

    def _entered(self, draft: Any, name: str, value: Any) -> Any:
        match name:
            case "type_arguments":
                return replace(draft, type_arguments=tuple(_split_types(value)))
            case "arguments":
                return replace(draft, raw=value, lead="raw")
        return super()._entered(draft, name, value)

    def _trait_of(self, name: str, draft: Any) -> Any:
        match name:
            case "arguments":
                return draft.raw
            case "type_arguments":
                same = _split_types(self.type_arguments) == [text for text in draft.type_arguments if text.strip()]
                return self.type_arguments if same else "\n".join(draft.type_arguments)
        return super()._trait_of(name, draft)

    def _encoded(self, arguments: Sequence[Any]) -> Sequence[Any] | None:
        """Return arguments as the node reads them from JSON; None if the ABI is unknown or they do not fit."""
        with suppress(InputError, SchemaError):  # a request set by the user may not fit; the entry shows the error
            return None if self._call is None else self._call.encode(arguments)
        return None

    # what is asked of the node --------------------------------------------------------------------------

    def _known(self, draft: Any) -> tuple[ResolvedFunction | None, ResolvedCall | None]:
        """Return function and call of a draft, as far as their ABIs were read."""
        if not self._calls_function(draft):
            return None, None
        try:
            name = str(FunctionId.parse(draft.function.strip()))
        except InputError:
            return None, None
        function = self._functions.get(name)
        types = read_types(draft.type_arguments, Findings())
        return function, None if types is None else self._calls.get((name, types))

    def _look(self) -> None:
        """Read the ABI of the function, then the layouts of its parameters."""
        if not self._calls_function(self._draft):
            return
        with self._state():
            self._look_errors = {}
            typed, kind = self._draft.function, self._kind_of(self._draft)
        place = "function"
        try:
            name = str(FunctionId.parse(typed.strip()))
            self._functions.pop(name, None)  # it may have been one of another kind
            function = find_function(self._asked, name, kind)
            with self._state():
                self._functions[name] = function
                self._take(self._draft)
                types = read_types(self._draft.type_arguments, Findings())
            place = "type_arguments"
            self._together([] if function is None else function.modules_of(types or ()))
            if function is not None and types is not None and len(types) == len(function.abi.generic_type_params):
                call, wrong = function.with_types(types), function.wrong_types(types)
                with self._state():
                    if types == read_types(self._draft.type_arguments, Findings()):
                        self._look_errors |= {f"type_arguments.{at}": words for at, words in wrong.items()}
                    if self._calls.get((name, types)) != call:
                        self._calls[name, types] = call
        except (InputError, SchemaError) as error:
            with self._state():
                if typed == self._draft.function:
                    self._look_errors = {place: str(error)}
        except ToolkitError as error:
            self._blame("node", str(error))
        with self._state():
            self._take(self._draft)

    def _remember(self) -> None:
        """Put the function in front of those that were used."""
        if self._function is not None:
            hit = Hit(FunctionId.parse(self._function.name).wire, signature(self._function.abi))
            others = [used for used in _RECENT.get(self.node, []) if used[0].name != hit.name]
            _RECENT[self.node] = [(hit, self._function.abi), *others][:_MAX_RECENT]

    def _search(self, query: str) -> None:
        """Find functions for what was typed; before anything is typed, those that were used last."""
        owner, words = address_of(query) or _FRAMEWORK, query.strip().lower()
        kind = self._kind_of(self._draft)
        used = [hit for hit, abi in _RECENT.get(self.node, []) if is_of(kind, abi)]
        found = [hit for hit in used if words in hit.name.lower()]
        error, total = "", 0
        if not words:
            found += _PLACES
        if words:
            try:
                if owner not in self._modules:
                    self._modules[owner] = listed_modules(self._asked, owner)
                modules = [module for listed in self._modules.values() for module in listed]
                names = {hit.name for hit in found}
                hits, total = matching(modules, query, kind)
                found += [hit for hit in hits if hit.name not in names]
            except ToolkitError as failure:
                error = str(failure)
        with self._state():
            self._hits = Hits(query, tuple(found), error, total)

    def _do_search(self, message: Message) -> None:
        self._searches.start("search", lambda: self._search(message.query), again=True)


def _same_fields(call: ResolvedCall, before: ResolvedCall | None) -> bool:
    """Return whether the fields of a call are those of the call before, as after the ABI was read again."""
    if call is before or before is None:
        return call is before
    return (call.function.name, call.layouts) == (before.function.name, before.layouts)


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
