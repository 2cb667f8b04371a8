"""The command line as a shell has it: completion, examples in every help, one meaning of ``--json``, exit codes."""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import subprocess
import sys

import pytest
import typer.main

import toolkit
from toolkit import cli
from toolkit.cli import _comparisons, _console
from toolkit.client._http import NETWORKS
from toolkit.gas._observations import Source

ROOT = typer.main.get_command(cli.app)


def commands(group=ROOT, words=()):
    """Return the commands by their words, those of groups included."""
    found = {}
    for name, one in group.commands.items():
        found |= commands(one, (*words, name)) if hasattr(one, "commands") else {(*words, name): one}
    return found


COMMANDS = commands()
PLAIN = {("node",), ("app",)}
"""Commands without --json: `node` runs until it is stopped."""
REDIRECTIONS = {">", ">>", "|"}
"""What follows is the shell's."""


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_help_of_each_command_has_examples_that_parse(command, words):
    """Each line under Examples is a command line of this command, with all that it requires."""
    text = command(*words, "--help").stdout
    lines = [line.strip() for line in text.partition("Examples:\n")[2].splitlines() if line.strip()]
    assert lines
    for line in lines:
        name, *given = itertools.takewhile(lambda word: word not in REDIRECTIONS, shlex.split(line))
        assert name == "ledger-toolkit"
        assert tuple(given[: len(words)]) == words
        COMMANDS[words].make_context(line, given[len(words) :])
    assert not re.search(r"<(str|int|path)>|list\[|[{}]", text.partition("Examples:")[0])


def test_a_wrong_command_line_says_how_to_write_it(command):
    """Its usage, without braces; a choice lists its values, without words of the library that checks it."""
    told = command("replay", "3000").stderr
    assert "VERSION" in told
    assert "ledger-toolkit replay [OPTIONS] NODE VERSION" in told
    assert "Did you mean 'info'? " in command("inof").stderr
    told = command("transactions", "--frame", "rows").stderr
    assert "'failures'" in told
    assert "Value error" not in told
    assert "expected 1 type argument, got 0" in command("view", "0x1::coin::supply").stderr


def completed(shell, line, cwd):
    """Return what a shell offers for a line, as the script of --show-completion asks for it."""
    words = line.split(" ")
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_TYPER_COMPLETE_ARGS": line}
    asked |= {"_TYPER_COMPLETE_FISH_ACTION": "get-args", "_LEDGER_TOOLKIT_COMPLETE": f"complete_{shell}"}
    where = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", "from toolkit.cli import main; main()"],
        env=os.environ | asked | where,
        capture_output=True,
        text=True,
        check=True,
        cwd=cwd,
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_options(shell, tmp_path):
    """What is offered does not depend on the shell, only how it is written."""
    lines = (
        ("ledger-toolkit sim", {"simulate"}, {"snapshot"}),
        ("ledger-toolkit study r", {"run"}, {"plan"}),
        ("ledger-toolkit view --ledger", {"--ledger-version"}, {"--node"}),
    )
    for line, names, absent in lines if shell == "bash" else lines[1:2]:
        text = completed(shell, line, tmp_path)
        offered = set(re.findall(r"[\w./-]+", text))
        assert names <= offered, (line, text)
        assert not absent & offered, (line, text)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_is_shown(shell, monkeypatch, command):
    """`--show-completion` prints it."""
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    # typer reads the variable when it makes the command
    monkeypatch.setattr(cli, "_root_command", cli._root_command.__wrapped__)
    done = command("--show-completion", shell)
    assert done.returncode == 0, done.stderr
    assert "_LEDGER_TOOLKIT_COMPLETE=complete_" + shell in done.stdout


def test_the_named_nodes_are_the_known_ones():
    """The list in the help is that of the client, which the command line does not import for it."""
    assert _console.NodeOption.__metadata__[0].help.startswith(", ".join(("embedded", *NETWORKS)))


