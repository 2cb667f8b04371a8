"""The gas explorer without a browser: studies through the form and back, runs in the background, steps and causes."""

from __future__ import annotations

import gc
import re
import socket
import threading
import time
from itertools import count

import msgspec
import pytest
from ipywidgets import Widget
from traitlets import TraitError

import toolkit
from tests.unit.client.fakes import refused
from tests.unit.gas.test_runs import RISE, UPGRADE, made_node
from toolkit import FindSteps, Study
from toolkit.errors import InputError
from toolkit.gas._observations import Cause, Failure
from toolkit.plots._style import CAUSE_MARKS
from toolkit.reports import build
from toolkit.widgets import GasExplorer
from toolkit.widgets._messages import Progress, Status

NAME = "http://node.example/v1"
COUNT = {"view": "0x1::m::count"}
EVERYTHING = {
    "title": 'A "title"',
    "versions": FindSteps("0:-1", initial=9, max_requests=50),
    "requests_per_second": 2.5,
    "thresholds": ["2%", 50],
    "waivers": [{"call": "all", "reason": "by design", "expires": "2031-12-31"}],
    "calls": [
        {
            "label": "all",
            "view": "0x1::m::f",
            "type_arguments": ["u8", "0x1::aptos_coin::AptosCoin"],
            "arguments": [2**256 - 1, "a\nb", [True, {"vec": []}], "0x00"],
            "thresholds": {"percent": 20},
        },
        {"simulate": "0x1::m::e", "sender": "0xa11ce", "fee_payer": "0x0", "gas_unit_price": 0, "max_gas_amount": 9},
        {"label": "e", "committed": "0x1::m::e", "versions": "0:-1/20", "success": False, "sender": "0xb0b"},
    ],
}
STUDIES = {
    "every key": EVERYTHING,
    "a list": {"calls": [COUNT], "versions": [3, 1, 2]},
    "defaults": {"calls": [COUNT]},
    "a title of lines": {"calls": [COUNT], "title": " two\nlines\n"},
    "a step": {"calls": [COUNT], "versions": " 0:900:3"},
    "one version": {"calls": [COUNT], "versions": "100"},
    "the last": {"calls": [COUNT], "versions": "-1000:"},
    "dates": {"calls": [COUNT], "versions": "2026-05-01..2026-06-01T12:00/200"},
    "days": {"calls": [COUNT], "versions": "2026-05-01..2026-06-01"},
    "a far account": {"calls": [toolkit.ViewFunction("0xcafe::m::f", ["0xcafe"])]},
    "an Option": {"calls": [{"view": "0x1::m::f", "arguments": [None, {"a": None}]}]},
}


@pytest.fixture
def made():
    """Return a function that makes an explorer on a fake node; all are closed after the test."""
    opened, before = [], set(threading.enumerate())  # those of other tests' nodes may still be there

    def make(study=None, *, routes=None):
        node, fake = made_node(routes)
        explorer = GasExplorer(node, study=study)
        opened.append((explorer, node))
        explorer.fake = fake
        return explorer

    yield make
    for explorer, node in opened:
        explorer.close()
        node.close()
    left = set(threading.enumerate()) - before
    assert [thread.name for thread in left if thread.name.startswith("toolkit-")] == []


@pytest.fixture
def form(made):
    return made()


def edit(form, **changed):
    """Do what the browser does when fields are edited."""
    draft = msgspec.to_builtins(form._draft) | changed | {"seq": form._draft.seq + 1}
    form._handle_msg({"content": {"data": {"method": "update", "state": {"_draft": draft}}}, "buffers": []})


def send(form, do, **more):
    """Do what the browser does when a button is pressed, and wait until it is done."""
    content = {"do": do, "draft": msgspec.to_builtins(form._draft)} | {
        name: value for name, value in more.items() if name != "wait"
    }
    form._handle_msg({"content": {"data": {"method": "custom", "content": content}}, "buffers": []})
    if more.pop("wait", True):
        form._wait()


@pytest.fixture(scope="module")
def done():
    """Return an explorer whose run is complete."""
    node, _ = made_node()
    with node:
        form = GasExplorer(node, study=searching())
        form.run()
        yield form
        form.close()


def searching(node_name=NAME, **more):
    return Study(calls=[COUNT], versions=FindSteps("0:-1"), nodes=[node_name], **more)


