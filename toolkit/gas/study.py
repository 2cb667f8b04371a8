"""Studies: which calls to observe on which nodes at which ledger versions. A TOML file, or Python."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence, Sized
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field, PrivateAttr, SecretStr

from toolkit.client.http import base_url, is_public_network, login_of, redacted_url, told
from toolkit.client.node import Node
from toolkit.errors import InputError, StudyError
from toolkit.gas.calls import Call
from toolkit.gas.grids import expanded
from toolkit.gas.placing import FileModel, named_place, placed
from toolkit.gas.study_file import checked_keys, file_schema, read_toml
from toolkit.gas.thresholds import Threshold, Waiver, read_waivers
from toolkit.gas.version_choice import VersionChoice

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor
    from pathlib import Path

    from toolkit.gas.plan import Plan
    from toolkit.gas.run import Run

__all__ = ["Call", "Study", "VersionChoice"]

_MOST_CALLS = 10_000
_MOST_NAMED = 10
_JUDGING = frozenset({"thresholds", "waiver", "requests_per_second"})
"""Keys that change nothing of what is observed; they may change while a run goes on, so no digest holds them."""


class Study(FileModel):
    """A gas study.

    Parameters
    ----------
    node : str or Node, default "embedded"
        Where to read; `nodes` takes several. A user name and password in a URL stay in the memory of this process:
        `nodes`, documents, digests, run folders and pickles do not have them.
    calls : sequence or mapping
        Calls as `ViewFunction`, `SimulationRequest`, or mappings as in a study file; a mapping of label to call.
    versions : version plan or FindSteps
        Which ledger versions the views are read at.
    title : str, default "Gas study"
    requests_per_second : float, optional
        Most requests started per second on each node that is named; a `Node` has a pace of its own.
    thresholds : Threshold, str or int, optional
        How much dearer a call may become before a comparison fails: ``"2%"``, ``50`` gas units, or both in a list.
    waivers : sequence of Waiver or mapping, optional
        Calls that are excused, with a reason and an expiry date.
    use_api_key : bool, default False
        Send ``LEDGER_TOOLKIT_API_KEY`` to the hosts that the study names by URL. The public networks by name always
        get it, and a `Node` has credentials of its own. A study file cannot say this: it may come from somebody else.

    Raises
    ------
    StudyError
        If something cannot be used, naming the place.
    """

    title: str = "Gas study"
    nodes: tuple[str, ...]
    versions: VersionChoice
    calls: tuple[Call, ...]
    requests_per_second: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    thresholds: Threshold | None = None
    waivers: tuple[Waiver, ...] = ()
    _node: Node | None = PrivateAttr(default=None)
    _logins: dict[str, SecretStr] = PrivateAttr(default_factory=dict)
    _use_api_key: bool = PrivateAttr(default=False)

    def __init__(
        self,
        *,
        calls: Any = (),
        versions: Any = "0:-1/200",
        node: str | Node | None = None,
        nodes: Sequence[str] | None = None,
        title: str = "Gas study",
        thresholds: Any = None,
        waivers: Any = (),
        requests_per_second: float | None = None,
        use_api_key: bool = False,
        **more: Any,
    ) -> None:
        names, logins = _node_names(node, nodes)
        fields = {"title": title, "nodes": names, "requests_per_second": requests_per_second, **more}
        fields["versions"] = placed("versions", VersionChoice.of, versions, of=VersionChoice)
        fields["calls"] = _calls(calls)
        if thresholds is not None:
            fields["thresholds"] = placed("thresholds", Threshold.of, thresholds, of=Threshold)
        fields["waivers"] = _of_calls(read_waivers(waivers), fields["calls"])
        placed("study", lambda: BaseModel.__init__(self, **fields), of=Study)
        self._node = node if isinstance(node, Node) else None
        self._logins, self._use_api_key = logins, use_api_key

    def __getstate__(self) -> dict[Any, Any]:
        """Pickle the study without the logins of its nodes."""
        state = super().__getstate__()
        return {**state, "__pydantic_private__": {**(state["__pydantic_private__"] or {}), "_logins": {}}}

    @classmethod
    def load(
        cls,
        source: str | Path,
        *,
        node: str | Node | None = None,
        nodes: Sequence[str] | None = None,
        use_api_key: bool = False,
    ) -> Study:
        """Load a study: ``"demo"``, which ships with the package, or the path of a TOML file.

        Parameters
        ----------
        source : str or Path
        node : str or Node, optional
            Where to read, instead of what the file says; such as a URL with the login that the file does not have.
        nodes : sequence of str, optional
            Several nodes, instead of those of the file.
        use_api_key : bool, default False
            Send ``LEDGER_TOOLKIT_API_KEY`` to the hosts that the study names by URL.

        Returns
        -------
        Study

        Raises
        ------
        StudyError
            If the file cannot be read, is no TOML, or something in it cannot be used, naming the place.
        """
        document = read_toml(source, "study")
        try:
            instead = {name: value for name, value in (("node", node), ("nodes", nodes)) if value is not None}
            if instead:
                checked_keys(document)
                document = {name: value for name, value in document.items() if name not in {"node", "nodes"}} | instead
            return cls.from_document(document, use_api_key=use_api_key)
        except InputError as error:
            raise StudyError(f"study {source}: {error}") from None
        except RecursionError:
            raise StudyError(f"study {source}: nested too deeply to be a study") from None

    @classmethod
    def from_document(cls, document: Mapping[str, Any], *, use_api_key: bool = False) -> Study:
        """Make a study from the content of a study file.

        Parameters
        ----------
        document : mapping
        use_api_key : bool, default False
            Send ``LEDGER_TOOLKIT_API_KEY`` to the hosts that the study names by URL.

        Returns
        -------
        Study

        Raises
        ------
        StudyError
            If a key is unknown or a value cannot be used, naming the place.
        """
        checked_keys(document)
        given = {name: value for name, value in document.items() if name not in {"call", "waiver"}}
        calls, waivers = document.get("call", []), document.get("waiver", ())
        return cls(**given, calls=calls, waivers=waivers, use_api_key=use_api_key)

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """Return the JSON Schema of study files, by which an editor checks and completes them."""
        return file_schema()

    def document(self) -> dict[str, Any]:
        """Return the study as the content of a study file, with every default spelled out and grids written out."""
        document: dict[str, Any] = {
            "title": self.title,
            "nodes": list(self.nodes),
            "versions": self.versions.model_dump(mode="json", exclude_none=True),
            "call": [call.document() for call in self.calls],
        }
        if self.requests_per_second is not None:
            document["requests_per_second"] = self.requests_per_second
        if self.thresholds is not None:
            document["thresholds"] = self.thresholds.model_dump(mode="json", exclude_none=True)
        if self.waivers:
            document["waiver"] = [waiver.model_dump(mode="json", exclude_none=True) for waiver in self.waivers]
        return document

    def connections(self) -> list[dict[str, Any]]:
        """Return for each node that is named the `connect` settings that nothing but this process may hold.

        The API key of the environment is left out if nobody said that the host may have it.
        """
        return [
            {
                "target": _with_login(name, self._logins.get(name)),
                "api_key": None if self._use_api_key or is_public_network(name) else "",
            }
            for name in self.nodes
        ]

    @property
    def digest(self) -> str:
        """Digest of what the study observes: 32 hex digits. Thresholds, waivers and the pace are not in it."""
        observed = {name: value for name, value in self.document().items() if name not in _JUDGING}
        observed["call"] = [
            {name: value for name, value in call.items() if name not in _JUDGING} for call in observed["call"]
        ]
        text = json.dumps(observed, sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def plan(self) -> Plan:
        """Tell what a run would send, how long it would take and what it cannot read, without sending it.

        Asks each node for its head, its oldest version and the called modules only (and for block times, where the
        versions are dates).

        Returns
        -------
        Plan

        Raises
        ------
        InputError
            If the versions cannot be read on a node.
        StudyError
            If the arguments of a call do not fit its function, naming the call.
        NodeError, NodeUnreachable
            If a node does not tell its ledger.
        """
        from toolkit.gas.plan import plan_study

        return plan_study(self, self._node)

    def run(
        self,
        out: str | Path | None = None,
        *,
        executor: Executor | str | None = None,
        max_tasks: int = 8,
        shard: tuple[int, int] | str | None = None,
        progress: bool = True,
    ) -> Run:
        """Observe every call and write the run.

        May be broken off at any moment, by Ctrl-C, a kill or a full disk: the same call goes on where it stopped.

        Parameters
        ----------
        out : str or Path, optional
            Folder of the run; made where it is missing. A run that was broken off there is continued. By default a
            temporary folder that lives as long as the returned run.
        executor : concurrent.futures.Executor or str, optional
            Where views are read, in ranges of 100 to 1,000 calls: any executor, a ``dask.distributed.Client`` or its
            ``get_executor()``, ``"threads:8"``, ``"processes:4"``, or ``"tcp://host:8786"`` (a Dask scheduler; needs
            the extra ``dask``). By default here, over the bulk engine. In a script, a pool of processes is started
            under ``if __name__ == "__main__":``, as Python wants it.
            Simulations and committed transactions are read here in any case. Ranges answer with their rows, so
            workers need this package and a way to the node, but no disk and no folder in common.
        max_tasks : int, default 8
            Most ranges in flight on the executor, best the number of its workers: each range gets its share of the
            node's rate and requests in flight. A pool that is named has no more than its workers.
        shard : (int, int) or str, optional
            Read only this part of the study, such as ``(2, 5)`` or ``"2/5"``, to be merged by `Run.merge`.
        progress : bool, default True
            Show a progress bar.

        Returns
        -------
        Run

        Raises
        ------
        StudyError
            If the arguments of a call do not fit its function, naming the call; if the folder holds a run of another
            study, shard, chain or history, or something that is no run; if another run is writing to it; if it cannot
            be written; if the executor fails; or if shards could not agree on the versions.
        RunStopped
            Among others if a node serves another ledger than before, by the chain id of any answer or by a transaction
            that is read again before rows are written. No row of the other ledger is in the folder.
        KeyboardInterrupt
            After an interrupt, saying what is kept and where.

        Notes
        -----
        Where the machines have an object store only: the folder has to be on a disk, since stores give no locks and no
        renames. On a cluster it is on the machine that calls this, and workers need none. Machines without a cluster
        read one shard each onto their own disk; copy the complete folders to the store, and from there to where they
        are merged. The parts of a run in a store can be read in place by DuckDB, Polars or pandas.
        """
        from toolkit.gas.runs.runner import run_study

        return run_study(
            self, out, node=self._node, progress=progress, executor=executor, max_tasks=max_tasks, shard=shard
        )


def _node_names(node: str | Node | None, nodes: Any) -> tuple[tuple[str, ...], dict[str, SecretStr]]:
    """Return the names of a study's nodes, each checked to be one and without a login, and the logins by name."""
    if isinstance(node, Node):
        if nodes is not None:
            raise StudyError("give either node or nodes, not both")
        return (node.name,), {}
    if node is not None and nodes is not None:
        raise StudyError("give either node or nodes, not both")
    named: Any = [node or "embedded"] if nodes is None else nodes
    if not isinstance(named, list | tuple) or not named:
        # The value itself may have a password.
        got = "an empty list" if isinstance(named, list | tuple) else f"a {type(named).__name__}"
        raise StudyError(f"`nodes`: expected a list of names or URLs with at least one, got {got}")
    names: list[str] = []
    logins: dict[str, SecretStr] = {}
    for name in named:
        if name != "embedded":
            shown = f" {told(name)!r}" if isinstance(name, str) else "" if isinstance(name, Sized) else f" {name!r}"
            placed(f"node{shown}", base_url, name)
        login = login_of(name.strip())
        names.append(name if login is None else redacted_url(name.strip()))
        if login is not None:
            logins[names[-1]] = SecretStr(login)
    if len(set(names)) < len(names):
        raise StudyError(f"`nodes`: {', '.join(names)}: a node is named twice")
    return tuple(names), logins