@pytest.fixture(scope="module")
def folder(url, tmp_path_factory):
    """Return a folder with a study, a run and a snapshot of it, and an archive."""
    place = tmp_path_factory.mktemp("shell")
    text = f'node = "{url}"\n[versions]\nplan = "1000:3000:1000"\n[[call]]\nlabel = "size"\nview = "0xcafe::registry::size"\n'
    (place / "study.toml").write_text(text)
    toolkit.Study.load(place / "study.toml").run(place / "run", progress=False)
    assert cli.main(["snapshot", str(place / "run"), "--out", str(place / "gas.toml")]) == 0
    with toolkit.connect(url) as node:
        toolkit.sync(node, place / "archive", "0:99", progress=False)
    return place


SUPPLY = ["0x1::coin::supply", "--type", "0x1::aptos_coin::AptosCoin"]
LINES = {
    ("info",): ["--node", "URL"],
    ("probe",): ["URL"],
    ("module",): ["0xcafe::registry", "--node", "URL"],
    ("account",): ["0xcafe", "--node", "URL"],
    ("view",): [*SUPPLY, "--node", "URL"],
    ("table-item",): shlex.split(
        "HANDLE alice --key-type 0x1::string::String --value-type 0xcafe::registry::Record --node URL"
    ),
    ("simulate",): ["0x1::aptos_account::transfer", "0xb0b", "1", "--sender", "0xa11ce", "--node", "URL"],
    ("schedule",): ["3501", "3502", "--node", "URL", "--out", "schedule.csv"],
    ("timeline",): ["--versions", "0:500", "--node", "URL", "--out", "timeline.csv"],
    ("transactions",): ["--versions", "-50:", "--node", "URL", "--out", "t.csv"],
    ("events",): ["0x1::transaction_fee::FeeStatement", "--versions", "-50:", "--node", "URL", "--out", "e.csv"],
    ("resources",): ["0x1", "0x1::chain_id::ChainId", "--node", "URL", "--out", "r.csv"],
    ("balances",): ["--versions", "-50:", "--node", "URL", "--out", "b.csv"],
    ("sync",): ["URL", "--out", "archive", "--versions", "0:199", "--quiet"],
    ("sql",): ["archive", "select count(*) as n from transactions"],
    ("forecast",): ["run", "--schedule", "instr.*=x10", "--out", "forecast.csv"],
    ("compare",): ["run@1000", "run@3000"],
    ("snapshot",): ["run", "--out", "gas.toml", "--check"],
    ("report",): ["run", "--out", "r.html"],
    ("study", "new"): ["new.toml"],
    ("study", "plan"): ["study.toml"],
    ("study", "schema"): ["--out", "schema.json"],
    ("study", "run"): ["study.toml", "--out", "run", "--quiet"],
}
ELSEWHERE = {("demo",), ("grade",), ("replay",)}
"""Commands whose --json has a test of its own: they take longer, or need a node with bytecode."""


def test_each_command_has_json():
    """All but `node`, with the same help; a new command needs a line here."""
    helps = set()
    for words, one in COMMANDS.items():
        found = [parameter for parameter in one.params if "--json" in parameter.opts]
        assert len(found) == (words not in PLAIN), words
        helps |= {parameter.help for parameter in found}
    assert len(helps) == 1
    assert set(COMMANDS) == set(LINES) | ELSEWHERE | PLAIN


