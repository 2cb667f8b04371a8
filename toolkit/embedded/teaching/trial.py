"""A module that is tried for a while and taken back: its functions stop existing at one version."""

from __future__ import annotations

from toolkit.embedded.contract import Module, String, view

__all__ = ["Trial"]


class Trial(Module, address="0xcafe"):
    """Something that did not last."""

    @view
    def greeting(self) -> String:
        """Return a greeting."""
        return "hello"