def _with_login(name: str, login: SecretStr | None) -> str:
    return name if login is None else name.replace("//", f"//{login.get_secret_value()}@", 1)


def _entries(calls: Any) -> Iterator[tuple[str, Any, str]]:
    """Yield (place, call, label) of calls as they were given."""
    if isinstance(calls, Mapping):
        for label, call in calls.items():
            if not isinstance(label, str):
                raise StudyError(f"calls: a label is text, got {label!r}")
            yield f"call {label!r}", call, label
    elif isinstance(calls, Sequence) and not isinstance(calls, str):
        for number, call in enumerate(calls, start=1):
            name = call.get("label") if isinstance(call, Mapping) else getattr(call, "label", None)
            yield named_place("call", number, name), call, ""
    else:
        raise StudyError(f"calls: expected a list of calls, or a mapping of label to call, got {type(calls).__name__}")


def _calls(calls: Any) -> tuple[Call, ...]:
    made: list[tuple[str, Call]] = []
    for place, entry, label in _entries(calls):
        made += [(place, call) for call in expanded(place, entry, label)]
        if len(made) > _MOST_CALLS:
            raise StudyError(f"a study has at most {_MOST_CALLS:,} calls; {place} makes more; divide it")
    if not made:
        raise StudyError("a study needs at least one call; write [[call]] before each")
    _all_differ(made, "label", lambda call: call.name)
    _all_differ(made, "request", lambda call: call.fingerprint)
    return tuple(call for _, call in made)


