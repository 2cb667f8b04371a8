"""Studies and runs: `Study` states what to observe on which nodes at which versions; `Run` holds the observations.

Both are in one module because each creates the other: `Study.run` returns a `Run`, and `Run.study` is a `Study`.
"""

from __future__ import annotations

import json
import shutil
import weakref
from collections.abc import Mapping, Sequence, Sized
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, PrivateAttr, SecretStr

from toolkit._present.messages import shorten
from toolkit._present.notebook import facts_html
from toolkit._present.text import listed, plural, visible
from toolkit.client._http import OWN_LEDGER, base_url, is_public_network, login_of, redacted_target, redacted_url
from toolkit.client._node import Node
from toolkit.client._reads import TransactionStore
from toolkit.client._versions import as_version
from toolkit.errors import InputError, StudyError
from toolkit.frames._columns import frame_of_rows, plain_rows
from toolkit.frames._schema import GROWTH, LEVELS, MIX, OBSERVATIONS, RUN_TIMELINE
from toolkit.gas import _study_file as files
from toolkit.gas._calls import Call, other_names, read_calls
from toolkit.gas._cause_sentences import step_row, steps_frame, unread_text
from toolkit.gas._file_model import named_place, placed
from toolkit.gas._findings import Explanation
from toolkit.gas._observations import NOT_READ, READ_AT_VERSIONS, Cause, failures_of, last_observations
from toolkit.gas._rules import Threshold, Waiver, matching, read_waivers
from toolkit.gas._sentences import run_lines
from toolkit.gas._steps import COVERAGE_COLUMNS, Coverage, coverage_of, steps_of
from toolkit.gas._study_file import StudyFields, VersionChoice
from toolkit.gas._timeline import change_row
from toolkit.gas.plan._estimate import Plan, estimate
from toolkit.gas.plan._plan import study_digest
from toolkit.gas.runs._manifest import EarlierRun, RunAge
from toolkit.gas.runs._runner import run_study
from toolkit.gas.runs._scan import compared_rows, failing_calls, rows_digest, with_messages
from toolkit.gas.runs._store import RunStore

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from contextlib import ExitStack

    import pandas as pd
    import pyarrow.dataset as ds

    from toolkit.client._http import Ledger
    from toolkit.client._progress import ProgressHook
    from toolkit.gas.committed._steps import CommittedCall


# Names in a message: more do not fit a screen.
_MAX_NAMED = 10


