"""What a call acts on, in words that are the same in every run: a file of the work folder, or a
service.
"""

from __future__ import annotations

import os
import re
import struct
import time
from calendar import timegm
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from chaoskit.trace import OUTSIDE, ptrace
from chaoskit.trace.abi import Kind
from chaoskit.trace.filter import CREATES
from chaoskit.trace.outside import is_cache, is_state
from chaoskit.trace.peers import is_local, peer_at
from chaoskit.trace.ptrace import Entered
from chaoskit.trace.varying import Varying

_AT_FDCWD = 0xFFFFFF9C
_O_DSYNC = 0o10000
"""Part of O_SYNC; the same number on x86_64 and aarch64."""

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.,:=@~-/")
_RANDOM = re.compile(
    rb"(?<![A-Za-z0-9])(tmp)[a-z0-9_]{8}(?![A-Za-z0-9])"  # Python's tempfile
    rb"|(?<![A-Za-z0-9])(tmp\.)[A-Za-z0-9]{10}(?![A-Za-z0-9])"  # mktemp
    rb"|(?<![^/])#[0-9]+(?![^/])"  # a file without a name (O_TMPFILE)
    rb"|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"  # a UUID
    rb"|(?<![0-9a-fA-F])[0-9a-f]{32}(?![0-9a-fA-F])"  # one without dashes
)
_CLOCK = re.compile(
    rb"(?<![0-9])(?:(?P<day>20[0-9]{2}([-_.]?)[0-9]{2}\2[0-9]{2})[T_ .-]*"
    rb"(?P<time>[0-9]{2}([-:_.]?)[0-9]{2}(?:\4[0-9]{2}(?:[.,_]?[0-9]{3,9})?)?)"
    rb"(?:Z|[+-][0-9]{2}:?[0-9]{2})?"
    rb"|(?P<unix>[0-9]{10})(?:(?:[0-9]{3}){0,3}(?:\.[0-9]{1,9})?))(?![0-9])"
)
"""What may be a date with a time, or a count of seconds, milli-, micro- or nanoseconds."""

_NOW_S = 36 * 3600
"""A time within so much of the present one, in any time zone, was read off a clock."""

_DELETED = " (deleted)"


@dataclass(frozen=True, slots=True)
class Scope:
    """Which files and sockets belong to the world that is judged.

    Args:
        folders: absolute folder to the label that stands before its files' names; the work folder
            has none.
        ports: TCP port on the loopback to the name of the service that listens there.
        quiet: absolute folders whose files say nothing (the harness's own).
        varying: names that stand for all those that differ from run to run, see `Varying`.
        allowed: who may be reached besides; see `chaoskit.trace.strangers`.
    """

    folders: Mapping[str, str]
    ports: Mapping[int, str]
    quiet: tuple[str, ...] = ()
    varying: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """What one call acts on.

    Args:
        name: for the point.
        paths: the absolute paths of the files, as far as they are ones.
        sends: it is a service.
        bytes: how much would be written, where the call counts that itself.
    """

    name: str
    paths: tuple[str, ...] = ()
    sends: bool = False
    bytes: int = 0


@dataclass(slots=True)
class Names:
    """Finds targets. Remembers which socket is connected to what.

    ``elsewhere`` are those files of the last call that was asked about that do not count.
    """

    scope: Scope
    elsewhere: tuple[str, ...] = ()
    _peers: dict[str, str] = field(default_factory=dict)
    _varying: Varying = field(init=False)

    def __post_init__(self) -> None:
        self._varying = Varying(self.scope.varying)

    def of(self, tid: int, kind: Kind, call: Entered) -> Target | None:
        """The target of a call; None where it does not count."""
        arguments = call.arguments
        self.elsewhere = ()
        match kind.shape:
            case "fd" | "out" | "map" | "writev":
                at = 4 if kind.shape == "map" else kind.at
                found = self._descriptor(tid, arguments[at])
            case "write":
                found = self._descriptor(tid, arguments[0], arguments[2])
            case "connect":
                found = self._connect(tid, arguments)
            case "bind":
                peer = peer_at(tid, arguments[1], arguments[2])
                found = self._paths([peer.path]) if peer and peer.path[:1] == "/" else None
            case "all":
                found = Target("")
            case "mapping":
                mapped = mapped_files(tid, arguments[0], 1)
                found = self._paths(mapped) if mapped else None
            case "open2" if not _creates(tid, arguments[2]):
                found = None
            case _:
                found = self._paths(_paths(tid, kind, arguments))
        return found

    def _descriptor(self, tid: int, number: int, size: int = 0) -> Target | None:
        path = _descriptor_path(tid, number)
        if path.startswith("socket:"):
            service = self._peers.get(path)
            return Target(service, sends=True, bytes=size) if service else None
        if not path.startswith("/"):
            return None  # a pipe, an eventfd, an anonymous file
        named = self._paths([path.removesuffix(_DELETED)])
        if path.endswith(_DELETED):
            self.elsewhere = ()  # nobody sees it afterwards
        return None if named is None else Target(named.name, named.paths, bytes=size)

    def _paths(self, paths: Sequence[str]) -> Target | None:
        names = [self._file(path) for path in paths]
        self.elsewhere = tuple(p for p, name in zip(paths, names, strict=True) if name is None)
        if len(self.elsewhere) == len(paths):
            return None
        return Target("->".join(name or OUTSIDE for name in names), tuple(paths))

    def _file(self, path: str) -> str | None:
        """The name of a file that counts; the folders are looked at in their order."""
        if is_cache(path):
            return None
        for folder, label in self.scope.folders.items():
            if folder == "/" and not is_state(path, self.scope.quiet):
                continue
            if path == folder:
                return label + "."
            top = folder.rstrip("/") + "/"
            if path.startswith(top):
                return self._varying.of(label + _encoded(path[len(top) :]))
        return None

    def shared(self, tid: int, address: int, size: int) -> list[Target]:
        """The files of the shared mappings in a piece of a process's memory, as far as they count.

        Those elsewhere are in `elsewhere`.
        """
        found, outside = [], []
        for path in mapped_files(tid, address, size, shared=True):
            target = self._paths([path])
            if target is None:
                outside.append(path)
            else:
                found.append(target)
        self.elsewhere = tuple(outside)
        return found

    def _connect(self, tid: int, arguments: Sequence[int]) -> Target | None:
        """Learn who will be at the other end; connecting is itself something a service sees."""
        peer = peer_at(tid, arguments[1], arguments[2])
        path = _descriptor_path(tid, arguments[0])
        service = None
        if peer is not None and not peer.path and is_local(peer.host):
            service = self.scope.ports.get(peer.port)
        if service is None:
            self._peers.pop(path, None)
            return None
        self._peers[path] = service
        return Target(service, sends=True)


