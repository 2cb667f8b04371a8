"""The result of a comparison: which calls were added, removed or changed, and by how much."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from toolkit.gas._findings import Kind
from toolkit.gas._gate import Gate, judge, rules_of
from toolkit.gas._observations import Source
from toolkit.gas._sentences import age_text, comparison_html, comparison_text, too_old_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date

    import pandas as pd

    from toolkit.gas._rules import Rules
    from toolkit.gas._study import Run, Study


# Age from which on a run that reads up to the head is old: a nightly job that fails is seen the next day.
MAX_AGE = timedelta(days=1)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """The calls on two sides and how they differ.

    Attributes
    ----------
    calls : DataFrame
        One row per call and source, sorted by label: ``kind``, gas on each side in gas units, the change in gas units
        and in percent of the baseline, success, error codes, and the split of gas if it is known. For two runs, a
        committed call has one row for all its transactions and one per kind of transaction (``stratum``), with 95 %
        bounds on the change. The after mean is weighted by the mix of kinds on the before side, unless usage changed
        with the code. ``cause`` and ``explanation`` come from the steps between the two versions, if a run has them.
    warnings : tuple of str
        Differences that make the two sides hard to compare, such as different node builds.
    names : tuple of str
        Names of the two sides.
    study : Study or None
        The study of the after side, if the side is a run; `gate` uses its thresholds and waivers by default.
    left_out : tuple of (str, str)
        Label and node of each simulation that is excluded because it was made after a requested version.
    unlike : mapping of str to str
        Why the calls on a node cannot be judged, by node.
    sources : frozenset of str
        The sources compared.
    after : Run or None
        The run of the after side, if the side is a run at its end rather than at an earlier version.
    other_names : mapping of str to str
        Labels of calls by alternative names, such as their functions.

    Examples
    --------
    >>> import toolkit
    >>> run = toolkit.Study(calls={"names": "0xcafe::registry::size"}, versions=[3501, 3502]).run(progress=False)
    >>> comparison = toolkit.compare(run.at(3501), run.at(3502))
    >>> print(comparison.calls[["label", "gas_before", "gas_after"]].to_string(index=False))
    label  gas_before  gas_after
    names           3         21
    """

    calls: pd.DataFrame
    warnings: tuple[str, ...] = ()
    names: tuple[str, str] = ("before", "after")
    study: Study | None = None
    left_out: tuple[tuple[str, str], ...] = ()
    unlike: Mapping[str, str] = field(default_factory=dict)
    sources: frozenset[str] = frozenset(Source)
    after: Run | None = None
    other_names: Mapping[str, str] = field(default_factory=dict)

    def _of(self, kind: Kind) -> pd.DataFrame:
        return self.calls[self.calls["kind"] == kind].reset_index(drop=True)

    @property
    def added(self) -> pd.DataFrame:
        """Calls that are only on the after side."""
        return self._of(Kind.ADDED)

    @property
    def removed(self) -> pd.DataFrame:
        """Calls that are only on the before side."""
        return self._of(Kind.REMOVED)

    @property
    def changed(self) -> pd.DataFrame:
        """Calls whose gas, success or error differs."""
        return self._of(Kind.CHANGED)

    @property
    def unchanged(self) -> pd.DataFrame:
        """Calls with the same gas, success and error on both sides."""
        return self._of(Kind.UNCHANGED)

    @property
    def unreachable(self) -> pd.DataFrame:
        """Calls that cannot be compared: one side has no answer, or too few committed transactions of a kind."""
        return self._of(Kind.UNREACHABLE)

    @property
    def counts(self) -> dict[str, int]:
        """Number of calls of each kind."""
        return {kind.value: int((self.calls["kind"] == kind).sum()) for kind in Kind}

    def gate(
        self,
        threshold: Any = None,
        *,
        study: Study | None = None,
        waivers: Sequence[Any] | None = None,
        today: date | None = None,
    ) -> Gate:
        """Judge which calls regressed.

        A call regresses if its gas rises above a limit, if it succeeded before and fails now, or if it disappeared. The
        gate also does not pass if no call was judged, or if a call without a waiver cannot be judged, because

        - the sides have different chains, nodes or gas models, or a run is not complete;
        - a side has no answer or no gas for the call;
        - the study names the call, but the call failed before, is on the after side only, or is on neither side;
        - a side has too few committed transactions of a kind;
        - its committed transactions do not come from two judged runs (unless `study` has thresholds for the call);
        - its simulations are excluded, since simulations run only at the head.

        To judge a single source, name it: ``compare(a, b, source="view@version")``.

        Local node names (``embedded`` and loopback URLs) do not identify a ledger: after a restart, a node is still
        judged if its chain id and gas model are the same. If it is known to serve a different ledger, `warnings` says
        so.

        Committed calls are judged by kind of transaction. A change of one gas unit that rounding can cause is noted and
        does not fail the gate. A rise above a limit that could be due to chance cannot be judged. A kind that occurs on
        one side only is noted, since the mix may change; it cannot be judged if the other side also has kinds that only
        it contains.

        Parameters
        ----------
        threshold : Threshold, str, int or list, optional
            Limit for calls that do not set their own: ``"2%"``, ``50`` gas units, or a list of both, in which case each
            limit applies. Defaults to the threshold of `study`.
        study : Study, optional
            Supplies the thresholds, and the waivers if `waivers` is None. `Comparison.study` is the study of the after
            run.
        waivers : sequence of Waiver or mapping, optional
            Calls whose regressions are excused, and sources that need not be judged. Text that is not the label of a
            call is a pattern.
        today : date, optional
            Date for checking whether waivers have expired; by default, today's date in UTC.

        Returns
        -------
        Gate

        Raises
        ------
        InputError
            If no call is on both sides, which leaves nothing to judge, or the threshold is not valid.
        StudyError
            If a waiver is not valid.
        """
        rules = rules_of(threshold, study, waivers)
        return self.judged_by(rules if study else replace(rules, named=rules_of(study=self.study).named), today=today)

    def judged_by(self, rules: Rules, *, today: date | None = None, max_age: timedelta | None = None) -> Gate:
        """Return the verdict under `rules`; see `gate`.

        Parameters
        ----------
        rules : Rules
        today : date, optional
        max_age : timedelta, optional
            Maximum age of observations up to the head of the after run. Unlimited by default; an age of a day or more
            is noted.
        """
        age = None if self.after is None else self.after.age
        limit = MAX_AGE if max_age is None else max_age
        old = age is not None and bool(age.labels) and age.since() >= limit
        rules = rules.renamed(self.other_names)
        verdict = judge(
            self.calls,
            replace(rules, named={label: one for label, one in rules.named.items() if one in self.sources}),
            left_out=self.left_out,
            unlike=self.unlike,
            too_old=dict.fromkeys(age.labels, too_old_text(limit)) if age and old and max_age is not None else {},
            today=today,
        )
        if age is not None and (old or max_age is not None):
            note = age_text(age)
            verdict = replace(verdict, notes=(note, *verdict.notes))
        return verdict

    def __repr__(self) -> str:
        return comparison_text(self)

    def _repr_html_(self) -> str:
        return comparison_html(self)
