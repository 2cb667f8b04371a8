"""JupyterLab on loopback, and Chromium to look at it with; and a bare page that joins a widget to its front end.

If JupyterLab, Playwright or Chromium is missing, the tests are skipped, or failed if they are required.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
REQUIRED = "LEDGER_TOOLKIT_BROWSER_TESTS"
SHOTS = "LEDGER_TOOLKIT_SHOTS"
NEWS = "@jupyterlab/apputils-extension:announcements"  # it would put a question over the page
# Extensions that the test extra brings, and those that start processes: no form needs them, and each takes its time.
UNUSED = ("@jupyter/nbgrader", "@voila-dashboards/jupyterlab-preview")
OF_NBGRADER = (
    f"nbgrader.server_extensions.{part}"
    for part in ("assignment_list", "course_list", "formgrader", "validate_assignment")
)
UNUSED_BY_THE_SERVER = dict.fromkeys(
    ("jupyter_lsp", "jupyter_server_terminals", "voila.server_extension", *OF_NBGRADER), False
)
START_S = 120
ERRORS_OF_NOTEBOOK_7 = ("reading 'schema'", "Command 'filebrowser:open-path' not registered")
"""What its own scripts throw when it opens a notebook."""


@pytest.fixture(scope="module")
def node():
    """Return the embedded node."""
    import toolkit

    with toolkit.connect() as made:
        yield made


def missing(what):
    """Skip with the reason, unless browser tests are required."""
    if os.environ.get(REQUIRED) == "required":
        pytest.fail(f"{what}, and {REQUIRED}=required")
    pytest.skip(what)


@pytest.fixture(scope="session")
def chromium():
    """Return the path of Chromium: of its headless shell if there is one, which takes half the processor time."""
    for package in ("jupyterlab", "playwright"):
        if importlib.util.find_spec(package) is None:
            missing(f"{package} is not installed")
    names = ("chromium-headless-shell", "chromium", "chromium-browser")
    return next(filter(None, map(shutil.which, names)), None) or missing("no chromium on PATH")


@pytest.fixture(scope="session")
def voila():
    """Skip without Voila."""
    if importlib.util.find_spec("voila") is None:
        missing("voila is not installed")


@pytest.fixture(scope="session")
def browser(chromium):
    """Return a running Chromium."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=30_000)  # as actions have: a busy machine is no mistake of the page
    options = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=options)
        yield running
        running.close()


COMMAND = """async ([name, given]) => {
  const late = new Promise((_, fail) => setTimeout(() => fail(new Error(`${name} does not end`)), 120_000));
  await Promise.race([jupyterapp.commands.execute(name, given), late]);
}"""


class Lab:
    """A running JupyterLab with settings of its own, and one page on it, which takes 6 s of processor time to open."""

    def __init__(self, folder, port):
        self.folder, self.url = folder, f"http://127.0.0.1:{port}"
        self.context = self.page = None

    def show(self, browser, name, *, classic=False, reload=False):
        """Show a notebook, and wait for its kernel; in JupyterLab as one more tab, or, after `reload`, on a new page.

        `classic` opens it in Notebook 7 instead, which the same server offers.
        """
        from playwright.sync_api import expect

        self.context = self.context or browser.new_context()
        if classic:
            page = self.context.new_page()
            self._goto(page, f"notebooks/{name}.ipynb")
        elif reload or not self.page:
            page = self.page = self.page or self.context.new_page()
            self._goto(page, f"lab/tree/{name}.ipynb?reset")
            self.run("application:toggle-left-area")  # the file browser takes a quarter of the width
        else:
            page = self.page
            self.run("docmanager:open", path=f"{name}.ipynb")
        page.locator(".jp-Notebook .jp-CodeCell").first.wait_for(timeout=120_000)
        # Until the page knows its kernel, running a cell would ask which one to take.
        expect(page.locator(".jp-Toolbar-kernelName")).to_have_text("Python 3 (ipykernel)", timeout=120_000)
        page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").first.wait_for(timeout=120_000)
        return page

    def _goto(self, page, path):
        answer = page.goto(f"{self.url}/{path}")
        assert answer.ok, f"{answer.url} answers with status {answer.status}"

    def run(self, command, **arguments):
        """Run a command of JupyterLab, as its menus do."""
        self.page.wait_for_function("() => window.jupyterapp?.restored.then(() => true)", timeout=120_000)
        self.page.evaluate(COMMAND, [command, arguments])

    def end_kernels(self, page):
        """End all kernels, as when JupyterLab is started again the next day."""
        page.evaluate("""async () => {
          const headers = { "X-XSRFToken": document.cookie.match(/_xsrf=([^;]*)/)[1] };
          for (const one of await (await fetch("/api/sessions")).json())
            await fetch(`/api/sessions/${one.id}`, { method: "DELETE", headers });
        }""")

    def press(self, page, keys):
        """Press keys on a control of each kind; `test_forms` does so on all, and says what notebooks listen to."""
        for kind in ("input[type=text]", "input[type=checkbox]", "select", "textarea", "button", "summary"):
            control = page.locator(f".ltk-inside {kind}:visible").first
            if control.count():
                control.focus()
                for key in keys:
                    page.keyboard.press(key)

    def close(self, page):
        """Close a notebook and end its kernel; a page that a failed test left with a question is given up."""
        if page is self.page and not page.locator(".jp-Dialog").count():
            self.run("docmanager:save")  # closing would ask
            self.run("application:close-all")
            self.end_kernels(page)
            return
        self.end_kernels(page)
        page.close()
        if page is self.page:
            self.page = None


