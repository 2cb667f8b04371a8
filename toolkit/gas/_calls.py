"""Calls of a study: views, simulations or committed transactions; and grids, which turn one entry into many calls."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import product
from math import prod
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PrivateAttr, field_validator, model_validator

from toolkit._present.messages import shorten
from toolkit.client._versions import VersionPlan
from toolkit.errors import InputError, StudyError
from toolkit.frames._columns import compact_json
from toolkit.gas._file_model import FileModel, key_problems, named_place, placed
from toolkit.gas._labels import Called, default_labels
from toolkit.gas._observations import Source, fingerprint, type_arguments_of
from toolkit.gas._rules import Threshold
from toolkit.move import FunctionId, parse_address, parse_type_tag
from toolkit.move._ids import wire_address
from toolkit.wire import EntryFunction, SimulationRequest, UserTransaction, ViewFunction
from toolkit.wire._models import Argument, wire_argument

# Keys that name the function of a call, of which a call has exactly one, with the source of its observations.
KINDS = {source.key: source for source in Source if source is not Source.SIMULATE_AT_VERSION}
# Every call is checked before a run and is a line of the report; more calls belong in several studies.
_MAX_CALLS = 10_000
# The lists of a grid multiply, so a mistake in one of them makes thousands of calls.
_MAX_GRID_CALLS = 1_000
# Characters of a grid value in a label: longer ones hide what differs.
_MAX_VALUE = 40
# The kinds of calls that may have a key; keys that are not listed are common to all kinds.
_KINDS_OF = {
    "arguments": ("view", "simulate"),
    "sender": ("simulate", "committed"),
    **dict.fromkeys(("at", "fee_payer", "gas_unit_price", "max_gas_amount"), ("simulate",)),
    **dict.fromkeys(("versions", "success"), ("committed",)),
}
_RANGE = 'expected a range such as "0:-1", or "0:-1/200" for a sample of 200 evenly spaced pages of 100 transactions'
# Octas per gas unit of a study's simulations. It is fixed, because the storage fee in gas units depends on it.
_STUDY_PRICE = 100


class CallFields(FileModel):
    """The keys of a call; exactly one of `view`, `simulate` and `committed` names its function."""

    label: str = ""
    """Name in frames and reports. By default, the module and function, and what distinguishes calls of one function."""
    view: str | None = None
    """A view function, read at every version of the plan."""
    simulate: str | None = None
    """An entry function, simulated at the head, or at every version of the plan if `at` is "version"."""
    committed: str | None = None
    """An entry function whose committed transactions are read, successful or not."""
    type_arguments: tuple[str, ...] = ()
    """Type arguments of a view or simulation. For committed transactions, only calls with these types are observed."""
    arguments: tuple[Argument, ...] = ()
    """Arguments of a view or simulation, encoded according to the function's ABI."""
    sender: str | None = None
    """Account that sends the simulated transaction; no key is needed. For committed transactions, only calls by this
    account are observed."""
    at: Literal["version"] | None = None
    """"version" executes a simulation on the state of every version of the plan, on a fork: what it costs across ledger
    versions. By default, a simulation is made once, at the head."""
    fee_payer: str | None = None
    """Account that pays for a simulation; 0x0 charges nobody."""
    gas_unit_price: Annotated[int, Field(ge=0)] = _STUDY_PRICE
    """Octas per gas unit of a simulation. Fixed, because storage costs fewer gas units at a higher price."""
    max_gas_amount: Annotated[int, Field(ge=0)] | None = None
    """Maximum gas units of a simulation. Defaults to what the sender can afford."""
    versions: str | None = None
    """Range of committed transactions, such as "1000:1999". Defaults to the range of the study's versions. For
    "0:-1/200", 200 evenly spaced pages of 100 transactions are read, and further pages around each change in the
    timeline.
    """
    success: bool | None = None
    """Observe only committed transactions that succeeded (true) or failed (false). By default, both are observed."""
    thresholds: Threshold | None = None
    """How much more gas this call may use before a comparison fails, instead of the study's thresholds."""

    @field_validator("arguments")
    @classmethod
    def _hex_for_bytes(cls, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return arguments with bytes as hex, which nodes accept and which can be written in a study file."""
        return tuple(map(wire_argument, arguments))

    @property
    def kind(self) -> str:
        """The key that names the function: ``view``, ``simulate`` or ``committed``."""
        return next(name for name in KINDS if getattr(self, name) is not None)

    @property
    def source(self) -> Source:
        """The kind of observation that the call makes."""
        return Source.SIMULATE_AT_VERSION if self.at else KINDS[self.kind]

    @property
    def function(self) -> str:
        """The id of the called function."""
        return str(getattr(self, self.kind))


class Call(CallFields):
    """One call of a study, with the keys of `CallFields` checked against each other."""

    _default_label: str = PrivateAttr("")

    @property
    def name(self) -> str:
        """The label; by default, the one that `read_calls` chose to distinguish the study's calls."""
        return self.label or self._default_label or default_labels([self.called])[0]

    @property
    def called(self) -> Called:
        """The properties from which the default label is derived."""
        arguments = tuple(one if isinstance(one, str) else compact_json(one) for one in self.arguments)
        kind = f"{self.kind} at versions" if self.at else self.kind
        return Called(self.function, self.type_arguments, arguments, self.sender or "", kind, self.fingerprint)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        named = [name for name in KINDS if getattr(self, name) is not None]
        if len(named) != 1:
            raise ValueError(f"give exactly one of {', '.join(KINDS)}; got {' and '.join(named) or 'none'}")
        if self.simulate is not None and self.sender is None:
            raise key_problems((("sender",), 'a simulation requires one, such as sender = "0xa11ce"; no key is needed'))
        for key, kinds in _KINDS_OF.items():
            if key in self.model_fields_set and named[0] not in kinds and getattr(self, key) not in (None, ()):
                raise key_problems(((key,), f"only {' and '.join(kinds)} calls can have this key"))
        for key, read in (("versions", lambda: self.own_range), ("sender", lambda: self.only_sender)):
            try:
                read()
            except InputError as error:
                raise key_problems(((key,), str(error))) from None
        try:
            _ = self.request
        except InputError as error:
            if not error.problems:
                raise
            raise key_problems(*((self._key_of(path), reason) for path, reason in error.problems)) from None
        return self

    def _key_of(self, path: tuple[str | int, ...]) -> tuple[str | int, ...]:
        """Return the key of the study file, and the index in its list, for a field of the request."""
        name, *indices = path
        return self.kind if name == "function" else name, *indices[:1]

    @cached_property
    def request(self) -> ViewFunction | SimulationRequest | EntryFunction:
        """The request as the client sends it; for committed transactions, the function and its type arguments."""
        if self.view is not None:
            return ViewFunction(self.view, type_arguments=self.type_arguments, arguments=self.arguments)
        payload = EntryFunction(self.function, type_arguments=self.type_arguments, arguments=self.arguments)
        if self.simulate is None:
            return payload
        return SimulationRequest(
            payload,
            sender=str(self.sender),
            fee_payer=self.fee_payer,
            gas_unit_price=self.gas_unit_price,
            max_gas_amount=self.max_gas_amount,
        )

    @cached_property
    def own_range(self) -> VersionPlan | None:
        """The range of committed transactions; None if the study's plan applies."""
        plan = None if self.versions is None else VersionPlan.parse(self.versions)
        if plan is not None and not replace(plan, count=None).is_range:
            raise InputError(f"{_RANGE}, got {self.versions!r}")
        return plan

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the canonical request and the filters of committed transactions: 32 hex digits."""
        filters = {"sender": self.only_sender, "success": self.success}
        return fingerprint(self.request, self.source, filters if set(filters.values()) != {None} else None)

    def with_default(self, label: str) -> Call:
        """Return the call with a default label."""
        call = self.model_copy()
        call._default_label = label  # noqa: SLF001 - of this class
        return call

    @cached_property
    def only_sender(self) -> str | None:
        """Canonical address of the account whose committed transactions are observed; None for all accounts."""
        return None if self.sender is None or self.committed is None else parse_address(self.sender)

    def selects(self, sender: str, transaction: UserTransaction) -> bool:
        """Return whether a committed transaction of the function passes the filters of this call.

        Parameters
        ----------
        sender : str
            Sender of the transaction, in canonical form.
        transaction : UserTransaction
        """
        if self.success is not None and transaction.success is not self.success:
            return False
        if self.only_sender is not None and sender != self.only_sender:
            return False
        if not self.type_arguments:
            return True
        given = type_arguments_of(transaction)
        with suppress(InputError):
            assert isinstance(self.request, EntryFunction)  # noqa: S101 - of committed transactions
            return given is not None and tuple(map(_canonical_type, given)) == self.request.type_arguments
        return False

    def document(self) -> dict[str, Any]:
        """Return the call as it would appear in a study file, with all applicable defaults written out."""
        left_out = {name for name, kinds in _KINDS_OF.items() if kinds == ("simulate",) and self.simulate is None}
        return self.model_dump(mode="json", exclude_none=True, exclude=left_out) | {"label": self.name}

    @classmethod
    def of(cls, call: Any, label: str = "") -> Call:
        """Return a call from any form that the Python interface accepts.

        Parameters
        ----------
        call : Call, str, ViewFunction, SimulationRequest or mapping
            A string names a view function without arguments.
        label : str, optional

        Raises
        ------
        InputError
            If `call` has another type, or is a simulation that a study cannot describe.
        """
        if isinstance(call, Call):
            return call.model_copy(update={"label": label}) if label else call
        if isinstance(call, str):
            call = ViewFunction(call)
        if isinstance(call, ViewFunction):
            return cls(label=label, view=_function(call), type_arguments=call.type_arguments, arguments=call.arguments)
        if isinstance(call, SimulationRequest):
            return cls._of_simulation(call, label)
        if isinstance(call, Mapping):
            return cls.model_validate(_labelled(call, label))
        got = type(call).__name__
        raise InputError(
            f"expected a function id, a ViewFunction, a SimulationRequest or a mapping as in a study file, got {got}"
        )

    @classmethod
    def _of_simulation(cls, request: SimulationRequest, label: str) -> Call:
        payload = request.payload
        if not isinstance(payload, EntryFunction):
            raise InputError(
                "a study simulates entry functions only; for scripts, batches and multisig payloads use node.simulate"
            )
        call = cls(
            label=label,
            simulate=_function(payload),
            type_arguments=payload.type_arguments,
            arguments=payload.arguments,
            sender=wire_address(request.sender),
            fee_payer=None if request.fee_payer is None else wire_address(request.fee_payer),
            max_gas_amount=request.max_gas_amount,
            gas_unit_price=_STUDY_PRICE if request.gas_unit_price is None else request.gas_unit_price,
        )
        made = call.request
        # The payload is the request's, but large numbers are text in a study file.
        kept = {"payload": payload, "gas_unit_price": request.gas_unit_price}
        if isinstance(made, SimulationRequest) and made.replace(**kept) != request:
            raise InputError(
                "a simulation in a study can set only sender, fee_payer, gas_unit_price and max_gas_amount; "
                "for other options use node.simulate"
            )
        return call


def _labelled(entry: Mapping[str, Any], label: str) -> dict[str, Any]:
    """Return an entry with a label, unless it has its own or `label` is empty."""
    return {"label": label, **entry} if label else dict(entry)


def _function(request: ViewFunction | EntryFunction) -> str:
    """Return the function of a request as people write it, without the leading zeros of the address."""
    return FunctionId.parse(request.function).wire


@lru_cache(maxsize=1024)
def _canonical_type(text: str) -> str:
    return str(parse_type_tag(text))


class Grid(FileModel):
    """A parameter grid: one call per combination."""

    arguments: tuple[tuple[Any, ...], ...] | None = None
    """A list of argument lists, such as [["alice"], ["bob"]]."""
    type_arguments: tuple[tuple[str, ...], ...] | None = None
    """A list of type argument lists, such as [["0x1::aptos_coin::AptosCoin"]]."""
    sender: tuple[str, ...] | None = None
    """A list of accounts from which the transaction is sent."""

    @model_validator(mode="after")
    def _not_empty_and_bounded(self) -> Grid:
        axes = self.axes
        if not axes or not all(axes.values()):
            raise ValueError("a grid must have arguments, type_arguments or sender, each a list with at least one item")
        size = prod(len(values) for values in axes.values())
        if size > _MAX_GRID_CALLS:
            raise ValueError(f"this grid has {size:,} calls; the maximum is {_MAX_GRID_CALLS:,}")
        return self

    @property
    def axes(self) -> dict[str, tuple[Any, ...]]:
        """The lists that the grid contains, keyed by the call key that each of them sets."""
        return {name: values for name in Grid.model_fields if (values := getattr(self, name)) is not None}


class CallEntry(CallFields):
    """One ``[[call]]`` of a study file: a call, or a grid of calls."""

    grid: Grid | None = None
    """Lists of arguments, type arguments and senders; every combination becomes a call. The label may contain the
    placeholders {arguments}, {arguments.0}, {type_arguments} and {sender}; otherwise the values are appended to it.
    """


def _combined(entry: CallEntry) -> tuple[Call, ...]:
    """Return one call for each combination of a grid; its last list varies fastest."""
    axes = entry.grid.axes if entry.grid else {}
    fields = {name: getattr(entry, name) for name in entry.model_fields_set - {"grid"}}
    if twice := sorted(axes.keys() & fields.keys()):
        raise InputError(f"`{twice[0]}` is set in both the call and its grid; set it in only one of them")
    points = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    labels = [_label(entry.label, point) for point in points] if entry.label else [""] * len(points)
    if entry.label and len(set(labels)) < len(labels):  # values that were shortened may be equal
        labels = [f"{label} #{number}" for number, label in enumerate(labels, start=1)]
    return tuple(
        placed(f"grid entry {number}", Call.model_validate, fields | point | {"label": label})
        for number, (point, label) in enumerate(zip(points, labels, strict=True), start=1)
    )


def _label(label: str, point: Mapping[str, Any]) -> str:
    """Return the label of one grid combination: with its placeholders filled in, or followed by the values."""
    filled = label
    for name, values in point.items():
        filled = filled.replace(f"{{{name}}}", _spelt(values))
        for place, value in enumerate(() if isinstance(values, str) else values):
            filled = filled.replace(f"{{{name}.{place}}}", _spelt(value))
    return filled if filled != label else f"{label} [{'; '.join(_spelt(value) for value in point.values())}]"


def _spelt(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(_spelt(item) for item in value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _MAX_VALUE else f"{text[: _MAX_VALUE - 1]}…"


def _entries(calls: Any) -> Iterator[tuple[str, Any, str]]:
    """Yield ``(place, call, label)`` for calls in any of the accepted forms."""
    if isinstance(calls, Mapping):
        for label, call in calls.items():
            if not isinstance(label, str):
                raise StudyError(f"calls: expected a string as the label, got {label!r}")
            yield f"call {label!r}", call, label
    elif isinstance(calls, Sequence) and not isinstance(calls, str):
        for number, call in enumerate(calls, start=1):
            name = call.get("label") if isinstance(call, Mapping) else getattr(call, "label", None)
            yield named_place("call", number, name), call, ""
    else:
        given = f"{shorten(calls)}; write [{shorten(calls)}]" if isinstance(calls, str) else type(calls).__name__
        raise StudyError(f"calls: expected a list of calls, or a mapping of label to call, got {given}")


def read_calls(calls: Any) -> tuple[Call, ...]:
    """Return the calls of a study from a list, or a mapping of label to call, in any of the accepted forms."""
    made: list[tuple[str, Call]] = []
    for place, entry, label in _entries(calls):
        if isinstance(entry, Mapping) and entry.get("grid") is not None:
            grid = placed(place, CallEntry.model_validate, _labelled(entry, label))
            made += [(place, call) for call in placed(place, _combined, grid)]
        else:
            made.append((place, placed(place, Call.of, entry, label)))
        if len(made) > _MAX_CALLS:
            raise StudyError(f"{place}: a study can have at most {_MAX_CALLS:,} calls; split it into several studies")
    if not made:
        raise StudyError("a study must have at least one call; in a study file, write [[call]] above each one")
    _all_differ([(place, call) for place, call in made if call.label], "label", lambda call: call.label)
    _all_differ(made, "request", lambda call: call.fingerprint)
    unnamed = [call.called for _, call in made if not call.label]
    labels = iter(default_labels(unnamed, {call.label for _, call in made if call.label}))
    return tuple(call if call.label else call.with_default(next(labels)) for _, call in made)


def other_names(calls: Sequence[Call]) -> dict[str, str]:
    """Map each function that only one call uses to the label of that call.

    A waiver, a limit or a snapshot may name a call by its function. A function that is also the label of a call is left
    out.
    """
    labels = {call.name for call in calls}
    uses = Counter(call.function for call in calls)
    return {call.function: call.name for call in calls if uses[call.function] == 1 and call.function not in labels}


def _all_differ(made: list[tuple[str, Call]], what: str, read: Callable[[Call], str]) -> None:
    """Raise StudyError if two calls have the same label or request: their rows could not be distinguished."""
    seen: dict[str, str] = {}
    for place, call in made:
        if read(call) in seen:
            other = seen[read(call)]
            among = f"{place}: two calls in its grid have the same {what}, {call.name!r}"
            raise StudyError(among if other == place else f"{place} has the same {what} as {other}")
        seen[read(call)] = place
