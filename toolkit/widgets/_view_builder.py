"""A form that runs a view function: at the head, at a version, or over versions with a figure of value and gas."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from traitlets import Instance

from toolkit.client._fetch import fetch_views
from toolkit.errors import InputError, InvalidRequest, ToolkitError
from toolkit.move import FunctionId, parse_address, parse_type_tag
from toolkit.move._type_tags import wire_type
from toolkit.widgets._functions import FunctionDraft, FunctionForm, function_fields, read_call, write_call
from toolkit.widgets._html import has_model_gas
from toolkit.widgets._messages import About, Group, Words
from toolkit.widgets._programs import connect_line, curl_lines, format_expression, request_as_study
from toolkit.widgets._readings import READ_ACTIONS, VERSION_FIELDS, ReadForm, Reading, ViewDraft, Wanted
from toolkit.widgets._results import brief, view_pages
from toolkit.wire import ViewFunction

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from toolkit.client._calls import ViewResult
    from toolkit.client._node import Node
    from toolkit.widgets._fields import Findings


_BLANK_CALL = {name: getattr(ViewDraft(), name) for name in FunctionDraft.__struct_fields__}
_ADDRESS = re.compile(r"\b(?:0x)?[0-9a-f]{1,64}\b")


class ViewBuilder(FunctionForm, ReadForm):
    """Run a view function at the node's head, at a ledger version, or over many versions.

    Neither constructing the form nor setting its traits makes a request. In a browser, typing a function reads its ABI,
    so that each argument has its own field; from Python, `check` and `read` read it.

    Parameters
    ----------
    node : Node
        Runs the views; available as ``node``.
    function : str or ContractFunction, optional
        The view function chosen at the start: ``"0x1::coin::supply"``, or ``node.contract("0x1::coin").supply``.
    request : ViewFunction, optional
        Initial content of the form.

    Raises
    ------
    InputError
        If both `function` and `request` are given, or `function` is a contract's function that is not a view function.

    Attributes
    ----------
    function : str
        As typed: ``address::module::function``.
    type_arguments : str
        As typed: Move types, one per line or separated by commas.
    arguments : str
        As typed: a JSON array.
    versions : int, str, list of int or None
        None reads the head, an int one version, and anything else is a version plan, as for `fetch_views`. Setting
        something else raises `InputError`.
    request : ViewFunction or None
        The call made from the last valid entries. Set it to fill the form.
    errors : dict of str to str
        Error messages by field, such as ``plan`` or ``arguments.1``; ``node`` holds the error that the node returned.
        Read only.
    error : str
        All error messages as one text; empty if there is none. Read only.
    python : str
        A Python program that reads the same; empty without a request. Read only.
    result : ViewResult, DataFrame or None
        The last answer: a frame for a version plan, with a column per field of structs. It stays if a later read is
        rejected, which `errors` then says, or cancelled. Read only.
    busy : bool
        True while a request is in progress. Read only.

    Examples
    --------
    >>> import toolkit
    >>> builder = toolkit.widgets.ViewBuilder(toolkit.connect(), function="0xcafe::registry::size")
    >>> builder.versions = 4_000
    >>> builder.read()
    >>> builder.result.value
    521

    With a version plan, the result is a frame:

    >>> builder.versions = "1000:-1/3"
    >>> builder.read()
    >>> builder.result["value"].tolist()
    [134, 391, 652]

    A view function of a contract opens in a form:

    >>> size = builder.node.contract("0xcafe::registry").size
    >>> toolkit.widgets.ViewBuilder(builder.node, size).function
    '0xcafe::registry::size'
    """

    _form = About(
        "Run a view function",
        actions=READ_ACTIONS,
        words=Words(
            form="The view",
            note="a view changes nothing",
            none="No view function fits.",
            copy={"Study": "Copy the study's call"},
        ),
    )
    _blank = ViewDraft()
    _mirrored = ("function", "type_arguments", "arguments", "versions")
    _kind = "view"

    request = Instance(ViewFunction, allow_none=True)

    # what is read ----------------------------------------------------------------------------------------

    def _read_one(self, node: Node, wanted: Wanted, version: int | None) -> ViewResult:
        return node.view(wanted.request, ledger_version=version)

    def _read_many(self, node: Node, wanted: Wanted, versions: Sequence[int]) -> pd.DataFrame:
        return fetch_views(node, wanted.request, versions, flatten=True, progress=False)

    def _cause_of(self, error: ToolkitError) -> str:
        """Return the path of the field that an error is about: a type or argument that it names, or the function."""
        if not isinstance(error, InvalidRequest):
            return "function" if isinstance(error, InputError) else "node"
        drafts = self._draft.arguments
        if "borrow global" in error.message:
            there = {parse_address(one) for one in _ADDRESS.findall(error.message.rpartition(" from ")[2])}
            texts = [(place, typed) for place, typed in enumerate(drafts) if isinstance(typed, str)]
            named = [place for place, typed in texts if _canonical(typed) in there]
            if named:
                return f"arguments.{named[0]}"
            return "type_arguments.0" if self._draft.type_arguments else "function"
        only = len(drafts) == 1 and isinstance(drafts[0], str)
        return "arguments.0" if only and "abort" in error.message else "function"

    def _after(self, reading: Reading) -> None:
        super()._after(reading)
        self._remember()

    # what the form is about ------------------------------------------------------------------------------

    def _read_draft(self, draft: ViewDraft, found: Findings, *, typed: bool) -> tuple[ViewDraft, ViewFunction | None]:
        draft = self._read_function(draft, found, typed=typed)
        request = read_call(draft, ViewFunction, found, last=self.request, call=self._leading(draft))
        good = found.good
        self._read_at(draft, found)
        return draft, request if good else None

    def _write_draft(self, request: ViewFunction | None) -> ViewDraft:
        typed = {} if request is None else write_call(request)
        draft: ViewDraft = replace(self._draft, **(_BLANK_CALL | typed))
        return draft

    def _fields(self, draft: ViewDraft) -> Group:
        del draft
        function = function_fields(self._function, self._call, placeholder="0x1::coin::supply", units=self._units)
        return Group(fields=(*function, *VERSION_FIELDS))

    def _python_of(self, request: ViewFunction) -> str:
        expression = request.to_python().replace(repr(request.function), repr(self._subject()))
        call = f"call = {format_expression(expression)}"
        if self._versions is None:
            read = "result = node.view(call)"
        elif isinstance(self._versions, int):
            read = f"result = node.at({self._versions}).view(call)"
        else:
            many = format_expression(f"toolkit.fetch_views(node, call, {self._versions!r}, flatten=True)")
            read = f"frame = {many}"
        return f"import toolkit\n\n{connect_line(self.node)}\n{call}\n{read}"

    def _programs_of(self, request: ViewFunction) -> dict[str, str]:
        body = request.to_wire() | {"function": FunctionId.parse(request.function).wire}
        body["type_arguments"] = [wire_type(parse_type_tag(name)) for name in request.type_arguments]
        if (encoded := self._encoded(request.arguments)) is not None:
            body["arguments"] = list(encoded)
        return {
            "Python": self._python_of(request),
            "curl": curl_lines(self.node, "view", body, self._versions),
            "JSON": json.dumps(body, indent=2, ensure_ascii=False),
            "Study": request_as_study(request).replace(request.function, str(self._subject())),
        }

    def _facts(self) -> list[tuple[str, Any]]:
        at = "the head" if self._versions is None else self._versions
        return [("Function", self.function), ("Arguments", self.arguments), ("Read at", at)]

    def _subject(self) -> str | None:
        """Return the function with the short form of its address."""
        return None if self.request is None else FunctionId.parse(self.request.function).wire

    # display ---------------------------------------------------------------------------------------------

    def _read_words(self, reading: Reading) -> str:
        result: ViewResult = reading.result
        gas = "" if result.gas_used is None else f"{result.gas_used:,} gas units "
        count = "" if len(result.values) == 1 else f"{len(result.values)} values, "
        return f"Answered: {count}{gas}at version {result.ledger_version}"

    def _one_pages(self, reading: Reading) -> dict[str, str]:
        return dict(view_pages(reading.result, model=has_model_gas(self.node)))

    def _compared(self, result: Any) -> dict[str, Any]:
        call, reading = self.request, self._reading
        if call is None or reading is None or not reading.wanted.single:
            return {}
        facts = {"Function": self._subject(), "Arguments": brief(call.arguments), "Value": brief(result.values)}
        return facts | {"Gas used": result.gas_used, "Version": f"{result.ledger_version:,}"}


def _canonical(typed: str) -> str:
    """Return an address or type in canonical form; other text as it is."""
    try:
        return str(parse_type_tag(typed.strip())) if "::" in typed else parse_address(typed.strip())
    except InputError:
        return typed