@pytest.fixture
def notebook(lab, browser):
    """Return a function that opens a new notebook and runs its one cell; errors of the page's scripts fail the test.

    Unless it is not `strict`, as when the test ends kernels: what JupyterLab throws then is not the form's.
    """
    from playwright.sync_api import expect

    opened, listened, errors = [], [], []

    def note(error):
        errors.append(str(error))

    def start(source, *, name, theme="Light", width=1200, height=1250, classic=False, strict=True):
        if classic and importlib.util.find_spec("notebook") is None:
            missing("notebook is not installed")
        cell = {"cell_type": "code", "execution_count": None, "id": "a", "metadata": {}, "outputs": []}
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        about = {"kernelspec": kernel, "language_info": {"name": "python"}}
        book = {"cells": [cell | {"source": source}], "metadata": about, "nbformat": 4, "nbformat_minor": 5}
        write(lab.folder / f"work/{name}.ipynb", book)
        page = lab.show(browser, name, classic=classic)
        opened.append(page)
        page.set_viewport_size({"width": width, "height": height})
        if strict:
            page.on("pageerror", note)
            listened.append(page)
        if not classic:
            lab.run("apputils:change-theme", theme=f"JupyterLab {theme}")
        for _ in range(5):  # the kernel is idle before the page can reach it
            question = page.locator(".jp-Dialog")
            assert not question.count(), question.first.inner_text()
            page.locator(".jp-Notebook .cm-content").first.click()
            page.keyboard.press("Control+Enter")
            try:
                expect(page.locator(".jp-InputPrompt").first).not_to_have_text("[ ]:", timeout=3_000)
            except AssertionError:
                continue
            break
        expect(page.locator(".jp-InputPrompt").first).to_have_text(re.compile(r"\[\d+\]:"), timeout=120_000)
        output = ".jp-OutputArea-output[data-mime-type*={}]"
        trouble = page.locator(output.format("error")).or_(page.locator(output.format("stderr"), has_text="Traceback"))
        assert not trouble.count(), trouble.first.inner_text()
        return page

    yield start
    for page in listened:
        page.remove_listener("pageerror", note)
    for page in opened:
        if not page.is_closed():
            lab.close(page)
    assert [error for error in errors if not any(words in error for words in ERRORS_OF_NOTEBOOK_7)] == []


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), "utf-8")


