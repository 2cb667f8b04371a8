// The official TypeScript SDK in a fresh process: node typescript_sdk.mjs PORT CALLS IN_FLIGHT -> one line of JSON.
// Run from a copy that lies beside node_modules, since that is where modules are looked for.
import { Aptos, AptosConfig, Network } from "@aptos-labs/ts-sdk";
const [port, calls, inFlight] = process.argv.slice(2).map(Number);
const aptos = new Aptos(new AptosConfig({ network: Network.CUSTOM, fullnode: `http://127.0.0.1:${port}/v1` }));
const payload = {
  function: "0x1::coin::balance", typeArguments: ["0x1::aptos_coin::AptosCoin"], functionArguments: ["0xa11ce"],
};
async function sweep(count) {
  const values = new Array(count);
  let next = 0;
  async function work() {
    while (next < count) {
      const place = next++;
      const [value] = await aptos.viewJson({ payload, options: { ledgerVersion: place + 1 } });
      values[place] = BigInt(value);
    }
  }
  await Promise.all(Array.from({ length: inFlight }, work));
  return values;
}
await sweep(inFlight); // connections and compiled code do not count
const before = process.cpuUsage(), begun = performance.now();
const values = await sweep(calls);
const seconds = (performance.now() - begun) / 1e3, used = process.cpuUsage(before);
if (!values.every((value) => value === 123n)) throw new Error("an answer differs");
console.log(JSON.stringify({ rate: calls / seconds, cpu: ((used.user + used.system) / 1e6 / calls) * 1000 }));
process.exit(0);
