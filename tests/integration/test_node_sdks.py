"""The published Python and TypeScript SDKs, unmodified, against the embedded node.

The Python one is used where ``aptos_sdk`` is installed. The TypeScript one is used where Node is present and the
environment variable LEDGER_TOOLKIT_TS_SDK names a folder with ``node_modules/@aptos-labs/ts-sdk`` in it.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from toolkit import embedded

APT = "0x1::aptos_coin::AptosCoin"
RECORD = {"key_type": "0x1::string::String", "value_type": "0xcafe::registry::Record"}
SCRIPT = """
import { createRequire } from "node:module";
const require = createRequire(process.argv[2] + "/");
const { Account, Aptos, AptosConfig, Network } = require("@aptos-labs/ts-sdk");
const [url, handle] = process.argv.slice(3);
const address = (text) => "0x" + text.padStart(64, "0");
const [alice, bob] = [address("a11ce"), address("b0b")];
const aptos = new Aptos(new AptosConfig({ network: Network.CUSTOM, fullnode: url }));
const data = { function: "0x1::aptos_account::transfer", functionArguments: [bob, 100] };
const stranger = Account.generate();
const { build, simulate } = aptos.transaction;
const balance = { function: "0x1::coin::balance", typeArguments: ["0x1::aptos_coin::AptosCoin"], functionArguments: [alice] };
const first = async (answer) => { const [r] = await answer; return [r.success, r.vm_status, r.signature.type]; };
const out = {
  chain: await aptos.getChainId(),
  sequence: (await aptos.getAccountInfo({ accountAddress: alice })).sequence_number,
  module: (await aptos.getAccountModule({ accountAddress: "0x1", moduleName: "coin" })).abi.name,
  price: (await aptos.getGasPriceEstimation()).gas_estimate,
  view: await aptos.view({ payload: balance }),
  json: await aptos.viewJson({ payload: balance }),
  item: await aptos.getTableItem({ handle, data: { key: "alice", key_type: "0x1::string::String", value_type: "0xcafe::registry::Record" } }),
  keyless: await first(simulate.simple({ transaction: await build.simple({ sender: alice, data }) })),
  keyed: await first(simulate.simple({ signerPublicKey: stranger.publicKey, transaction: await build.simple({ sender: alice, data }) })),
  nonce: await first(simulate.simple({ transaction: await build.simple({ sender: alice, data, options: { replayProtectionNonce: 7 } }) })),
  sponsored: await first(simulate.simple({ transaction: await build.simple({ sender: stranger.accountAddress,
    data: { function: address("cafe") + "::registry::register", functionArguments: ["mine"] }, withFeePayer: true }) })),
  agents: await first(simulate.multiAgent({ transaction: await build.multiAgent({ sender: alice, secondarySignerAddresses: [bob], data }) })),
};
console.log(JSON.stringify(out, (_, value) => (typeof value === "bigint" ? value.toString() : value)));
"""


@pytest.fixture(scope="module")
def ledger():
    return embedded.Ledger.with_history(versions=400)


@pytest.fixture(scope="module")
def url(ledger):
    with embedded.serve(ledger) as served:
        yield served


def test_the_python_sdk_reads_views_and_simulates(url, ledger):
    """Node, account, resources, views in JSON and BCS, a table item, and a simulated transfer."""
    sdk = pytest.importorskip("aptos_sdk.async_client", reason="aptos-sdk is not installed")
    from aptos_sdk.account import Account
    from aptos_sdk.account_address import AccountAddress
    from aptos_sdk.bcs import Serializer
    from aptos_sdk.transactions import EntryFunction, TransactionArgument, TransactionPayload
    from aptos_sdk.type_tag import StructTag, TypeTag

    alice, bob = (AccountAddress.from_str_relaxed(text) for text in ("0xa11ce", "0xb0b"))
    key = Account.generate()
    ledger.fund(str(key.address()))
    handle = ledger.view("0xcafe::registry::handle")[0][0]
    balance = ledger.view("0x1::coin::balance", ["0xa11ce"], [APT])[0][0]
    apt = TypeTag(StructTag.from_str(APT))
    transfer = EntryFunction.natural(
        "0x1::aptos_account",
        "transfer",
        [],
        [TransactionArgument(bob, Serializer.struct), TransactionArgument(100, Serializer.u64)],
    )

    async def use() -> None:
        client = sdk.RestClient(url)
        assert (await client.info())["git_hash"] == "embedded-model-1"
        assert await client.chain_id() == 4
        assert await client.account_balance(alice) == balance
        assert (await client.account_resource(alice, "0x1::account::Account"))["type"] == "0x1::account::Account"
        assert json.loads(await client.view("0x1::coin::balance", [APT], ["0xa11ce"])) == [str(balance)]
        argument = [TransactionArgument(alice, Serializer.struct)]
        assert await client.view_bcs_payload("0x1::coin", "balance", [apt], argument) == [str(balance)]
        item = await client.get_table_item(handle, RECORD["key_type"], RECORD["value_type"], "alice")
        assert item["owner"] == "0xa11ce"
        raw = await client.create_bcs_transaction(key, TransactionPayload(transfer))
        for estimate in (False, True):
            (simulated,) = await client.simulate_transaction(raw, key, estimate_gas_usage=estimate)
            assert simulated["success"], simulated["vm_status"]
        await client.close()

    asyncio.run(use())


def test_the_typescript_sdk_reads_views_and_simulates(url, ledger, tmp_path):
    """The same, with simple, orderless, fee-payer and multi-agent simulations, with and without a public key."""
    node, folder = shutil.which("node"), os.environ.get("LEDGER_TOOLKIT_TS_SDK")
    if node is None or folder is None or not (Path(folder) / "node_modules/@aptos-labs/ts-sdk").is_dir():
        pytest.skip("Node, or the TypeScript SDK named by LEDGER_TOOLKIT_TS_SDK, is not there")
    script = tmp_path / "client.mjs"
    script.write_text(SCRIPT)
    handle = ledger.view("0xcafe::registry::handle")[0][0]
    command = [node, str(script), folder, url, handle]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    told = json.loads(done.stdout.splitlines()[-1])
    balance = str(ledger.view("0x1::coin::balance", ["0xa11ce"], [APT])[0][0])
    assert (told["chain"], told["module"], told["price"]) == (4, "coin", 100)
    assert told["view"] == told["json"] == [balance]
    assert told["item"]["owner"] == "0xa11ce"
    fine = [True, "Executed successfully"]
    assert told["keyless"][:2] == told["keyed"][:2] == told["nonce"][:2] == told["sponsored"][:2] == fine
    assert told["sponsored"][2] == "fee_payer_signature"
    assert told["agents"] == [False, "NUMBER_OF_SIGNER_ARGUMENTS_MISMATCH", "multi_agent_signature"]