@pytest.fixture(scope="session")
def lab(chromium, tmp_path_factory):
    """Start JupyterLab on loopback, away from the user's own settings; stop it at the end."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "work").mkdir()
    about = {"buildCheck": False, "disabledExtensions": dict.fromkeys([NEWS, *UNUSED], True)}
    write(folder / "config/labconfig/page_config.json", about)
    write(folder / "config/jupyter_server_config.json", {"ServerApp": {"jpserver_extensions": UNUSED_BY_THE_SERVER}})
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--ip=127.0.0.1", f"--port={port}"]
    command += ["--ServerApp.port_retries=0", "--IdentityProvider.token=", "--allow-root", "--LabApp.news_url=None"]
    command += ["--expose-app-in-browser"]  # which lets a test open one notebook after the other on one page
    command += [
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        f"--ServerApp.root_dir={folder}/work",
    ]
    own = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    environment = os.environ | {name: str(folder / part) for name, part in own.items()} | {"PYTHONPATH": str(ROOT)}
    with (folder / "lab.log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)
        try:
            made = Lab(folder, port)
            wait_for(made, server)
            yield made
        finally:
            server.terminate()
            server.wait(START_S)


def wait_for(lab, server):
    """Return once the server answers."""
    end = time.monotonic() + START_S
    while time.monotonic() < end and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{lab.url}/api/status", timeout=1):
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"JupyterLab does not answer:\n{(lab.folder / 'lab.log').read_text('utf-8')[-3000:]}")


@pytest.fixture
def shots(tmp_path, monkeypatch):
    """Return the folder for screenshots that the environment names; without one none are made, which take seconds."""
    if SHOTS not in os.environ:
        for owner in ("Page", "Locator"):
            monkeypatch.setattr(f"playwright.sync_api.{owner}.screenshot", lambda *_, **__: b"")
        return tmp_path
    folder = Path(os.environ[SHOTS])
    folder.mkdir(parents=True, exist_ok=True)
    return folder


# a widget without Jupyter --------------------------------------------------------------------------------------------

BARE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>form</title><style>
body { margin: 12px; background: #fff; }
body[data-jp-theme-light=false] { background: #111; --jp-ui-font-color1: rgba(255, 255, 255, 0.87);
  --jp-ui-font-color2: rgba(255, 255, 255, 0.54); --jp-border-color1: #616161; --jp-layout-color1: #111;
  --jp-layout-color2: #424242; color-scheme: dark; }
</style></head><body><main id="here"></main></body></html>"""
JOIN = """async ([id, state, theme]) => {
  document.body.dataset.jpThemeLight = String(theme === "light");
  const models = {};
  const differs = (a, b) => JSON.stringify(a) !== JSON.stringify(b);
  const join = async (id, state) => {
    const listeners = {}, fire = (name, ...given) => (listeners[name] || []).forEach((one) => one(...given));
    let dirty = {};
    const model = {
      get: (name) => state[name],
      set: (name, value) => {
        if (!differs(state[name], value)) return;
        state[name] = dirty[name] = value;
        fire(`change:${name}`);
      },
      save_changes: () => { const sent = dirty; dirty = {}; window.tell(id, { method: "update", state: sent }); },
      send: (content) => window.tell(id, { method: "custom", content }),
      on: (name, run) => (listeners[name] ||= []).push(run),
      off: (name, run) => (listeners[name] = (listeners[name] || []).filter((one) => one !== run)),
    };
    models[id] = (news) => {
      const changed = Object.keys(news).filter((name) => differs(state[name], news[name]));
      for (const name of changed) state[name] = news[name];
      for (const name of changed) fire(`change:${name}`);
    };
    document.head.append(Object.assign(document.createElement("style"), { textContent: state._css }));
    const { default: made } = await import(URL.createObjectURL(new Blob([state._esm], { type: "text/javascript" })));
    return { fire, render: ({ el }) => made.render({ model, el, host }) };
  };
  const host = {  // as anywidget's, which shows one widget inside of another
    getWidget: async (ref) => { const id = ref.slice("anywidget:".length); return join(id, await window.toState(id)); },
  };
  window.receive = (messages) => messages.forEach(([id, news]) => models[id]?.(news));
  const timers = new Set(), { setTimeout: begin, clearTimeout: end } = window;
  window.setTimeout = (run, ...given) => {
    const timer = begin(() => { timers.delete(timer); run(); }, ...given);
    timers.add(timer);
    return timer;
  };
  window.clearTimeout = (timer) => { timers.delete(timer); end(timer); };
  window.settled = () => timers.size === 0 && window.sent === 0;
  window.sent = 0;
  window.tell = async (id, message) => {
    window.sent += 1;
    for (let text = JSON.stringify(message); text !== null; ) {
      const { news, idle } = await window.toPython(id, text);
      receive(news);
      text = idle ? null : "";
      if (!idle) await new Promise((done) => setTimeout(done, 20));
    }
    window.sent -= 1;
  };
  const joined = await join(id, state);
  window.fire = joined.fire;
  window.again = () => joined.render({ el: document.body.appendChild(document.createElement("div")) });
  const start = performance.now();
  window.clean = await joined.render({ el: document.getElementById("here") });
  return performance.now() - start;
}"""


