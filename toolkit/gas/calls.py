"""One call of a study: a view, a simulation, or the committed transactions of an entry function."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, field_validator, model_validator

from toolkit.client.versions import VersionPlan
from toolkit.errors import InputError
from toolkit.gas.observing import Source, fingerprint
from toolkit.gas.placing import FileModel
from toolkit.gas.thresholds import Threshold
from toolkit.wire import EntryFunction, SimulationRequest, ViewFunction
from toolkit.wire._models import wire_argument

if TYPE_CHECKING:
    from typing import Self

__all__ = ["Call", "CallFields"]

_SIMULATION_ONLY = frozenset({"sender", "fee_payer", "max_gas_amount", "gas_unit_price"})
_CALL_ONLY = frozenset({"type_arguments", "arguments"})
_FIELD = re.compile(r"(?:ViewFunction|EntryFunction|SimulationRequest)\.(\w+)(?:\.(\d+))?: ")
_STUDY_PRICE = 100
"""Octas per gas unit of simulations in a study. It is fixed because the storage fee in gas units depends on it."""


class CallFields(FileModel):
    """The keys of a call; exactly one of `view`, `simulate` and `committed` names its function."""

    label: str = ""
    """Its name for people; the function's by default."""
    view: str | None = None
    """A view function, read at every version of the plan."""
    simulate: str | None = None
    """An entry function, simulated at the head, whatever the plan."""
    committed: str | None = None
    """An entry function whose committed transactions are read, successful or not."""
    type_arguments: tuple[str, ...] = ()
    """Move types of a view or simulation."""
    arguments: tuple[Any, ...] = ()
    """Arguments of a view or simulation; its ABI says how they are sent."""
    sender: str | None = None
    """Account whose transaction is simulated; no key is needed."""
    fee_payer: str | None = None
    """Account that pays for a simulation; 0x0 charges nobody."""
    gas_unit_price: Annotated[int, Field(ge=0)] = _STUDY_PRICE
    """Octas per gas unit of a simulation; fixed, for storage costs fewer gas units at a higher price."""
    max_gas_amount: Annotated[int, Field(ge=0)] | None = None
    """Gas units of a simulation; what the sender can afford by default."""
    versions: str | None = None
    """Range of the committed transactions, such as "1000:1999"; that of the study's versions by default."""
    thresholds: Threshold | None = None
    """How much dearer this call may become, in place of the study's own thresholds."""

    @field_validator("arguments", mode="before")
    @classmethod
    def _hex_for_bytes(cls, arguments: Any) -> Any:
        """Write bytes as the hex that a node takes for them, so that a study can be written down as text."""
        return wire_argument(list(arguments)) if isinstance(arguments, list | tuple) else arguments

    @property
    def source(self) -> str:
        """What kind of observation the call gives: ``view@version``, ``simulate@now`` or ``committed``."""
        return (
            Source.VIEW if self.view is not None else Source.SIMULATE if self.simulate is not None else Source.COMMITTED
        )

    @property
    def function(self) -> str:
        """The function that is called."""
        return str(self.view or self.simulate or self.committed)

    @property
    def name(self) -> str:
        """The label, or the function where there is none."""
        return self.label or self.function


class Call(CallFields):
    """One call of a study, checked as a whole. Its keys are those of `CallFields`."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        named = [name for name in ("view", "simulate", "committed") if getattr(self, name) is not None]
        if len(named) != 1:
            raise ValueError(f"give exactly one of view, simulate, committed; got {named or 'none'}")
        if self.simulate is not None and self.sender is None:
            raise ValueError('`sender`: a simulation needs one, such as sender = "0xa11ce"; no key is needed')
        if self.simulate is None:
            self._refuse(_SIMULATION_ONLY & self.model_fields_set, "it belongs to a simulation")
        if self.committed is None:
            self._refuse({"versions"} & self.model_fields_set, "it belongs to committed transactions")
        else:
            self._refuse(
                {name for name in _CALL_ONLY if getattr(self, name)},
                "it belongs to a view or simulation; committed transactions are chosen by their function alone",
            )
        if self.versions is not None:
            _check_range(self.versions)
        try:
            _ = self.request
        except InputError as error:
            raise ValueError(self._in_own_words(str(error))) from None
        return self

    def _in_own_words(self, text: str) -> str:
        """Name the key of the study file, not the field of the request that is made from it."""
        found = _FIELD.match(text)
        if not found:
            return text
        kind = next(name for name in ("view", "simulate", "committed") if getattr(self, name) is not None)
        key = kind if found[1] == "function" else found[1]
        place = f".{int(found[2]) + 1}" if found[2] else ""
        return f"`{key}{place}`: {text[found.end() :]}"

    @staticmethod
    def _refuse(misplaced: set[str] | frozenset[str], why: str) -> None:
        if misplaced:
            raise ValueError(f"`{min(misplaced)}`: {why}")

    @cached_property
    def request(self) -> ViewFunction | SimulationRequest | EntryFunction:
        """The request as the client sends it; for committed transactions the function alone."""
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
    def fingerprint(self) -> str:
        """Digest of the canonical request: 32 hex digits."""
        return fingerprint(self.request, self.source)

    def document(self) -> dict[str, Any]:
        """Return the call as in a study file, with every default that means something spelled out."""
        left_out = set() if self.simulate is not None else set(_SIMULATION_ONLY)
        return self.model_dump(mode="json", exclude_none=True, exclude=left_out) | {"label": self.name}

    @classmethod
    def of(cls, call: Any, label: str = "") -> Call:
        """Take a call in any of the forms of the Python interface."""
        if isinstance(call, Call):
            return call.model_copy(update={"label": label}) if label else call
        if isinstance(call, ViewFunction):
            return cls(label=label, view=call.function, type_arguments=call.type_arguments, arguments=call.arguments)
        if isinstance(call, SimulationRequest):
            return cls._of_simulation(call, label)
        if isinstance(call, Mapping):
            return cls.model_validate({**({"label": label} if label else {}), **call})
        got = type(call).__name__
        raise InputError(f"a call is a ViewFunction, a SimulationRequest or a mapping as in a study file, got {got}")

    @classmethod
    def _of_simulation(cls, request: SimulationRequest, label: str) -> Call:
        payload = request.payload
        if not isinstance(payload, EntryFunction):
            raise InputError("a study simulates entry functions; scripts and multisig payloads go to node.simulate")
        call = cls(
            label=label,
            simulate=payload.function,
            type_arguments=payload.type_arguments,
            arguments=payload.arguments,
            sender=request.sender,
            fee_payer=request.fee_payer,
            gas_unit_price=_STUDY_PRICE if request.gas_unit_price is None else request.gas_unit_price,
            max_gas_amount=request.max_gas_amount,
        )
        kept = call.request
        if isinstance(kept, SimulationRequest) and kept.replace(gas_unit_price=request.gas_unit_price) != request:
            raise InputError("a study's simulation takes sender, fee_payer, gas_unit_price and max_gas_amount only")
        return call


def _check_range(versions: str) -> None:
    try:
        plan = VersionPlan.parse(versions)
    except InputError as error:
        raise ValueError(f"`versions`: {error}") from None
    if plan.count is not None or plan.step != 1:
        raise ValueError(
            f"`versions`: that of committed transactions is a plain range such as '0:-1', got {versions!r}"
        )