class Study(StudyFields):
    """A gas study: which calls are observed on which nodes at which ledger versions.

    Parameters
    ----------
    calls : sequence or mapping
        Calls as `ViewFunction`, `SimulationRequest`, or mappings as in a study file; or a mapping of label to call.
    versions : version plan or FindSteps, default "0:-1/200"
        The ledger versions at which views are read.
    node : str, Node, Ledger or Archive, default "embedded"
        Where to read. An archive contains only committed transactions. A `toolkit.embedded.Ledger` exists in this
        process only: anyone can open and compare its runs and write reports about them, but continuing a run requires
        the ledger. A user name and password in a URL are never written to `nodes`, documents, digests, run folders or
        pickles.
    nodes : sequence of str, optional
        Several nodes to use instead of `node`.
    title : str, default "Gas study"
        The title of reports.
    thresholds : Threshold, str or int, optional
        How much more gas a call may use before a comparison fails: ``"2%"``, ``50`` gas units, or both in a list.
    waivers : sequence of Waiver or mapping, optional
        Calls whose regressions are excused, with a reason and an expiry date. Name a call by its label, or several by a
        pattern that matches their labels.
    requests_per_second : float, optional
        Maximum number of requests started per second on each named node; a `Node` has its own limit.
    use_api_key : bool, default False
        Send ``LEDGER_TOOLKIT_API_KEY`` to the hosts that the study names by URL. The key is always sent to public
        networks that are given by name, and a `Node` has its own credentials. A study file cannot set this option,
        because someone else may have written it.

    Raises
    ------
    StudyError
        If a value is not valid; the message says which one.

    Examples
    --------
    >>> from toolkit import Study, ViewFunction
    >>> study = Study(calls=[ViewFunction("0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"])])
    >>> study.nodes, study.versions.plan
    (('embedded',), '0:-1/200')
    """

    nodes: tuple[str, ...]
    calls: tuple[Call, ...]
    waivers: tuple[Waiver, ...] = ()
    _node: Node | None = PrivateAttr(default=None)
    _logins: dict[str, SecretStr] = PrivateAttr(default_factory=dict)
    _use_api_key: bool = PrivateAttr(default=False)

    def __init__(
        self,
        *,
        calls: Any = (),
        versions: Any = "0:-1/200",
        node: str | Node | Ledger | TransactionStore | None = None,
        nodes: Sequence[str] | None = None,
        title: str = "Gas study",
        thresholds: Any = None,
        waivers: Any = (),
        requests_per_second: float | None = None,
        use_api_key: bool = False,
        **more: Any,
    ) -> None:
        place = node.node if isinstance(node, TransactionStore) else node
        if place is not None and not isinstance(place, str | Node):
            place = placed("node", Node, place)
        names, logins = _node_names(place, nodes)
        fields = {"title": title, "nodes": names, "requests_per_second": requests_per_second, **more}
        fields["versions"] = placed("versions", VersionChoice.of, versions)
        fields["calls"] = read_calls(calls)
        if thresholds is not None:
            fields["thresholds"] = Threshold.of(thresholds)
        fields["waivers"] = _of_calls(read_waivers(waivers), fields["calls"])
        placed("study", lambda: BaseModel.__init__(self, **fields))
        self._node = place if isinstance(place, Node) else None
        self._logins, self._use_api_key = logins, use_api_key

    def __repr__(self) -> str:
        where, calls = listed(self.nodes, _MAX_NAMED), plural(len(self.calls), "call")
        return f"Study({visible(self.title)!r}, {calls}, versions {self.versions.words}, {visible(where)})"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        facts = [("nodes", ", ".join(self.nodes)), ("versions", self.versions.words), ("calls", len(self.calls))]
        return facts_html(self.title, facts)

    def __eq__(self, other: object) -> bool:
        """Return whether two studies make and judge the same observations, whatever their logins and `Node`."""
        if not isinstance(other, Study):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in Study.model_fields)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __getstate__(self) -> dict[Any, Any]:
        """Return the state to pickle, without the logins of the nodes."""
        bare = self.model_copy()
        bare._logins = {}  # noqa: SLF001 - of this class
        return super(Study, bare).__getstate__()

    @classmethod
    def load(
        cls,
        source: str | Path,
        *,
        node: str | Node | Ledger | None = None,
        nodes: Sequence[str] | None = None,
        use_api_key: bool = False,
    ) -> Study:
        """Load a study from a TOML file, or the study ``"demo"`` that the package includes.

        Parameters
        ----------
        source : str or Path
        node : str, Node or Ledger, optional
            Overrides the node in the file, for example with a URL that contains a user name and password, which should
            not be in a file.
        nodes : sequence of str, optional
            Several nodes; overrides the nodes in the file.
        use_api_key : bool, default False
            Send ``LEDGER_TOOLKIT_API_KEY`` to the hosts that the study names by URL.

        Returns
        -------
        Study

        Raises
        ------
        StudyError
            If the file cannot be read, is not TOML, or contains a value that is not valid; the message says which one.

        Examples
        --------
        >>> from toolkit import Study
        >>> study = Study.load("demo")
        >>> study.nodes, len(study.calls)
        (('embedded',), 10)
        """
        document = files.read_toml(source, "study")
        try:
            instead = {name: value for name, value in (("node", node), ("nodes", nodes)) if value is not None}
            if instead:
                document = {name: value for name, value in document.items() if name not in {"node", "nodes"}} | instead
            return cls.from_document(document, use_api_key=use_api_key)
        except InputError as error:
            raise StudyError(f"study {source}: {error.args[0]}", *error.args[1:]) from None
        except RecursionError:
            raise StudyError(f"study {source}: nested too deeply to be a study") from None

    @classmethod
    def from_document(cls, document: Mapping[str, Any], *, use_api_key: bool = False) -> Study:
        """Create a study from the content of a study file.

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
            If a key is unknown or a value is not valid; the message says which one.
        """
        files.checked_keys(document)
        given = {name: value for name, value in document.items() if name not in {"call", "waiver"}}
        calls, waivers = document.get("call", []), document.get("waiver", ())
        return cls(**given, calls=calls, waivers=waivers, use_api_key=use_api_key)

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """Return the JSON Schema of study files, which editors use for validation and completion."""
        return files.file_schema()

    def document(self) -> dict[str, Any]:
        """Return the study as the content of a study file, with defaults filled in and grids expanded into calls."""
        given = {
            "title": self.title,
            "nodes": list(self.nodes),
            "versions": self.versions.model_dump(mode="json", exclude_none=True),
            "call": [call.document() for call in self.calls],
            "requests_per_second": self.requests_per_second,
            "thresholds": self.thresholds and self.thresholds.model_dump(mode="json", exclude_none=True),
            "waiver": [waiver.model_dump(mode="json", exclude_none=True) for waiver in self.waivers],
        }
        return {name: value for name, value in given.items() if value is not None and value != []}

    def to_toml(self) -> str:
        """Return the study as the text of a study file for `load`.

        The title, node and versions are always included; other keys with default values are omitted. TOML has no null,
        so None in an argument (an empty Option) becomes ``{ vec = [] }``.

        Returns
        -------
        str

        Examples
        --------
        >>> from toolkit import Study
        >>> print(Study(calls=["0x1::coin::supply"], title="Supply").to_toml())
        title = "Supply"
        node = "embedded"
        <BLANKLINE>
        [versions]
        plan = "0:-1/200"
        <BLANKLINE>
        [[call]]
        view = "0x1::coin::supply"
        <BLANKLINE>
        """
        calls = [call.model_dump(mode="json", exclude_defaults=True, exclude_none=True) for call in self.calls]
        versions = self.versions.model_dump(mode="json", exclude_defaults=True)
        shown: dict[str, Any] = {"call": calls, "versions": versions}
        if len(self.nodes) == 1:
            shown |= {"node": self.nodes[0], "nodes": None}
        return files.written_study(self.document() | shown)

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the study to a file that `load` reads.

        Parameters
        ----------
        path : str or Path
            File name ending in ``.toml``, in an existing folder.
        overwrite : bool, default False
            Replace an existing file.

        Returns
        -------
        Path

        Raises
        ------
        StudyError
            If the path does not end in ``.toml``, the file exists already, or it cannot be written.
        """
        if Path(path).suffix.lower() != ".toml":
            raise StudyError(f"study: expected a path that ends in .toml, such as study.toml, got {shorten(str(path))}")
        return files.write_study(self.to_toml(), path, overwrite=overwrite)

    def connections(self) -> list[dict[str, Any]]:
        """Return the `connect` arguments of each named node; they contain secrets that are not stored anywhere.

        The API key from the environment is included only for hosts that may receive it.
        """
        found = []
        for name in self.nodes:
            login = f"{self._logins[name].get_secret_value()}@" if name in self._logins else ""
            key = None if self._use_api_key or is_public_network(name) else ""
            target = name.replace("//", f"//{login}", 1)
            found.append({"target": target, "api_key": key, "requests_per_second": self.requests_per_second})
        return found

    @property
    def digest(self) -> str:
        """Digest of what the study observes, as 32 hex digits; excludes labels, gate rules and request rate."""
        return study_digest(self.document())

    def on_node(self, node: Node | None) -> Study:
        """Return the study, to be read over an open connection to its only node; the same study for None."""
        study = self.model_copy()
        study._node = node or self._node  # noqa: SLF001 - of this class
        return study

    def labelled_as(self, document: Mapping[str, Any]) -> Study:
        """Return the study with the labels that an earlier run stored, because its rows contain them."""
        labels = [{"label": call["label"]} for call in document["call"]]
        calls = tuple(call.model_copy(update=label) for call, label in zip(self.calls, labels, strict=True))
        return self.model_copy(update={"calls": calls})

    def connect(self, stack: ExitStack) -> list[Node]:
        """Return the nodes of the study; closing the stack closes the connections to named nodes."""
        if self._node is not None:
            return [self._node]
        if OWN_LEDGER in self.nodes:
            raise StudyError(
                f"the study reads an {OWN_LEDGER}, which exists only in the process that created it; make the study "
                "again with node=ledger, a toolkit.embedded.Ledger"
            )
        return [stack.enter_context(Node(**settings)) for settings in self.connections()]

    def plan(self) -> Plan:
        """Return what a run would send, how long it would take and what it could not read, without running the study.

        To make the plan, only each node's head, oldest version and called modules are requested, and block times if
        versions are given as dates.

        Returns
        -------
        Plan

        Raises
        ------
        InputError
            If the versions cannot be read on a node.
        StudyError
            If calls are not valid at any of their versions, because a function does not exist or takes other arguments.
            The message lists them by label.
        NodeError, NodeUnreachable
            If a node does not return the state of its ledger.
        """
        return estimate(self)

    def run(
        self,
        out: str | Path | None = None,
        *,
        executor: Executor | str | None = None,
        max_tasks: int = 8,
        fresh: bool = False,
        progress: bool | ProgressHook = True,
    ) -> Run:
        """Observe every call, and store the observations as a run.

        A run can be interrupted at any time, by Ctrl-C, a kill signal or a full disk; repeat the call to continue it.
        If the run is complete, repeating the call reads only what is new: simulations at the current head, and, if the
        plan ends at the head, the versions above the last one read. A step search covers the new versions with a
        separate grid. `Run.earlier` describes the previous run. Calls with fixed versions are not read again.

        If the gas of a view differs between two neighbouring versions of a plan, the run bisects down to the
        transaction that changed it, with at most 400 further requests for each view (`Plan.further_requests`). The
        results appear in `Run.steps`; `Run.observations` contains only the versions of the plan.

        Parameters
        ----------
        out : str or Path, optional
            Folder of the run; created if it does not exist. If it contains a run of the same study, that run is
            continued. By default, a temporary folder that is removed together with the returned run.
        executor : concurrent.futures.Executor or str, optional
            Executor that reads views and simulations at versions, in ranges of 100 to 1,000 calls: any executor, a
            ``dask.distributed.Client`` or its ``get_executor()``, ``"threads:8"``, ``"processes:4"``, or
            ``"tcp://host:8786"`` (a Dask scheduler; requires the extra ``dask``). By default, they are read in this
            process. In a script, start a pool of processes under ``if __name__ == "__main__":``, as Python requires.
            Simulations at the head, those on an embedded node and committed transactions are always read in this
            process. Workers return rows, so they need this package and a connection to the node, but no disk or shared
            folder.
        max_tasks : int, default 8
            Maximum number of ranges in flight on the executor, ideally the number of its workers: each range gets a
            share of the node's rate and requests in flight. A pool given by name has at most one range per worker.
        fresh : bool, default False
            Start over: remove an existing run from the folder, of this or another study. Other files stay.
        progress : bool or callable, default True
            Show a progress bar, or call a function with the current activity (``"observing"``, ``"locating steps"`` if
            a version plan has steps between its versions, then ``"finding causes"``), the number of calls done, and the
            number expected so far. If the function raises, the run stops, and the observations read since the last
            check of the node's ledger are discarded.

        Returns
        -------
        Run

        Raises
        ------
        InputError
            If an argument or the versions are not valid.
        StudyError
            If calls are not valid at any of their versions, as in `plan`; if the folder contains other files, or a run
            of another study, chain or history; if the node has pruned transactions that come after those in the run,
            leaving a gap; if another run is writing to the folder; or if no scheduler responds.
        RunStopped
            If the folder cannot be written, the executor fails, a node asks for a long wait, or a node starts serving
            another ledger. Another ledger is detected by the chain id of each response, and by reading a transaction
            again before rows are written, so the folder never contains rows of that ledger.
        NodeUnreachable
            If a node stops responding. Results up to the last check of its ledger are stored.
        KeyboardInterrupt
            On Ctrl-C; the message says what is stored and where.

        Notes
        -----
        The folder must be on a file system, since object stores support neither locks nor renames. On a cluster, it is
        on the machine that makes the call. DuckDB, Polars and pandas can read a copy of its Parquet parts from an
        object store.

        Examples
        --------
        >>> from toolkit import Study, ViewFunction
        >>> supply = ViewFunction("0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"])
        >>> run = Study(calls=[supply], versions="0:-1/5").run(progress=False)
        >>> run.complete, len(run.observations)
        (True, 5)
        """
        path, earlier = run_study(self, out, progress=progress, executor=executor, max_tasks=max_tasks, fresh=fresh)
        run = Run(path, temporary=out is None)
        run.earlier = earlier
        return run


def _node_names(node: str | Node | None, nodes: Any) -> tuple[tuple[str, ...], dict[str, SecretStr]]:
    """Return the names of a study's nodes, checked and without logins, and the logins by name."""
    if node is not None and nodes is not None:
        raise StudyError("give either node or nodes, not both")
    if isinstance(node, Node):
        return (node.name,), {}
    named: Any = [node or "embedded"] if nodes is None else nodes
    if not isinstance(named, list | tuple) or not named:
        # The value is not shown: it may contain a password.
        got = "an empty list" if isinstance(named, list | tuple) else f"a {type(named).__name__}"
        raise StudyError(f"`nodes`: expected a non-empty list of names or URLs, got {got}")
    names: list[str] = []
    logins: dict[str, SecretStr] = {}
    for name in named:
        if name not in ("embedded", OWN_LEDGER):  # a set would refuse a list before its own error
            # Only a text is redacted, so a collection, which may contain a password, is not shown.
            shown = "" if isinstance(name, Sized) else f" {name!r}"
            placed(f"node {redacted_target(name)!r}" if isinstance(name, str) else f"node{shown}", base_url, name)
        login = login_of(name.strip())
        names.append(name if login is None else redacted_url(name.strip()))
        if login is not None:
            logins[names[-1]] = SecretStr(login)
    if len(set(names)) < len(names):
        raise StudyError(f"`nodes`: {', '.join(names)}: name each node only once")
    return tuple(names), logins


