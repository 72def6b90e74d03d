"""A copy-on-write view of the whole file system, for one launcher and all that it starts.

The launcher enters a mount namespace of its own (and a user namespace, where it is not root) and
puts an overlay over every top-level folder. What a task writes, wherever that is, goes to the upper
layers, which together are the world of the task; nothing real is changed. Memory holds them, in a
tmpfs that ends with the launcher.

* `/` itself cannot be a lower layer, because it has mounts in it; each top-level folder can, and
  so can each mount below one, which is given an overlay of its own.
* An ordinary user owns the upper layers. A folder of somebody else's cannot be copied there, which
  concerns what the user could not have written anyway; one that everybody may write to gets an
  overlay of its own. A top-level folder that the user may not write to stays so.
* /proc, /sys and /dev stay as they are, but for /dev/shm and POSIX message queues, which are new
  and empty, as are System V's objects.
* An upper layer is never changed below an overlay that is in use: it is replaced by a new one.

Linux only; the standard library only, because the launcher imports it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import stat
import sys
from contextlib import suppress
from dataclasses import dataclass

from chaoskit.trial import files

_CLONE_NEWNS, _CLONE_NEWIPC, _CLONE_NEWUSER = 0x20000, 0x08000000, 0x10000000
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_MNT_DETACH = 2
_PR_SET_DUMPABLE = 4
_MOUNT_SETATTR, _AT_RECURSIVE, _READ_ONLY, _AT_FDCWD = 442, 0x8000, 1, -100
_CAPSET, _CAP_VERSION = {"x86_64": 126, "aarch64": 91}, 0x20080522

_ESCAPED = re.compile(rb"\\([0-7]{3})")
"""How spaces and the like stand in the kernel's list of mounts."""

_KERNELS = ("/proc", "/sys", "/dev")
"""Where files are not files on a disk."""

_TEMPORARY = "/tmp"  # noqa: S108 - a place that is covered
_SHARED_MEMORY, _QUEUES = "/dev/shm", "/dev/mqueue"  # noqa: S108 - places that are covered

HOME = "/dev/shm/chaoskit"  # noqa: S108 - a place in the view only
"""Where the work folder is in every view: its path is the same in every run."""

_OPEN_TO_ALL = ("/var", "/run", "/srv", "/opt", "/mnt", "/media")
"""Where folders are looked for that everybody may write to, two levels deep."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One overlay.

    Args:
        at: where it is mounted.
        lower: what is below, as a path that leads there although it is covered.
    """

    at: str
    lower: str

    @property
    def label(self) -> str:
        """Its name: one of a file, with nothing in it that an option of a mount could not hold."""
        return "@" + re.sub(r"[^\w.-]", lambda found: f"%{ord(found[0]):x};", self.at)


