"""Studies: which calls to observe on which nodes at which ledger versions. A TOML file, or Python."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, field_validator, model_validator

from toolkit.client.node import Node
from toolkit.client.targets import base_url
from toolkit.client.versions import FindSteps, VersionPlan
from toolkit.errors import InputError, StudyError
from toolkit.gas.observing import COMMITTED, SIMULATE, VIEW, fingerprint
from toolkit.wire.models import wire_argument
from toolkit.wire.payloads import EntryFunction
from toolkit.wire.requests import SimulationRequest, ViewFunction

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from typing import Self

    from toolkit.gas.run import Run

__all__ = ["Call", "Study", "VersionChoice"]

_MOST_BYTES = 1_000_000
_SHIPPED = ("demo",)
_SIMULATION_ONLY = frozenset({"sender", "fee_payer", "max_gas_amount", "gas_unit_price"})
_STUDY_PRICE = 100
"""Octas per gas unit of simulations in a study. It is fixed because the storage fee in gas units depends on it."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class VersionChoice(_Model):
    """Which versions a study reads: a plan, or a search for every step.

    Attributes
    ----------
    plan : str, list of int, or None
        A version plan, such as ``"0:-1/200"``.
    find_steps : str or None
        A range to search instead, such as ``"0:-1"``.
    initial : int
        Versions of the search's first grid.
    max_requests : int
        Most requests of the search per call.
    """

    plan: str | list[int] | None = None
    find_steps: str | None = None
    initial: int = 33
    max_requests: int = 2000

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.plan is None) == (self.find_steps is None):
            raise ValueError("give either plan or find_steps")
        if isinstance(self.plan, str):
            VersionPlan.parse(self.plan)
        _ = self.search
        return self

    @property
    def search(self) -> FindSteps | None:
        """The step search, where one is asked for."""
        if self.find_steps is None:
            return None
        return FindSteps(self.find_steps, initial=self.initial, max_requests=self.max_requests)

    @classmethod
    def of(cls, versions: Any) -> VersionChoice:
        """Take versions in any of the forms of the Python interface."""
        if isinstance(versions, cls):
            return versions
        if isinstance(versions, FindSteps):
            return cls(find_steps=versions.versions, initial=versions.initial, max_requests=versions.max_requests)
        if isinstance(versions, Mapping):
            return cls.model_validate(dict(versions))
        return cls(plan=versions if isinstance(versions, str) else list(versions))


class Call(_Model):
    """One call of a study: exactly one of `view`, `simulate` and `committed` names its function.

    Attributes
    ----------
    label : str
        Its name for people; the function's by default.
    view : str or None
        A view function, read at every version of the plan.
    simulate : str or None
        An entry function, simulated at the head, whatever the plan.
    committed : str or None
        An entry function whose committed transactions within the plan's range are read.
    type_arguments, arguments : sequence
    sender, fee_payer : str or None
        Of a simulation.
    gas_unit_price : int
        Octas per gas unit of a simulation; fixed, for storage costs fewer gas units at a higher price.
    max_gas_amount : int or None
        Gas units of a simulation; what the sender can afford by default.
    """

    label: str = ""
    view: str | None = None
    simulate: str | None = None
    committed: str | None = None
    type_arguments: tuple[str, ...] = ()
    arguments: tuple[Any, ...] = ()
    sender: str | None = None
    fee_payer: str | None = None
    gas_unit_price: Annotated[int, Field(ge=0)] = _STUDY_PRICE
    max_gas_amount: Annotated[int, Field(ge=0)] | None = None

    @field_validator("arguments", mode="before")
    @classmethod
    def _hex_for_bytes(cls, arguments: Any) -> Any:
        """Write bytes as the hex that a node takes for them, so that a study can be written down as text."""
        return wire_argument(list(arguments)) if isinstance(arguments, list | tuple) else arguments

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        named = [name for name in ("view", "simulate", "committed") if getattr(self, name) is not None]
        if len(named) != 1:
            raise ValueError(f"give exactly one of view, simulate, committed; got {named or 'none'}")
        if self.simulate is not None and self.sender is None:
            raise ValueError("a simulation needs sender")
        if self.simulate is None and not _SIMULATION_ONLY.isdisjoint(self.model_fields_set):
            misplaced = ", ".join(sorted(_SIMULATION_ONLY & self.model_fields_set))
            raise ValueError(f"{misplaced} belongs to a simulation")
        _ = self.request
        return self

    @property
    def source(self) -> str:
        """What kind of observation the call gives: ``view@version``, ``simulate@now`` or ``committed``."""
        return VIEW if self.view is not None else SIMULATE if self.simulate is not None else COMMITTED

    @property
    def function(self) -> str:
        """The function that is called."""
        return str(self.view or self.simulate or self.committed)

    @property
    def name(self) -> str:
        """The label, or the function where there is none."""
        return self.label or self.function

    @property
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

    def document(self) -> dict[str, Any]:
        """Return the call as in a study file, with every default that means something spelled out."""
        left_out = set() if self.simulate is not None else set(_SIMULATION_ONLY)
        return self.model_dump(mode="json", exclude_none=True, exclude=left_out) | {"label": self.name}

    @property
    def fingerprint(self) -> str:
        """Digest of the canonical request: 32 hex digits."""
        return fingerprint(self.request, self.source)

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


