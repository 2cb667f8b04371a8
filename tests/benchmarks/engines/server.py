"""A server with one fixed answer, for benchmarks: asyncio, in a process of its own.  server.py DELAY_MS -> its port"""

from __future__ import annotations

import asyncio
import sys

try:
    import uvloop
except ImportError:
    uvloop = None

BODY = b'["123456789012345678901234567890"]'
HEADERS = {
    "Content-Type": "application/json",
    "X-APTOS-CHAIN-ID": "4",
    "X-APTOS-LEDGER-VERSION": "1234567",
    "X-APTOS-LEDGER-OLDEST-VERSION": "0",
    "X-APTOS-LEDGER-TIMESTAMPUSEC": "1790000000000000",
    "X-APTOS-EPOCH": "7",
    "X-APTOS-BLOCK-HEIGHT": "60000",
    "X-APTOS-OLDEST-BLOCK-HEIGHT": "0",
    "X-APTOS-GAS-USED": "7",
    "Content-Length": str(len(BODY)),
}
ANSWER = b"HTTP/1.1 200 OK\r\n" + "".join(f"{k}: {v}\r\n" for k, v in HEADERS.items()).encode() + b"\r\n" + BODY


class Fixed(asyncio.Protocol):
    """Reads requests only as far as their length, and answers each the same."""

    delay_s = 0.0

    def connection_made(self, transport):
        self.transport, self.buffer = transport, b""
        self.call_later = asyncio.get_running_loop().call_later

    def data_received(self, data):
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end].lower()
            _, found, tail = head.partition(b"content-length:")
            whole = end + 4 + (int(tail.split(b"\r\n", 1)[0]) if found else 0)
            if len(self.buffer) < whole:
                return
            self.buffer = self.buffer[whole:]
            if self.delay_s:
                self.call_later(self.delay_s, self.answer)
            else:
                self.transport.write(ANSWER)

    def answer(self):
        if not self.transport.is_closing():
            self.transport.write(ANSWER)


async def main(delay_ms: float) -> None:
    Fixed.delay_s = delay_ms / 1000
    server = await asyncio.get_running_loop().create_server(Fixed, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    (uvloop or asyncio).run(main(float(sys.argv[1])))
