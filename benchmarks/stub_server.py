"""A server that answers every chat completion, at little cost of its own.

    python benchmarks/stub_server.py LATENCY_S     # prints its port, serves until it is killed

Every answer is the same tool call and takes LATENCY_S.

`GET /stats` gives the calls received, the most in flight at once, the seconds from the first request to the
last answer, and the CPU seconds the server took.
"""

import asyncio
import json
import re
import sys
import time

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "read_file", "arguments": json.dumps({"path": "src/lantern.py"})},
}
_COMPLETION = {
    "id": "gen-stub",
    "object": "chat.completion",
    "created": 0,
    "model": "stub-model",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {"role": "assistant", "content": "Reading on. " * 20, "tool_calls": [_CALL]},
        }
    ],
    "usage": {"prompt_tokens": 500, "completion_tokens": 100, "total_tokens": 600, "cost": 0.0004},
}


def _http(body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


_ANSWER = _http(json.dumps(_COMPLETION).encode())
_MODELS = _http(json.dumps({"object": "list", "data": []}).encode())


class Stub(asyncio.Protocol):
    """One connection; requests of one connection are answered in their order."""

    latency_s = 0.05
    received = in_flight = most = 0
    first_s = last_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._out = transport
        self._buffer = bytearray()
        self._wanted = 0

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= self._wanted and (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            found = _LENGTH.search(self._buffer, 0, end)
            self._wanted = end + 4 + (int(found[1]) if found else 0)
            if len(self._buffer) < self._wanted:
                return
            path = bytes(self._buffer[: self._buffer.find(b"\r\n")]).split()[1]
            del self._buffer[: self._wanted]
            self._wanted = 0
            self._answer(path)

    def _answer(self, path: bytes) -> None:
        if path.endswith(b"/models"):
            self._out.write(_MODELS)
        elif path == b"/stats":
            span_s = Stub.last_s - Stub.first_s
            stats = {"received": Stub.received, "most": Stub.most, "span_s": span_s}
            stats["cpu_s"] = time.process_time()
            self._out.write(_http(json.dumps(stats).encode()))
        else:
            Stub.first_s = Stub.first_s or time.monotonic()
            Stub.received += 1
            Stub.in_flight += 1
            Stub.most = max(Stub.most, Stub.in_flight)
            asyncio.get_running_loop().call_later(Stub.latency_s, self._finish)

    def _finish(self) -> None:
        Stub.in_flight -= 1
        Stub.last_s = time.monotonic()
        self._out.write(_ANSWER)


async def serve(latency_s: float) -> None:
    """Serve on a free port of the loopback; the port is printed."""
    Stub.latency_s = latency_s
    server = await asyncio.get_running_loop().create_server(Stub, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
