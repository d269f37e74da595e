"""A network that has loopback and nothing else, and a record of each packet that tries to leave it (Linux).

It is a network namespace whose default route leads to a TUN device, which this module reads when it is run as
a program. Processes enter it with `nsenter`; children of theirs stay in it, whatever they are written in.
"""

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from select import select

ABSENT = "no network namespace can be made here: unshare, nsenter and /dev/net/tun are wanted"
ADDRESS, NETMASK, GATEWAY, RESOLVER = "192.0.2.2", "255.255.255.0", "192.0.2.1", "192.0.2.53"
_SET_TUN, _TUN_WITHOUT_HEADER = 0x400454CA, 0x1001
_SET_FLAGS, _SET_ADDRESS, _SET_NETMASK, _ADD_ROUTE = 0x8914, 0x8916, 0x891C, 0x890B
_UP_AND_RUNNING, _UP_BY_GATEWAY = 0x41, 0x3
_PROTOCOLS = {socket.IPPROTO_TCP: "tcp", socket.IPPROTO_UDP: "udp"}


@dataclass(frozen=True)
class LoneNetwork:
    """The network that a process holds."""

    pid: int
    record: Path

    def inside(self, *command: object) -> list[str]:
        """The command line that runs a command in this network."""
        enter = ["nsenter", "--target", str(self.pid), "--user", "--net", "--mount", "--preserve-credentials"]
        return [*enter, *map(str, command)]

    def left(self) -> list[str]:
        """What tried to leave, in order: protocol, address and port, the name that a resolver was asked."""
        return self.record.read_text().splitlines()


@contextmanager
def lone_network(folder: Path) -> Iterator[LoneNetwork | None]:
    """A network for as long as the block lasts; None where this machine makes none."""
    if not (shutil.which("unshare") and shutil.which("nsenter")):
        yield None
        return
    network = ["unshare", "--user", "--map-root-user", "--net", "--mount"]
    hold, pipe = [*network, sys.executable, __file__, str(folder)], subprocess.PIPE
    holder = subprocess.Popen(hold, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
    assert holder.stdout is not None
    try:
        ready = holder.stdout.readline() == b"ready\n"
        yield LoneNetwork(holder.pid, folder / "left") if ready else None
    finally:
        holder.kill()
        holder.communicate()


def _bring_up(name: str) -> None:
    """Give a device its address, unless it is loopback, and turn it on."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:

        def set_(what: int, value: bytes) -> None:
            fcntl.ioctl(any_socket, what, struct.pack("16s24s", name.encode(), value))

        if name != "lo":
            set_(_SET_ADDRESS, _socket_address(ADDRESS))
            set_(_SET_NETMASK, _socket_address(NETMASK))
        set_(_SET_FLAGS, struct.pack("H", _UP_AND_RUNNING))


def _add_default_route() -> None:
    anywhere = _socket_address("0.0.0.0")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        entry = (0, anywhere, _socket_address(GATEWAY), anywhere, _UP_BY_GATEWAY)
        fcntl.ioctl(any_socket, _ADD_ROUTE, struct.pack("L16s16s16sH62x", *entry))


def _socket_address(address: str) -> bytes:
    return struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(address))


def _said_of(packet: bytes) -> str:
    """What a packet of IPv4 says of itself."""
    head = (packet[0] & 15) * 4
    protocol = _PROTOCOLS.get(packet[9], str(packet[9]))
    said = f"{protocol} {socket.inet_ntoa(packet[16:20])}"
    if protocol.isdigit():
        return said
    port = int.from_bytes(packet[head + 2 : head + 4], "big")
    return f"{said}:{port} {_name_asked(packet[head + 20 :])}".rstrip() if port == 53 else f"{said}:{port}"


def _name_asked(question: bytes) -> str:
    labels = list[str]()
    while question and (length := question[0]):
        labels.append(question[1 : length + 1].decode(errors="replace"))
        question = question[length + 1 :]
    return ".".join(labels)


def _hold(folder: Path) -> None:
    """Make the network of this process lone, say that it is ready, and write down what tries to leave it.

    Ends with its input, so with the process that started it.
    """
    resolver = folder / "resolv.conf"
    resolver.write_text(f"nameserver {RESOLVER}\noptions timeout:1 attempts:1\n")
    subprocess.run(["mount", "--bind", str(resolver), "/etc/resolv.conf"], check=True)
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, _SET_TUN, struct.pack("16sH22x", b"elsewhere", _TUN_WITHOUT_HEADER))
    _bring_up("lo")
    _bring_up("elsewhere")
    _add_default_route()
    with (folder / "left").open("w", buffering=1) as record:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while sys.stdin not in select([device, sys.stdin], [], [])[0]:
            packet = os.read(device, 65536)
            if packet[0] >> 4 == 4:  # the kernel speaks IPv6 to a new device by itself
                record.write(_said_of(packet) + "\n")


if __name__ == "__main__":
    _hold(Path(sys.argv[1]))
