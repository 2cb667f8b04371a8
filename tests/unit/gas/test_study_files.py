"""Study files on disk: hostile ones, the schema for editors, the starter, documents of runs."""

from __future__ import annotations

import json
import tomllib
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolkit
from toolkit.errors import StudyError
from toolkit.gas._file_model import TOP_LEVEL_KEYS
from toolkit.gas._study import Study
from toolkit.gas._study_file import StudyFile, write_starter

ROOT = Path(__file__).resolve().parents[3]
VIEW = '[versions]\nplan = "0:-1"\n[[call]]\nview = "0x1::m::f"\n'


@pytest.fixture
def load(tmp_path):
    def write_and_load(content):
        place = tmp_path / "study.toml"
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
        return Study.load(place)

    return write_and_load


def test_a_file_with_a_byte_order_mark_is_read(load):
    """Editors of Windows write one."""
    assert load(VIEW.encode("utf-8-sig")) == load(VIEW)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("a = " + "[" * 200_000, id="deep lists"),
        pytest.param("a = " + "{a=" * 100_000, id="deep tables"),
        pytest.param(VIEW + "arguments = " + "[" * 90 + "]" * 90, id="arguments in arguments"),
        pytest.param("title." + "a." * 100_000 + "a = 1\n" + VIEW, id="deep keys"),
        pytest.param("[versions." + "a." * 100_000 + "a]\nplan = 1\n", id="deep tables by name"),
        pytest.param("title = " + "9" * 5_000 + "\n" + VIEW, id="a number of 5,000 digits"),
        pytest.param(bytes(range(256)) * 100, id="binary"),
        pytest.param(b"PAR1" + b"\0" * 1_000, id="a Parquet file"),
        pytest.param(b"\xff\xfe" + VIEW.encode("utf-16-le"), id="UTF-16"),
        pytest.param("", id="empty"),
        pytest.param("# nothing", id="a comment"),
        pytest.param("x" * 999_999, id="one long line"),
        pytest.param('"\\u0000" = 1\n' + VIEW, id="a NUL as key"),
        pytest.param(VIEW.replace("0x1::m::f", "0x1::m::\\u202e"), id="a function that reads backwards"),
        pytest.param("versions = 1979-05-27\n[[call]]\n", id="a date"),
    ],
)
def test_a_hostile_file_is_one_clear_line(load, content):
    """Whatever the bytes: a StudyError that names the file, in one short line."""
    with pytest.raises(StudyError) as caught:
        load(content)
    told = str(caught.value)
    assert "study.toml" in told
    assert "\n" not in told
    assert "\0" not in told
    assert len(told) < 700


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (VIEW + 'thresholds = "2%"\n', "call 1, `thresholds`: expected a table, got '2%'"),
        (VIEW + "requests_per_second = 5\n", r"`requests_per_second` is not a key here; .* above the first \[table\]"),
        (
            'requests_per_second = "fast"\n' + VIEW,
            "`requests_per_second`: expected a valid number, unable to parse string as a number, got 'fast'",
        ),
        ("requests_per_second = -1\n" + VIEW, "`requests_per_second`: expected a number greater than 0, got -1"),
        (VIEW.replace('"0:-1"', "[1.5]"), "versions, `plan`: expected a version plan such as .*got .1.5"),
        (VIEW.replace('"0:-1"', "true"), "versions, `plan`: expected a version plan such as .*got True"),
        ('call = "x"\n[versions]\nplan = 1\n', "versions, `plan`: expected a version plan"),
        (VIEW + '[waiver]\ncall = "x"\n', r"write \[\[waiver\]\], in double brackets"),
        (VIEW.replace("[[call]]", "[call]"), r"\[\[call\]\]"),
        *((f"nodes = {value}\n{VIEW}", "`?nodes") for value in ('"mainnet"', "5", "[]")),
        (f'node = "mainet"\n{VIEW}', "node.*mainet"),
        (f'nodes = ["mainnet", "testnt"]\n{VIEW}', "node.*testnt"),
    ],
)
def test_what_newcomers_write_is_told_in_their_words(load, text, words):
    """The place, what was expected, and where it belongs."""
    with pytest.raises(StudyError, match=words):
        load(text)


def test_keys_of_the_whole_file_are_keys_of_a_file():
    """The hint is of keys that are there."""
    assert set(TOP_LEVEL_KEYS) < set(StudyFile.model_fields)


