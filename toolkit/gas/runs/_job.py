"""Records that describe a run in progress: what it reads, from which node, and into which folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor

    from toolkit.client._node import Node
    from toolkit.client._progress import ProgressHook
    from toolkit.gas._study import Study
    from toolkit.gas.runs._collector import Collector
    from toolkit.gas.runs._manifest import Manifest, NodeRun
    from toolkit.gas.runs._store import Journal, RunStore


@dataclass(frozen=True, slots=True)
class Job:
    """A study that is read into a folder.

    Attributes
    ----------
    study : Study
    store : RunStore
    nodes : tuple of Node
        One per node of the study.
    executor : Executor or None
        If None, views are read in this process.
    max_tasks : int
        Maximum number of ranges in flight on the executor.
    progress : bool or callable
    """

    study: Study
    store: RunStore
    nodes: tuple[Node, ...] = ()
    executor: Executor | None = None
    max_tasks: int = 1
    progress: bool | ProgressHook = False

    def plans_of(self, manifest: Manifest) -> Iterator[tuple[Node, NodeRun]]:
        """Return each node with its plan."""
        return zip(self.nodes, manifest.nodes, strict=True)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a job reads on one node.

    Attributes
    ----------
    job : Job
        Its store has the observations of earlier attempts.
    node : Node
    plan : NodeRun
    collector : Collector
        Stores the observations.
    journal : Journal
        Records which transactions have been read, after the rows of some pages were written.
    """

    job: Job
    node: Node
    plan: NodeRun
    collector: Collector
    journal: Journal
