"""Every end of a command has the exit code of its meaning and one line; 1 is a regression alone."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from toolkit import errors
from toolkit.cli import _calls as calls
from toolkit.dtypes import to_pandas
from toolkit.gas._study import Run

LONG = "x" * 300
VIEW = ["view", "0xcafe::registry::size"]
TRANSFER = "0x1::aptos_account::transfer"
STUDY = 'title = "Small"\n[versions]\nplan = "0:-1/5"\n[[call]]\nlabel = "size"\nview = "0xcafe::registry::size"\n'


def line_of(done):
    """Return the one line of stderr, without the command's name."""
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.strip().splitlines() if not line.startswith("Building an embedded ledger")]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("ledger-toolkit: ")
    return lines[0].removeprefix("ledger-toolkit: ")


def in_a_process(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "toolkit", *arguments], capture_output=True, timeout=120, check=False, **options
    )


@pytest.fixture
def failing(monkeypatch):
    """Return a function that makes `info` end with an error, whatever node it is asked of."""

    def fail(error):
        def connected(where):
            raise error

        monkeypatch.setattr(calls.console, "connected", connected)

    return fail


@pytest.mark.parametrize(("group", "title"), [([], "Measure gas"), (["study"], "Commands")])
def test_a_command_without_arguments_prints_its_help(command, group, title):
    """Help on stdout as `--help` prints it, nothing on stderr, exit code 0."""
    bare, asked = command(*group), command(*group, "--help")
    assert (bare.returncode, bare.stderr) == (0, "")
    assert bare.stdout == asked.stdout
    assert f"\n{title}:\n" in bare.stdout


ENDS = {
    "input": (errors.InputError("unusable"), 2, "error: unusable"),
    "schema": (errors.SchemaError("does not fit"), 2, "error: does not fit"),
    "an answer of a gateway": (errors.NotFound("not there", status=404), 3, "error: not there"),
    "unknown name": (errors.NotFound("no", status=404, error_code="module_not_found"), 2, "error: no"),
    "unfit": (errors.InvalidRequest("no", status=400, error_code="invalid_input"), 2, "error: no"),
    "unknown type": (errors.InvalidRequest("no", status=400, error_code="invalid_input", vm_error_code=2021), 2, "error: no"),
    "aborted": (errors.InvalidRequest("no", status=400, error_code="invalid_input", vm_error_code=4016), 3, "error: no"),
    "pruned": (errors.VersionPruned("no", status=410, error_code="version_pruned"), 3, "error: no"),
    "no answer": (errors.NodeUnreachable("silent"), 4, "error: silent"),
    "broken off": (errors.RunStopped("a worker died"), 5, "error: a worker died"),
    "read-only disk": (OSError(errno.EROFS, "Read-only file system", "a/b"), 2, "error: cannot use a/b: Read-only file"),
    "permission": (PermissionError(errno.EACCES, "Permission denied", "a"), 2, "error: cannot use a: Permission denied"),
    "bytes as name": (OSError(errno.ENOENT, "No such file", b"\xff"), 2, "error: cannot use \\udcff: No such file"),
    "no file name": (OSError("Couldn't deserialize thrift"), 2, "error: Couldn't deserialize thrift"),
    "full disk": (OSError(errno.ENOSPC, "No space left on device", "a"), 5, "error: cannot use a: No space left"),
    "too many files": (OSError(errno.EMFILE, "Too many open files", "a"), 5, "error: cannot use a: Too many open"),
    "memory": (MemoryError(), 5, "error: out of memory"),
    "Ctrl-C": (KeyboardInterrupt(), 130, "interrupted"),
    "Ctrl-C with words": (KeyboardInterrupt("stopped; 5 rows are kept"), 130, "stopped; 5 rows are kept"),
    "mistake": (KeyError("nonsense"), 70, "internal error: KeyError: 'nonsense'; please report this line and the command"),
    "wordless mistake": (AssertionError(), 70, "internal error: AssertionError; please report this line and the command"),
    "recursion": (RecursionError("too deep"), 70, "internal error: RecursionError: too deep; please report"),
    "pyarrow": (pa.ArrowNotImplementedError("no such cast"), 70, "internal error: ArrowNotImplementedError: no such"),
    "hostile text": (ValueError("a\nb\x1b[31m\u202e"), 70, "internal error: ValueError: a\\nb\\x1b[31m\\u202e; please"),
}  # fmt: skip


