"""Calls that fit the code at no version of a plan: one message before anything is read, and no refusal of valid calls."""

from __future__ import annotations

import pytest
import requests

import toolkit
from toolkit import embedded
from toolkit.embedded import Module, String, entry, friend, signer, u64, view
from toolkit.errors import FailedReadsWarning, InputError

REGISTRY = "0xcafe::registry"
RECORD = f"{REGISTRY}::Record"


class Tally(Module, address="0x7a11"):
    """A counter as first published."""

    @friend
    @view
    def total(self, by: u64) -> u64:
        """Return a number."""
        return by

    @friend
    @view
    def retired(self) -> u64:
        """Return a number, until the upgrade."""
        return 1


class NewTally(Module, address="0x7a11", name="tally", revision=2):
    """A counter after its upgrade: `total` takes text, `retired` is gone, `fresh` is new."""

    @friend
    @view
    def total(self, by: String) -> u64:
        """Return a number."""
        return len(by)

    @view
    def fresh(self) -> u64:
        """Return a number."""
        return 2

    @entry
    def add(self, account: signer) -> None:
        """Do nothing."""


@pytest.fixture(scope="module")
def url():
    """Serve a short history, an upgrade at its end included."""
    ledger = embedded.Ledger.with_history(seed=7, versions=1_000, cache=True)
    with embedded.serve(ledger) as address:
        yield address


@pytest.fixture
def node(url):
    with toolkit.connect(url, cache=None) as client:
        yield client


class Sent:
    """Requests that a node sends, by path."""

    def __init__(self, node, monkeypatch):
        self.bodies = []
        connection = node._connection
        one, many = connection.perform, connection.perform_many

        def perform(call):
            self.bodies.append(call)
            return one(call)

        def perform_many(calls):
            def noted():
                for call in calls:
                    self.bodies.append(call)
                    yield call

            return many(noted())

        monkeypatch.setattr(node, "one", perform)
        monkeypatch.setattr(node, "many", perform_many)

    def count(self, part):
        """Return the number of requests whose path has a part."""
        return sum(part in call.request.url for call in self.bodies if hasattr(call, "request"))


@pytest.mark.parametrize(
    ("call", "texts"),
    [
        (
            f"{REGISTRY}::sise",
            [
                "0xcafe::registry::sise: the module has no function `sise`; did you mean `size`?",
                "handle, record_of, size",
            ],
        ),
        (
            "0xcafe::registri::size",
            ["the module 0xcafe::registri does not exist; did you mean `registry`?", "0xcafe has the modules registry"],
        ),
        ("0xdead::coin::size", ["the module 0xdead::coin does not exist; 0xdead has no modules"]),
        (f"{REGISTRY}::record_of", [r"expected 1 argument (0x1::string::String), got 0"]),
        (
            toolkit.ViewFunction(f"{REGISTRY}::record_of", [5]),
            ["arguments[0]: expected 0x1::string::String, got number 5"],
        ),
        (toolkit.ViewFunction(f"{REGISTRY}::size", type_arguments=["u8"]), ["expected 0 type arguments, got 1"]),
    ],
    ids=["function", "module", "account", "count", "type", "type arguments"],
)
def test_a_view_that_fits_no_version_is_refused_before_it_is_read(node, monkeypatch, call, texts):
    """One error with what may be meant; the view is not sent at the versions of the plan."""
    sent = Sent(node, monkeypatch)
    with pytest.raises(InputError) as caught:
        toolkit.fetch_views(node, call, "0:-1/200", progress=False)
    text = str(caught.value)
    assert [part for part in texts if part not in text] == []
    assert "invalid at all 200 versions to read" in text
    assert sent.count("/view") <= 1
    assert "move_struct_tag_id" not in text


def test_all_calls_of_a_sweep_are_checked_at_once(node):
    """The message has a line for each call that cannot be made, and none for the one that can."""
    calls = {"a": f"{REGISTRY}::sise", "b": f"{REGISTRY}::size", "c": "0xb00c::order_book::dept"}
    with pytest.raises(InputError, match="2 of 3 calls cannot be made") as caught:
        toolkit.fetch_views(node, calls, "0:-1/20", progress=False)
    assert [line[:8] for line in str(caught.value).splitlines()[1:]] == ["call 'a'", "call 'c'"]


def test_a_valid_sweep_costs_no_request_more(node, monkeypatch):
    """The module is looked up as for the reads: the calls of a sweep are the versions, no view is sent twice."""
    sent = Sent(node, monkeypatch)
    toolkit.fetch_views(node, f"{REGISTRY}::size", "500:599", progress=False)
    assert sent.count("/view") == 100
    assert sent.count("/module/") == 2
    assert sent.count("/modules") == sent.count("/resource") == 0


