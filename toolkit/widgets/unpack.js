// The module that a form sends instead of its own: it unpacks and exports the module whose packed text replaces DATA.

const packed = Uint8Array.from(atob("DATA"), (one) => one.charCodeAt(0));
const text = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
const made = await import(url);
URL.revokeObjectURL(url);
export default made.default;