def with_dates_as_text(value):
    """Return TOML content as JSON has it."""
    if isinstance(value, dict):
        return {name: with_dates_as_text(item) for name, item in value.items()}
    if isinstance(value, list):
        return [with_dates_as_text(item) for item in value]
    return value.isoformat() if isinstance(value, date) else value


@pytest.fixture(scope="module")
def validator():
    import jsonschema  # takes a while

    schema = toolkit.Study.json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_the_shipped_studies_fit_the_schema(validator, tmp_path):
    """The demo, the starter, and a study with everything in it."""
    texts = [
        (ROOT / "data" / "studies" / "demo.toml").read_text("utf-8"),
        write_starter(tmp_path / "new.toml").read_text("utf-8"),
        uncommented((tmp_path / "new.toml").read_text("utf-8")),
    ]
    for text in texts:
        validator.validate(with_dates_as_text(tomllib.loads(text)))


def test_a_sender_may_come_from_the_grid(validator):
    """A simulation has its sender in itself or in its grid."""
    for keys in ({"sender": "0xa"}, {"grid": {"sender": ["0xa", "0xb"]}}):
        study = {"versions": {"plan": "0:-1"}, "call": [{"simulate": "0x1::m::f"} | keys]}
        validator.validate(study)
        Study.from_document(study)


@pytest.mark.parametrize(
    "change",
    [
        {"titel": "x"},
        {"versions": {}},
        {"versions": {"plan": "0:-1", "find_steps": "0:-1"}},
        {"call": []},
        {"call": [{"label": "x"}]},
        {"call": [{"view": "0x1::m::f", "committed": "0x1::m::f"}]},
        {"call": [{"view": "0x1::m::f", "argumets": []}]},
        {"call": [{"simulate": "0x1::m::f"}]},
        {"call": [{"simulate": "0x1::m::f", "grid": {"arguments": [[1]]}}]},
        {"call": [{"view": "0x1::m::f", "grid": {"arguments": [1]}}]},
        {"node": "mainnet", "nodes": ["testnet"]},
        {"thresholds": {"percent": -1}},
        {"waiver": [{"call": "x"}]},
        {"requests_per_second": 0},
    ],
)
def test_the_schema_refuses_what_loading_refuses(validator, change):
    """An editor marks the mistakes that loading the study would report."""
    good = {"versions": {"plan": "0:-1"}, "call": [{"view": "0x1::m::f"}]}
    validator.validate(good)
    Study.from_document(good)
    assert not validator.is_valid(good | change)
    with pytest.raises(StudyError):
        Study.from_document(good | change)


def test_the_schema_describes_every_key(validator):
    """Completion shows what a key is for."""
    tables = [validator.schema, *validator.schema["$defs"].values()]
    keys = [(name, key) for table in tables for name, key in table.get("properties", {}).items()]
    assert len(keys) > 25
    assert [name for name, key in keys if not key.get("description")] == []


def test_the_schema_under_data_is_the_one_in_code():
    """`ledger-toolkit study schema --out data/studies/study.schema.json` writes it."""
    assert json.loads((ROOT / "data" / "studies" / "study.schema.json").read_text()) == Study.json_schema()


TABLES = {
    "At the top": None,
    "`[[call]]`": "CallEntry",
    "`[call.grid]`": "Grid",
    "`[thresholds]` and `[call.thresholds]`": "Threshold",
    "`[versions]`": "VersionChoice",
    "`[[waiver]]`": "Waiver",
}


def key_tables(schema):
    """Return the tables of all keys in Markdown, from the JSON Schema."""
    lines = []
    for title, name in TABLES.items():
        lines += [f"### {title}", "", "| key | type | meaning | default |", "|---|---|---|---|"]
        for key, about in (schema["$defs"][name] if name else schema)["properties"].items():
            meaning = " ".join(about["description"].replace("``", "`").split()).replace("|", "\\|")
            kinds = {one.get("type", "table"): None for one in about.get("anyOf", [about])}
            kinds = ["list of tables" if "$ref" in about.get("items", ()) else kind for kind in kinds if kind != "null"]
            kinds = ["string" if key == "source" else kind for kind in kinds]  # one of the words of an enum
            default = about.get("default")
            shown = "" if default is None else f"`{json.dumps(default)}`"
            lines.append(f"| `{key}` | {' or '.join(kinds).replace('array', 'list')} | {meaning} | {shown} |")
        lines.append("")
    return "\n".join(lines)


