"""Exercises that check themselves, and the grading of a class.

The lessons in ``notebooks/course`` end with exercises. A student writes an answer and runs `check`, which reports
whether the answer is right, or what is wrong with it, without giving away the solution. Student notebooks contain no
solutions. `grade` runs the notebooks of a class and judges the answers that `check` receives in them.
"""

from __future__ import annotations

from lazy_loader import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__, __file__)