def _of_calls(waivers: tuple[Waiver, ...], calls: Sequence[Call]) -> tuple[Waiver, ...]:
    """Raise StudyError for a waiver of a call or source that is not in the study, since it would have no effect."""
    labels, sources = [call.name for call in calls], {call.source for call in calls}
    for number, waiver in enumerate(waivers, start=1):
        named = waiver.call is None or matching(waiver.call, labels) or waiver.call in other_names(calls)
        if not named or waiver.source not in {None, *sources}:
            place, known = named_place("waiver", number, waiver.name), ", ".join(labels[:_MAX_NAMED])
            raise StudyError(f"{place}: it matches no call of the study; the labels are {known}")
    return waivers


def _stepped(found: pd.DataFrame, steps: pd.DataFrame, at: int) -> pd.DataFrame:
    """Return the last readings before a version, moved past the steps that were located between the two."""
    near = steps[steps["source"].isin(READ_AT_VERSIONS) & (steps["version_before"].astype("int64") < at)]
    rows = {(row["node"], row["fingerprint"]): row for row in plain_rows(found, OBSERVATIONS.names)}
    for step in sorted(plain_rows(near), key=lambda row: row["version_after"]):
        row = rows.get((step["node"], step["fingerprint"]))
        if row is None or step["version_before"] < row["ledger_version"]:
            continue
        row |= dict.fromkeys(("value_digest", "vm_status", "error_message"))
        if step["version_after"] > at:
            row |= {"gas_used": None, "success": None, "error_code": NOT_READ}
        else:
            gas = step["gas_after"]
            row |= {"ledger_version": step["version_after"], "gas_used": None if gas is None else int(gas)}
            row |= {"success": step["success_after"], "error_code": step["error_after"]}
    return frame_of_rows(OBSERVATIONS, [*rows.values()])


