"""Calls that are no points and are looked at all the same: they limit what a trace can claim."""

from __future__ import annotations

from collections.abc import Callable

from chaoskit.trace import IPC, RING, ptrace
from chaoskit.trace.abi import Abi, Kind
from chaoskit.trace.naming import Names, Target, is_writable
from chaoskit.trace.outside import Outside, Settle
from chaoskit.trace.ptrace import Entered
from chaoskit.trace.strangers import Strangers

_PROT_WRITE = 2


class Aside:
    """Looks at them.

    ``mapped`` takes each file into which the task can store; ``noted`` is what was found besides.
    """

    def __init__(
        self,
        abi: Abi,
        names: Names,
        outside: Outside,
        strangers: Strangers,
        mapped: Callable[[Target], None],
    ) -> None:
        self._names, self._outside, self._strangers = names, outside, strangers
        self._mapped = mapped
        self._shares = False
        self.noted: set[tuple[str, str]] = set()
        looks = {
            "socket": self._socket,
            "io_uring_setup": self._ring,
            "mprotect": self._protects,
            "pkey_mprotect": self._protects,
            **dict.fromkeys(("shmget", "semget", "msgget", "mq_open"), self._shares_objects),
        }
        self._calls = {abi.numbers[name]: name for name in looks}
        self._looks = {abi.numbers[name]: look for name, look in looks.items()}

    def __contains__(self, number: int) -> bool:
        return number in self._looks

    def entering(self, tid: int, call: Entered) -> Settle | None:
        """What is to be done when one of these calls has returned."""
        return self._looks[call.number](tid, call)

    def maps(self, tid: int, kind: Kind, target: Target | None, call: Entered) -> Settle | None:
        """A file is about to be mapped so that stores into it change it, or may do so later."""
        paths = self._names.elsewhere
        if is_writable(tid, call.arguments[4]):
            self._shares = True
        if target is not None and call.arguments[2] & _PROT_WRITE:
            self._mapped(target)
        return self._outside.entering(tid, kind, call, paths) if paths else None

    def _socket(self, tid: int, _: Entered) -> Settle:
        return lambda result: self._strangers.opened(tid, result) if result >= 0 else None

    def _ring(self, tid: int, _: Entered) -> Settle:
        """What goes through a ring makes no calls that could be seen."""
        program = ptrace.program(tid)
        return lambda result: self.noted.add((RING, program)) if result >= 0 else None

    def _shares_objects(self, tid: int, call: Entered) -> Settle | None:
        """An object that others find by its key or name; one with no key goes unfound."""
        name = self._calls[call.number]
        if name != "mq_open" and call.arguments[0] == 0:
            return None
        program = ptrace.program(tid)
        note = (IPC, f"{name} of {program}" if program else name)
        return lambda result: self.noted.add(note) if result >= 0 else None

    def _protects(self, tid: int, call: Entered) -> Settle | None:
        """A mapping is about to be made writable; of most programs none is one of a file."""
        if not self._shares:
            return None
        found = self._names.shared(tid, call.arguments[0], call.arguments[1])
        elsewhere = self._names.elsewhere

        def settle(result: int) -> None:
            if result == 0:
                for target in found:
                    self._mapped(target)
                for path in elsewhere:
                    self._outside.changed(path)

        return settle if found or elsewhere else None
