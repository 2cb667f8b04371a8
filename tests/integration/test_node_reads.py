"""The embedded node's ``GET`` endpoints over HTTP, as the wire has them."""

from __future__ import annotations

import pytest
import requests

from toolkit import embedded
from toolkit.wire._headers import parse_headers
from toolkit.wire._responses import decode_account, decode_block, decode_node_info
from toolkit.wire._transactions import decode_transactions

LEDGER_HEADERS = {
    "x-aptos-chain-id",
    "x-aptos-ledger-version",
    "x-aptos-ledger-oldest-version",
    "x-aptos-ledger-timestampusec",
    "x-aptos-epoch",
    "x-aptos-block-height",
    "x-aptos-oldest-block-height",
}


@pytest.fixture(scope="module")
def ledger():
    return embedded.Ledger.with_history(versions=600, window=400, cache=True)


@pytest.fixture(scope="module")
def get(ledger):
    with embedded.serve(ledger) as url, requests.Session() as session:
        yield lambda path, **query: session.get(url + path, params=query, timeout=10)


def test_the_index_tells_the_head_and_that_gas_is_a_model(get, ledger):
    """``GET /v1`` agrees with the headers; ``git_hash`` names the model."""
    answer = get("")
    info = decode_node_info(answer.content)
    assert info.ledger == ledger.state == parse_headers(answer.headers).ledger
    assert (info.node_role, info.git_hash) == ("full_node", "embedded-model-1")
    assert info.ledger.oldest_version == ledger.oldest_version > 0


def test_every_answer_carries_the_ledger_headers_and_no_gas(get):
    """Reads tell the head's state in all seven headers; gas-used belongs to views and simulations."""
    for path in ("", "/accounts/0xa11ce", "/estimate_gas_price", "/transactions"):
        names = {name.lower() for name in get(path).headers if name.lower().startswith("x-aptos-")}
        assert names == LEDGER_HEADERS, path


def test_an_account_nobody_used_has_sequence_number_zero(get):
    """A stateless account answers 0 and its address as authentication key."""
    unknown = decode_account(get("/accounts/0xf").content)
    assert (unknown.sequence_number, unknown.authentication_key) == (0, f"0x{'0' * 63}f")
    assert decode_account(get("/accounts/0xa11ce").content).sequence_number > 0


def test_a_module_is_bytecode_and_abi_at_the_version_asked(get, ledger):
    """The vault's ABI gains `preview` exactly at its upgrade."""
    upgrade = next(m.version for m in ledger.milestones if "upgraded" in m.text)
    for version, there in ((upgrade - 1, False), (upgrade, True)):
        module = get("/accounts/0xfa17/module/vault", ledger_version=version).json()
        names = [function["name"] for function in module["abi"]["exposed_functions"]]
        assert ("preview" in names) is there
        assert module["bytecode"].startswith("0xa11ceb0b")


def test_modules_and_resources_are_listed(get):
    """Everything under an address, in one page where it fits."""
    assert [module["abi"]["name"] for module in get("/accounts/0xcafe/modules").json()] == ["registry"]
    types = {resource["type"] for resource in get("/accounts/0xcafe/resources").json()}
    assert {"0xcafe::registry::Registry", "0x1::code::PackageRegistry", "0x1::account::Account"} <= types


@pytest.mark.parametrize("what", ["resources", "modules"])
@pytest.mark.parametrize("limit", [1, 2, 5])
def test_pages_of_an_account_joined_are_all_of_it(get, what, limit):
    """The cursor of a page is where the next one starts; the last page has none."""
    path = "/accounts/0x1/" + what
    whole = get(path)
    assert "x-aptos-cursor" not in whole.headers
    joined, query, pages = [], {}, 0
    while True:
        page = get(path, limit=limit, **query)
        joined += page.json()
        pages += 1
        if "x-aptos-cursor" not in page.headers:
            break
        query = {"start": page.headers["X-Aptos-Cursor"]}
    assert joined == whole.json()
    assert pages > 1
    assert parse_headers(get(path, limit=1).headers).cursor is not None


