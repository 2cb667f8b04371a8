"""Warnings of the client: shown each time, or collected."""

from __future__ import annotations

import sys
import warnings

import pytest

from toolkit.client._warnings import collected_warnings, warn_caller


def caught(times):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        for _ in range(times):
            warn_caller("all reads failed")
    return found


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python shows a warning once for each line of the caller")
def test_a_warning_that_is_repeated_is_shown_again():
    """With Python's default filter a second cell of a notebook says it, too."""
    assert len(caught(times=2)) == 2


@pytest.mark.skipif(sys.version_info < (3, 12), reason="before Python 3.12 a warning does not have a location")
def test_a_warning_has_the_line_of_the_caller():
    """That is the first line outside of the package."""
    assert [one.filename for one in caught(times=1)] == [__file__]


def test_collected_warnings_are_not_shown():
    """They are pairs of category and text."""
    with collected_warnings() as found:
        assert caught(times=1) == []
    assert found == [(UserWarning, "all reads failed")]