class Bare:
    """A page with one widget: messages go from the real Python object to its real front end and back."""

    def __init__(self, pages, page, widget, theme):
        self.page, self.widget, self._sent, self._widgets = page, widget, [], {}
        pages.shown[page] = self
        page.set_content(BARE)
        self.drawn_ms = page.evaluate(JOIN, [widget.model_id, self.state(widget.model_id), theme])

    def state(self, model_id):
        """Return what a widget sends when it is opened, and listen to what it sends later."""
        from ipywidgets.widgets.widget import _instances

        widget = self._widgets[model_id] = _instances[model_id]
        widget.comm.publish_msg = lambda _kind, data=None, **_about: self._sent.append((model_id, data))
        state = {name: value for name, value in widget.get_state().items() if name != "layout"}
        return json.loads(json.dumps(state, default=str))

    def answer(self, model_id, text):
        """Pass a message on; an empty text asks for what the background has changed since."""
        if text:
            self._widgets[model_id]._handle_msg({"content": {"data": json.loads(text)}, "buffers": []})
        idle = all(getattr(widget, "_idle", True) for widget in self._widgets.values())
        return {"news": self._taken(), "idle": idle}

    def _taken(self):
        sent, self._sent = self._sent, []
        return [(model_id, data["state"]) for model_id, data in sent if data and data.get("method") == "update"]

    def look(self, theme, width, height=900):
        """Make the page light or dark, and change its size."""
        self.page.evaluate("theme => (document.body.dataset.jpThemeLight = String(theme === 'light'))", theme)
        self.page.set_viewport_size({"width": width, "height": height})

    def flush(self):
        """Show what Python has changed by itself."""
        self.page.evaluate("messages => receive(messages)", self._taken())

    def settled(self):
        """Wait until no control waits for a pause in typing, and every message is answered."""
        self.page.wait_for_function("() => window.settled()")


class Pages:
    """The pages that tests use one after the other: a new one takes six times as long as a form on a used one."""

    def __init__(self, browser):
        self.context, self._free, self.shown = browser.new_context(), [], {}
        self.context.expose_binding("toPython", lambda source, *given: self.shown[source["page"]].answer(*given))
        self.context.expose_binding("toState", lambda source, *given: self.shown[source["page"]].state(*given))

    def take(self, width, height):
        """Return an empty page."""
        page = self._free.pop() if self._free else self.context.new_page()
        page.mouse.move(0, 0)
        page.set_viewport_size({"width": width, "height": height})
        return page

    def give_back(self, page):
        """Empty a page, for the next test."""
        page.goto("about:blank")
        self.shown.pop(page, None)
        self._free.append(page)


@pytest.fixture(scope="session")
def pages(browser):
    """Return the pages that all tests of forms share."""
    return Pages(browser)


@pytest.fixture
def bare(pages):
    """Return a function that shows a widget on a bare page; errors of its scripts fail the test."""
    taken, errors = [], []

    def note(error):
        errors.append(str(error))

    def show(widget, *, theme="light", width=1280, height=900):
        page = pages.take(width, height)
        taken.append(page)
        page.on("pageerror", note)
        return Bare(pages, page, widget, theme)

    yield show
    for page in taken:
        page.remove_listener("pageerror", note)
        pages.give_back(page)
    assert errors == []


# accessibility -------------------------------------------------------------------------------------------------------

AXE = """async ([where, tags]) => {
  // Colours of a theme that has just changed are on their way for a moment.
  const passing = document.getAnimations().filter((one) => one.effect.getComputedTiming().endTime !== Infinity);
  await Promise.allSettled(passing.map((one) => one.finished));
  const found = await axe.run(where, { runOnly: tags, resultTypes: ["violations"] });
  return found.violations.flatMap(({ id, impact, nodes }) =>
    nodes.map((node) => `${impact} ${id}: ${node.target.join(" ")}: ${node.failureSummary.split("\\n").at(-1).trim()}`));
}"""
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@pytest.fixture(scope="session")
def axe():
    """Return a function that runs axe-core on a part of a page and returns what it finds, one line each."""
    if importlib.util.find_spec("axe_core_python") is None:
        missing("axe-core-python is not installed")
    import axe_core_python

    source = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text("utf-8")

    def run(page, where=".ltk"):
        page.evaluate(source)
        return page.evaluate(AXE, [where, WCAG])

    return run