def test_a_balance_is_read_by_coin_type_and_by_asset(get, ledger):
    """Coins and what became the paired fungible asset add up; by the asset's address only that asset counts."""
    apt = "0x1::aptos_coin::AptosCoin"
    for account in ("0xa11ce", *(f"0x7ade{number:x}" for number in range(12))):
        whole, asset = (get(f"/accounts/{account}/balance/{kind}").json() for kind in (apt, "0xa"))
        assert whole == ledger.view("0x1::coin::balance", [account], [apt])[0][0]
        stored = ledger.resource(account, f"0x1::coin::CoinStore<{apt}>")
        assert whole - asset == (0 if stored is None else stored["coin"]["value"])
    assert get("/accounts/0xdead/balance/0xa").json() == get(f"/accounts/0xdead/balance/{apt}").json() == 0
    gold = ledger.view("0x901d::gold::metadata")[0][0]
    assert get(f"/accounts/0x901d/balance/{gold}").json() == 0
    assert get("/accounts/0xa11ce/balance/coin").status_code == 400


def test_a_resource_reads_at_any_kept_version(get, ledger):
    """The gas schedule's feature version rises with its milestones; spaces in the type do not matter."""
    step = next(m.version for m in ledger.milestones if "tenfold" in m.text)
    values = [
        get("/accounts/0x1/resource/0x1::gas_schedule::GasScheduleV2", ledger_version=version).json()
        for version in (step - 1, step)
    ]
    assert {value["type"] for value in values} == {"0x1::gas_schedule::GasScheduleV2"}
    intrinsic = [
        next(e["val"] for e in value["data"]["entries"] if e["key"] == "txn.min_transaction_gas_units")
        for value in values
    ]
    assert intrinsic == ["2760000", "27600000"]
    coins = get("/accounts/0xa11ce/resource/0x1::coin::CoinStore< 0x1::aptos_coin::AptosCoin >").json()
    assert coins["type"] == "0x1::coin::CoinStore<0x1::aptos_coin::AptosCoin>"
    assert int(coins["data"]["coin"]["value"]) > 0


def test_pages_joined_are_the_whole_history(get, ledger):
    """Pages of any size give every kept version once, in order."""
    versions = []
    start = ledger.oldest_version
    while start <= ledger.head:
        page = decode_transactions(get("/transactions", start=start, limit=37).content)
        versions += [transaction.version for transaction in page]
        start = int(versions[-1]) + 1
    assert [int(version) for version in versions] == list(range(ledger.oldest_version, ledger.head + 1))


def test_without_a_start_the_last_page_comes(get, ledger):
    """The default page is the latest 25, and never more than 100."""
    assert [int(t["version"]) for t in get("/transactions").json()] == list(range(ledger.head - 24, ledger.head + 1))
    assert len(get("/transactions", limit=65535).json()) == 100


def test_a_transaction_is_the_same_by_version_and_by_hash(get, ledger):
    """Both roads give one object; the keys of a user transaction are the wire's, in its order."""
    step = next(m.version for m in ledger.milestones if "tenfold" in m.text)
    by_version = get(f"/transactions/by_version/{step}").json()
    assert by_version == get(f"/transactions/by_hash/{by_version['hash']}").json()
    assert list(by_version) == [
        "version",
        "hash",
        "state_change_hash",
        "event_root_hash",
        "state_checkpoint_hash",
        "gas_used",
        "success",
        "vm_status",
        "accumulator_root_hash",
        "changes",
        "sender",
        "sequence_number",
        "max_gas_amount",
        "gas_unit_price",
        "expiration_timestamp_secs",
        "payload",
        "signature",
        "replay_protection_nonce",
        "events",
        "timestamp",
        "type",
    ]
    assert by_version["payload"]["function"] == "0x1::gas_schedule::set_gas_schedule"
    assert any(
        change.get("data", {}).get("type") == "0x1::gas_schedule::GasScheduleV2" for change in by_version["changes"]
    )
    assert by_version["events"][-1]["type"] == "0x1::transaction_fee::FeeStatement"