def _all_differ(made: list[tuple[str, Call]], what: str, read: Callable[[Call], str]) -> None:
    """Refuse two calls that rows could not be told apart by."""
    seen: dict[str, str] = {}
    for place, call in made:
        if read(call) in seen:
            other = seen[read(call)]
            among = f"{place}: its grid makes twice the same {what}, {call.name!r}"
            raise StudyError(among if other == place else f"{place} has the same {what} as {other}")
        seen[read(call)] = place


def _of_calls(waivers: tuple[Waiver, ...], calls: Sequence[Call]) -> tuple[Waiver, ...]:
    """Refuse a waiver that is not of a call or a source of the study: a misspelt label would excuse nothing."""
    labels = [call.name for call in calls]
    for number, waiver in enumerate(waivers, start=1):
        place = named_place("waiver", number, waiver.name)
        if waiver.source is not None and waiver.source not in {call.source for call in calls}:
            raise StudyError(f"{place}, `source`: no call of the study has this source")
        if waiver.call is not None and waiver.call not in labels:
            close = get_close_matches(waiver.call, labels, n=1)
            meant = f"; did you mean {close[0]!r}?" if close else f"; the labels are {', '.join(labels[:_MOST_NAMED])}"
            raise StudyError(f"{place}, `call`: no call has this label{meant}")
    return waivers
