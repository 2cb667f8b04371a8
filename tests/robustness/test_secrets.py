"""Canaries: an API key and a login go through a gateway that repeats them in every way; then everything is searched.

The gateway stands in front of an honest node. It checks that the credentials arrive, and answers some ledger versions
with errors that quote them.
"""

from __future__ import annotations

import base64
import html
import json
import logging
import pickle
import shutil
import sqlite3
import traceback
import zlib
from dataclasses import replace
from functools import cache
from pathlib import Path
from urllib.parse import quote

import ipywidgets.embed
import pyarrow.parquet as pq
import pytest
from proxy import Last, ProxiedAnswer

import toolkit
from toolkit.cli import main
from toolkit.client._http import MASK, RetryPolicy
from toolkit.errors import Forbidden, NodeError, NodeUnreachable, SchemaError, StudyError

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = "LEDGER_TOOLKIT_API_KEY"
KEY = 'CaNaRy/K3y+9f8e"7d6c5b4a=='
PASSWORD = "CaNaRy&Pw/5e4d3c2b1a?"  # noqa: S105 - invented
LOGIN = f"canary:{quote(PASSWORD, safe='')}"
BASIC = base64.b64encode(f"canary:{PASSWORD}".encode()).decode()
SIZE = toolkit.ViewFunction("0xcafe::registry::size")
FIRST, LAST = 440, 475


def spellings(secret):
    """Return a secret in every spelling that a gateway may choose."""
    coded = quote(secret, safe="")
    sent = f"canary:{secret}" if secret == PASSWORD else secret
    return {
        "raw": secret,
        "percent": coded,
        "percent, lower": "".join(
            f"%{part[:2].lower()}{part[2:]}" if n else part for n, part in enumerate(coded.split("%"))
        ),
        "JSON": json.dumps(secret)[1:-1].replace("/", "\\/"),
        "JSON, all escapes": "".join(f"\\u{ord(one):04x}" for one in secret),
        "HTML": html.escape(secret),
        "HTML, all entities": "".join(f"&#{ord(one)};" for one in secret),
        "base64": base64.b64encode(sent.encode()).decode(),
        "base64url": base64.urlsafe_b64encode(sent.encode()).decode().rstrip("="),
        "first 20 characters": secret[:20],
        "last 9 characters": secret[-9:],
    }


@cache
def pieces():
    """Return every piece of 9 characters of the canaries in any spelling, with the spelling's name."""
    found = {}
    for secret in (KEY, PASSWORD):
        for name, spelling in spellings(secret).items():
            step = 6 if name == "JSON, all escapes" else 1
            for at in range(0, max(1, len(spelling) - 9 * step + 1), step):
                found.setdefault(spelling[at : at + 9 * step].lower(), name)
    return found


def leaks(data):
    """Return what is found of the canaries in bytes or text."""
    text = (data if isinstance(data, str) else data.decode("latin-1")).lower()
    return [f"{name}: {piece}" for piece, name in pieces().items() if piece in text]


def contents(folder):
    """Yield name and content of each file below a folder, unpacked as far as its format packs."""
    for place in sorted(folder.rglob("*")):
        if not place.is_file() or place.name == "study.toml":
            continue
        yield place.name, place.read_bytes()
        if place.suffix == ".parquet":
            table = pq.read_table(place)
            yield place.name, f"{table.schema.metadata} {table.to_pylist()}"
        if place.suffix == ".sqlite3":
            with sqlite3.connect(place) as db:
                for (name,) in db.execute("select name from sqlite_master where type = 'table'").fetchall():
                    for cell in (cell for row in db.execute(f"select * from {name}") for cell in row):  # noqa: S608 - our own file
                        yield place.name, unpacked(cell) if isinstance(cell, bytes) else str(cell)


def unpacked(cell):
    try:
        return zlib.decompress(cell)
    except zlib.error:
        return cell


