"""Exercises that check themselves: `check` compares an answer with what the embedded ledger says.

The lessons in ``notebooks/course`` end in exercises. A student writes an answer and runs `check`, which says whether
it is right, and what is wrong without giving the solution away. Solutions are computed from the embedded ledger when
an answer is checked, so no notebook of a student contains them.
"""

from toolkit.teaching._answers import CheckedAnswer, Verdict
from toolkit.teaching._exercises import check

__all__ = ["CheckedAnswer", "Verdict", "check"]


def __dir__() -> list[str]:
    return sorted(__all__)