class Overlays:
    """The overlays of this process, which gets its own namespaces when this is made, for good.

    Attributes:
        descriptor: leads to the folder with the upper layers, for this process and its children.
        layers: the overlays, those further out first.
        closed: mounts that could not be covered, and can only be read; single files are among them.
    """

    def __init__(self, base: str) -> None:
        """``base`` is the harness's own folder; it stays what it is.

        Raises:
            OSError: this machine does not allow it; what was done until then is not undone, so
                `hindrance` comes first.
        """
        self._base = base
        self._is_root = os.geteuid() == 0
        self._parent = os.open(os.path.dirname(base), os.O_PATH | os.O_DIRECTORY)
        self._generation = 0
        self._up: dict[str, int] = {}
        self.closed: list[Layer] = []
        os.makedirs(f"{base}/view", exist_ok=True)
        needed = [os.path.realpath(p) for p in (os.getcwd(), os.path.expanduser("~"), _TEMPORARY)]
        self._enter()
        _mount("none", "/", "", _MS_REC | _MS_PRIVATE)
        self._own = os.open(base, os.O_PATH | os.O_DIRECTORY)  # only a new one can be mounted here
        _mount("chaoskit", f"{base}/view", "tmpfs", 0, "mode=755")
        self.descriptor = os.open(f"{base}/view", os.O_PATH | os.O_DIRECTORY)
        self._store = f"/proc/self/fd/{self.descriptor}"
        self.layers = self._plan()
        self._cover_all()
        for layer in self.closed:
            if any(f"{path}/".startswith(f"{layer.at}/") for path in needed):
                raise OSError(errno.EPERM, "no overlay can be mounted", layer.at)

    def _enter(self) -> None:
        """New namespaces; the same user and group as before in the one for users."""
        user, group = os.geteuid(), os.getegid()
        try:
            _unshare(_CLONE_NEWNS | _CLONE_NEWIPC | (0 if self._is_root else _CLONE_NEWUSER))
        except PermissionError:
            if not self._is_root:
                raise
            self._is_root = False  # root in a container, without the right to mount
            _unshare(_CLONE_NEWNS | _CLONE_NEWIPC | _CLONE_NEWUSER)
        if self._is_root:
            return
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
        # The supervisor is outside, and looks at our files through /proc.
        _check(_libc().prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0), "prctl")

    def _plan(self) -> list[Layer]:
        """The overlays that cover everything."""
        mounts = _mounts()
        places = [top for top in _tops() if top not in mounts]
        own = f"{self._base}/"
        places += sorted(at for at in mounts if os.path.isdir(at) and not at.startswith(own))
        if not self._is_root:
            places = [at for at in places if os.access(at, os.X_OK)]  # others are of no use
            places += [at for at in _open_to_all() if at not in places]
        found = [_layer(at) for at in places]
        # An overlay is one of a folder, and does not show what is mounted in the one below.
        alone = (at for at in sorted(mounts) if os.path.lexists(at) and not os.path.isdir(at))
        self.closed = [_layer(at) for at in alone if not at.startswith(own)]
        empty = f"{self._store}/shm"
        os.makedirs(empty + HOME.removeprefix(_SHARED_MEMORY))
        os.chmod(empty, 0o1777)  # noqa: S103 - as everywhere, and nobody else is in the view
        if self._base.startswith(f"{_SHARED_MEMORY}/"):
            os.makedirs(empty + self._base.removeprefix(_SHARED_MEMORY))
        return [*found, Layer(_SHARED_MEMORY, empty)]

    def _cover_all(self) -> None:
        """Put every overlay in its place for the first time."""
        for layer in tuple(self.layers):
            self._make_upper(layer)
            try:
                self._cover(layer)
            except OSError:
                self.layers.remove(layer)
                self.closed.append(layer)
                self._close(layer)
            else:
                self._close_within(layer)
            self._show_base(layer)
        self._renew_queues()

    def upper(self, label: str) -> str:
        """The name, in the store, of the folder with what was written below one overlay."""
        return f"{label}.{self._up[label]}"

    def _make_upper(self, layer: Layer) -> None:
        """An empty upper layer, whose topmost folder looks like the one below."""
        self._generation += 1
        self._up[layer.label] = self._generation
        upper = f"{self._store}/{self.upper(layer.label)}"
        os.mkdir(upper)
        os.mkdir(f"{upper}.work")
        below = os.stat(layer.lower)
        mode = stat.S_IMODE(below.st_mode)
        if self._is_root:
            os.chown(upper, below.st_uid, below.st_gid)
        elif below.st_uid != os.geteuid():
            mode = mode & 0o7077 | _rights(layer.lower) << 6
        os.chmod(upper, mode)
        os.utime(upper, ns=(below.st_mtime_ns, below.st_mtime_ns))

    def renew(self, labels: list[str]) -> list[str]:
        """Take overlays away, with all that lie within, and give each an empty upper layer.

        System V's objects and message queues are new as well. `cover` puts them back.

        Returns:
            The labels of all that were taken away.
        """
        outer = [f"{layer.at}/" for layer in self.layers if layer.label in labels]
        gone = [
            layer
            for layer in self.layers
            if layer.label in labels or layer.at.startswith(tuple(outer))
        ]
        for layer in reversed(gone):
            old = f"{self._store}/{self.upper(layer.label)}"
            _unmount(layer.at)
            self._make_upper(layer)
            files.remove(old)
            files.remove(f"{old}.work")
        self._renew_queues()
        return [layer.label for layer in gone]

    def cover(self, labels: list[str]) -> None:
        """Put overlays back that `renew` took away.

        Raises:
            OSError: one that was possible before is not any more.
        """
        for layer in self.layers:
            if layer.label in labels:
                self._cover(layer)
                self._close_within(layer)
                self._show_base(layer)

    def _cover(self, layer: Layer) -> None:
        upper = f"{self._store}/{self.upper(layer.label)}"
        extra = "redirect_dir=on" if self._is_root else "userxattr"
        options = f"lowerdir={layer.lower},upperdir={upper},workdir={upper}.work,{extra}"
        _mount("overlay", layer.at, "overlay", 0, options)

    def _close_within(self, layer: Layer) -> None:
        for inner in self.closed:
            if inner.at.startswith(f"{layer.at}/"):
                self._close(inner)

    def _close(self, layer: Layer) -> None:
        """What cannot be covered can only be read."""
        _mount(layer.lower, layer.at, "", _MS_BIND | _MS_REC)
        attributes = (ctypes.c_uint64 * 4)(_READ_ONLY, 0, 0, 0)
        done = _libc().syscall(
            _MOUNT_SETATTR,
            _AT_FDCWD,
            os.fsencode(layer.at),
            _AT_RECURSIVE,
            ctypes.byref(attributes),
            ctypes.sizeof(attributes),
        )
        _check(done, f"closing {layer.at}")

    def _show_base(self, layer: Layer) -> None:
        """The harness's own folder is the real one, wherever it lies; a part of it is `HOME`."""
        if self._base.startswith(f"{layer.at}/"):
            _mount(f"/proc/self/fd/{self._own}", self._base, "", _MS_BIND)
        if layer.at == _SHARED_MEMORY:
            _mount(f"/proc/self/fd/{self._own}/home", HOME, "", _MS_BIND)

    def _renew_queues(self) -> None:
        _unshare(_CLONE_NEWIPC)
        if os.path.isdir(_QUEUES):
            with suppress(OSError):  # a machine without them
                _unmount(_QUEUES)
            with suppress(OSError):
                _mount("mqueue", _QUEUES, "mqueue")

    def leave(self) -> None:
        """Remove the harness's own folder."""
        own = f"/proc/self/fd/{self._own}"
        with suppress(OSError):
            _unmount(self._base)
        with suppress(OSError):
            _unmount(f"{own}/view")
        with suppress(OSError):
            for entry in os.listdir(own):
                files.remove(f"{own}/{entry}")
            os.rmdir(os.path.basename(self._base), dir_fd=self._parent)

    @property
    def lends_rights(self) -> bool:
        """Whether a process that is forked has rights that only the namespace gives it."""
        return not self._is_root and os.geteuid() != 0