class Gateway:
    """What the proxy does: 401 without the credentials, and at each version of `ECHOES` an error that repeats them."""

    def __init__(self, secret, authorization):
        self.secret, self.authorization = secret, authorization
        self.refused = self.admitted = 0
        self.echo_simulations = False
        said = " ".join(spellings(secret).values())
        body = f'{{"message": {json.dumps(said)}, "error_code": {json.dumps(said)}, "vm_error_code": null}}'
        escaped = '{"message": "unknown key %s", "error_code": "%s"}' % ((spellings(secret)["JSON, all escapes"],) * 2)
        coded = quote(secret, safe="")
        self.echoes = {
            442: lambda honest: replace(honest, status=403, body=body.encode()),
            443: lambda honest: replace(honest, status=403, body=escaped.encode()),
            444: lambda honest: replace(honest, status=404, body=body.encode()),
            446: lambda _: ProxiedAnswer(
                500, {"content-type": "text/html"}, f"<p>deserialize {html.escape(said)}".encode()
            ),
            447: lambda _: ProxiedAnswer(400, {"content-type": "text/plain"}, said.encode()),
            448: lambda _: ProxiedAnswer(400, {}, b"x" * 280 + said.encode()),
            449: lambda _: ProxiedAnswer(400, {}, b"<b>" * 2720 + b"key " + said.encode()),
            451: lambda honest: replace(honest, body=said.encode()),
            452: lambda honest: replace(honest, body=json.dumps({"key": secret}).encode()),
            453: lambda honest: replace(honest, body=json.dumps([secret]).encode()),
            454: lambda honest: replace(honest, body=b'["%s"]' % spellings(secret)["JSON, all escapes"].encode()),
            456: lambda _: ProxiedAnswer(307, {"location": f"ftp://{secret}/v1"}, b""),
            457: lambda _: ProxiedAnswer(
                307, {"location": f"http://127.0.0.1:1/{coded}/{spellings(secret)['base64']}"}, b""
            ),
            458: lambda _: ProxiedAnswer(302, {"location": f"http://127.0.0.1:1/{secret}"}, b""),
            459: lambda _: ProxiedAnswer(
                307, {"location": f"http://{coded}@127.0.0.1:1/{coded}?{coded}#{secret}"}, b""
            ),
            460: lambda _: ProxiedAnswer(307, {"location": f"http://[{coded}/"}, b""),
            462: lambda _: f"{secret} is not known\r\n\r\n".encode(),
            463: lambda _: f"HTTP/1.1 {secret} {secret}\r\n\r\n".encode(),
            464: lambda _: f"HTTP/1.1 403 {secret}\r\ncontent-length: 0\r\n\r\n".encode(),
            465: lambda _: f"HTTP/1.1 200 OK\r\n{secret}\r\ncontent-length: 2\r\n\r\n[]".encode(),
            466: lambda _: f"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{secret}\r\n".encode(),
            467: lambda _: (
                f"HTTP/1.1 200 OK\r\ncontent-encoding: {secret}\r\ncontent-length: {secret}\r\n\r\n".encode()
            ),
            469: lambda honest: replace(
                honest,
                status=410,
                body=json.dumps(
                    {
                        "message": said,
                        "error_code": "version_pruned",
                        "archival_endpoint": f"https://{coded}.test/{coded}",
                    }
                ).encode(),
            ),
            470: lambda honest: replace(honest, headers={**honest.headers, "content-type": f"text/{secret}"}),
        }

    def __call__(self, request, honest):
        if request.headers.get("authorization") != self.authorization:
            self.refused += 1
            return ProxiedAnswer(401, {}, b'{"message": "who are you?"}')
        self.admitted += 1
        if "/tables/" in request.path:
            told = {
                "message": f"no such item, {self.secret}",
                "error_code": "table_item_not_found",
                "vm_error_code": None,
            }
            return replace(honest, status=404, body=json.dumps(told).encode())
        if self.echo_simulations and "simulate" in request.path:
            return self.echoes[442](honest)
        if request.path.endswith("/view"):
            echo = self.echoes.get(int(request.query.get("ledger_version", 0)))
            answer = echo(honest) if echo else None
            return Last(answer) if isinstance(answer, bytes) else answer
        return None


@pytest.fixture(autouse=True)
def _one_attempt(monkeypatch):
    monkeypatch.setattr("toolkit.client._http.RetryPolicy", lambda attempts=1: RetryPolicy(attempts=attempts))
    monkeypatch.setattr("toolkit.client._progress._on_terminal", lambda: True)  # progress bars are drawn
    monkeypatch.delenv(ENVIRONMENT, raising=False)


@pytest.fixture(params=["key", "login"])
def gateway(request, proxy, monkeypatch):
    """Return a proxy that wants credentials, with the URL and the options of `connect` that give them."""
    if request.param == "key":
        monkeypatch.setenv(ENVIRONMENT, KEY)
        proxy.change, proxy.with_login = Gateway(KEY, f"Bearer {KEY}"), proxy.url
    else:
        proxy.change = Gateway(PASSWORD, f"Basic {BASIC}")
        proxy.with_login = proxy.url.replace("//", f"//{LOGIN}@")
    return proxy