def _paths(tid: int, kind: Kind, arguments: Sequence[int]) -> list[str]:
    """The absolute paths that a call names, links in them not followed."""
    at = kind.at
    match kind.shape:
        case "path":
            return [_absolute(tid, _AT_FDCWD, arguments[at])]
        case "two":
            return [_absolute(tid, _AT_FDCWD, arguments[at + n]) for n in (0, 1)]
        case "at" | "open2":
            return [_absolute(tid, arguments[at], arguments[at + 1])]
        case _:
            return [_absolute(tid, arguments[at + n], arguments[at + n + 1]) for n in (0, 2)]


def mapped_files(tid: int, address: int, size: int, *, shared: bool = False) -> list[str]:
    """The files that are mapped in ``size`` bytes from ``address`` on, each once.

    With ``shared`` only those of mappings in which stores go to the file.
    """
    found: dict[str, None] = {}
    try:
        with open(f"/proc/{tid}/maps", encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                span, flags, _, _, _, *path = line.rstrip("\n").split(maxsplit=5)
                first, _, end = span.partition("-")
                if int(first, 16) < address + size and address < int(end, 16):
                    name = path[0].removesuffix(_DELETED) if path else ""
                    if name.startswith("/") and (flags[3] == "s" or not shared):
                        found[name] = None
    except OSError:
        pass
    return list(found)


def _creates(tid: int, how: int) -> bool:
    """Whether the ``struct open_how`` at this address creates or truncates."""
    flags = ptrace.memory(tid, how, 8)
    return len(flags) < 8 or bool(struct.unpack("=Q", flags)[0] & CREATES)


def _absolute(tid: int, folder: int, address: int) -> str:
    if address == 0:  # utimensat of a descriptor
        return _descriptor_path(tid, folder)
    path = os.fsdecode(ptrace.text(tid, address))
    if not path.startswith("/"):
        base = f"/proc/{tid}/cwd"
        if folder & 0xFFFFFFFF != _AT_FDCWD:
            base = f"/proc/{tid}/fd/{folder & 0xFFFFFFFF}"
        path = os.path.join(_link(base), path)
    return os.path.normpath(path)


def _descriptor_path(tid: int, number: int) -> str:
    return _link(f"/proc/{tid}/fd/{number & 0xFFFFFFFF}")


def is_synced(tid: int, kind: Kind, descriptor: int) -> bool:
    """Whether the call writes to a descriptor that was opened with O_SYNC or O_DSYNC."""
    return kind.shape in {"write", "writev"} and bool(_flags(tid, descriptor) & _O_DSYNC)


def is_writable(tid: int, descriptor: int) -> bool:
    """Whether a descriptor is open for writing."""
    return bool(_flags(tid, descriptor) & os.O_ACCMODE)


def _flags(tid: int, descriptor: int) -> int:
    try:
        with open(f"/proc/{tid}/fdinfo/{descriptor & 0xFFFFFFFF}", encoding="ascii") as lines:
            flags = next((line for line in lines if line.startswith("flags:")), "flags: 0")
    except OSError:
        return 0
    return int(flags.split()[1], 8)


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _encoded(path: str) -> str:
    """A path that fits into a point's name, with what is drawn anew in each run left out."""
    raw = os.fsencode(path)
    found = [(drawn.span(), drawn[1] or drawn[2] or b"") for drawn in _RANDOM.finditer(raw)]
    found += [(clock.span(), b"") for clock in _CLOCK.finditer(raw) if _is_now(clock)]
    parts = []
    last = 0
    for (start, end), kept in sorted(found):
        if start >= last:
            parts.append(_quoted(raw[last:start] + kept) + "*")
            last = end
    return "".join(parts) + _quoted(raw[last:])


def _is_now(clock: re.Match[bytes]) -> bool:
    """Whether a number that may be a time is about the present one."""
    if clock["unix"]:
        return abs(int(clock["unix"]) - time.time()) < _NOW_S
    day, time_of_day = (re.sub(rb"[^0-9]", b"", clock[part]) for part in ("day", "time"))
    year, month, date = int(day[:4]), int(day[4:6]), int(day[6:8])
    hour, minute = int(time_of_day[:2]), int(time_of_day[2:4])
    if not (1 <= month <= 12 and 1 <= date <= 31 and hour < 24 and minute < 60):
        return False
    return abs(timegm((year, month, date, hour, minute, 0)) - time.time()) < _NOW_S


def _quoted(raw: bytes) -> str:
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in raw)
