"""Settings of the documentation site; `docs/build.py` calls Sphinx with them."""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx_gallery.scrapers import matplotlib_scraper

import toolkit

if TYPE_CHECKING:
    from collections.abc import Callable

    from sphinx.application import Sphinx

SOURCE = Path(__file__).parent
sys.path.insert(0, str(SOURCE))
from build import ELSEWHERE  # noqa: E402 - it is beside this file, which Sphinx reads from anywhere

GALLERY = Path(os.environ.get("LEDGER_TOOLKIT_GALLERY", SOURCE / "gallery"))

project = "ledger-toolkit"
author = "the ledger-toolkit developers"
copyright = "the ledger-toolkit developers, Apache-2.0"  # noqa: A001 - Sphinx reads this name
version = release = toolkit.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
root_doc = "index"
templates_path = ["_templates"]
exclude_patterns = ["**/jupyter_execute"]
suppress_warnings = [
    "config.cache",  # the functions below cannot be pickled, so the environment is read again
    "sphinx_gallery.space_in_filename",  # no script has one; a folder above the repository may
]

# Pages. Notebooks are shown with their stored outputs, which the tests compare with what the cells return.
nb_execution_mode = "off"
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # nothing is loaded from another host
nb_mime_priority_overrides = [
    ("html", "text/html", 0),
    ("html", "application/vnd.jupyter.widget-view+json", None),
]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
myst_links_external_new_tab = True

# Reference.
autosummary_generate = True
autodoc_typehints = "none"  # numpydoc shows the types of parameters
autodoc_member_order = "bysource"
autodoc_default_options = {"exclude-members": "model_config, model_post_init"}
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False  # the class template lists them
default_role = "py:obj"
# Docstrings name parameters and modules of others between single backticks, which link only if the name is documented.
nitpick_ignore_regex = [("py:obj", ".*"), ("py:class", "Field|toolkit.embedded.framework._values.EventModule")]


def figure_once(block: Any, variables: Any, settings: Any) -> str:
    """Save each figure of the gallery once, sharp enough for any screen."""
    return matplotlib_scraper(block, variables, settings, dpi=180)


sphinx_gallery_conf = {
    "examples_dirs": str(GALLERY),
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "write_computation_times": False,
    "show_memory": False,
    "notebook_extensions": set(),
    "download_all_examples": False,
    "min_reported_time": 1_000,
    "image_scrapers": (figure_once,),
    "thumbnail_size": (800, 400),
    "capture_repr": (),
    "matplotlib_animations": False,
    "doc_module": ("toolkit",),
    "reference_url": {"toolkit": None},  # names in scripts link to the reference
    "backreferences_dir": None,
    "remove_config_comments": True,
    "copyfile_regex": r"",
}

# Results are not made by their reader, so their pages show no constructors, nor members that only the toolkit calls.
RESULTS = {
    *(
        "Account",
        "Asset",
        "Comparison",
        "Contract",
        "Fork",
        "Gate",
        "Node",
        "Plan",
        "Probe",
        "Replay",
        "Run",
        "Simulation",
    ),
    *("Snapshot", "TableItem", "TransactionFrames", "ViewResult"),
}
INTERNAL = {
    "toolkit.Node": (
        "anchor, reconnect, resource_json, resources_json, with_share, fresh, expect_chain, many, one, request, "
        "oldest_readable, first_from, prepare_sequence_number, prepare_view, "
        "prepare_simulation, prepare_account, prepare_block, prepare_raw_item, prepare_resource, prepare_state_value, "
        "prepare_transactions, "
        "account_and_head, transaction_and_head, account_page, module_answer, module_names, mask_error, newest, cache, "
        "past_version, run_view, version_or_head"
    ),
    "toolkit.Comparison": "judged_by",
    "toolkit.Gate": "of",
    "toolkit.Probe": "facts",
    "toolkit.TableItem": "record",
    "toolkit.ViewResult": "record",
}
# How results appear in code, so that their pages can name the pages that use them.
CALLED_AS = {
    "toolkit.Account": r"node\.account\(",
    "toolkit.Asset": r"node\.asset\(",
    "toolkit.Comparison": r"toolkit\.compare\(",
    "toolkit.Contract": r"\.contract\(",
    "toolkit.Gate": r"\.gate\(",
    "toolkit.Node": r"toolkit\.connect\(",
    "toolkit.Plan": r"\.plan\(\)",
    "toolkit.Probe": r"\.probe\(\)",
    "toolkit.Fork": r"\.fork\(",
    "toolkit.Replay": r"\.replay\(",
    "toolkit.Run": r"\.run\((?!page)",
    "toolkit.Simulation": r"node\.simulate\(",
    "toolkit.Snapshot": r"node\.at\(",
    "toolkit.TableItem": r"node\.table_item\(",
    "toolkit.TransactionFrames": r"toolkit\.fetch_transactions\(",
    "toolkit.ViewResult": r"node\.view\(",
}
MAX_USES = 5


