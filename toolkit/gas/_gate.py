"""The gate of a comparison: the rules that a study or a caller gives, and their verdict with its text."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from toolkit.gas._file_model import placed
from toolkit.gas._observations import Source
from toolkit.gas._rules import Allowed, Rules, Threshold, Verdict, Waiver, read_waivers
from toolkit.gas._sentences import gate_lines, label_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from toolkit.gas._study import Study


class Gate(Verdict):
    """The verdict on a comparison; ``print`` writes it as `ledger-toolkit compare` does.

    Attributes
    ----------
    rules : Rules
        The rules that were applied.
    judged : int
        Number of calls that were judged. The gate does not pass if it is 0.
    regressions : tuple of Regression
        Calls that regressed, or disappeared, and are neither allowed nor waived.
    not_judged : tuple of NotJudged
        Calls that cannot be judged and are not waived. The gate does not pass with any of them.
    waived, allowed : tuple
        Calls that a waiver excuses, and regressions whose causes are allowed.
    notes : tuple of str
        The age of the run, limits that do not apply, and rules without effect.

    Examples
    --------
    >>> import toolkit
    >>> run = toolkit.Study(calls={"names": "0xcafe::registry::size"}, versions=[3501, 3502]).run(progress=False)
    >>> gate = toolkit.compare(run.at(3501), run.at(3502)).gate("2%")
    >>> gate.passed, gate.verdict, [one.label for one in gate.regressions]
    (False, 'failed', ['names'])
    """

    @classmethod
    def of(cls, verdict: Verdict) -> Self:
        """Return a verdict as a gate."""
        return cls(**{one.name: getattr(verdict, one.name) for one in fields(verdict)})

    def __repr__(self) -> str:
        return "\n".join(gate_lines(self, label_text))


def rules_of(
    threshold: Any = None, study: Study | None = None, waivers: Sequence[Any] | None = None, allow: Any = None
) -> Rules:
    """Return the rules of a study; what is given replaces that of the study, `allow` key by key.

    Raises
    ------
    InputError
        If `threshold` is not valid.
    StudyError
        If a waiver or `allow` is not valid.
    """
    own = {call.name: call.thresholds for call in study.calls if call.thresholds} if study else {}
    general = study.thresholds if threshold is None and study else threshold
    chosen = (study.waivers if study else ()) if waivers is None else waivers
    read = chosen if all(isinstance(one, Waiver) for one in chosen) else read_waivers(chosen)
    given = allow.model_dump(exclude_unset=True) if isinstance(allow, Allowed) else dict(allow or {})
    base = study.allow.model_dump(exclude_unset=True) if study and study.allow else {}
    allowed = placed("allow", Allowed.model_validate, base | given, of=Allowed)
    named = {call.name: Source(call.source) for call in study.calls} if study else {}
    return Rules(None if general is None else Threshold.of(general), own, tuple(read), allowed, named)