def page(form, title):
    return next(one.html for one in form._pages if one.title == title)


def test_an_empty_form_asks_nothing(form):
    """Constructing the form and typing into it sends no request; without a function, it has neither a study nor an error."""
    assert form.study is None
    assert form.errors == {}
    edit(form, function="0x1::m::count", label="count")
    assert form.study.calls[0].name == "count"
    assert form.study.versions.search == FindSteps("0:-1")
    assert form.fake.asked == []
    assert repr(form) == f"GasExplorer(Node({form.node.name!r}), {form.study!r})"
    send(form, "drop", number=0)
    form.study = None
    assert repr(form).endswith("no request yet)")


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_comes_out_as_it_went_in(made, tmp_path, name):
    """The form, its program and the saved file all make an equal study; what is not shown stays part of it."""
    form = made()
    study = Study(node=form.node, **STUDIES[name])
    form.study = study
    assert form.study == study
    assert form.errors == {}
    edit(form)  # the browser sends it back
    assert form.study == study
    program = form.python.partition("\nrun =")[0]
    space = {"toolkit": toolkit, "node": form.node}
    exec(program.partition("\n\n")[2].partition("\n")[2], space)  # noqa: S102 - the form's own program
    assert space["study"] == study
    saved = Study.load(form.study.save(tmp_path / "study.toml"))
    assert saved == (study if name != "an Option" else saved)
    assert saved.digest == study.digest or name == "an Option"


def test_a_sample_of_committed_transactions_has_its_own_field(form):
    """The versions of the study are a range for them, and its field names the other one."""
    for source in ("view", "committed"):
        edit(form, source=source)
        named = "Versions of this call" in dict(form._spec.fields)["span"].hint
        assert named == (source == "committed")


def test_programs_have_short_addresses(form):
    """A function is written as people write it."""
    form.study = Study(
        node=form.node, calls=[toolkit.ViewFunction("0xcafe::m::f"), toolkit.ViewFunction("0x1::m::f", [1])]
    )
    assert "'0xcafe::m::f',\n" in form.python
    assert "'view': '0x1::m::f',\n" in form.python


def test_a_study_of_another_node_is_read_from_the_node_of_the_form(form):
    """The form says so, and the study names the node that it reads from."""
    form.study = searching("mainnet")
    assert form.study.nodes == (form.node.name,)
    assert "The study is for mainnet; this form reads from" in form._status.text


def test_a_part_that_is_edited_changes_and_the_rest_stays(made):
    """Versions, labels and filters one by one; thresholds of a call stay with it when it is edited."""
    form = made()
    form.study = Study(node=form.node, **EVERYTHING)
    before = form.study
    edit(form, arguments=[], raw="[1]", lead="raw")
    assert form.study.calls[0].arguments == (1,)
    assert form.study.calls[0].thresholds == before.calls[0].thresholds
    assert form.study.calls[1:] == before.calls[1:]
    edit(form, plan="these", span="5:1000/7")
    assert form.study.versions.plan == "5:1000/7"
    edit(form, chosen="2")
    assert (form.function, form._draft.range) == ("0x1::m::e", "0:-1/20")
    edit(form, sender="")
    assert form.study.calls[2].sender is None
    assert form.study.calls[2].success is False
    assert form.study.calls[0].arguments == (1,)


def test_calls_are_added_chosen_and_removed(form):
    """A call that is not complete stays until it is completed or removed."""
    edit(form, function="0x1::m::count")
    send(form, "add")
    assert (form._draft.chosen, form.function) == ("1", "")
    edit(form, function="0x1::m::dead", raw="[", lead="raw")
    first = form.study
    for _ in range(2):
        edit(form, chosen="0")
        assert (form._draft.chosen, form.function) == ("1", "0x1::m::dead")
        assert form._status.text == "Complete or remove this call first."
        send(form, "add")
    assert form.study == first
    edit(form, raw="", label="gone")
    assert [call.name for call in form.study.calls] == ["m::count", "gone"]
    edit(form, chosen="0")
    assert form.function == "0x1::m::count"
    edit(form, label="gone")
    assert "has the same label as call" in form.errors["label"]
    edit(form, label="count")
    edit(form, chosen="1")
    edit(form, label="")
    assert [call.name for call in form.study.calls] == ["count", "m::dead"]
    edit(form, chosen="0")
    send(form, "drop")
    assert [call.name for call in form.study.calls] == ["m::dead"]
    assert (form._draft.chosen, form.function) == ("0", "0x1::m::dead")
    send(form, "drop")
    assert form._now.calls == (None,)