def study_file(folder, url):
    """Write a study of a view and a simulation on a node."""
    place = folder / "study.toml"
    place.write_text(
        f'node = "{url}"\n[versions]\nplan = "{FIRST}:{LAST}"\n'
        '[[call]]\nlabel = "size"\nview = "0xcafe::registry::size"\n'
        '[[call]]\nlabel = "pay"\nsimulate = "0x1::aptos_account::transfer"\nsender = "0xa11ce"\narguments = ["0xb0b", 1]\n'
    )
    return place


def chain(error):
    """Return what a traceback of an error shows, and repr and pickle of it and of the errors behind it.

    Those behind it count even if tracebacks do not show them: a process that imported Dask pickles them (tblib).
    """
    texts = "".join(traceback.format_exception(error))
    while error is not None:
        texts += f"{error!r}{vars(error)!r}{pickle.dumps(error)!r}"
        error = error.__cause__ or error.__context__
    return texts


def log_all(caplog):
    """Log everything but what figures find out about fonts."""
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.WARNING, "matplotlib")


def all_leaks(texts):
    """Return the leaks of named texts, each with the text around it."""
    found = [
        (name, leak, text if isinstance(text, str) else text.decode("latin-1"))
        for name, text in texts
        for leak in leaks(text)
    ]
    return [f"{name}: {leak}: {_around(text, leak.rpartition(': ')[2])}" for name, leak, text in found]


def _around(text, piece):
    at = text.lower().find(piece)
    return text[max(0, at - 200) : at + 100]


def test_the_search_finds_the_canaries():
    """What this module relies on: a leak in any spelling is found, in a file or in a text."""
    for secret in (KEY, PASSWORD):
        for name, spelling in spellings(secret).items():
            assert leaks(f"xx{spelling}xx"), name
            assert leaks(f"xx{spelling}xx".upper().encode()), name
    assert not leaks("no secret, *** only")


@pytest.mark.fault(
    "a gateway that repeats credentials in its errors", "masked as `***` in errors, tracebacks and pickles"
)
@pytest.mark.parametrize("encoding", ["json", "bcs"])
def test_single_calls_show_no_credentials(gateway, encoding, caplog):
    """Each echo is an error of the tree; neither it nor what is behind it nor a log has a piece of the secret."""
    log_all(caplog)
    texts = []
    with toolkit.connect(gateway.with_login, encoding=encoding, cache=None, timeout_s=30) as node:
        node.ledger()
        for version in gateway.change.echoes:
            try:
                node.view(SIZE, ledger_version=version)
            except (NodeError, NodeUnreachable, SchemaError) as error:
                texts.append((f"version {version}", chain(error)))
        texts += [("node", repr(node)), ("vars", repr(vars(node))), ("pickle", pickle.dumps(node))]
    assert not gateway.change.refused
    assert len(texts) >= len(gateway.change.echoes) - 2  # a reason phrase and a content type alone are no errors
    assert any("***" in text for _, text in texts)
    assert not all_leaks(texts)
    assert not leaks(caplog.text)


@pytest.mark.fault(
    "a gateway that repeats credentials in its errors", "masked as `***` in frames and in the cache file"
)
def test_frames_and_the_cache_hold_no_credentials(gateway, tmp_path, caplog):
    """A sweep has a row for each echo; what is stored of a missing item is masked too, and is still a missing item."""
    log_all(caplog)
    for misfit in (453, 454):  # a value that does not fit its type ends a typed sweep
        del gateway.change.echoes[misfit]
    item = {"key_type": "0x1::string::String", "value_type": "u64"}
    with toolkit.connect(gateway.with_login, cache=tmp_path / "kept.sqlite3", timeout_s=30) as node:
        frame = toolkit.fetch_views(node, SIZE, versions=f"{FIRST}:{LAST}", progress=False)
        items = toolkit.fetch_table_items(
            node, "0x" + "a" * 64, keys=["x"], **item, versions=[441, 445], progress=False
        )
        again = toolkit.fetch_table_items(
            node, "0x" + "a" * 64, keys=["x"], **item, versions=[441, 445], progress=False
        )
        assert node.cache.stats().hits >= 2
        node.cache.flush()
        texts = [*contents(tmp_path)]
    assert items["error_code"].tolist() == again["error_code"].tolist() == ["table_item_not_found"] * 2
    assert again["error_message"].tolist() == [MASK] * 2
    assert int(frame["error_code"].notna().sum()) >= len(gateway.change.echoes) - 2
    texts += [
        (name, part) for one in (frame, items, again) for name, part in (("csv", one.to_csv()), ("html", one.to_html()))
    ]
    assert len(texts) > 10
    assert not all_leaks(texts)
    assert not leaks(caplog.text)


