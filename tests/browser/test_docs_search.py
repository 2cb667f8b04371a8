"""The search of the documentation site answers everyday questions with the right page first."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import pytest

pytestmark = pytest.mark.browser

SITE = Path(__file__).resolve().parents[2] / "build" / "docs" / "html"
ANSWERS = {
    "how do I compare two versions": "how-to/compare-releases",
    "balance at a date": "how-to/read-at-a-version",
    "table keys": "how-to/table-keys",
    "keys of a table": "how-to/table-keys",
    "list keys of a table": "how-to/table-keys",
    "dark mode": "reference/figures",
    "why is gas higher": "explanation/causes",
    "dark plots": "reference/figures",
    "exact big numbers": "explanation/exact-numbers",
    "excel": "how-to/spreadsheet",
    "rate limit": "how-to/slow-sweep",
    "private key": "explanation/limits",
    "does it need my private key": "explanation/limits",
    "token price": "explanation/units",
    "gas went up why": "explanation/causes",
    "past balance of an account": "how-to/read-at-a-version",
    "connect to mainnet": "how-to/connect",
    "simulate at a past version": "how-to/replay-and-fork",
    "find when gas changed": "how-to/studies",
    "gas in CI": "how-to/gate-in-ci",
    "too many requests": "how-to/slow-sweep",
    "events of an account": "how-to/one-account",
    "simulate a transaction": "how-to/simulate-a-batch",
    "save figure for slides": "reference/figures",  # the words of the page, in another order
    "homework grading": "course/notebooks/README",
    "what does unexplained mean": "explanation/causes",
    "gate a pull request": "how-to/gate-before-deploying",
    "could not judge": "explanation/judging",
    "thresholds per call": "reference/study-file",
    "study file keys": "reference/study-file",
    "column meanings": "reference/columns",
    "publish a package on a fork": "how-to/replay-and-fork",
    "gas by function": "how-to/replay-and-fork",
    "view function at an old version": "how-to/read-at-a-version",
    "how many failed transactions": "how-to/events",
    "address format": "explanation/exact-numbers",
    "dask": "how-to/cluster",
    "read events of a contract": "how-to/events",
    "simulate without signing": "how-to/simulate-a-batch",
    "holders of a token": "how-to/indexer",
    "model gas accurate": "explanation/model-gas",
    "what does schedule mean": "explanation/gas",
    "waiver": "how-to/gate-in-ci",
    "what is an octa": "explanation/units",  # no page has all of the words
    "list table keys": "how-to/table-keys",
    "how to list entries of a table": "how-to/table-keys",
    "how can I see all keys in a table": "how-to/table-keys",
    "why did gas increase": "explanation/causes",
    "why did my gas go up": "explanation/causes",
    "429 too many requests": "how-to/slow-sweep",
    "node returns 429": "how-to/slow-sweep",
    "do I need a private key": "explanation/limits",
    "simulate without private key": "explanation/limits",
    "what was my balance on 1 may": "how-to/read-at-a-version",
    "continue a run after a crash": "how-to/studies",
    "resume an interrupted run": "how-to/studies",
    "save as parquet": "how-to/duckdb-and-polars",
    "export results to csv": "how-to/spreadsheet",
    "progress bar": "how-to/other-notebooks",
    "jupyter form": "how-to/forms",
    "simulate several calls": "how-to/several-calls",
}


@pytest.fixture(scope="module")
def page(browser):
    """Return the page that all questions are asked on, without a network."""
    return browser.new_context(offline=True).new_page()


@pytest.mark.skipif(not (SITE / "searchindex.js").exists(), reason="the site is not built; `make docs` builds it")
@pytest.mark.parametrize("question", ANSWERS)
def test_an_everyday_question_finds_its_page_first(page, question):
    """As a user types it; the site is opened from files, without a network."""
    page.goto(f"{(SITE / 'search.html').as_uri()}?q={quote(question)}")
    page.wait_for_function("() => Search.status?.textContent.includes('finished')")
    first = page.locator("#search-results li > a").first
    assert first.get_attribute("href").partition(".html")[0] == ANSWERS[question]
    results = (
        "[...document.querySelectorAll('#search-results :is(.kind-index, .kind-text) > a')].map((one) => one.pathname)"
    )
    pages = page.evaluate(results)
    assert len(pages) == len(set(pages))
    said = re.search(r"found (\S+) page", page.evaluate("() => Search.status.textContent"))
    assert said[1].replace("one", "1") == str(page.locator("#search-results ul.search > li").count())
