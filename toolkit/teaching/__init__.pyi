from ._check import CheckedAnswer as CheckedAnswer
from ._check import Verdict as Verdict
from ._check import check as check
from ._check import points as points
from ._grade import grade as grade