@pytest.mark.parametrize("words", LINES, ids=" ".join)
def test_json_is_one_document_with_its_format(command, folder, ledger, url, words):
    """Nothing else is on stdout, and a file of --out is named in it."""
    handle = ledger.view("0xcafe::registry::handle")[0][0]
    given = [{"URL": url, "HANDLE": handle}.get(word, word) for word in LINES[words]]
    done = command(*words, *given, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["format"] == _console.JSON_FORMAT
    if "--out" in given and words != ("snapshot",):
        assert given[given.index("--out") + 1] in document.values()


def test_the_schema_is_json_in_any_case(command):
    """Without --out the output is the schema itself, for a file; --json does not change it."""
    plain, with_json = command("study", "schema"), command("study", "schema", "--json")
    assert plain.stdout == with_json.stdout
    assert json.loads(plain.stdout)["type"] == "object"


def test_a_snapshot_is_written_and_refused_as_json(command, folder):
    """Writing prints the file and the number of calls; --format github prints annotations, which are not JSON."""
    done = command("snapshot", "run", "--out", "new.toml", "--json", cwd=folder)
    assert json.loads(done.stdout) == {"format": _console.JSON_FORMAT, "snapshot": "new.toml", "calls": 1}
    done = command("snapshot", "run", "--out", "new.toml", "--check", "--json", "--format", "github", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "give either --json or --format github, not both" in done.stderr


def test_a_run_says_what_to_do_next(command, folder):
    """The report and the comparison, with the folder quoted for a shell; not in JSON."""
    done = command("study", "run", "study.toml", "--out", "my run", "--quiet", cwd=folder)
    lines = done.stdout.splitlines()[-2:]
    assert lines == [
        "Next: ledger-toolkit report 'my run' --out report.html",
        "      ledger-toolkit compare OTHER_RUN 'my run' --fail-over 2%",
    ]
    assert command(*shlex.split(lines[0])[2:], cwd=folder).returncode == 0


def test_a_run_of_a_study_with_limits_says_whether_it_keeps_them(command, folder):
    """The verdict of the report; and the comparison does not replace the limits of the study."""
    limited = (folder / "study.toml").read_text().replace("[[call]]", "[thresholds]\npercent = 5\n[[call]]")
    (folder / "limited.toml").write_text(
        limited.replace("registry::size", "order_book::depth").replace("0xcafe", "0xb00c")
    )
    done = command("study", "run", "limited.toml", "--out", "limited", "--quiet", cwd=folder)
    assert done.returncode == 0
    [line] = [line for line in done.stdout.splitlines() if "1 regression in 1 judged call" in line]
    assert "FAILED" not in line  # the exit code is 0
    assert done.stdout.endswith("compare OTHER_RUN limited\n")
    said = json.loads(
        command("study", "run", "limited.toml", "--out", "limited", "--quiet", "--json", cwd=folder).stdout
    )
    assert said["verdict"] == "failed"


def test_times_have_their_time_zone(command):
    """As in sentences."""
    assert "2026-06-28 22:04:48 UTC\n" in command("info").stdout


def test_the_help_and_the_readme_name_every_exit_code_of_the_code():
    """Each constant of the code is there, and no other number."""
    codes = {0, cli.BAD_INPUT, cli.REFUSED, cli.UNREACHABLE, cli.STOPPED, cli.INTERNAL, cli.INTERRUPTED, cli.UNHEARD}
    codes |= {_comparisons.REGRESSED, _comparisons.NOT_JUDGED}
    assert {int(number) for number in re.findall(r"^  (\d+) ", cli.EXIT_CODES, re.MULTILINE)} == codes


def test_the_help_of_compare_lists_its_options_by_subject(command):
    """What a verdict follows, and what only a replay uses, apart from the others; each option once."""
    lines = command("compare", "--help").stdout.splitlines()
    titles = [line for line in lines if line and not line.startswith(" ")]
    assert titles[1:] == ["Arguments:", "Verdict:", "Replay:", "Options:"]
    options = [line.split()[0] for line in lines if line.startswith("  --")]
    assert len(options) == len(set(options))
    replay = lines[lines.index("Replay:") + 1 : lines.index("Options:")]
    names = [line.split()[0] for line in replay if line.startswith("  --")]
    assert names == ["--code", "--schedule", "--function", "--last", "--versions"]


def test_the_help_of_compare_names_every_source(command):
    """Each is a value of --source."""
    words = command("compare", "--help").stdout.replace(",", " ").replace(";", " ").split()
    assert set(Source) <= {*words}


def test_the_help_breaks_no_name_at_its_hyphen(command):
    """The lines are 80 characters wide, so the name of the distribution would be cut in two."""
    assert not [line for line in command("--help").stdout.splitlines() if line.endswith("-")]