def _layer(at: str) -> Layer:
    """What is there now; a descriptor leads to it once it is covered."""
    return Layer(at, f"/proc/self/fd/{os.open(at, os.O_PATH)}")


def _rights(path: str) -> int:
    """What this user may do, as the bits of a mode."""
    bits = ((os.R_OK, 0o4), (os.W_OK, 0o2), (os.X_OK, 0o1))
    return sum(bit for right, bit in bits if os.access(path, right))


def hindrance(base: str) -> str:
    """Why there can be no overlays here, found out by a process of its own; empty: they can be."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            Overlays(base)
        except OSError as error:
            where = f" ({error.filename})" if error.filename else ""
            os.write(write, f"{error.strerror}{where}".encode(errors="backslashreplace"))
        except Exception as error:  # noqa: BLE001 - another system lacks what this is made of
            os.write(write, str(error).encode(errors="backslashreplace"))
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    return said


def drop_rights() -> None:
    """Give up all capabilities: an executed program loses them by itself, a fork does not."""
    number = _CAPSET.get(os.uname().machine)
    if number is None:
        return
    header = (ctypes.c_uint32 * 2)(_CAP_VERSION, 0)
    nothing = (ctypes.c_uint32 * 6)()
    _check(_libc().syscall(number, ctypes.byref(header), ctypes.byref(nothing)), "capset")


def _tops() -> list[str]:
    found = []
    for name in sorted(os.listdir("/")):
        path = f"/{name}"
        if path not in _KERNELS and os.path.isdir(path) and not os.path.islink(path):
            found.append(path)
    return found


def _mounts() -> set[str]:
    """Where file systems are mounted in the tree, outside the kernel's own folders."""
    found = set()
    with open("/proc/self/mountinfo", "rb") as lines:
        for line in lines:
            at = os.fsdecode(_ESCAPED.sub(lambda m: bytes([int(m[1], 8)]), line.split()[4]))
            if at != "/" and not f"{at}/".startswith(tuple(f"{k}/" for k in _KERNELS)):
                found.add(at)
    return found


def _open_to_all() -> list[str]:
    """Folders of somebody else's that this user may write to."""
    found = []
    for top in _OPEN_TO_ALL:
        for folder, names, _ in os.walk(top):
            if folder.count("/") >= 3:
                names.clear()
            status = os.lstat(folder)
            if status.st_uid != os.geteuid() and os.access(folder, os.W_OK) and folder != top:
                found.append(folder)
                names.clear()
    return found


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), what)


def _unshare(flags: int) -> None:
    if sys.platform != "linux":
        raise OSError("this system has no namespaces")
    _check(_libc().unshare(flags), "unshare")


def _mount(source: str, at: str, kind: str, flags: int = 0, options: str = "") -> None:
    done = _libc().mount(
        os.fsencode(source),
        os.fsencode(at),
        kind.encode() or None,
        ctypes.c_ulong(flags),
        os.fsencode(options) or None,
    )
    _check(done, at)


def _unmount(at: str) -> None:
    _check(_libc().umount2(os.fsencode(at), _MNT_DETACH), at)
