"""The published Python and TypeScript SDKs, unmodified, against the embedded node.

The Python one comes with the ``test`` extra. The TypeScript one is installed beside its ``package.json`` by npm the
first time, where Node and npm are present and its packages can be had. What is missing skips its test; with
LEDGER_TOOLKIT_SDK_TESTS=required in the environment it fails instead.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from toolkit import embedded
from toolkit.embedded import Event, Module, address, entry, signer

APT = "0x1::aptos_coin::AptosCoin"
RECORD = {"key_type": "0x1::string::String", "value_type": "0xcafe::registry::Record"}
SCRIPT = """
import { createRequire } from "node:module";
const require = createRequire(process.argv[2] + "/");
const { Account, Aptos, AptosConfig, Ed25519PrivateKey, Network } = require("@aptos-labs/ts-sdk");
const [url, handle] = process.argv.slice(3);
const address = (text) => "0x" + text.padStart(64, "0");
const [alice, bob] = [address("a11ce"), address("b0b")];
const aptos = new Aptos(new AptosConfig({ network: Network.CUSTOM, fullnode: url }));
const data = { function: "0x1::aptos_account::transfer", functionArguments: [bob, 100] };
const [holder, payer] = ["07", "08"].map((byte) => Account.fromPrivateKey({ privateKey: new Ed25519PrivateKey("0x" + byte.repeat(32)) }));
const stranger = Account.generate();
const meeting = { function: address("9a12") + "::pair::meet", functionArguments: [] };
const { build, simulate } = aptos.transaction;
const balance = { function: "0x1::coin::balance", typeArguments: ["0x1::aptos_coin::AptosCoin"], functionArguments: [alice] };
const first = async (answer) => { const [r] = await answer; return [r.success, r.vm_status, r.signature.type]; };
const sponsoredBy = async (feePayer) => {
  const transaction = await build.simple({ sender: holder.accountAddress, data, withFeePayer: true });
  transaction.feePayerAddress = feePayer;
  return transaction;
};
// The time of this ledger is its own; the SDK fills in that of the computer.
const soon = Math.floor(Number((await aptos.getLedgerInfo()).ledger_timestamp) / 1e6) + 50;
const out = {
  chain: await aptos.getChainId(),
  sequence: (await aptos.getAccountInfo({ accountAddress: alice })).sequence_number,
  module: (await aptos.getAccountModule({ accountAddress: "0x1", moduleName: "coin" })).abi.name,
  price: (await aptos.getGasPriceEstimation()).gas_estimate,
  view: await aptos.view({ payload: balance }),
  json: await aptos.viewJson({ payload: balance }),
  item: await aptos.getTableItem({ handle, data: { key: "alice", key_type: "0x1::string::String", value_type: "0xcafe::registry::Record" } }),
  keyless: await first(simulate.simple({ transaction: await build.simple({ sender: alice, data }) })),
  keyed: await first(simulate.simple({ signerPublicKey: holder.publicKey, transaction: await build.simple({ sender: holder.accountAddress, data }) })),
  foreign: await first(simulate.simple({ signerPublicKey: stranger.publicKey, transaction: await build.simple({ sender: alice, data }) })),
  nonce: await first(simulate.simple({ transaction: await build.simple({ sender: alice, data, options: { replayProtectionNonce: 7, expireTimestamp: soon } }) })),
  sponsored: await first(simulate.simple({ transaction: await build.simple({ sender: stranger.accountAddress,
    data: { function: address("cafe") + "::registry::register", functionArguments: ["mine"] }, withFeePayer: true }) })),
  sponsoredKeyed: await first(simulate.simple({ signerPublicKey: holder.publicKey, feePayerPublicKey: payer.publicKey,
    transaction: await sponsoredBy(payer.accountAddress) })),
  sponsoredForeign: await first(simulate.simple({ signerPublicKey: holder.publicKey, feePayerPublicKey: stranger.publicKey,
    transaction: await sponsoredBy(payer.accountAddress) })),
  agents: await first(simulate.multiAgent({ transaction: await build.multiAgent({ sender: alice, secondarySignerAddresses: [bob], data: meeting }) })),
  agentsKeyed: await first(simulate.multiAgent({ signerPublicKey: holder.publicKey, secondarySignersPublicKeys: [payer.publicKey],
    transaction: await build.multiAgent({ sender: holder.accountAddress, secondarySignerAddresses: [payer.accountAddress], data: meeting }) })),
};
console.log(JSON.stringify(out, (_, value) => (typeof value === "bigint" ? value.toString() : value)));
"""


HOLDER, PAYER = b"\x07" * 32, b"\x08" * 32
TS = Path(__file__).parent / "ts"
INSTALL_TIMEOUT_S = 120


def _missing(reason):
    """Skip for want of an SDK, or fail where both are required."""
    if os.environ.get("LEDGER_TOOLKIT_SDK_TESTS") == "required":
        pytest.fail(f"LEDGER_TOOLKIT_SDK_TESTS=required, but {reason}")
    pytest.skip(reason)


def _transcribe(capsys, told):
    """Print what an SDK was told, with LEDGER_TOOLKIT_TRANSCRIPT in the environment."""
    if os.environ.get("LEDGER_TOOLKIT_TRANSCRIPT"):
        with capsys.disabled():
            print("\n".join(["", *(f"{name}: {json.dumps(value)}" for name, value in told.items())]))


@pytest.fixture(scope="module")
def typescript_sdk():
    """Return the Node executable, the TypeScript SDK installed in exactly the version that is locked."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        _missing("Node or npm is not installed")
    installed = TS / "node_modules/@aptos-labs/ts-sdk/package.json"
    wanted = json.loads((TS / "package.json").read_text())["dependencies"]["@aptos-labs/ts-sdk"]
    if not installed.is_file() or json.loads(installed.read_text())["version"] != wanted:
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        try:
            done = subprocess.run(
                command, cwd=TS, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            _missing(f"npm did not install the TypeScript SDK in {INSTALL_TIMEOUT_S} s")
        if done.returncode:
            _missing(f"npm could not install the TypeScript SDK: {done.stderr[-500:]}")
    return node


class Pair(Module, address="0x9a12"):
    """A function that two have to sign."""

    class Met(Event):
        """Who met."""

        first: address
        second: address

    @entry
    def meet(self, one: signer, other: signer) -> None:
        """Say who signed."""
        self.emit(Pair.Met(first=one, second=other))


@pytest.fixture(scope="module")
def ledger():
    grown = embedded.Ledger.with_history(versions=400, cache=True)
    grown.publish(Pair)
    for seed in (HOLDER, PAYER):
        public = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()
        grown.fund(f"0x{hashlib.sha3_256(public + bytes(1)).hexdigest()}")
    return grown


@pytest.fixture(scope="module")
def url(ledger):
    with embedded.serve(ledger) as served:
        yield served


def test_the_python_sdk_reads_views_and_simulates(url, ledger, capsys):
    """Node, account, resources, views in JSON and BCS, a table item; simple, multi-agent and fee-payer simulations."""
    if importlib.util.find_spec("aptos_sdk") is None:
        _missing("aptos-sdk is not installed")
    from aptos_sdk import async_client as sdk
    from aptos_sdk.account import Account
    from aptos_sdk.account_address import AccountAddress
    from aptos_sdk.authenticator import Authenticator, FeePayerAuthenticator, MultiAgentAuthenticator
    from aptos_sdk.bcs import Serializer
    from aptos_sdk.transactions import (
        EntryFunction,
        FeePayerRawTransaction,
        MultiAgentRawTransaction,
        SignedTransaction,
        TransactionArgument,
        TransactionPayload,
    )
    from aptos_sdk.type_tag import StructTag, TypeTag

    alice, bob = (AccountAddress.from_str_relaxed(text) for text in ("0xa11ce", "0xb0b"))
    key, other = (Account.load_key(f"0x{seed.hex()}") for seed in (HOLDER, PAYER))
    handle = ledger.view("0xcafe::registry::handle")[0][0]
    balance = ledger.view("0x1::coin::balance", ["0xa11ce"], [APT])[0][0]
    apt = TypeTag(StructTag.from_str(APT))
    transfer = EntryFunction.natural(
        "0x1::aptos_account",
        "transfer",
        [],
        [TransactionArgument(bob, Serializer.struct), TransactionArgument(100, Serializer.u64)],
    )

    reads, told = {}, {}

    async def use() -> None:
        client = sdk.RestClient(url)
        reads["build"] = (await client.info())["git_hash"]
        reads["chain"] = await client.chain_id()
        reads["balance"] = await client.account_balance(alice)
        reads["resource"] = (await client.account_resource(alice, "0x1::account::Account"))["type"]
        reads["view"] = json.loads(await client.view("0x1::coin::balance", [APT], ["0xa11ce"]))
        argument = [TransactionArgument(alice, Serializer.struct)]
        reads["view in BCS"] = await client.view_bcs_payload("0x1::coin", "balance", [apt], argument)
        item = await client.get_table_item(handle, RECORD["key_type"], RECORD["value_type"], "alice")
        reads["item"] = item["owner"]
        raw = await client.create_bcs_transaction(key, TransactionPayload(transfer))
        for estimate in (False, True):
            (simulated,) = await client.simulate_transaction(raw, key, estimate_gas_usage=estimate)
            told[f"transfer, estimate {estimate}"] = simulated
        call = TransactionPayload(EntryFunction.natural(f"0x{'9a12':0>64}::pair", "meet", [], []))
        meeting = await client.create_bcs_transaction(key, call)
        both = MultiAgentRawTransaction(meeting, [other.address()])
        second = [(other.address(), other.sign_simulated_transaction(both))]
        agents = MultiAgentAuthenticator(key.sign_simulated_transaction(both), second)
        (told["two signers"],) = await client.simulate_bcs_transaction(
            SignedTransaction(meeting, Authenticator(agents))
        )
        for name, payer in (("fee payer", other), ("fee payer, key of somebody else", Account.generate())):
            paid = FeePayerRawTransaction(raw, [], other.address())
            signed = (other.address(), payer.sign_simulated_transaction(paid))
            authenticator = FeePayerAuthenticator(key.sign_simulated_transaction(paid), [], signed)
            (told[name],) = await client.simulate_bcs_transaction(SignedTransaction(raw, Authenticator(authenticator)))
        await client.close()

    asyncio.run(use())
    results = {name: [one["success"], one["vm_status"], one["signature"]["type"]] for name, one in told.items()}
    _transcribe(capsys, reads | results)
    assert reads == {
        "build": "embedded-model-1",
        "chain": 4,
        "balance": balance,
        "resource": "0x1::account::Account",
        "view": [str(balance)],
        "view in BCS": [str(balance)],
        "item": "0xa11ce",
    }
    refused = results.pop("fee payer, key of somebody else")
    assert refused == [False, "INVALID_AUTH_KEY", "fee_payer_signature"]
    assert [result[:2] for result in results.values()] == [[True, "Executed successfully"]] * 4, results


def test_the_typescript_sdk_reads_views_and_simulates(url, ledger, tmp_path, typescript_sdk, capsys):
    """The same, with simple, orderless, fee-payer and multi-agent simulations, with and without a public key."""
    script = tmp_path / "client.mjs"
    script.write_text(SCRIPT)
    handle = ledger.view("0xcafe::registry::handle")[0][0]
    command = [typescript_sdk, str(script), str(TS), url, handle]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    told = json.loads(done.stdout.splitlines()[-1])
    _transcribe(capsys, told)
    balance = str(ledger.view("0x1::coin::balance", ["0xa11ce"], [APT])[0][0])
    assert (told["chain"], told["module"], told["price"]) == (4, "coin", 100)
    assert told["view"] == told["json"] == [balance]
    assert told["item"]["owner"] == "0xa11ce"
    fine = [True, "Executed successfully"]
    assert told["keyless"][:2] == told["keyed"][:2] == told["nonce"][:2] == told["sponsored"][:2] == fine
    assert told["foreign"] == [False, "INVALID_AUTH_KEY", "ed25519_signature"]
    assert told["sponsored"][2] == "fee_payer_signature"
    assert told["sponsoredKeyed"] == [*fine, "fee_payer_signature"]
    assert told["sponsoredForeign"] == [False, "INVALID_AUTH_KEY", "fee_payer_signature"]
    assert told["agents"] == told["agentsKeyed"] == [*fine, "multi_agent_signature"]