def used_in(name: str, codes: dict[str, str]) -> list[str]:
    """Return the first pages whose code uses a public name, as names of documents."""
    *module, last = name.split(".")[1:]
    imported = rf"|from toolkit\.{module[0]} import [^\n]*\b{last}\b|\b{module[0]}\.{last}\b" if module else ""
    pattern = re.compile(CALLED_AS.get(name, rf"{re.escape(name)}\b{imported}"))
    return [page for page, code in codes.items() if pattern.search(code)][:MAX_USES]


scripts = {
    f"/gallery/{path.parent.name}/{path.stem}": path.read_text("utf-8") for path in sorted(GALLERY.glob("*/*.py"))
}
codes = scripts | {
    f"/{path.relative_to(SOURCE).with_suffix('')}": "".join(
        re.findall(r"^```python\n(.*?)^```", path.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    )
    for folder in ("tutorials", "how-to", "explanation")
    for path in sorted((SOURCE / folder).glob("*.md"))
}
autosummary_context = {
    "internal": INTERNAL,
    "used_in": lambda name: used_in(name, codes),
    "drawn_in": lambda name: next((page for page, code in scripts.items() if f"{name}(" in code), None),
}

# Searching: what users type, and the page that answers it first. Titles and names are found without this. An entry
# counts if all its words are in the question, in any order and with any endings; words such as "how" and "my" do not
# count (`site.js`). tests/browser/test_docs_search.py asks.
SEARCHED = {
    "course/notebooks/README": "grading, grade notebooks, homework, lesson plan, timetable, teacher, lecturer, exam",
    "explanation/causes": "gas change, gas higher, gas increase, gas jump, gas more expensive, gas rise, gas rose, "
    "gas went up, gas go up, reason, mixed, unexplained",
    "explanation/exact-numbers": "big numbers, big integers, large integers, u64, overflow, float, rounding, "
    "precision, address format",
    "explanation/gas": "schedule, gas price, fee, gas cost, transaction cost",
    "explanation/judging": "not judged, could not judge, exit code 6, uncertain step, how sure, false alarm, "
    "statistics",
    "explanation/limits": "sign a transaction, submit a transaction, private key, need a private key",
    "explanation/model-gas": "model gas, model gas accurate, accurate, accuracy, calibration",
    "explanation/units": "APT, octa, octas, decimals, token price, price in dollars, USD, exchange rate, units",
    "explanation/versions-and-pruning": "410, version_pruned, pruned version, version_not_found",
    "how-to/archive-node": "archive node, old versions",
    "how-to/archive": "SQL, DuckDB, parquet, database",
    "how-to/asyncio": "async, await, threads",
    "how-to/cluster": "Dask, Ray, several machines, parallel",
    "how-to/compare-networks": "mainnet, testnet, network",
    "how-to/compare-releases": "compare versions, compare gas of two versions, gas between releases, diff",
    "how-to/connect": "connect to mainnet, API key, proxy, retry, retries, timeout, certificate",
    "how-to/contracts-and-accounts": "ABI, module, address",
    "how-to/duckdb-and-polars": "save as parquet, write parquet",
    "how-to/events": "event, events of a contract, decode events, balance changes, abort code, failed transactions, "
    "failures",
    "how-to/events-by-day": "daily, group by, per day, distinct senders, unique senders",
    "how-to/forms": "form, forms, widget, widgets, GUI",
    "how-to/gate-before-deploying": "gate a pull request, gas of a pull request, before deploying, workflow, baseline",
    "how-to/gate-in-ci": "CI, gas in CI, fail CI, gate, GitHub Actions, snapshot, regression, exit code, pull request, "
    "waiver, accept an increase",
    "how-to/indexer": "holders, NFT, NFTs, GraphQL",
    "how-to/install": "Windows, pip, conda, Colab, wheel, install offline",
    "how-to/offline": "cache, no network",
    "how-to/one-account": "account, balance, balances, wallet, events of an account, account history",
    "how-to/other-notebooks": "progress bar",
    "how-to/read-at-a-version": "balance at a date, balance on 1 May, past balance, old balance, past value, "
    "historical, view at an old version",
    "how-to/replay-and-fork": "simulate at a past version, function uses gas, gas by function, fork, "
    "publish a package on a fork",
    "how-to/several-calls": "several calls, sequence of calls",
    "how-to/signers": "fee payer, sponsor, multi-agent, multisig, script, signature",
    "how-to/simulate-a-batch": "simulate a transaction, simulate without signing, dry run, estimate, simulation, "
    "max gas amount",
    "how-to/slow-sweep": "429, returns 429, rate limit, too many requests, requests per second, throttled, slow, speed",
    "how-to/spreadsheet": "Excel, CSV, xlsx, spreadsheet, export",
    "how-to/studies": "resume a run, continue a run, interrupted run, run after a crash, plan, find_steps, "
    "find when gas changed",
    "how-to/sweep": "read a table, many versions, loop",
    "how-to/table-keys": "table keys, table entries, table items",
    "project/glossary": "terms, definition",
    "reference/columns": "column meanings, unit of a column, dictionary",
    "reference/errors": "404, 500, 503, error, error codes, exception",
    "reference/figures": "dark plots, dark mode, dark theme, plot, chart, picture, save a figure, figure for slides, "
    "log scale",
    "reference/study-file": "study file keys, study.toml, thresholds per call",
    "tutorials/contracts": "Move, upgrade, write a contract",
    "tutorials/first-hour": "start, getting started, begin, quickstart, run a view function",
}


def add_searched(_: Sphinx, name: str, content: list[str]) -> None:
    """Put what users search for below the title of a page: as entries of the index, and as keywords."""
    if searched := SEARCHED.get(name):
        entries = ", ".join(f"! {entry}" for entry in searched.split(", "))
        words = ", ".join(searched.replace(",", "").split())
        block = f"\n```{{eval-rst}}\n.. index:: {entries}\n\n.. meta::\n   :keywords: {words}\n```\n"
        content[0] = re.sub(r"^# .*\n", rf"\g<0>{block}", content[0], count=1, flags=re.MULTILINE)


def place_links(_: Sphinx, name: str, content: list[str]) -> None:
    """Let links to files of the repository that are elsewhere on the site lead to their pages."""
    for origin, place in ELSEWHERE.items():
        page = os.path.relpath(place, Path(name).parent)
        content[0] = re.sub(rf"\]\((\.\./)+{re.escape(origin)}\b", f"]({page}", content[0])


# What stands in pages for an object of a class whose methods are linked.
OBJECTS = {
    "comparison": "toolkit.Comparison",
    "fork": "toolkit.Fork",
    "ledger": "toolkit.embedded.Ledger",
    "node": "toolkit.Node",
    "study": "toolkit.Study",
}


def link_names(app: Sphinx, tree: nodes.document, name: str) -> None:
    """Link public names in code font to the reference, once a page; as a file, a page shows them without markup."""
    if name.startswith(("reference/api/", "gallery/", "course/notebooks/course/")):
        return
    known: Any = app.env.get_domain("py").data["objects"]
    seen: set[str] = set()
    for literal in list(tree.findall(nodes.literal)):
        first, _, rest = literal.astext().partition(".")
        full = f"{OBJECTS.get(first, first)}.{rest}"
        if full in known and full not in seen and isinstance(literal.parent, nodes.paragraph):
            seen.add(full)
            literal["classes"] += ["xref", "py"]
            target = f"{app.builder.get_relative_uri(name, known[full].docname)}#{known[full].node_id}"
            link = nodes.reference("", "", literal.deepcopy(), internal=True, refuri=target)
            literal.parent.replace(literal, link)


# Terms of the glossary that are linked where a page first uses them; plain words of English, such as "step", are not.
TERMS = (
    *("ABI", "committed transaction", "embedded node", "entry function", "fee statement", "gas schedule", "gas unit"),
    *("ledger version", "octa", "pinned", "pruned", "stratum", "table item", "timeline", "view function"),
)
TERM = re.compile(rf"\b({'|'.join(TERMS)})s?\b")


def link_terms(app: Sphinx, tree: nodes.document, name: str) -> None:
    """Link the first mention of each term in the paragraphs of a page to the glossary."""
    if not name.startswith(("how-to/", "explanation/", "tutorials/")):
        return
    seen: set[str] = set()
    for text in list(tree.findall(nodes.Text)):
        if not isinstance(text.parent, nodes.paragraph):
            continue
        parts: list[nodes.Node] = []
        end = 0
        for match in TERM.finditer(text):
            if match[1] in seen:
                continue
            seen.add(match[1])
            target = app.builder.get_relative_uri(name, "project/glossary") + f"#term-{match[1].replace(' ', '-')}"
            link = nodes.reference(
                "", "", nodes.inline("", match[0], classes=["std-term"]), internal=True, refuri=target
            )
            parts += [nodes.Text(text[end : match.start()]), link]
            end = match.end()
        if parts:
            text.parent.replace(text, [*parts, nodes.Text(text[end:])])


def signature(_: Sphinx, what: str, name: str, *__: Any) -> tuple[str, None] | None:
    """Leave out the parameters of what only the toolkit constructs."""
    home, _, last = name.rpartition(".")
    return ("", None) if what == "class" and home == "toolkit" and last in RESULTS else None


def setup(app: Sphinx) -> None:
    """Connect the functions above, and print the stages of a build."""
    if missing := [page for page in SEARCHED if not (SOURCE / f"{page}.md").exists()]:
        raise ValueError(f"SEARCHED names pages that do not exist: {', '.join(missing)}")
    started = time.monotonic()

    def says(stage: str) -> Callable[..., None]:
        return lambda *_: print(f"{time.monotonic() - started:4.0f} s  {stage}", flush=True)

    app.connect("builder-inited", says("runs the gallery"), priority=100)
    app.connect("env-before-read-docs", says("reads the pages"))
    app.connect("env-updated", says("writes the pages"))
    app.connect("source-read", add_searched)
    app.connect("source-read", place_links)
    app.connect("doctree-resolved", link_names)
    app.connect("doctree-resolved", link_terms)
    app.connect("autodoc-process-signature", signature)


html_theme = "pydata_sphinx_theme"
html_title = "ledger-toolkit"  # a longer one is wider than a phone
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_js_files = ["site.js"]
html_search_scorer = str(SOURCE / "_static" / "scorer.js")  # absolute: Sphinx opens it from the current folder
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {page: [] for page in ("index", "project/comparison", "reference/columns")}
html_theme_options = {
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "show_prev_next": True,
    "show_toc_level": 2,
    "navigation_depth": 2,
    "collapse_navigation": True,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