@pytest.mark.fault("a successful answer that contains the credentials", "values are data, and stay unchanged")
def test_values_are_not_altered(gateway):
    """A table item that is text is accepted, whatever the text is."""
    secret = gateway.change.secret
    gateway.change = lambda _, honest: replace(honest, status=200, body=json.dumps(secret).encode())
    types = {"key_type": "u64", "value_type": "0x1::string::String"}
    with toolkit.connect(gateway.with_login, cache=None) as node:
        assert node.table_item("0xa", key=1, **types, ledger_version=5).value == secret


@pytest.mark.fault(
    "a gateway that repeats credentials, read by a study", "absent from files, reports, logs, progress bars and pickles"
)
def test_a_study_leaves_no_credentials_behind(gateway, tmp_path, capsys, caplog):
    """Plan, run, steps, reports, reprs, documents, pickles, and what is printed; with threads and without."""
    log_all(caplog)
    executor = None if gateway.with_login == gateway.url else "threads:2"
    study = toolkit.Study.load(study_file(tmp_path, gateway.with_login), use_api_key=True)
    plan = study.plan()
    run = study.run(tmp_path / "run", executor=executor)
    for ending in ("html", "md", "json"):
        toolkit.reports.write(run, tmp_path / f"report.{ending}")
    again = study.run(tmp_path / "run")
    assert gateway.change.admitted > LAST - FIRST
    assert not gateway.change.refused
    assert run.complete
    assert int(run.observations["error_code"].notna().sum()) >= len(gateway.change.echoes) - 4
    reprs = [study, study.nodes, study.document(), run, run.study, plan, plan.document(), run.manifest, again.manifest]
    reprs += [run.explain(), run.notes, study.__pydantic_private__, vars(study)]
    texts = [("repr", repr(one)) for one in reprs]
    texts += [("pickle", pickle.dumps(one)) for one in (study, run.study, plan)]
    texts += [("frame", run.observations.to_html()), ("plan", plan._repr_html_()), *contents(tmp_path)]
    told = capsys.readouterr()
    texts += [("stdout", told.out), ("stderr", told.err), ("logs", caplog.text)]
    assert "observing" in told.err
    assert {name for name, _ in texts} >= {
        "run.json",
        "report.html",
        "report.md",
        "report.json",
        "part-00000000.parquet",
    }
    assert not all_leaks(texts)


@pytest.mark.fault("a gateway that repeats credentials, read by commands", "absent from everything printed or written")
def test_commands_leave_no_credentials_behind(gateway, tmp_path, monkeypatch, capfd, caplog):
    """Every command that reads a node, and what is made of its run; exit codes equal those with an honest node."""
    log_all(caplog)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    study_file(tmp_path, gateway.with_login)
    node, size = ["--node", gateway.with_login], "0xcafe::registry::size"
    handle = ["0xa", "x", "--key-type", "0x1::string::String", "--value-type", "u64"]
    for misfit in (453, 454):
        del gateway.change.echoes[misfit]
    commands = {
        ("info", *node): 0,
        ("probe", gateway.with_login): 0,
        ("view", size, *node): 0,
        ("view", size, "--ledger-version", "442", *node): 3,
        ("view", size, "--ledger-version", "457", *node): 3,
        ("view", size, "--versions", f"{FIRST}:{LAST}", "--out", "rows.csv", *node): 0,
        ("view", size, "--versions", f"{FIRST}:{LAST}", "--json", *node): 0,
        ("table-item", *handle, *node): 2,
        ("table-item", *handle, "--versions", "5:9", "--out", "rows.jsonl", *node): 0,
        ("schedule", "100", "200", *node): 0,
        ("study", "plan", "study.toml", "--use-api-key"): 0,
        ("study", "schema"): 0,
        ("study", "run", "study.toml", "--out", "run", "--use-api-key"): 0,
        ("study", "run", "study.toml", "--out", "run", *node): 0,
        ("report", "run", "--out", "report.html"): 0,
        ("compare", "run@445", "run@471"): 0,
    }
    assert {command: main(command) for command in commands} == commands
    gateway.change.echo_simulations = True
    simulation = ("simulate", "0x1::aptos_account::transfer", "0xb0b", "1", "--sender", "0xa11ce", *node)
    assert main(simulation) == 3
    assert main(("view", size, "--node", gateway.with_login + "?x")) == 2
    assert not gateway.change.refused
    told = capfd.readouterr()
    texts = [("stdout", told.out), ("stderr", told.err), ("logs", caplog.text), *contents(tmp_path)]
    assert {"report.html", "rows.csv", "rows.jsonl", "run.json"} <= {name for name, _ in texts}
    assert not all_leaks(texts)