def test_the_page_of_the_study_file_has_every_key():
    """`docs/reference/study-file.md` ends with the tables of the schema."""
    tables = key_tables(Study.json_schema())
    assert set(TABLES.values()) - {None} == set(Study.json_schema()["$defs"]) - {"Source"}
    assert (ROOT / "docs" / "reference" / "study-file.md").read_text("utf-8").endswith(f"## All keys\n\n{tables}"), (
        tables
    )


def uncommented(text):
    """Return the starter with the choices it offers in comments taken: node, search, limits, waiver."""
    taken = (
        text.replace('node = "embedded" ', "# ").replace('plan = "0:-1/200" ', "# ").replace("# plan =", "## plan =")
    )
    for key in (
        "nodes",
        "source",
        "requests_per_second",
        "find_steps",
        "initial",
        "max_requests",
        "percent",
        "gas_units",
        "call",
        "reason",
        "expires",
    ):
        taken = taken.replace(f"# {key} =", f"{key} =")
    for table in ("[[waiver]]", "[thresholds]", "[call.thresholds]"):
        taken = taken.replace(f"# {table}", table)
    return taken


def test_what_the_starter_offers_in_comments_works_too(tmp_path):
    """A newcomer who takes a comment sign away has a study that loads."""
    text = uncommented(write_starter(tmp_path / "new.toml").read_text("utf-8"))
    (tmp_path / "taken.toml").write_text(text)
    study = Study.load(tmp_path / "taken.toml")
    assert study.nodes == ("mainnet", "testnet")
    assert study.versions.search is not None
    assert study.requests_per_second == 20
    assert [waiver.name for waiver in study.waivers] == ["order book depth", "committed"]
    assert study.thresholds.gas_units == 50


def test_the_starter_is_never_written_over_a_file(tmp_path):
    """What is there stays."""
    place = tmp_path / "study.toml"
    place.write_text("mine")
    with pytest.raises(StudyError, match="already exists"):
        write_starter(place)
    assert place.read_text() == "mine"
    with pytest.raises(StudyError, match="cannot be written"):
        write_starter(tmp_path / "none" / "study.toml")


DOCUMENT = {
    "title": "Old",
    "nodes": ["embedded"],
    "versions": {"plan": "0:-1/5", "initial": 33, "max_requests": 2000},
    "call": [
        {"label": "size", "view": "0x" + "0" * 60 + "cafe::registry::size", "type_arguments": [], "arguments": []},
        {
            "label": "t",
            "simulate": "0x1::aptos_account::transfer",
            "type_arguments": [],
            "arguments": ["0xb0b", 100],
            "sender": "0xa11ce",
            "gas_unit_price": 100,
        },
        {"label": "c", "committed": "0xcafe::registry::register", "type_arguments": [], "arguments": []},
    ],
}


def test_the_document_of_a_run_opens_with_its_digest():
    """A run can be continued by a study whose calls have no labels."""
    study = Study.from_document(DOCUMENT)
    assert study.document() == DOCUMENT
    unlabelled = [{**call, "label": ""} for call in DOCUMENT["call"]]
    assert study.digest == Study.from_document(DOCUMENT | {"call": unlabelled}).digest


VIEW_CALL = {"view": "0x1::chain_id::get"}
arguments = st.recursive(
    st.integers(0, 2**256 - 1) | st.text(max_size=5) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)
calls = st.fixed_dictionaries(
    {"arguments": st.lists(arguments, max_size=3)},
    optional={
        "type_arguments": st.lists(st.sampled_from(["u8", "vector<u64>", "0x1::m::T<bool>"]), max_size=2),
        "thresholds": st.fixed_dictionaries({"percent": st.floats(0, 1e6)}),
    },
)


@given(st.lists(calls, min_size=1, max_size=4), st.integers(1, 10**6))
def test_every_study_comes_back_from_its_document(given_calls, count):
    """Through JSON, as a run keeps it: the same calls, the same digest, the same document."""
    numbered = [call | {"label": f"c{n}", "view": f"0x1::m::f{n}"} for n, call in enumerate(given_calls)]
    study = Study(calls=numbered, versions=f"0:-1/{count}")
    again = Study.from_document(json.loads(json.dumps(study.document())))
    assert again.digest == study.digest
    assert again.document() == study.document()
    assert [call.fingerprint for call in again.calls] == [call.fingerprint for call in study.calls]