@pytest.mark.parametrize("versions", ["0:-1/40", [5, -1], toolkit.FindSteps("0:-1")], ids=["plan", "list", "search"])
def test_a_function_that_an_upgrade_adds_has_rows_with_errors_before(node, versions):
    """`preview` is published by the upgrade of the vault."""
    call = toolkit.ViewFunction("0xfa17::vault::preview", [5])
    frame = toolkit.fetch_views(node, call, versions, progress=False)
    assert 0 < frame["error_code"].isna().sum() < len(frame)


def test_a_module_that_was_deleted_is_read_where_it_existed(node):
    """It exists neither at the first nor at the last version of the plan."""
    frame = toolkit.fetch_views(node, "0xcafe::trial::greeting", "0:-1/100", progress=False)
    there = frame[frame["error_code"].isna()]
    assert set(there["value"]) == {"hello"}
    assert 0 < len(there) < 15
    gone = int(there["ledger_version"].max()) + 200
    with pytest.raises(InputError, match="the module 0xcafe::trial does not exist"):
        toolkit.fetch_views(node, "0xcafe::trial::greeting", f"{gone}:-1", progress=False)


def test_arguments_that_fit_the_code_of_some_versions_are_rows_at_the_others():
    """`total` took a number before its upgrade and takes text after it; `retired` is gone since."""
    ledger = embedded.Ledger()
    versions = [ledger.publish(code).version for code in (Tally, NewTally)]
    with embedded.serve(ledger) as address, toolkit.connect(address) as node:
        for given, fails in (("text", [True, False]), (5, [False, True])):
            call = toolkit.ViewFunction("0x7a11::tally::total", [given])
            frame = toolkit.fetch_views(node, call, versions, progress=False)
            assert frame["error_code"].notna().tolist() == fails
        assert frame["error_code"].tolist()[1] == "input_error"
        assert "expected 0x1::string::String, got number 5" in frame["error_message"].tolist()[1]
        frame = toolkit.fetch_views(node, "0x7a11::tally::retired", versions, progress=False)
        assert frame["error_code"].isna().tolist() == [True, False]
        with pytest.raises(InputError, match=r"expected 0x1::string::String, got boolean true"):
            toolkit.fetch_views(node, toolkit.ViewFunction("0x7a11::tally::total", [True]), versions, progress=False)


def test_pruned_versions_of_a_list_do_not_count():
    """A pruned version is a row; the call is checked by the versions that can be read."""
    ledger = embedded.Ledger.with_history(seed=7, versions=1_000, window=400, cache=True)
    with embedded.serve(ledger) as address, toolkit.connect(address) as node:
        frame = toolkit.fetch_views(node, f"{REGISTRY}::size", [5, 999, 5_000], progress=False)
        assert frame["error_code"].notna().tolist() == [True, False, True]
        with pytest.raises(InputError, match="did you mean `size`"):
            toolkit.fetch_views(node, f"{REGISTRY}::sise", [5, 999], progress=False)
        with pytest.warns(FailedReadsWarning, match="all 2 views failed"):
            toolkit.fetch_views(node, f"{REGISTRY}::sise", [5, 6], progress=False)


def test_a_string_may_be_written_short_wherever_a_type_is_given(node, url):
    """Keys and values of tables, type arguments; the node gets the whole type, and refuses the short one itself."""
    handle = node.view(f"{REGISTRY}::handle").value
    name = "alice"
    whole = node.table_item(handle, name, key_type="0x1::string::String", value_type=RECORD).value
    assert node.table_item(handle, name, key_type="String", value_type=RECORD).value == whole
    frame = toolkit.fetch_table_items(node, handle, [name], key_type="String", value_type=RECORD, progress=False)
    assert frame["presence"].tolist() == ["present"]
    call = toolkit.ViewFunction("0x1::m::f", type_arguments=["Option<String>"])
    assert call.type_arguments == ("0x1::option::Option<0x1::string::String>",)
    body = {"key_type": "String", "value_type": "u64", "key": name}
    answer = requests.post(f"{url}/tables/{handle}/item", json=body, timeout=10)
    assert (answer.status_code, answer.json()["error_code"]) == (400, "invalid_input")


def test_a_range_before_the_module_is_rows_of_errors(node):
    """The call fits the code at the head, so nothing is misspelt; a warning says that every read failed."""
    with pytest.warns(toolkit.errors.FailedReadsWarning, match="registry"):
        frame = toolkit.fetch_views(node, f"{REGISTRY}::size", "0:2", progress=False)
    assert frame["error_code"].tolist() == ["invalid_input"] * 3
    with pytest.raises(InputError, match="did you mean `size`"):
        toolkit.fetch_views(node, f"{REGISTRY}::sice", "0:2", progress=False)


