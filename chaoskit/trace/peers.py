"""Who is at an address: read from a task's memory, and from what /proc says of sockets."""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
from collections.abc import Collection, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import lru_cache

from chaoskit.trace import ptrace

_LISTENS = "0A"
_HEADER = 12
DNS_PORT = 53

_FREE = {socket.AF_UNSPEC, 16, 38}
"""Families by which nobody is reached: none (which ends a connection), AF_NETLINK and AF_ALG, the
kernel itself."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One address: an IP and a port, or (``path``) a Unix socket, ``@name`` for an abstract one."""

    host: str = ""
    port: int = 0
    path: str = ""

    def __str__(self) -> str:
        if self.path:
            return self.path
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def peer_at(tid: int, address: int, size: int) -> Peer | None:
    """The address that stands at ``address``; None where it reaches nobody."""
    raw = ptrace.memory(tid, address, min(size, 128)) if address else b""
    if len(raw) < 2:
        return None
    (family,) = struct.unpack_from("=H", raw)
    if family in _FREE:
        return None
    if family == socket.AF_INET and len(raw) >= 8:
        return Peer(str(ipaddress.IPv4Address(raw[4:8])), int.from_bytes(raw[2:4], "big"))
    if family == socket.AF_INET6 and len(raw) >= 24:
        found = ipaddress.IPv6Address(raw[8:24])
        return Peer(str(found.ipv4_mapped or found), int.from_bytes(raw[2:4], "big"))
    if family == socket.AF_UNIX:
        path = unix_path(tid, raw)
        return Peer(path=path) if path else None
    return Peer(path=f"an address of family {family}")


def unix_path(tid: int, raw: bytes) -> str:
    """The absolute path of a Unix socket's address; ``@name`` for an abstract one."""
    name = raw[2:]
    if name.startswith(b"\0"):
        return "@" + os.fsdecode(name[1:].replace(b"\0", b"@")) if len(name) > 1 else ""
    path = os.fsdecode(name.partition(b"\0")[0])
    if path and not path.startswith("/"):
        with suppress(OSError):
            path = os.path.join(os.readlink(f"/proc/{tid}/cwd"), path)
    return os.path.normpath(path) if path else ""


@lru_cache(maxsize=256)
def is_local(host: str) -> bool:
    """Whether an address is one of this machine's own."""
    address = ipaddress.ip_address(host)
    if address.is_loopback or address.is_unspecified:
        return True
    if address.is_multicast or host == "255.255.255.255":
        return False
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with closing(socket.socket(family, socket.SOCK_DGRAM)) as asked:
        try:
            asked.bind((host, 0))
        except OSError:
            return False
    return True


def inet_sockets(tid: int, port: int, *, streams: bool) -> set[str]:
    """Those that listen (or, of datagrams, are bound) at a port of the task's machine, by inode."""
    found: set[str] = set()
    for table in ("tcp", "tcp6") if streams else ("udp", "udp6"):
        for _, local, _, state, *others in _rows(tid, table):
            if int(local.rpartition(":")[2], 16) == port and (state == _LISTENS or not streams):
                found.add(others[5])
    return found


def unix_sockets(tid: int, path: str) -> set[str]:
    """Those that were bound to a path or an abstract name, by inode."""
    exact, alike = set(), set()
    for _, _, _, _, _, _, inode, *names in _rows(tid, "unix"):
        name = " ".join(names)
        if name == path:
            exact.add(inode)
        elif name and name[0] not in "/@" and os.path.basename(name) == os.path.basename(path):
            alike.add(inode)  # it was bound to a relative path
    return exact or alike


def _rows(tid: int, table: str) -> Iterable[list[str]]:
    try:
        with open(f"/proc/{tid}/net/{table}", encoding="utf-8", errors="surrogateescape") as rows:
            return [row.split() for row in rows][1:]
    except OSError:
        return []


def held_by(processes: Iterable[int], inodes: Collection[str]) -> bool:
    """Whether one of these processes has one of these sockets open."""
    wanted = {f"socket:[{inode}]" for inode in inodes}
    for process in processes:
        with suppress(OSError):
            for number in os.listdir(f"/proc/{process}/fd"):
                with suppress(OSError):
                    if os.readlink(f"/proc/{process}/fd/{number}") in wanted:
                        return True
    return False


def name_asked_for(packet: bytes) -> str:
    """The name in a DNS question; empty where it is none."""
    labels, at = [], _HEADER
    while at < len(packet) and 0 < packet[at] < 64:
        label = packet[at + 1 : at + 1 + packet[at]]
        labels.append("".join(chr(byte) if 32 < byte < 127 else "?" for byte in label))
        at += 1 + packet[at]
    whole = at < len(packet) and packet[at] == 0
    return ".".join(labels) if whole else ""