def test_a_node_named_twice_is_refused():
    """The rows of two such calls could not be distinguished."""
    with pytest.raises(StudyError, match="name each node only once"):
        Study(calls=[{"view": "0x1::m::f"}], nodes=["mainnet", "mainnet"])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"view": "0x1::m::f", "versions": "0:9"}, "call 1, `versions`: only committed calls can have this key"),
        (
            {"committed": "0x1::m::f", "arguments": [1]},
            "call 1, `arguments`: only view and simulate calls can have this key",
        ),
        ({"committed": "0x1::m::f", "versions": "0:9:3"}, "call 1, `versions`: expected a range .*, got '0:9:3'"),
        ({"committed": "0x1::m::f", "versions": [3, 9]}, r"call 1, `versions`: expected text, got \[3, 9\]"),
        ({"committed": "0x1::m::f", "fee_payer": "0x1"}, "call 1, `fee_payer`: only simulate calls can have this key"),
        ({"committed": "0x1::m::f", "sender": "alice"}, "call 1, `sender`: .*alice"),
        ({"committed": "0x1::m::f", "type_arguments": ["x"]}, "call 1, `type_arguments.1`: "),
        ({"committed": "0x1::m::f", "success": "yes!"}, "call 1, `success`: "),
        ({"view": "0x1::m::f", "sender": "0x1"}, "call 1, `sender`: only simulate and committed calls"),
        ({"view": "0x1::m::f", "success": True}, "call 1, `success`: only committed calls can have this key"),
        ({"committed": "0x1::m::f", "versions": "0-9"}, "call 1, `versions`: version plan '0-9' is not understood"),
    ],
)
def test_keys_of_another_kind_of_call_are_refused(call, words):
    """Nothing that is written down is left out of account."""
    with pytest.raises(StudyError, match=words):
        Study(calls=[call])


EVERYTHING = Study(
    title='A "quoted" title\x7f',
    nodes=["mainnet", "testnet"],
    versions=toolkit.FindSteps("0:-1", initial=9, max_requests=50),
    requests_per_second=2.5,
    thresholds=["2%", 50],
    waivers=[{"call": "all", "reason": "by design", "expires": "2031-12-31"}],
    calls=[
        {
            "label": "all",
            "view": "0x1::m::f",
            "type_arguments": ["u8"],
            "arguments": [2**256 - 1, "\u202e\n", [True, {"a b": [1]}], "0x00"],
            "thresholds": {"percent": 20},
        },
        {"simulate": "0x1::m::e", "sender": "0xa11ce", "fee_payer": "0x0", "gas_unit_price": 0, "max_gas_amount": 9},
        {"label": "e", "committed": "0x1::m::e", "versions": "0:-1/20", "success": False},
    ],
)


@pytest.mark.parametrize(
    "study",
    [EVERYTHING, Study.load("demo"), Study(calls=["0x1::m::f"], versions=[3, 1, 2]), Study(calls=["0x1::m::f"])],
    ids=["every key", "demo", "a list", "defaults"],
)
def test_a_saved_study_loads_as_an_equal_study(study, tmp_path):
    """The text has every key that differs from its default; the file is not replaced unless that is asked for."""
    place = study.save(tmp_path / "study.toml")
    assert Study.load(place) == study
    assert hash(Study.load(place)) == hash(study)
    assert place.read_text("utf-8") == study.to_toml()
    with pytest.raises(StudyError, match="already exists"):
        Study(calls=["0x1::m::g"]).save(place)
    assert Study.load(place) == study
    Study(calls=["0x1::m::g"]).save(place, overwrite=True)
    assert Study.load(place) != study


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("study.json", "ends in .toml"),
        ("study", "ends in .toml"),
        ("a\0.toml", "cannot be written: not a path: it contains a NUL character"),
        ("missing/study.toml", "cannot be written: No such file"),
        ("folder.toml", "cannot be written|already exists"),
    ],
)
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_place_where_a_study_cannot_be_saved(tmp_path, path, words, overwrite):
    """The message names the path and what is wrong with it; nothing is written."""
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(StudyError, match=words):
        EVERYTHING.save(f"{tmp_path}/{path}", overwrite=overwrite)
    assert [one.name for one in tmp_path.iterdir()] == ["folder.toml"]
