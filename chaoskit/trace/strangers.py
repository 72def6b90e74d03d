"""Whom a task may reach: the services of its run, itself, and whom the user allows. Everybody else
is a stranger, whose deeds no ledger has: the call that would reach one is refused, not made.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import struct
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from chaoskit.trace import ALLOWED, NOBODY, STRANGER, ptrace
from chaoskit.trace.abi import Kind
from chaoskit.trace.peers import (
    DNS_PORT,
    Peer,
    held_by,
    inet_sockets,
    is_local,
    name_asked_for,
    peer_at,
    unix_sockets,
)
from chaoskit.trace.ptrace import Entered

_BORN = time.time()
_REFUSED = -errno.ECONNREFUSED
_MESSAGE_BYTES, _MESSAGES_MAX = 64, 1024
_PACKET_BYTES = 512

_LOGS = ("/dev/log", "/run/systemd/journal/", "/var/run/syslog")
"""Logging goes one way: nothing comes back by which a task could resume otherwise."""

_LOOK_UPS = (
    *("/var/run/nscd/", "/run/nscd/", "/var/lib/sss/", "/run/systemd/userdb/"),
    *("/run/systemd/resolve/", "/var/run/avahi-daemon/", "/run/avahi-daemon/"),
)
"""Where the C library asks for users and hosts before it looks into files, or sends a DNS question;
it does so at once where nobody answers."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """Who is let through: texts like ``HOST:PORT``, ``HOST:*``, or the path of a Unix socket."""

    texts: Sequence[str] = ()
    _known: dict[str, frozenset[str]] = field(default_factory=dict)

    def find(self, peer: Peer) -> str:
        """The text that allows an address; empty where none does."""
        for text in self.texts:
            if text == str(peer) or (peer.path and os.path.realpath(text) == peer.path):
                return text
            host, _, port = text.rpartition(":")
            fits = not peer.path and port in {"*", str(peer.port)}
            if fits and peer.host in self._addresses(host.strip("[]")):
                return text
        return ""

    def asks(self, name: str) -> bool:
        """Whether the name of a host may be looked up."""
        hosts = {text.rpartition(":")[0].lower() for text in self.texts}
        return name.lower().rstrip(".") in hosts

    @property
    def names(self) -> bool:
        """Whether a host is allowed by a name that must be looked up."""
        hosts = (text.rpartition(":")[0] for text in self.texts if text[:1] not in "/@")
        return any(not _is_number(host.strip("[]")) for host in hosts)

    def _addresses(self, host: str) -> frozenset[str]:
        if _is_number(host):
            return frozenset({host})
        if host not in self._known:
            try:
                found = socket.getaddrinfo(host, None)
            except OSError:
                found = []
            self._known[host] = frozenset(str(address[0]) for *_, address in found)
        return self._known[host]


def _is_number(host: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except OSError:
            continue
        return True
    return False


class Strangers:
    """Decides of each call that reaches somebody.

    Args:
        ports: of the services, on this machine.
        folders: the harness's, in which every socket is the run's own.
        allowed: who is let through.
        processes: those of the task that live now.
    """

    def __init__(
        self,
        ports: Collection[int],
        folders: Iterable[str],
        allowed: Sequence[str],
        processes: Callable[[], Collection[int]],
    ) -> None:
        self._ports = ports
        self._folders = tuple(f"{folder}/" for folder in folders)
        self._allowed = Allowed(allowed)
        self._processes = processes
        self._noted: set[tuple[str, str]] = set()
        self._datagrams: set[str] = set()
        self._far: dict[str, Peer] = {}
        self._nobody: dict[int, Peer] = {}
        self._own: set[int] = set()

    def notes(self) -> set[tuple[str, str]]:
        """Who was refused, and who was let through. A port at which nobody listened, ever, is one
        where somebody may listen elsewhere.
        """
        missed = [str(peer) for port, peer in self._nobody.items() if port not in self._own]
        return self._noted | {(NOBODY, peer) for peer in missed}

    def opened(self, tid: int, descriptor: int) -> None:
        """A socket of datagrams (not a stream) was made."""
        self._datagrams.add(_socket(tid, descriptor))

    def answer(self, tid: int, kind: Kind, call: Entered) -> int | None:
        """What a call returns that is not made; None: it is made."""
        words = call.arguments
        match kind.name:
            case "connect":
                return self._connect(tid, words)
            case "sendto" if words[4]:
                return self._send(tid, words[0], peer_at(tid, words[4], words[5]), words[1:3])
            case "sendmsg" | "sendmmsg":
                return self._messages(tid, kind, words)
            case "sendto" | "write" | "writev" if self._far:
                packet = words[1:3] if kind.name != "writev" else ()
                return self._send(tid, words[0], None, packet)
            case _:
                return None

    def _connect(self, tid: int, words: Sequence[int]) -> int | None:
        peer = peer_at(tid, words[1], words[2])
        name = _socket(tid, words[0])
        self._far.pop(name, None)
        if peer is None or self._may(tid, name, peer, connects=True):
            return None
        if peer.path or name not in self._datagrams:
            return self._refuse(peer)
        # To connect a datagram socket sends nothing: it asks for the way there, or comes before a
        # DNS question, whose name is in what is sent. It is told that it did, and is not connected.
        self._far[name] = peer
        return None if peer.port == DNS_PORT and self._allowed.names else 0

    def _messages(self, tid: int, kind: Kind, words: Sequence[int]) -> int | None:
        count = min(words[2], _MESSAGES_MAX) if kind.name == "sendmmsg" else 1
        for number in range(count):
            head = ptrace.memory(tid, words[1] + number * _MESSAGE_BYTES, 32)
            if len(head) < 32:
                return None
            address, size, vectors, length = struct.unpack("=QIxxxxQQ", head)
            peer = peer_at(tid, address, size)
            first = ptrace.memory(tid, vectors, 16) if length else b""
            packet = struct.unpack("=QQ", first) if len(first) == 16 else ()
            answer = self._send(tid, words[0], peer, packet)
            if answer is not None:
                return answer
        return None

    def _send(
        self, tid: int, descriptor: int, peer: Peer | None, packet: Sequence[int]
    ) -> int | None:
        """``packet`` is where the bytes are that would be sent, and how many."""
        name = _socket(tid, descriptor)
        to = peer if peer is not None else self._far.get(name)
        if to is None or (peer is not None and self._may(tid, name, peer, connects=False)):
            return None
        if to.port == DNS_PORT and packet:
            asked = name_asked_for(ptrace.memory(tid, packet[0], min(packet[1], _PACKET_BYTES)))
            if asked and self._allowed.asks(asked):
                return None
            if asked:
                self._noted.add((STRANGER, asked))
                return _REFUSED
        return self._refuse(to)

    def _refuse(self, peer: Peer) -> int:
        if not peer.path.startswith(_LOOK_UPS):
            self._noted.add((STRANGER, str(peer)))
        return _REFUSED

    def _may(self, tid: int, name: str, peer: Peer, *, connects: bool) -> bool:
        """Whether an address may be reached, or is one where the kernel itself finds nobody."""
        if peer.path:
            return self._may_path(tid, peer)
        local = is_local(peer.host)
        if (local and peer.port in self._ports) or (connects and peer.port == 0):
            return True
        if not local or self._allowed.find(peer):
            return self._lets_through(peer)
        streams = name not in self._datagrams
        there = inet_sockets(tid, peer.port, streams=streams)
        if there and held_by(self._processes(), there):
            self._own.add(peer.port)
            return True
        if there or (peer.port == DNS_PORT and not streams):
            return False
        if streams or not connects:
            self._nobody.setdefault(peer.port, peer)
        return True

    def _may_path(self, tid: int, peer: Peer) -> bool:
        real = os.path.realpath(peer.path) if peer.path.startswith("/") else peer.path
        if real.startswith(self._folders) or any(p.startswith(_LOGS) for p in (peer.path, real)):
            return True
        if self._lets_through(peer) or (real.startswith("/") and not _is_socket(real)):
            return True
        there = unix_sockets(tid, real)
        if real.startswith("@") and not there:
            return True
        # A file whose socket nobody has is of a dead attempt, or was renamed by its server.
        return held_by(self._processes(), there) if there else _is_younger(real)

    def _lets_through(self, peer: Peer) -> bool:
        text = self._allowed.find(peer)
        if text:
            self._noted.add((ALLOWED, text))
        return bool(text)


def _socket(tid: int, descriptor: int) -> str:
    try:
        return os.readlink(f"/proc/{tid}/fd/{descriptor & 0xFFFFFFFF}")
    except OSError:
        return ""


def _is_younger(path: str) -> bool:
    """Whether a file came after this process."""
    try:
        return os.stat(path).st_ctime > _BORN
    except OSError:
        return True


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except OSError:
        return False