@pytest.mark.parametrize(("error", "code", "words"), ENDS.values(), ids=ENDS)
def test_each_error_has_its_code_and_one_line(command, failing, error, code, words):
    """The whole table, errors that nobody foresaw included."""
    failing(error)
    done = command("info")
    assert (done.returncode, done.stdout) == (code, "")
    assert line_of(done).startswith(words)


def test_problems_have_lines_of_their_own(command, failing):
    """A line break between two problems is printed, one within a problem is escaped."""
    failing(errors.StudyError("two problems:", "a\nb", "c\x1b[2J"))
    done = command("info")
    assert done.returncode == 2
    assert done.stderr == "ledger-toolkit: error: two problems:\n  a\\nb\n  c\\x1b[2J\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["view", "0x1::coin::supply"],
        ["view", "0x1::coin::suply"],
        ["view", "0xcafe::registri::size"],
        ["view", "0x1::coin::balance", "0xa11ce", "-t", "0x1::coin::Nothing"],
        ["view", "0xcafe::registry::size", "--ledger-version", "99999"],
        ["view", "0xcafe::registry::size", "--versions", "99999"],
        ["module", "0xcafe::registri"],
        ["simulate", "0x1::coin::transfer", "0xb0b", "5", "--sender", "0xa11ce"],
        ["simulate", "0xcafe::registry::registr", "x", "--sender", "0xa11ce"],
    ],
    ids=" ".join,
)
def test_one_mistake_has_one_code(command, arguments):
    """2, whether the toolkit or the node finds it."""
    done = command(*arguments)
    assert done.returncode == 2
    line_of(done)


@pytest.mark.parametrize(
    ("arguments", "instead"),
    [
        (["run", "study.toml"], "study run"),
        (["simulate", TRANSFER, "0xb0b", "1", "--sender", "0xa11ce", "--versions", "0:9"], 'at = "version"'),
        (["simulate", TRANSFER, "--arg", "0xb0b", "--sender", "0xa11ce"], "without an option"),
        (["simulate", TRANSFER, "0xb0b", "-100", "--sender", "0xa11ce"], " -- "),
        ([*VIEW, "--ledger-version", "5:9"], "--versions 5:9"),
        ([*VIEW, "--ledger-version", "noon"], "'--ledger-version': expected a ledger version"),
        (["view", "registry::size"], "'FUNCTION': not a function id"),
        ([*VIEW, "-t", "foo"], "'--type' / '-t'"),
        (["study", "init"], "new, plan, run, schema"),
        (["account", "aliec"], "`alice`"),
        (["simulate", TRANSFER, "0xb0b", "1", "--sender", "aliec"], "`alice`"),
        (["simulate", TRANSFER, "bbo", "1", "--sender", "alice"], "argument 1: not an address"),
        ([*VIEW, "0:9"], "--versions 0:9"),
        (["view", "0xcafe::registry::register", "x"], "simulate it"),
    ],
    ids=str,
)
def test_a_wrong_command_line_says_what_to_write(command, arguments, instead):
    """One line, exit code 2."""
    done = command(*arguments)
    assert done.returncode == 2
    assert instead in line_of(done)


def test_a_negative_argument_follows_two_dashes(command):
    """As the hint says: the amount itself is then the mistake."""
    done = command("simulate", "--sender", "0xa11ce", "--", TRANSFER, "0xb0b", "-100")
    assert done.returncode == 2
    assert "-100" in line_of(done)


@pytest.mark.parametrize(
    "arguments",
    [
        ["simulate", "0x1::aptos_account::transfer", "bob", "100", "--sender", "alice"],
        ["view", "0x1::coin::balance", "bob", "-t", "0x1::aptos_coin::AptosCoin"],
    ],
    ids=["simulate", "view"],
)
def test_a_name_given_as_an_argument_is_an_address_where_the_function_takes_one(command, arguments):
    """As in options. A String stays as it is."""
    by_name, by_address = (
        json.loads(command(*(one if one != "bob" else name for one in arguments), "--json").stdout)
        for name in ("bob", "0xb0b")
    )
    assert by_name == by_address
    record = command("view", "0xcafe::registry::record_of", "alice", "--json")
    assert json.loads(record.stdout)["values"][0]["owner"].endswith("a11ce")