READS = {
    "events": lambda node, tag, versions: toolkit.fetch_events(node, tag, versions, progress=False),
    "resources": lambda node, tag, versions: toolkit.fetch_resources(node, "0xcafe", tag, versions, progress=False),
}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize(
    ("tag", "texts"),
    [
        (
            f"{REGISTRY}::Registri",
            ["has no struct `Registri`; did you mean `Registry`", "? It has the structs Record, "],
        ),
        (
            f"{REGISTRY}::Nope",
            ["0xcafe::registry::Nope: the module has no struct `Nope`; it has the structs Record, Registered"],
        ),
        ("0xcafe::registri::Registry", ["the module 0xcafe::registri does not exist; did you mean `registry`?"]),
        ("0x1::coin::CoinStore<0x1::coin::Coyn>", ["0x1::coin::Coyn: the module has no struct `Coyn`"]),
    ],
    ids=["struct", "unlike", "module", "type argument"],
)
def test_a_misspelt_type_is_refused_before_it_is_read(node, monkeypatch, read, tag, texts):
    """One error with what may be meant, for a few versions and for many."""
    sent = Sent(node, monkeypatch)
    for versions in ("-5:-1", "0:-1/50", "-1"):
        with pytest.raises(InputError) as caught:
            READS[read](node, tag, versions)
        assert [part for part in texts if part not in str(caught.value)] == []
    assert sent.count("/transactions") == 0
    assert sent.count("/resource/") == sent.count("PackageRegistry")  # whether the module was deleted


@pytest.mark.parametrize("read", READS)
def test_a_type_before_its_module_was_published_is_read(node, read):
    """It exists at the head, so nothing is misspelt."""
    if read == "events":
        assert len(READS[read](node, f"{REGISTRY}::Registry", "0:2")) == 0
        return
    with pytest.warns(FailedReadsWarning, match="all 3 reads of resources failed"):
        frame = READS[read](node, f"{REGISTRY}::Registry", "0:2")
    assert frame["error_code"].tolist() == ["resource_not_found"] * 3


def test_a_batch_loses_nothing_by_a_request_that_does_not_fit(node, monkeypatch):
    """The others are simulated; the one that cannot be is not sent, and says what may be meant."""
    calls = [
        toolkit.EntryFunction(f"{REGISTRY}::register", ["zoe"]),
        toolkit.EntryFunction(f"{REGISTRY}::registr", ["zoe"]),
        toolkit.EntryFunction(f"{REGISTRY}::register", [5]),
        toolkit.EntryFunction("0xcafe::registri::register", ["zoe"]),
    ]
    sent = Sent(node, monkeypatch)
    frames = toolkit.fetch_simulations(
        node, [toolkit.SimulationRequest(call, sender="0xb0b") for call in calls], progress=False
    )
    assert frames.transactions["error_code"].fillna("").tolist() == ["", *["input_error"] * 3]
    assert frames.results[0].success
    texts = [str(result) for result in frames.results[1:]]
    assert "did you mean `register`?" in texts[0]
    assert "arguments[0]: expected 0x1::string::String, got number 5" in texts[1]
    assert "the module 0xcafe::registri does not exist; did you mean `registry`?" in texts[2]
    assert sent.count("/simulate") == 1


def test_one_call_says_what_may_be_meant_too(node):
    """`node.view` has the answer of the node, `node.simulate` is not sent."""
    with pytest.raises(toolkit.NodeError, match=r"did you mean `size`\?"):
        node.view(f"{REGISTRY}::sise")
    with pytest.raises(toolkit.NodeError, match=r"can't be found.*did you mean `registry`\?"):
        node.view("0xcafe::registri::size")
    with pytest.raises(InputError, match="did you mean `register`"):
        node.simulate(toolkit.EntryFunction(f"{REGISTRY}::registr", ["zoe"]), sender="0xb0b")


class TestAllFailed:
    """FailedReadsWarning"""

    def test_it_has_count_commonest_error_and_what_to_do(self, node):
        """Given once."""
        call = toolkit.ViewFunction(f"{REGISTRY}::record_of", ["nobody"])
        with pytest.warns(FailedReadsWarning, match=r"all 20 views failed \(20 invalid_input\).*E_UNKNOWN") as caught:
            frame = toolkit.fetch_views(node, call, "0:-1/20", progress=False)
        assert len(caught) == 1
        assert frame["error_code"].notna().all()

    def test_items_that_do_not_exist(self, node):
        """A wrong key type gives the same answer, so the warning says to check it."""
        handle = node.view(f"{REGISTRY}::handle").value
        with pytest.warns(FailedReadsWarning, match="check the handle, the key and its type"):
            toolkit.fetch_table_items(node, handle, ["0x1"], key_type="address", value_type="u64", progress=False)

    def test_simulations_that_are_all_refused(self, node):
        """One request: the text is that of its error."""
        request = toolkit.SimulationRequest(toolkit.EntryFunction(f"{REGISTRY}::registr", ["zoe"]), sender="0xb0b")
        with pytest.warns(FailedReadsWarning, match="the read failed: .*did you mean `register`"):
            toolkit.fetch_simulations(node, [request], progress=False)

    def test_a_frame_with_one_answer_has_no_warning(self, node, recwarn):
        """Nor has one without rows."""
        toolkit.fetch_views(node, f"{REGISTRY}::size", "0:-1/20", progress=False)
        toolkit.fetch_views(node, f"{REGISTRY}::size", [], progress=False)
        assert recwarn.list == []