def test_genesis_and_blocks_have_the_shapes_recorded(shared_data):
    """The ledger's own transactions have the keys that public nodes show, in the same order."""
    import json

    whole = embedded.Ledger.with_history(versions=200, cache=True)
    by_type = {}
    with embedded.serve(whole) as url:
        for start in (0, 100):
            for one in requests.get(f"{url}/transactions", params={"start": start, "limit": 100}, timeout=10).json():
                by_type.setdefault(one["type"], one)
    folder = shared_data / "node/recorded"
    for path in folder.glob("gosdk.transactions.Transaction_*.json"):
        recorded = json.loads(path.read_text())
        if recorded["type"] in by_type:
            missing = [key for key in recorded if key not in by_type[recorded["type"]]]
            assert missing == [], (path.name, missing)


def test_a_block_dates_its_versions(get, ledger):
    """By version and by height the same block answers, with its transactions where asked."""
    middle = ledger.head - 50
    by_version = get(f"/blocks/by_version/{middle}", with_transactions="true")
    block = decode_block(by_version.content)
    assert block.first_version <= middle <= block.last_version
    assert len(by_version.json()["transactions"]) == block.last_version - block.first_version + 1
    by_height = get(f"/blocks/by_height/{block.block_height}").json()
    assert by_height == {**by_version.json(), "transactions": None}


def test_a_growing_ledger_is_served_as_it_grows():
    """A commit made while the node runs is seen by the next request."""
    ledger = embedded.Ledger()
    with embedded.serve(ledger) as url:
        before = decode_node_info(requests.get(url, timeout=10).content).ledger.version
        done = ledger.commit("0x1::aptos_account::transfer", "0xb0b", 5, sender="0xa11ce")
        after = decode_node_info(requests.get(url, timeout=10).content).ledger.version
        seen = requests.get(f"{url}/transactions/by_version/{done.version}", timeout=10).json()
    assert before < done.version <= after
    assert seen["hash"] == done.hash


def test_stopping_frees_the_port_and_is_repeatable():
    """After `stop` nothing answers, and a new node can have the port."""
    server = embedded.start(embedded.Ledger())
    port = int(server.url.split(":")[2].split("/")[0])
    server.stop()
    server.stop()
    with pytest.raises(requests.ConnectionError):
        requests.get(server.url, timeout=2)
    with embedded.serve(embedded.Ledger(), port=port) as url:
        assert requests.get(url, timeout=10).status_code == 200


def test_reads_stay_whole_while_the_ledger_grows_and_forgets():
    """With commits and a moving window in another thread, no read fails and every page is in order."""
    import threading

    ledger = embedded.Ledger(window=60)
    for _ in range(30):
        ledger.commit("0x1::aptos_account::transfer", "0xb0b", 5, sender="0xa11ce")
    done = threading.Event()

    def grow():
        for _ in range(150):
            ledger.commit("0x1::aptos_account::transfer", "0xb0b", 5, sender="0xa11ce")
        done.set()

    with embedded.serve(ledger) as url, requests.Session() as session:
        thread = threading.Thread(target=grow)
        thread.start()
        pages = 0
        while not done.is_set() or pages < 5:
            page = session.get(f"{url}/transactions", params={"limit": 25}, timeout=10)
            head = int(page.json()[-1]["version"])
            versions = [int(one["version"]) for one in page.json()]
            assert versions == list(range(head - 24, head + 1))
            block = session.get(f"{url}/blocks/by_version/{head}", timeout=10)
            assert block.status_code in {200, 410}, block.text  # the window may have moved on
            pages += 1
        thread.join()
        session.get(f"{url}/transactions", timeout=10)  # its JSON is kept, even if the window has moved past all others
    assert 60 <= len(ledger.chain.transactions) + 3 <= 63
    assert len(ledger.chain.state) < 400
    assert min(ledger.chain.rendered) >= ledger.oldest_version  # nor is the JSON of what was forgotten kept