# Characters of a note: messages of a node are up to 2,000.
_MAX_NOTE = 1_000


class Run:
    """The observations of a study.

    Parameters
    ----------
    path : str or Path
        Folder of the run.
    temporary : bool, default False
        Remove the folder when the run is no longer used.

    Attributes
    ----------
    path : Path
    manifest : dict
        Content of ``run.json``: the study, the resolved versions, counts and provenance.
    record : Manifest
        The manifest as a record.
    earlier : EarlierRun or None
        The complete run that `Study.run` found in the folder, if any: its ``age`` and its number of ``rows``, and the
        ``heads`` of the nodes when the study was run again.

    Raises
    ------
    StudyError
        If the folder is not a run folder, or its ``run.json`` is damaged.

    Examples
    --------
    >>> from toolkit import Study, ViewFunction
    >>> supply = ViewFunction("0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"])
    >>> run = Study(calls=[supply], versions="100:104").run(progress=False)
    >>> run.observations["ledger_version"].tolist()
    [100, 101, 102, 103, 104]
    >>> len(run.at(102))
    1
    """

    def __init__(self, path: str | Path, *, temporary: bool = False) -> None:
        self.path = Path(path)
        if temporary:
            weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
        self._store = RunStore(self.path)
        self.record = self._store.manifest()
        self.manifest: dict[str, Any] = json.loads(self.record.text())
        self.earlier: EarlierRun | None = None

    @classmethod
    def load(cls, path: str | Path) -> Run:
        """Load the run in a folder; `open` is an alias of `load`.

        Parameters
        ----------
        path : str or Path

        Returns
        -------
        Run

        Raises
        ------
        StudyError
            If the folder is not a run folder, or its ``run.json`` is damaged.
        """
        return cls(path)

    open = load

    def __repr__(self) -> str:
        state = "complete" if self.complete else "not complete"
        return visible(f"Run({str(self.path)!r}, {self.study.title!r}, {state})", 300)

    def _repr_html_(self) -> str:
        counts: dict[str, int] = {}
        if self.complete:
            counts = {"observations": len(self.observations), "steps": len(self.steps)}
            counts |= failures_of(self.observations, self.steps).counts
        nodes = [f"{one.node}: chain {one.chain_id}, {one.first:,} to {one.last:,}" for one in self.record.nodes]
        facts = [
            ("folder", self.path),
            ("state", "complete" if self.complete else "not complete: run the study into the folder to continue"),
            *(("node", text) for text in nodes),
            ("calls", len(self.study.calls)),
            *((name, f"{count:,}") for name, count in counts.items()),
        ]
        return facts_html(f"run of {self.study.title}", facts)

    @property
    def complete(self) -> bool:
        """Whether the run has every planned observation."""
        return self.record.complete

    @property
    def age(self) -> RunAge | None:
        """When the run was read (``read_at``), how far (``reached``), and which calls end at the head (``labels``).

        None if the run is not complete.
        """
        return RunAge.of(self.study, self.record) if self.complete else None

    @property
    def digest(self) -> str:
        """Digest of the rows on disk, as 32 hex digits.

        All runs of a study on the same ledger have the same digest, whether or not they were resumed or read on a
        cluster. The digest covers all columns except those that depend on when and how the rows were read: ``node``
        (replaced by the node's position in the study), ``head_version``, ``error_message``, ``observed_at`` and
        ``toolkit_version``. It is computed from the rows each time; ``manifest["rows_digest"]`` is the digest when the
        run was completed.

        Raises
        ------
        StudyError
            If a part is damaged.
        """
        return rows_digest(self._store)

    @cached_property
    def study(self) -> Study:
        """The study that was run."""
        return Study.from_document(self.record.study)

    @cached_property
    def observations(self) -> pd.DataFrame:
        """The observation frame: one row per call, ledger version and source; sorted by node, call and version.

        Raises
        ------
        StudyError
            If a part is damaged, or parts of a complete run are missing.
        """
        frame = self._store.observations()
        counts = self.record.counts if self.complete else None
        if counts is not None and len(frame) != (expected := counts.observations):
            raise StudyError(
                f"{self.path} has {len(frame):,} observations, expected {expected:,}: parts were removed or added "
                "since the run was opened. If the study was run again, open it again with toolkit.Run.open; to read "
                "what is missing, run the same study into this folder; the parts can be read with pandas.read_parquet"
            )
        frame.attrs["source"] = str(self.path.resolve())
        return frame

    @cached_property
    def steps(self) -> pd.DataFrame:
        """Every step in gas, success or error: the versions before and after, the size, and the cause.

        If the run is incomplete, or its ``steps.parquet`` is missing, every cause is ``unknown``. Finding causes
        requires the node: run the same study into the folder again.

        Raises
        ------
        StudyError
            If ``steps.parquet`` or a part is damaged.
        """
        found = self._store.steps() if self.complete else None
        if found is None:
            steps = with_messages(self._store, steps_of(compared_rows(self._store)))
            text = "steps.parquet is missing; run the same study into the folder to find the causes again"
            lost = Explanation(Cause.UNKNOWN, text)
            found = steps_frame([step_row(step, lost if self.complete else None) for step in steps])
        if any(plan.model for plan in self.record.nodes):
            found.attrs.setdefault("toolkit", {}).setdefault("gas_before", {})["model"] = "embedded node"  # for figures
        return found

    @cached_property
    def timeline(self) -> pd.DataFrame:
        """Changes to the gas schedule, configuration and code over the versions of the committed transactions.

        The first column is ``node``; the others are as in `toolkit.timeline`. For a study without committed
        transactions, the frame is empty. ``attrs`` contains ``requests`` (number of reads) and ``unread`` (descriptions
        of what could not be read).
        """
        found = {plan.node: plan.timeline for plan in self.record.nodes if plan.timeline is not None}
        rows = [{"node": node} | change_row(change) for node, one in found.items() for change in one.changes]
        frame = frame_of_rows(RUN_TIMELINE, rows)
        unread = [(node, unread_text(what)) for node, one in found.items() for what in one.unread]
        frame.attrs["unread"] = [f"{node}: {text}" if len(found) > 1 else text for node, text in unread]
        frame.attrs["requests"] = sum(one.requests for one in found.values())
        return frame

    def connect(self, name: str) -> Node:
        """Connect to a node of the run by its name in the column ``node``; the caller must close it.

        Raises
        ------
        InputError
            If the study was given the node as an object: a name is then not enough to connect.
        """
        if name == OWN_LEDGER:
            raise InputError(
                f"the run was read from an {name}, which exists only in the process that created it; pass "
                "node=toolkit.connect(ledger)"
            )
        known = {redacted_target(one["target"]): one for one in self.study.connections()}
        settings = known.get(name) or (next(iter(known.values())) if len(known) == 1 else {"target": name})
        return Node(**settings)

    @cached_property
    def coverage(self) -> Coverage:
        """The calls that were judged for steps, and those that were only observed."""
        why = {(call.node, call.label): call.not_judged for call in self._committed}
        return coverage_of(self._store.tables(COVERAGE_COLUMNS), why)

    @cached_property
    def _committed(self) -> tuple[CommittedCall, ...]:
        return self.record.committed_series if self.complete else ()

    @cached_property
    def levels(self) -> pd.DataFrame:
        """Levels of committed gas: one row per call, stratum and stretch between steps."""
        return frame_of_rows(LEVELS, [row for call in self._committed for row in call.rows(call.levels)])

    @cached_property
    def growth(self) -> pd.DataFrame:
        """Gradual growth of committed gas, as slopes per 1,000 versions; a slope is not a step.

        One row per call, stratum, part of the gas, and stretch between steps that has a slope.
        """
        return frame_of_rows(GROWTH, [row for call in self._committed for row in call.rows(call.growth)])

    @cached_property
    def mix(self) -> pd.DataFrame:
        """Changes in the mix of committed transactions, one row per stratum; a change in mix is not a step."""
        return frame_of_rows(MIX, [row for call in self._committed for row in call.rows(call.mix)])

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """One line for each call that failed at every version, which is most likely a mistake in the study."""
        several, found = len(self.record.nodes) > 1, []
        for (node, label), codes in failing_calls(self._store).items():
            call = f"{label!r}{f' on {node}' if several else ''}"
            counts = ", ".join(f"{count:,} {code}" for code, count in codes.items())
            found.append(f"every read of {call} failed ({counts}); see error_message in the observations")
        return tuple(visible(note, _MAX_NOTE) for note in found)

    def explain(self) -> str:
        """Describe each step (version, size and cause), then other changes and the calls that were not judged.

        Views are judged between neighbouring observations. Committed transactions are judged within each stratum, at
        each change to the gas schedule, the code or the configuration. The steps are followed by growth, shifts in the
        mix of transactions, and what could not be compared. The last lines name the calls that were not judged, such
        as simulations, with the reason.

        Returns
        -------
        str

        Raises
        ------
        StudyError
            If ``steps.parquet`` or a part is damaged.
        """
        return "\n".join(run_lines(self.steps, self.coverage, self._committed))

    def scan(self) -> ds.Dataset:
        """Return the observations on disk as a lazy Arrow dataset, which DuckDB, Polars and pyarrow can query.

        Nothing is read yet, and a query reads only the columns and rows that it needs. Rows are in the order of the
        files. If the run is continued, call `scan` again to see the new files.

        Returns
        -------
        pyarrow.dataset.Dataset
            Has the columns of `observations`.

        Examples
        --------
        >>> from toolkit import Study
        >>> run = Study(calls=["0x1::chain_id::get"], versions="100:104").run(progress=False)
        >>> run.scan().to_table(columns=["ledger_version", "gas_used"]).num_rows
        5
        """
        return self._store.dataset()

    @property
    def head(self) -> int:
        """The highest head that the nodes of the run reported."""
        heads = self.observations["head_version"].dropna()
        planned = max(plan.head for plan in self.record.nodes)
        return max(planned, int(heads.max())) if len(heads) else planned

    @property
    def last_version(self) -> int:
        """The last version of views and committed transactions; simulations at the head say nothing of these there."""
        ends: list[int] = [end for plan in self.record.nodes for end in (plan.last, *(plan.committed_span or ()))]
        return max(ends)

    def at(self, version: int) -> pd.DataFrame:
        """Return the last observation of each call at or before a ledger version, one row per call and node.

        Parameters
        ----------
        version : int
            If this version was not read, the result contains the preceding observations, whose versions are in
            ``ledger_version``. Between two readings of a view that differ, it is the outcome that the located step
            implies; if the step was not located to one side of the version, ``error_code`` is ``not_read``. If the
            version is above `last_version`, the result contains the last observations of the run.

        Returns
        -------
        DataFrame
            The observation frame, without calls that have no observation by then. A simulation is assigned the head
            version at which it was made; a committed call is represented by its last transaction. `compare` recognizes
            the frame by its source, such as ``runs/x@1000`` in ``attrs["source"]``, and explains differences between
            two versions by the steps of the run; ``attrs["ledger_version"]`` is `version`, or `last_version` if lower.

        Raises
        ------
        InputError
            If `version` is not a ledger version.
        StudyError
            If a part is damaged, or parts of a complete run are missing.
        """
        try:
            at = as_version(version)
        except InputError:
            raise InputError(
                f"expected a ledger version such as 1000, got {version!r:.80}; the last one of the run is "
                f"{self.last_version:,} (run.last_version), and node.version_at(time) finds others"
            ) from None
        found = _stepped(last_observations(self.observations, version=at), self.steps, at)
        found.attrs["source"] = f"{self.path.resolve()}@{at}" if at <= self.last_version else str(self.path.resolve())
        found.attrs["ledger_version"] = min(at, self.last_version)
        return found
