"""The threads in which a form works: which job runs after which."""

import threading

import toolkit
from toolkit.widgets._form import Background


def test_a_job_that_is_started_again_waits_behind_what_was_started_before_it():
    """The names of a function's parameters build on its look-up, also if both were waiting already."""
    ran, began, go = [], threading.Event(), threading.Event()

    def first():
        began.set()
        go.wait(30)
        ran.append("first look")

    background = Background(toolkit.connect(), failed=ran.append)
    background.start("look", first, looks_up=True)
    began.wait(30)
    background.start("names", lambda: ran.append("first names"), looks_up=True)
    for name in ("look", "names"):
        background.start(name, lambda name=name: ran.append(name), looks_up=True)
    go.set()
    background.wait()
    assert ran == ["first look", "look", "names"]
