"""Exercises that check themselves, and the grading of a class.

The lessons in ``notebooks/course`` end with exercises. A student writes an answer and runs `check`, which reports
whether the answer is right, or what is wrong with it, without giving away the solution. Student notebooks contain no
solutions. `grade` runs the notebooks of a class and judges the answers in them.
"""

from toolkit.teaching._check import CheckedAnswer, Verdict, check
from toolkit.teaching._grade import grade

__all__ = ["CheckedAnswer", "Verdict", "check", "grade"]


def __dir__() -> list[str]:
    return sorted(__all__)