@pytest.mark.parametrize("given", [("--ledger-version", "2026-03-05"), ("--ledger-version", "2026-03-05T00:00Z")])
def test_a_date_is_the_version_then_wherever_one_is_read(command, given):
    """The last version at or before it, as in a version plan, alone or among others, and for a gas schedule."""
    balance = ["view", "0x1::coin::balance", "alice", "-t", "0x1::aptos_coin::AptosCoin", "--json"]
    assert json.loads(command(*balance, *given).stdout)["ledger_version"] == 1753
    for plan, versions in (("2026-03-05", [1753]), ("100, 2026-03-05", [100, 1753])):
        rows = json.loads(command(*balance, "--versions", plan).stdout)["rows"]
        assert [row["ledger_version"] for row in rows] == versions
        assert all(row["ledger_timestamp"] for row in rows)
    assert json.loads(command("account", "alice", *given, "--json").stdout)["ledger_version"] == 1753
    schedule = json.loads(command("schedule", "2026-03-05", "--json").stdout)
    assert schedule["before"]["ledger_version"] == 1753


@pytest.mark.parametrize("by", ["option", "environment"])
def test_a_traceback_is_printed_only_if_asked_for(command, failing, monkeypatch, by):
    """By `--debug` or LEDGER_TOOLKIT_DEBUG=1; the line comes last, and the next command is as before."""
    failing(KeyError("nonsense"))
    with monkeypatch.context() as patch:
        if by == "environment":
            patch.setenv("LEDGER_TOOLKIT_DEBUG", "1")
        done = command(*(["--debug"] if by == "option" else []), "info")
    assert done.returncode == 70
    assert done.stderr.startswith("Traceback (most recent call last):\n")
    assert done.stderr.splitlines()[-1].startswith("ledger-toolkit: internal error: KeyError")
    for off in ("", "0"):
        monkeypatch.setenv("LEDGER_TOOLKIT_DEBUG", off)
        line_of(command("info"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["study", "run", LONG, "--out", "run"],
        ["study", "run", "study.toml", "--out", LONG],
        ["study", "new", LONG],
        ["study", "plan", LONG],
        ["study", "schema", "--out", LONG],
        ["demo", "--out", LONG],
        ["report", LONG],
        ["compare", LONG, LONG],
        [*VIEW, "--out", f"{LONG}.parquet"],
        [*VIEW, "--out", f"{LONG}.csv"],
    ],
    ids=lambda arguments: " ".join(arguments).replace(LONG, "LONG"),
)
def test_a_file_name_that_is_too_long_is_bad_input(command, tmp_path, arguments):
    """Whatever the name is of: code 2 and the system's words."""
    (tmp_path / "study.toml").write_text(STUDY)
    done = command(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "File name too long" in line_of(done)


@pytest.mark.parametrize("under", ["file", "file/deeper"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["study", "run", "study.toml", "--out", "{}"],
        ["study", "new", "{}/study.toml"],
        ["study", "schema", "--out", "{}/x.json"],
        ["demo", "--out", "{}"],
        ["report", "{}"],
        [*VIEW, "--out", "{}/x.parquet"],
    ],
    ids=" ".join,
)
def test_a_file_where_a_folder_is_needed_is_bad_input(command, tmp_path, arguments, under):
    """Code 2, with the place in the line."""
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "file").write_text("")
    done = command(*(text.format(under) for text in arguments), cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "file" in line_of(done)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return the folder of a finished run."""
    from toolkit import Study

    folder = tmp_path_factory.mktemp("finished")
    (folder / "study.toml").write_text(STUDY)
    Study.load(folder / "study.toml").run(folder / "run", progress=False)
    return folder / "run"


DAMAGED = {
    "empty": b"",
    "binary": b"\xff\xfe\x00",
    "cut": b'{"format": 1,',
    "a list": b"[]",
    "an empty object": b"{}",
    "null": b"null",
    "deep": b"[" * 100_000,
    "a long number": b'{"format": ' + b"9" * 10_000 + b"}",
    "a surrogate": b'{"format": "\\ud800"}',
}


@pytest.mark.parametrize(
    ("arguments", "content"),
    [
        *((["report", "{}"], content) for content in DAMAGED.values()),
        (["compare", "{}", "{}"], DAMAGED["cut"]),
        (["study", "run", "study.toml", "--out", "{}"], DAMAGED["cut"]),
    ],
    ids=[*(f"report {content}" for content in DAMAGED), "compare", "study run"],
)
def test_a_damaged_run_is_bad_input(command, finished, tmp_path, arguments, content):
    """A damaged run.json: code 2, and a line that names the run, by every command that opens one."""
    (tmp_path / "study.toml").write_text(STUDY)
    shutil.copytree(finished, tmp_path / "broken-run")
    (tmp_path / "broken-run" / "run.json").write_bytes(content)
    done = command(*(text.format("broken-run") for text in arguments), cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "broken-run" in line_of(done)


@pytest.mark.parametrize("depth", [40, 980, 100_000])
def test_a_deep_argument_is_bad_input(command, depth):
    """As an argument of a view or a simulation, and as the key of a table."""
    deep = "[" * depth + "]" * depth
    for arguments in (
        ["view", "0x1::coin::nothing", deep],
        ["simulate", "0x1::aptos_account::transfer", "0xb0b", deep, "--sender", "0xa11ce"],
        ["table-item", "0xabc", deep, "--key-type", "vector<u8>", "--value-type", "u8"],
    ):
        done = command(*arguments)
        assert done.returncode == 2, done.stderr
        assert len(line_of(done)) < 1_100


@pytest.mark.skipif(os.name != "posix", reason="arguments are bytes there only")
@pytest.mark.parametrize(
    "arguments", [[b"view", b"0x1::coin::x\xff"], [b"report", b"r\xffn"], [b"view", b"0xcafe::registry::size", b"--out=\xff.parquet"]]
)  # fmt: skip
def test_an_argument_that_is_not_utf8_is_bad_input(arguments, tmp_path):
    """Code 2, and the line says which argument it is."""
    done = in_a_process(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    expected = f"ledger-toolkit: error: argument {len(arguments)} is not UTF-8: "
    assert done.stderr.decode().startswith(expected), done.stderr
    assert done.stderr.count(b"\n") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="names need not be UTF-8 there only")
@pytest.mark.usefixtures("no_figures")
def test_a_folder_whose_name_is_not_utf8_can_be_worked_in(command, tmp_path):
    """Only what is written on the command line must be UTF-8."""
    folder = tmp_path / os.fsdecode(b"\xff")
    folder.mkdir()
    (folder / "study.toml").write_text(STUDY)
    study = ["study", "run", "study.toml", "--out", "run", "--quiet"]
    for arguments in (study, ["report", "run"], [*VIEW, "--out", "x.parquet"]):
        done = command(*arguments, cwd=folder)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_output_that_cannot_be_written_is_not_a_success():
    """Stdout on a full disk: code 5 and one line."""
    words = [sys.executable, "-m", "toolkit", "--help"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == 5
    assert line_of(done) == "error: cannot write the output: No space left on device"


@pytest.mark.skipif(os.name != "posix", reason="descriptors are closed otherwise there")
@pytest.mark.parametrize(("closed", "arguments", "code"), [(">&-", VIEW, 0), ("2>&-", ["study", "plan", "no.toml"], 2)])
def test_closed_streams_are_no_error(closed, arguments, code):
    """As under a supervisor that gives none: what is printed goes nowhere, and the code is that of the command."""
    words = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-m", "toolkit", *arguments]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.parametrize("name", ["x.parquet", "x.csv", "x.jsonl"])
def test_a_struct_without_fields_is_bad_input_for_parquet_only(command, monkeypatch, tmp_path, name):
    """Parquet has no such type: code 2 with the column and what to do; the other formats take it."""
    column = pa.array([{}, None], pa.list_(pa.struct([])).value_type)
    frame = to_pandas(
        pa.table(
            {
                "ledger_version": [1, 2],
                "ledger_timestamp": pa.nulls(2, pa.timestamp("us", "UTC")),
                "value": column,
                "error_code": pa.array([None, "x"], pa.string()),
            }
        )
    )
    monkeypatch.setattr("toolkit.client._fetch.fetch_views", lambda *_, **__: frame)
    done = command(*VIEW, "--out", name, cwd=tmp_path)
    if name == "x.parquet":
        assert done.returncode == 2
        assert line_of(done).startswith(
            "error: Parquet cannot store this frame: Cannot write struct type 'value' with no child field"
        )
        assert not list(tmp_path.iterdir())
    else:
        assert done.returncode == 0, done.stderr


def test_the_documentation_and_the_help_name_every_exit_code(command):
    """0 to 6, 70, 130 and 141."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "command-line.md").read_text("utf-8")
    for text in (command("--help").stdout, page):
        words = text[text.index("Exit codes") :]
        for code in (0, 1, 2, 3, 4, 5, 6, 70, 130, 141):
            assert f" {code} " in words.replace("\n", " ")


def test_only_a_regression_ends_with_1(command, finished, monkeypatch, tmp_path):
    """A mistake inside the gate itself is not one."""

    def mistake(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr(Run, "load", mistake)
    done = command("compare", str(finished), str(finished), "--fail-over", "2%")
    assert done.returncode == 70
    assert line_of(done).startswith("internal error: ZeroDivisionError")