class Study(_Model):
    """A gas study.

    Parameters
    ----------
    node : str or Node, default "embedded"
        Where to read; `nodes` takes several.
    calls : sequence or mapping
        Calls as `ViewFunction`, `SimulationRequest`, or mappings as in a study file; a mapping of label to call.
    versions : version plan or FindSteps
        Which ledger versions the views are read at.
    title : str, default "Gas study"

    Raises
    ------
    StudyError
        If something cannot be used, naming the place.
    """

    title: str = "Gas study"
    nodes: tuple[str, ...]
    versions: VersionChoice
    calls: tuple[Call, ...]
    _node: Node | None = PrivateAttr(default=None)

    def __init__(
        self,
        *,
        calls: Any = (),
        versions: Any = "0:-1/200",
        node: str | Node | None = None,
        nodes: Sequence[str] | None = None,
        title: str = "Gas study",
        **unknown: Any,
    ) -> None:
        fields = {"title": title, "nodes": _node_names(node, nodes), **unknown}
        fields["versions"] = _placed("versions", lambda: VersionChoice.of(versions))
        fields["calls"] = _calls(calls)
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise StudyError(_words("study", error)) from None
        self._node = node if isinstance(node, Node) else None

    @model_validator(mode="after")
    def _labels_differ(self) -> Self:
        if not self.calls:
            raise ValueError("a study needs at least one call")
        for what, seen in (
            ("label", [call.name for call in self.calls]),
            ("request", [c.fingerprint for c in self.calls]),
        ):
            twice = next((place for place, one in enumerate(seen) if one in seen[:place]), None)
            if twice is not None:
                raise ValueError(
                    f"call {twice + 1} ({self.calls[twice].name!r}) has the same {what} as an earlier call"
                )
        return self

    @classmethod
    def load(cls, source: str | Path) -> Study:
        """Load a study: ``"demo"``, which ships with the package, or the path of a TOML file.

        Raises
        ------
        StudyError
            If the file cannot be read, is no TOML, or something in it cannot be used, naming the place.
        """
        text = _text(source)
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise StudyError(f"study {source}: not TOML: {error}") from None
        try:
            return cls.from_document(document)
        except InputError as error:
            raise StudyError(f"study {source}: {error}") from None

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Study:
        """Make a study from the content of a study file.

        Raises
        ------
        StudyError
            If a key is unknown or a value cannot be used, naming the place.
        """
        known = {"title", "node", "nodes", "versions", "call"}
        unknown = sorted(set(document) - known)
        if unknown:
            raise StudyError(f"`{unknown[0]}` is no key of a study file; the keys are {', '.join(sorted(known))}")
        if not isinstance(document.get("versions"), dict):
            raise StudyError('`versions`: expected a table such as [versions] with plan = "0:-1/200"')
        if isinstance(document.get("call"), dict):
            raise StudyError("`call`: a study has a list of calls; write [[call]] with two brackets before each")
        given = {name: document[name] for name in ("title", "node", "nodes", "versions") if name in document}
        return cls(**given, calls=document.get("call", []))

    def document(self) -> dict[str, Any]:
        """Return the study as the content of a study file, with every default spelled out."""
        calls = [call.document() for call in self.calls]
        versions = self.versions.model_dump(mode="json", exclude_none=True)
        return {"title": self.title, "nodes": list(self.nodes), "versions": versions, "call": calls}

    @property
    def digest(self) -> str:
        """Digest of the whole study: 32 hex digits."""
        text = json.dumps(self.document(), sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def run(
        self,
        out: str | Path | None = None,
        *,
        executor: Executor | None = None,
        max_tasks: int = 8,
        progress: bool = True,
    ) -> Run:
        """Observe every call and write the run.

        Parameters
        ----------
        out : str or Path, optional
            Folder of the run; made where it is missing. A run that was broken off there is continued. By default a
            temporary folder that lives as long as the returned run.
        executor : concurrent.futures.Executor, optional
            Where views are read, in ranges of 250 calls: threads, processes, or a cluster such as
            ``dask.distributed.Client(...).get_executor()``. By default here, over the bulk engine.
        max_tasks : int, default 8
            Most ranges in flight on the executor; each gets its share of the node's rate.
        progress : bool, default True
            Show a progress bar.

        Returns
        -------
        Run

        Raises
        ------
        StudyError
            If the folder holds a run of another study or chain, or something that is no run.
        """
        from toolkit.gas.runner import run_study

        return run_study(self, out, node=self._node, progress=progress, executor=executor, max_tasks=max_tasks)


def _node_names(node: str | Node | None, nodes: Any) -> tuple[str, ...]:
    """Return the names of a study's nodes, each checked to be one."""
    if isinstance(node, Node):
        if nodes is not None:
            raise StudyError("give either node or nodes, not both")
        return (node.name,)
    if node is not None and nodes is not None:
        raise StudyError("give either node or nodes, not both")
    named: Any = [node or "embedded"] if nodes is None else nodes
    if not isinstance(named, list | tuple) or not named:
        raise StudyError(f"`nodes`: expected a list of names or URLs with at least one, got {named!r}")
    for name in named:
        if name != "embedded":
            _placed(f"node {name!r}", lambda n=name: base_url(n))
    return tuple(named)


def _calls(calls: Any) -> tuple[Call, ...]:
    if isinstance(calls, Mapping):
        return tuple(_placed(f"call {label!r}", lambda c=call, n=label: Call.of(c, n)) for label, call in calls.items())
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        raise StudyError(f"calls: expected a list of calls, or a mapping of label to call, got {type(calls).__name__}")
    return tuple(_placed(f"call {place}", lambda c=call: Call.of(c)) for place, call in enumerate(calls, start=1))


def _placed(place: str, make: Any) -> Any:
    """Make a part of a study; what is wrong with it names the place."""
    try:
        return make()
    except ValidationError as error:
        raise StudyError(_words(place, error)) from None
    except (InputError, TypeError) as error:
        raise StudyError(f"{place}: {error}") from None


def _words(place: str, error: ValidationError) -> str:
    """Say what is wrong in the words of the first complaint: where, expected, got."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    if first["type"] == "extra_forbidden":
        return f"{place}: `{where}` is no key here; check its spelling{more}"
    got = "" if first["type"] == "value_error" else f", got {str(first['input'])[:60]!r}"
    message = first["msg"].removeprefix("Value error, ")
    return f"{place}{f', `{where}`' if where else ''}: {message}{got}{more}"


def _text(source: str | Path) -> str:
    if str(source) in _SHIPPED:
        return resources.files("toolkit.gas").joinpath("studies", f"{source}.toml").read_text("utf-8")
    path = Path(source)
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise StudyError(f"study {path}: the file is larger than {_MOST_BYTES:,} bytes")
        return path.read_text("utf-8")
    except OSError as error:
        shipped = ", ".join(_SHIPPED)
        raise StudyError(f"study {path}: {error.strerror}; give a TOML file, or one that ships: {shipped}") from None
    except UnicodeDecodeError:
        raise StudyError(f"study {path}: not UTF-8 text") from None