def test_the_demo_ends_with_its_report_and_does_not_use_the_key(tmp_path, monkeypatch, capfd, caplog):
    """It starts a new run next to an earlier one; the environment's key appears in no file, output or log."""
    log_all(caplog)
    monkeypatch.setenv(ENVIRONMENT, KEY)
    out = tmp_path / "demo"
    shutil.copytree(ROOT / "data" / "samples" / "demo", out / "run")
    before = (out / "run" / "run.json").read_bytes()
    assert main(["demo", "--out", str(out)]) == 0
    told = capfd.readouterr()
    assert f"Report: {out / 'report.html'}" in told.out.splitlines()
    assert (out / "run" / "run.json").read_bytes() != before
    texts = [("stdout", told.out), ("stderr", told.err), ("logs", caplog.text), *contents(tmp_path)]
    assert {"report.html", "run.json", "steps.parquet"} <= {name for name, _ in texts}
    assert not all_leaks(texts)


@pytest.mark.fault("a gateway that repeats credentials, used in a notebook", "absent from outputs and widget state")
def test_widgets_hold_no_credentials(gateway):
    """The form's whole state after a simulation that was refused, its Python, and what a notebook shows of results."""
    with toolkit.connect(gateway.with_login, cache=None) as node:
        builder = toolkit.widgets.SimulationBuilder(node)
        builder.sender, builder.function = "0xa11ce", "0x1::aptos_account::transfer"
        builder.arguments = '["0xb0b", 100]'
        builder.simulate()
        shown = [builder.simulation.explain(), builder.simulation._repr_html_(), node.probe()._repr_html_()]
        gateway.change.echo_simulations = True
        builder.simulate()
        assert "***" in builder.error
        state = json.dumps(ipywidgets.embed.embed_data([builder], drop_defaults=False), default=str)
        texts = [("state", state), ("get_state", repr(builder.get_state())), ("python", builder.python)]
        texts += [("errors", repr(builder.errors)), *(("html", one) for one in shown)]
        builder.close()
    assert "***" in state
    assert not all_leaks(texts)


@pytest.mark.fault(
    "a study file that names a host its reader does not know", "the API key in the environment is not sent"
)
def test_the_key_of_the_environment_waits_for_a_yes(gateway, tmp_path, monkeypatch, capsys):
    """Without a yes nothing is sent and the refusal says how; with one, by argument or option, the key arrives."""
    monkeypatch.setenv(ENVIRONMENT, KEY)
    place = study_file(tmp_path, gateway.url)
    gateway.change = Gateway(KEY, f"Bearer {KEY}")
    for ask in (lambda study: study.run(tmp_path / "no", progress=False), lambda study: study.plan()):
        for study in (toolkit.Study.load(place), toolkit.Study(node=gateway.url, calls=[SIZE], versions="5:9")):
            with pytest.raises(Forbidden, match=r"401.*LEDGER_TOOLKIT_API_KEY .*--use-api-key"):
                ask(study)
    assert main(["study", "run", str(place), "--out", str(tmp_path / "no")]) == 3
    assert "--use-api-key" in capsys.readouterr().err
    assert not gateway.change.admitted
    assert {request.headers.get("authorization") for request in gateway.requests} == {None}
    toolkit.Study(node=gateway.url, calls=[SIZE], versions="5:9", use_api_key=True).plan()
    assert main(["study", "plan", str(place), "--use-api-key"]) == 0
    assert main(["study", "plan", str(place), "--node", gateway.url]) == 0
    assert gateway.change.admitted