@pytest.mark.parametrize(
    ("changed", "path", "words"),
    [
        ({"function": "0x1::m"}, "function", "address::module::function"),
        ({"function": ""}, "function", "address::module::function"),
        ({"raw": "{"}, "arguments", "JSON array"),
        ({"type_arguments": ["u9"]}, "type_arguments.0", "u9"),
        ({"source": "simulate"}, "sender", "enter an address"),
        ({"source": "simulate", "sender": "0xg"}, "sender", "0xg"),
        ({"source": "committed", "range": "0:-1:2"}, "range", "pages of 100"),
        ({"source": "committed", "sender": "0xg"}, "sender", "0xg"),
        ({"span": "x:9"}, "span", "'x:9'"),
        ({"span": ""}, "span", "enter versions"),
        ({"span": "9:3"}, "span", "from 9 down to 3"),
        ({"span": "0:-1/7"}, "span", "range"),
        ({"span": "-5"}, "span", "range"),
        ({"span": "7:7"}, "span", "range"),
        ({"plan": "these", "span": "0:9/x"}, "span", "0:9/x"),
        ({"plan": "these", "span": "May..2026-06-01"}, "span", "May"),
        ({"plan": "these", "span": "1, two"}, "span", "two"),
        ({"source": "committed", "range": "abc"}, "range", "'abc'"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(form, changed, path, words):
    """In a sentence, while typing; the study of before stays, and the entry can be mended."""
    edit(form, function="0x1::m::count")
    study = form.study
    before = {name: getattr(form._draft, name) for name in changed}
    edit(form, **changed)
    assert words in form.errors[path]
    assert list(form.errors) == [path]
    assert form.study == study
    edit(form, **before)
    assert form.errors == {}


def test_a_run_finds_steps_with_their_causes(done):
    """The run is that of ``study.run()``; each step has its version, cause, evidence, gas before and after."""
    form = done
    assert form.result.digest == form.study.run(progress=False).digest
    assert form.result.steps["version_after"].tolist() == [RISE, UPGRADE]
    assert form._status == Status("good", f"2 steps in gas, from {len(form.result.observations)} observations.")
    assert [one.title for one in form._pages] == ["Steps"]
    steps = page(form, "Steps")
    for line in form.result.explain().splitlines():
        if not line.startswith(" "):
            words = line.partition(": ")[2]
            assert words[0].upper() + words[1:] in steps
    first, second = steps.split("<details")[1:3]
    assert f"<b>{RISE:,}</b>" in first
    assert "from 10 to 100 gas units" in first
    assert "from 100 to 60 gas units" in second
    assert "\N{MULTIPLICATION SIGN}10" in first
    assert "\N{MINUS SIGN}40\u202f%" in second
    assert f"background:{CAUSE_MARKS[Cause.SCHEDULE].colour}" in first
    assert f"background:{CAUSE_MARKS[Cause.CODE].colour}" in second
    assert not form._stale
    assert not form.busy
    edit(form, span="10:-1")
    assert form._stale
    edit(form, span="0:-1")
    assert not form._stale


def test_a_run_in_the_background_shows_its_progress(made, monkeypatch):
    """The traits are updated at most 4 times a second; words and numbers grow; the end has the pages."""
    ticks = count(0, 0.05)
    form = made(Study(calls=[COUNT], versions="0:-1/60", nodes=[NAME]))
    monkeypatch.setattr("toolkit.widgets._gas_explorer.time.monotonic", lambda: next(ticks))
    seen = []
    form.observe(lambda change: seen.append(change["new"]), "_progress")
    send(form, "run")
    assert seen[-1] == Progress()
    done = [one.done for one in seen[:-1] if one.text.endswith("of about 60 calls read")]
    assert done == sorted(done)
    assert 2 < len(done) < 60 / 2
    assert form.result.complete


def test_a_run_that_is_stopped_leaves_what_was_read(made, monkeypatch):
    """Stop ends it at the next answer; the readings can be used, and Run starts again."""
    monkeypatch.setattr("toolkit.widgets._gas_explorer._UPDATE_S", 0)
    form = made(Study(calls=[COUNT], versions="0:-1/100", nodes=[NAME]))
    form.observe(lambda change: change["new"].done > 20 and form.cancel(), "_progress")
    send(form, "run")
    stopped = len(form.result.observations)
    assert 0 < stopped < 100
    assert form._status.text == f"Stopped after {stopped} observations, which the result contains."
    assert not form.result.complete
    assert not form.busy
    assert form._progress == Progress()
    assert "The run was stopped" in page(form, "Steps")
    folder = form.result.path
    form.unobserve_all("_progress")
    send(form, "run")
    assert form.result.complete
    assert len(form.result.observations) == 100
    gc.collect()
    assert not folder.exists()


def test_a_node_that_does_not_answer_does_not_hold_a_closed_form():
    """Stop and close end the wait for an answer; no thread stays, and the folder of the run is removed."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        node = toolkit.connect(f"http://127.0.0.1:{silent.getsockname()[1]}/v1")
        form = GasExplorer(node, study=Study(calls=[COUNT], node=node))
        send(form, "run", wait=False)
        silent.settimeout(10)
        asked, _ = silent.accept()
        assert asked.recv(1)  # from here on the form waits for an answer
        assert form.busy
        began, thread = time.monotonic(), form._background._workers[False]
        form.close()
        assert time.monotonic() - began < 10
        assert not thread.is_alive()
        assert form.result is None
        node.close()
        asked.close()


@pytest.mark.parametrize("do", ["run", "check"])
def test_a_refusal_is_shown_and_the_form_stays_usable(made, do):
    """The error is beside the buttons, the busy state ends, and the next attempt succeeds."""
    form = made(Study(calls=[COUNT], versions=[5], nodes=[NAME]))
    healthy = dict(form.fake.routes)
    form.fake.routes |= {"GET ": refused(400, "busy")}
    send(form, do)
    assert "busy" in form.errors["node"]
    assert not form.busy
    assert form._status.kind == "error"
    form.fake.routes = healthy
    edit(form)
    send(form, do)
    assert form.errors == {}
    assert (form.result is not None) == (do == "run")


@pytest.mark.parametrize("do", ["run", "check"])
def test_a_call_that_fits_no_version_is_named(made, do):
    """If the code at the versions does not fit a call, the message is at the calls, and nothing is read."""
    form = made(Study(calls=[COUNT, {"view": "0x1::m::dead", "arguments": [7]}], versions=[5], nodes=[NAME]))
    send(form, do)
    assert "1 of 2 calls cannot be made" in form.errors["chosen"]
    assert "0x1::m::dead" in form.errors["chosen"]
    assert form.result is None
    assert form._pages == ()


def test_check_counts_the_requests(made):
    """What would be sent, without sending it."""
    form = made(searching())
    assert form.check()
    assert "A run sends 33 requests, and more around each step, up to 2,000." in form._status.text
    assert form.result is None


def test_reads_between_the_versions_of_a_plan_are_counted():
    """As the most that a run sends; the gas of a call begins at the version located, whichever way it is read."""
    form = GasExplorer(toolkit.connect())
    for versions, most in (("0:-1/10", "410"), (FindSteps("0:-1", initial=10), "2,000")):
        form.study = Study(calls=["0xfa17::vault::share_price"], versions=versions)
        assert form.check()
        assert re.findall(r"\d[\d,]*\d", form._status.text) == ["10", most]
        form.run()
        shown = re.findall(r"([\d,]+) at version ([\d,]+)", page(form, "Steps"))
        assert shown == [("12", "14"), ("36", "4,999")]
    form.close()


def test_a_long_run_starts_when_run_is_pressed_twice(made, monkeypatch):
    """The first press reads nothing; an edit asks again, and `run` of Python does not ask."""
    started = []
    monkeypatch.setattr("toolkit.widgets._gas_explorer._MAX_UNASKED", 2)
    monkeypatch.setattr(GasExplorer, "_run", lambda form, *_: started.append(form.study.versions.plan))
    form = made(Study(calls=[COUNT], versions="0:-1/5", nodes=[NAME]))
    for number in (5, 6):
        edit(form, span=f"0:-1/{number}")
        send(form, "run")
        assert f"A run sends at least {number} requests. Press Run again" in form._status.text
    assert started == []
    send(form, "run")
    edit(form, span="0:-1/7")
    form.run()
    assert started == ["0:-1/6", "0:-1/7"]


def test_a_version_that_does_not_exist_is_named_at_its_field(made):
    """An error that only the node can find is shown at the versions."""
    form = made(Study(calls=[COUNT], versions="20000:30000/5", nodes=[NAME]))
    form.run()
    assert "this node has versions 0 to 10,000" in form.errors["span"]
    assert not form.check()
    assert "this node has versions 0 to 10,000" in form.errors["span"]


def test_a_saved_notebook_shows_the_figure_and_the_words(done):
    """The picture has calls, versions, program, figure, and the steps, which open without a kernel; it has no script."""
    form = done
    picture = form._picture()
    for words in (
        "0x1::m::count",
        "<td>a sample, then exactly where gas changes</td>",
        "toolkit.Study(",
        "<caption>Entries</caption>",
        '<img class="ltk-plot" width="480" alt="Gas of 1 call by ledger version" src="data:image/png;base64,',
        "<summary>",
        f"Transaction {RISE:,}",
    ):
        assert words in picture
    assert not re.search("<script|<svg|<button|Click", picture)  # sites that show notebooks remove these


def test_text_of_the_study_is_escaped(made):
    """Labels are text from users: they never become elements of the page."""
    named = {**COUNT, "label": "<img src=x onerror=alert(1)>"}
    form = made(Study(calls=[named], versions=[RISE - 1, RISE], nodes=[NAME]))
    form.run()
    for html in (one.html for one in form._pages):
        assert "<img src=x" not in html
        assert "onerror=alert(1)>" not in html


def test_another_node_ends_the_run(made):
    """The entries stay; result and plan of the node before are removed."""
    form = made(Study(calls=[COUNT], versions=[5], nodes=[NAME]))
    form.run()
    other, _ = made_node()
    form.node = other
    assert form.result is None
    assert form.study.versions.plan == [5]
    form.run()
    assert form.result.complete
    other.close()


def test_what_is_not_a_study_is_refused(form):
    """At once, in words."""
    with pytest.raises(TraitError, match="expected a Study or None, not the dict"):
        form.study = {}


def test_explorers_that_are_closed_leave_nothing(form):
    """No widget model and no thread stays, whatever was run."""
    before = set(Widget.get_manager_state()["state"])
    for _ in range(20):
        opened = GasExplorer(form.node, study=searching())
        opened._do_add({})
        opened.close()
        opened.close()
    assert set(Widget.get_manager_state()["state"]) == before


def test_an_explorer_opens_with_a_function(form):
    """The first call reads that view; a study names its own functions."""
    opened = GasExplorer(form.node, "0x1::m::count")
    try:
        assert opened.study.calls[0].view == "0x1::m::count"
        assert form.fake.asked == []
    finally:
        opened.close()
    with pytest.raises(InputError, match="either a function or a request"):
        GasExplorer(form.node, "0x1::m::count", study=searching())


def test_another_study_of_as_many_calls_replaces_the_first(made):
    """Whichever call was chosen: nothing of the study before stays."""
    form = made(Study(calls=[COUNT, {"view": "0x1::m::dead"}], versions=[5], nodes=[NAME]))
    edit(form, chosen="1")
    other = Study(node=form.node, calls=[{"view": "0x1::m::more"}, COUNT], versions=[6])
    form.study = other
    assert form.study == other
    assert form.errors == {}
    assert form.function == "0x1::m::more"


def test_an_equal_study_fills_the_form_again(made):
    """Also the one that the form holds: what was typed since, and makes no study, is replaced."""
    form = made()
    study = searching(form.node.name)
    for _ in range(2):
        form.study = study
        assert (form.function, form.errors) == ("0x1::m::count", {})
        edit(form, function="zzz")
        assert form.errors
    form.study = searching(form.node.name)
    assert form.function == "0x1::m::count"


# regressions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("do", ["close", "set the node"])
def test_a_run_that_cannot_be_ended_holds_neither_close_nor_another_node(made, monkeypatch, do):
    """Close and a new node wait a limited time for a run that waits for the node; what it reads then changes nothing."""
    monkeypatch.setattr("toolkit.widgets._form._JOIN_S", 0.05)
    asked, leave = threading.Event(), threading.Event()

    def view(*_):
        asked.set()
        assert leave.wait(30)
        return refused(400, "busy")

    form = made(Study(calls=[COUNT], versions=[5], nodes=[NAME]), routes={"POST /view": view})
    send(form, "run", wait=False)
    assert asked.wait(30)
    with pytest.raises(InputError, match=r"a run is already in progress; .* cancel\(\)"):
        form.run()
    thread = form._background._workers[False]
    if do == "close":
        form.close()
        assert thread.is_alive()
    else:
        other, _ = made_node()
        form.node = other
        assert thread.is_alive()
        assert not form.busy
        send(form, "run")
        shown = form.result
        assert shown.complete
    leave.set()
    thread.join()
    assert not form.busy
    assert form._progress == Progress()
    if do == "close":
        assert form.result is None
    else:
        assert form.result is shown
        assert form._status.kind == "good"
        form.close()
        other.close()


def test_functions_are_looked_up_while_a_run_goes_on(made):
    """A look does not wait for the end of a run; cancel ends both."""
    asked, leave, looked, looks_again = (threading.Event() for _ in range(4))

    def view(*_):
        asked.set()
        assert leave.wait(30)
        return refused(400, "busy")

    def look():
        looked.set()
        assert looks_again.wait(30)

    form = made(Study(calls=[COUNT], versions="0:9", nodes=[NAME]), routes={"POST /view": view})
    send(form, "run", wait=False)
    assert asked.wait(30)
    form._look = look
    send(form, "look", wait=False)
    assert looked.wait(30)
    form.cancel()
    assert True not in form._background._workers
    for held in (leave, looks_again):
        held.set()
    form._wait()
    assert not form.busy
    assert form._status.text.startswith("Stopped after ")


def test_a_run_that_has_not_begun_is_cancelled(made):
    """The check before it is given up, and nothing is read."""
    asked, leave = threading.Event(), threading.Event()
    form = made(Study(calls=[COUNT], versions=[5], nodes=[NAME]))
    form._count_requests = lambda: asked.set() or leave.wait(30)
    send(form, "run", wait=False)
    assert asked.wait(30)
    worker = form._background._workers[False]
    form.cancel()
    assert form._status.text == "Cancelled."
    leave.set()
    worker.join()
    assert (form.busy, form.result) == (False, None)


def test_readings_without_an_answer_are_not_a_success(made):
    """A run whose readings all failed says so; one of which some failed says how many."""
    form = made(Study(calls=[COUNT], versions=[20_000, 30_000], nodes=[NAME]))
    form.fake.routes["POST /view"] = refused(404, "version_not_found")
    form.run()
    assert form._status == Status("bad", "No successful read in 2 observations: version_not_found.")
    node = toolkit.connect()
    mixed = GasExplorer(node, study=Study(calls=["0x1::chain_id::get"], versions=[4_000, 6_000], node=node))
    mixed.run()
    assert mixed._status == Status("mixed", "1 step in gas, from 2 observations; 1 failed.")
    mixed.study = Study(calls=["0xfa17::vault::share_price"], versions="0:3600/9", node=node)
    mixed.run()
    further = mixed.result.record.nodes[0].further_requests
    assert mixed._status == Status(
        "good",
        f"3 steps in gas, from 9 observations and {further} further reads; 1 not available before version 14.",
    )
    facts = re.findall(r"<th[^>]*>(.*?)</th><td[^>]*>(.*?)</td>", mixed.result._repr_html_())
    assert {"steps": "3", "not available": "1"}.items() <= dict(facts).items()
    mixed._do_add(None)
    assert mixed._status == Status()
    mixed.close()
    node.close()


def test_transactions_that_failed_on_the_ledger_are_no_failed_reads():
    """They were read, and their gas is measured: the message is that of a success."""
    node = toolkit.connect()
    study = Study(calls=[{"committed": "0x1::aptos_account::transfer"}], versions="0:1000", node=node)
    form = GasExplorer(node, study=study)
    form.run()
    lost = form.result.observations["success"].eq(False).sum()
    assert form._status.kind == "good"
    assert f"{lost} failed on the ledger" in form._status.text
    assert {one.title: one.count for one in form._pages} == {"Steps": None, "Failed on the ledger": lost}
    form.close()
    node.close()


def test_check_names_versions_that_the_node_does_not_have(made):
    """Listed versions above the head are counted; one request is one request."""
    form = made(Study(calls=[COUNT], versions=[5, 20_000], nodes=[NAME]))
    assert form.check()
    assert "1 of 2 listed versions: above the head 10,000" in form._status.text
    assert form._status.kind == "hint"
    form.study = Study(calls=[COUNT], versions=[5], nodes=[NAME])
    assert form.check()
    assert form._status == Status("good", "Every call fits its function. A run sends 1 request.")


def test_versions_beyond_the_head_are_named_in_the_result():
    """As the plan warns of them in Python."""
    form = GasExplorer(toolkit.connect(), study=Study(calls=["0xfa17::vault::share_price"], versions="4990:99999"))
    form.run()
    (record,) = form.result.record.nodes
    assert record.notes
    assert record.notes[0] in page(form, "Steps")


def test_steps_and_failures_are_the_numbers_of_the_frame():
    """As in the terminal and in the report: a step is a row of the frame, and an execution that failed is a failure."""
    taken = {"simulate": "0xcafe::registry::register", "sender": "0xb0b", "arguments": ["alice"]}
    calls = {"price": "0xfa17::vault::share_price", "taken": taken}
    form = GasExplorer(toolkit.connect())
    form.study = Study(calls=calls, versions=FindSteps("2000:3600"))
    form.run()
    run = form.result
    assert len(run.steps) == 2
    assert form._status.text.startswith("2 steps in gas, ")
    assert {one.title: one.count for one in form._pages} == {"Steps": None, "Would fail": 1}
    assert "E_TAKEN" in page(form, "Would fail")
    price, taken, *_ = re.findall(r'<td class="ltk-number">(\d.*?)</td>', page(form, "Steps"))
    assert price.split("<br>") == ["12 at version 2,000", "36 at version 3,600"]
    gas, outcome = taken.split("<br>")
    assert gas.partition(" ")[2] == "at version 4,999"
    failure, _, reason = re.sub("<.*?>", "", outcome).partition(": ")
    assert (failure, reason) == (Failure.SIMULATION, run.observations["vm_status"].iloc[-1].rpartition(": ")[2])
    assert form._status.text.endswith("; 1 would fail.")
    assert "versions 2,000 to 3,600; simulated at version 4,999," in form._origin
    assert (run.manifest["counts"]["failures"], sum(call.failures for call in build(run).calls)) == (1, 1)
    form.close()


def test_a_simulation_that_would_fail_says_why_at_its_entry():
    """As in the form of simulations; the mark goes with the call in the fields, and with the next edit."""
    form = GasExplorer(toolkit.connect())
    transfer = {"simulate": "0x1::aptos_account::transfer", "sender": "0xa11ce"}
    form.study = Study(calls=[transfer | {"arguments": ["0xb0b", 10**17]}], versions=FindSteps("0:-1"))
    form.check()
    form.run()
    reason = form.result.observations["vm_status"].iloc[0].rpartition(": ")[2]
    assert form.errors == {"arguments.1": f"{reason}."}
    assert f"{Failure.SIMULATION}: {reason}" in page(form, "Gas")
    assert form._status.kind == "mixed"
    send(form, "add")
    assert form.errors == {}
    send(form, "drop")
    poor = transfer | {"sender": "0x99999", "arguments": ["0xb0b", 5]}
    form.study = Study(calls=[poor], versions=FindSteps("0:-1"))
    form.run()
    assert list(form.errors) == ["sender"]
    edit(form, sender="0xa11ce")
    form.run()
    assert form.errors == {}
    form.close()


def test_the_versions_are_told_as_the_node_reads_them():
    """Of what is typed, and of a study that was set; a run does not remove it."""
    form = GasExplorer(toolkit.connect())
    form.study = Study(calls=["0xfa17::vault::share_price"], versions=FindSteps("4990:6000"))
    form.run()
    told = form._findings.notes["span"]
    assert told.startswith("= 10 versions, 4,990 to 4,999; ")
    assert "not exist" in told
    edit(form, plan="these", span="0:-1/5")
    form.run()
    assert form._findings.notes["span"] == "= 5 of versions 0 to 4,999"
    form.close()


def test_steps_of_several_calls_are_counted_as_rows():
    """Two calls that change together are two steps, in the words beside the buttons."""
    form = GasExplorer(toolkit.connect())
    calls = [toolkit.ViewFunction("0xfa17::vault::share_price"), toolkit.ViewFunction("0xfa17::vault::preview", [100])]
    form.study = Study(calls=calls, versions=[3000, 4000])
    form.run()
    assert form._status.text == "2 steps in gas at 1 version, from 4 observations and 20 further reads."
    assert "versions 3,000 and 4,000, with 20 reads to locate the steps, read " in form._origin
    assert len(form.result.steps) == 2
    assert form.result.record.nodes[0].further_requests == 20
    form.close()


def test_parts_of_committed_gas_are_counted_as_rows():
    """Ten steps of execution, io and storage at two versions, as the frame and the report count them; the page says so.

    Two of one kind of transaction name their parts. The table of the calls counts transactions, of the whole range.
    """
    node = toolkit.connect()
    calls = [{"committed": "0x1::aptos_account::transfer", "versions": "0:-1"}]
    study = Study(calls=calls, versions="0:-1", node=node)
    form = GasExplorer(node, study=study)
    form.run()
    assert form._status.text.startswith("10 steps in gas at 2 versions, from ")
    assert (len(form.result.steps), sum(call.steps for call in build(form.result).calls)) == (10, 10)
    shown = page(form, "Steps")
    assert "Each part" in shown
    assert ">Total before<" in shown
    assert ">Before<" not in shown
    assert "versions 0 to 4,999," in form._origin
    cells = [re.sub("<[^>]+>", "", cell) for cell in re.findall("<td>(0x1::.*?|aptos_account.*?)</td>", shown)]
    assert {"execution", "io"} <= {cell.rpartition(", ")[2].rstrip(")") for cell in cells}
    assert ">Change<" not in shown.partition("</table>")[0]
    calls = [calls[0] | {"versions": "3400:3600"}, "0xcafe::registry::size"]
    form.study = Study(calls=calls, versions=[4000, 4999], node=node)
    form.run()
    shown = page(form, "Steps")
    count = (form.result.observations["source"] == "committed").sum()
    assert f"{count:,} transactions" in shown
    assert ">Change<" in shown.partition("</table>")[0]
    form.close()
    node.close()


def test_simulations_have_one_version_and_no_figure():
    """Their fields have no versions; one of several calls that is a view brings them back."""
    node = toolkit.connect()
    call = {"simulate": "0x1::aptos_account::transfer", "sender": "0xa11ce", "arguments": ["0xb0b", 100]}
    form = GasExplorer(node, study=Study(calls=[call], node=node))
    assert not {"span", "plan"} & dict(form._spec.fields).keys()
    form.run()
    assert form._status == Status("good", "75 gas units at version 4,999.")
    assert [one.title for one in form._pages] == ["Gas"]
    assert "<img" not in page(form, "Gas")
    assert re.findall(r'<td class="ltk-number">([^<]*)</td>', page(form, "Gas")) == ["75 at version 4,999"]
    form.study = Study(calls=[call, "0x1::chain_id::get"], node=node)
    assert {"span", "plan"} <= dict(form._spec.fields).keys()
    form.close()
    node.close()


def test_a_study_without_transactions_found_nothing():
    """The message is a hint: nothing was read."""
    node = toolkit.connect()
    form = GasExplorer(
        node, study=Study(calls=[{"committed": "0x1::aptos_account::transfer"}], versions="0:10", node=node)
    )
    form.run()
    assert (len(form.result.observations), form._status.kind) == (0, "hint")
    form.close()
    node.close()


def test_calls_that_one_upgrade_moved_in_different_functions_have_titles_of_their_own():
    """A call that becomes available where another one costs less did not cost more before."""
    form = GasExplorer(toolkit.connect())
    calls = [toolkit.ViewFunction("0xfa17::vault::share_price"), toolkit.ViewFunction("0xfa17::vault::preview", [100])]
    form.study = Study(calls=calls, versions=FindSteps("2200:2300"))
    form.run()
    titles = re.findall("<summary>(.*?)</summary>", page(form, "Steps").rpartition("<b>2,251</b>")[2])
    preview, price = (title for title in titles if "<b>2,252</b>" in title)
    assert "vault::preview: available from here, at 4 gas units" in preview
    assert "share_price: from 12 to 4 gas units" in price
    form.close()
