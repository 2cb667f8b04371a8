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
    """The calls of two sides and their differences.

    Attributes
    ----------
    calls : DataFrame
        One row per call and source, by label: ``kind``, gas on each side in gas units, the change in gas units and in
        percent of the baseline, success, error codes, and the split of gas if it is known. Committed calls of two runs
        have a row for all transactions and one per kind of transaction (``stratum``), with 95 % bounds of the change.
        The mean of the after side is weighted by the shares of the before side, unless usage changed with the code.
        ``cause`` and ``explanation`` are those of the steps between the two versions, if a run has them.
    warnings : tuple of str
        Differences that make the two sides hard to compare, such as different node builds.
    names : tuple of str
        Names of the two sides.
    study : Study or None
        The study of the after side, if that is a run; `gate` uses its thresholds and waivers by default.
    left_out : tuple of (str, str)
        Label and node of simulations that are left out because they were made after a requested version.
    unlike : mapping of str to str
        Why the calls of a node cannot be judged, by node.
    sources : frozenset of str
        The sources that are compared.
    after : Run or None
        The run of the after side, if that is a run at its end.
    other_names : mapping of str to str
        Labels of calls by their other names, such as their functions.

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
        """Calls that cannot be compared: no answer on a side, or too few committed transactions of a kind."""
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
        gate also does not pass if it judged no call, or if a call that is not waived cannot be judged, because

        - the sides are of different chains, nodes or gas models, or a run is not complete;
        - a side has no answer or no gas for the call;
        - the study names the call, and it failed before, or is on the after side only, or on neither;
        - a side has too few committed transactions of a kind;
        - committed transactions are not from two judged runs, unless `study` has thresholds for the call;
        - simulations are left out, since they are made at the head only.

        To judge one source alone, name it: ``compare(a, b, source="view@version")``.

        Local names, ``embedded`` and loopback URLs, do not identify a ledger: one that was started again is judged if
        its chain id and gas model are the same. If it is known to be a different ledger, `warnings` says so.

        Committed calls are judged by kind of transaction. A change of one gas unit that rounding can cause is noted and
        does not fail the gate; a rise above a limit that could be chance cannot be judged. A kind that is on one side
        only is noted, since the mix may change; it cannot be judged if the other side has kinds of its own.

        Parameters
        ----------
        threshold : Threshold, str, int or list, optional
            Limit for calls without one of their own: ``"2%"``, ``50`` gas units, or both in a list, each of which
            applies. By default that of `study`.
        study : Study, optional
            Source of thresholds, and of waivers if `waivers` is None. `Comparison.study` is that of the after run.
        waivers : sequence of Waiver or mapping, optional
            Calls that are excused, and sources that need not be judged; text that is not the label of a call is a
            pattern.
        today : date, optional
            Day by which waivers expire; today's date in UTC by default.

        Returns
        -------
        Gate

        Raises
        ------
        InputError
            If no call is on both sides, so that there is nothing to judge, or the threshold is not valid.
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
            Maximum age of observations up to the head of the after run. By default there is none, and an age of a day
            or more is noted.
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