@pytest.mark.fault(
    "a study file that asks for the API key", "rejected: only the person who runs the study can allow it"
)
def test_a_file_cannot_say_yes(tmp_path):
    """Who names the host must not also be who allows it the key."""
    place = study_file(tmp_path, "https://gateway.test")
    place.write_text("use_api_key = true\n" + place.read_text())
    with pytest.raises(StudyError, match="use the option --use-api-key"):
        toolkit.Study.load(place)


def test_public_networks_get_the_key_and_files_name_them(monkeypatch):
    """By name, or by the same URL over TLS; not by a name that points at this machine, nor by another path or port."""
    asked = {}
    for name in (
        "mainnet",
        "testnet",
        "https://api.mainnet.aptoslabs.com",
        "http://api.mainnet.aptoslabs.com",
        "https://api.mainnet.aptoslabs.com:8443",
        "https://api.mainnet.aptoslabs.com.evil.test",
        "local",
        "embedded",
        "https://gateway.test",
    ):
        [connection] = toolkit.Study(node=name, calls=[SIZE]).connections()
        assert connection["target"] == name
        asked[name] = connection["api_key"] is None
    assert [name for name, gets in asked.items() if gets] == ["mainnet", "testnet", "https://api.mainnet.aptoslabs.com"]


@pytest.mark.fault("a run resumed without the login it started with", "401, with advice on how to pass the login")
def test_a_run_without_its_login_says_what_is_missing(proxy, tmp_path, capsys):
    """The folder does not have it; the study's digest is the same without it, so that giving it again goes on."""
    proxy.change = Gateway(PASSWORD, f"Basic {BASIC}")
    place = study_file(tmp_path, proxy.url.replace("//", f"//{LOGIN}@"))
    study = toolkit.Study.load(place)
    whole = study.run(tmp_path / "run", progress=False)
    (tmp_path / "run" / "steps.parquet").unlink()
    bare = toolkit.Study.load(study_file(tmp_path, proxy.url))
    assert study.digest == bare.digest == whole.study.digest
    for without in (bare, whole.study, pickle.loads(pickle.dumps(study))):  # noqa: S301 - our own bytes
        with pytest.raises(Forbidden, match=r"401.*user:password@ .*--node"):
            without.plan()
    assert main(["study", "run", str(place), "--out", str(tmp_path / "run")]) == 3
    assert "user:password@" in capsys.readouterr().err
    given = ["--node", proxy.url.replace("//", f"//{LOGIN}@")]
    assert main(["study", "run", str(place), "--out", str(tmp_path / "run"), *given]) == 0
    assert toolkit.Run.open(tmp_path / "run").digest == whole.digest


@pytest.mark.fault(
    "views read by worker processes", "a key comes from their environment; a login ends the run, with advice"
)
def test_worker_processes_get_no_credentials_from_here(gateway, tmp_path):
    """What is sent to a worker has neither; nor does a worker send its environment's key instead of a login."""
    study = toolkit.Study.load(study_file(tmp_path, gateway.with_login), use_api_key=True)
    if gateway.with_login == gateway.url:
        run = study.run(tmp_path / "run", executor="processes:1", progress=False)
        assert run.complete
        assert not gateway.change.refused
        assert not all_leaks(contents(tmp_path))
    else:
        with pytest.raises(Forbidden, match="worker processes do not store logins") as caught:
            study.run(tmp_path / "run", executor="processes:1", progress=False)
        assert not leaks(chain(caught.value))


@pytest.mark.parametrize(
    "nodes",
    [
        f'node = ["http://{LOGIN}@node.test"]',
        f'nodes = "http://{LOGIN}@node.test"',
        f'nodes = ["http://{LOGIN}@node.test", "http://other:x@node.test"]',
        f'nodes = [["http://{LOGIN}@node.test"]]',
        f'node = "ftp://{LOGIN}@node.test"',
        f'node = "http://{LOGIN}@node.test/v1?x"',
        f'nod = "http://{LOGIN}@node.test"',
        f'node = "http://{LOGIN}@node.test',
        f'node = {{ url = "http://{LOGIN}@node.test" }}',
    ],
)
def test_a_study_that_cannot_be_used_does_not_show_its_login(nodes, tmp_path):
    """Whatever is wrong with it."""
    place = study_file(tmp_path, "embedded")
    place.write_text(place.read_text().replace('node = "embedded"', nodes))
    with pytest.raises(StudyError) as caught:
        toolkit.Study.load(place)
    assert not leaks("".join(traceback.format_exception(caught.value)))
