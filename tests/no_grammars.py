"""Imported before anything that reads notebooks, by `conftest` or as a plugin of pytest: no grammars are compiled.

jsonschema, which checks notebooks, imports this package if it is there, which compiles grammars of web addresses: that
takes longer than most tests.
"""

from __future__ import annotations

import sys

sys.modules.setdefault("rfc3987_syntax", None)
