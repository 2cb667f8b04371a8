"""Exercises that check themselves: `check` compares an answer with the solution.

The lessons in ``notebooks/course`` end in exercises. A student writes an answer and runs `check`, which says whether
it is right, and what is wrong without giving the solution away. No notebook of a student contains a solution.
"""

from toolkit.teaching._check import CheckedAnswer, Verdict, check

__all__ = ["CheckedAnswer", "Verdict", "check"]


def __dir__() -> list[str]:
    return sorted(__all__)
