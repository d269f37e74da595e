"""A server that answers every chat completion, at little cost of its own.

    python benchmarks/stub_server.py LATENCY_S [SIGMA]     # prints its port, serves until it is killed

Every answer is the same tool call and takes LATENCY_S. With SIGMA the last `<place>` in the request (see
`place`) says, together with the model, what is answered and how long it takes: lognormal around LATENCY_S.

`GET /stats` gives the calls received, the most in flight at once, the seconds from the first request to the
last answer, and the CPU seconds the server took.
"""

import asyncio
import hashlib
import json
import math
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


_PLACE = re.compile(rb"<place ([^>]+)>")
_MODEL = re.compile(rb'"model": ?"([^"]+)"')
_SHARES = ((0.45, "student"), (0.8, "better"))
"""Shares of the answers that are the student's own action, and that are the one others agree on."""


def place(trace: int, step: int) -> str:
    """What the last message of a prompt ends with, so that the server knows where it is asked."""
    return f"<place {trace}:{step}>"


def _draws(model: str, where: str) -> tuple[float, float]:
    """Two numbers in (0, 1) for a question; the same, whenever it is asked."""
    found = hashlib.blake2b(f"{model} {where}".encode(), digest_size=16).digest()
    one, two = (int.from_bytes(part, "big") for part in (found[:8], found[8:]))
    return (one + 0.5) / 2**64, (two + 0.5) / 2**64


def latency_s(model: str, where: str, median_s: float, sigma: float) -> float:
    """How long the answer takes: lognormal, by Box and Muller's transform of the question's draws."""
    one, two = _draws(model, where)
    normal = math.sqrt(-2 * math.log(one)) * math.cos(2 * math.pi * two)
    return median_s * math.exp(sigma * normal)


def path_of(model: str, where: str) -> str:
    """The file the answer reads: the student's, the better one, or one that nobody else reads."""
    drawn = _draws(f"answer {model}", where)[0]
    return next((name for share, name in _SHARES if drawn < share), model)


def _answer_of(model: str, where: str) -> bytes:
    call = {"name": "read_file", "arguments": json.dumps({"path": f"src/{path_of(model, where)}.py"})}
    message = {"role": "assistant", "content": "", "tool_calls": [_CALL | {"function": call}]}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    return _http(json.dumps(_COMPLETION | {"model": model, "choices": [choice]}).encode())


_ANSWER = _http(json.dumps(_COMPLETION).encode())
_MODELS = _http(json.dumps({"object": "list", "data": []}).encode())


class Stub(asyncio.Protocol):
    """One connection; requests of one connection are answered in their order."""

    latency_s = 0.05
    sigma: float | None = None
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
            request = bytes(self._buffer[: self._wanted]) if self.sigma is not None else b""
            del self._buffer[: self._wanted]
            self._wanted = 0
            self._answer(path, request)

    def _answer(self, path: bytes, request: bytes) -> None:
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
            takes_s, answer = Stub.latency_s, _ANSWER
            if self.sigma is not None and (model := _MODEL.search(request)):
                where = _PLACE.findall(request, request.rfind(b"<place"))[-1].decode()
                named = model[1].decode()
                takes_s, answer = (
                    latency_s(named, where, Stub.latency_s, self.sigma),
                    _answer_of(named, where),
                )
            asyncio.get_running_loop().call_later(takes_s, self._finish, answer)

    def _finish(self, answer: bytes) -> None:
        Stub.in_flight -= 1
        Stub.last_s = time.monotonic()
        self._out.write(answer)


async def serve(takes_s: float, sigma: float | None) -> None:
    """Serve on a free port of the loopback; the port is printed."""
    Stub.latency_s, Stub.sigma = takes_s, sigma
    server = await asyncio.get_running_loop().create_server(Stub, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else None))
