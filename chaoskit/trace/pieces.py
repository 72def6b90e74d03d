"""A write that is made in pieces, so that a task can be met with some of its bytes written.

The task sees one call: the pieces follow each other on the same registers, changed for each of
them, and at the end it finds in them what the whole call would have left there. Where the bytes
are counted in vectors these are changed for each piece as well, in the task's memory.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chaoskit.trace.abi import Abi, Kind
from chaoskit.trace.ptrace import Entered

_COUNTS_AT = {"sendfile": 3, "copy_file_range": 4}
"""Which argument says how many bytes; the third one (at 2) of all other calls. These two find their
places in files and move them on by themselves."""

_PLACE_AT = {"pwrite": 3, "pwritev": 3}
"""Which argument says where in the file the bytes go, of calls that say so themselves."""

_NO_PLACE = (1 << 64) - 1

_BUFFER = struct.Struct("=QQ")

Buffers = Sequence[tuple[int, int]]
"""The address and length of each vector of a call."""


@dataclass(slots=True)
class Pieces:
    """One call in its pieces.

    Args:
        call: as the task made it.
        name: of the call, in a point.
        ends: where the pieces end that are still to be made; the last one is the call's own end.
        buffers: of writev and its kin, whose bytes are counted in them.
        done: how many bytes are written.
    """

    call: Entered
    name: str
    ends: list[int]
    buffers: Buffers = ()
    done: int = 0

    @classmethod
    def of(
        cls, call: Entered, kind: Kind, cuts: Iterable[int], buffers: Buffers = ()
    ) -> Pieces | None:
        """The pieces of a call; None where none of the cuts is inside it."""
        if kind.shape == "writev":
            size = sum(length for _, length in buffers)
        elif kind.shape == "write" or kind.name in _COUNTS_AT:
            size = call.arguments[_COUNTS_AT.get(kind.name, 2)]
        else:
            return None
        inside = sorted(cut for cut in cuts if 0 < cut < size)
        return cls(call, kind.name, [*inside, size], buffers) if inside else None

    def _arguments(self) -> tuple[int, ...]:
        """Of the next piece."""
        words = list(self.call.arguments)
        size = self.ends[0] - self.done
        if self.buffers:
            first, count, _ = self._window()
            words[1] += first * _BUFFER.size
            words[2] = count
        elif self.name in _COUNTS_AT:
            words[_COUNTS_AT[self.name]] = size
        else:
            words[1] += self.done
            words[2] = size
        place = _PLACE_AT.get(self.name)
        if place is not None and words[place] != _NO_PLACE:
            words[place] += self.done
        return tuple(words)

    def _window(self) -> tuple[int, int, list[tuple[int, int]]]:
        """The first vector of the next piece, their number, and what they are for it."""
        found: list[tuple[int, int]] = []
        first = begin = 0
        for number, (address, length) in enumerate(self.buffers):
            low, high = max(begin, self.done), min(begin + length, self.ends[0])
            if low < high:
                first = first if found else number
                found.append((address + low - begin, high - low))
            elif found and begin < self.ends[0]:
                found.append((address, 0))  # an empty one between two others
            begin += length
        return first, len(found), found

    def memory(self) -> tuple[int, bytes] | None:
        """What stands in the task's memory for the next piece: its address, and the bytes."""
        if not self.buffers:
            return None
        first, count, window = self._window()
        whole = [*self.buffers[:first], *window, *self.buffers[first + count :]]
        return self.call.arguments[1], b"".join(_BUFFER.pack(*buffer) for buffer in whole)

    def memory_restored(self) -> tuple[int, bytes] | None:
        """What stood there before the first piece."""
        if not self.buffers:
            return None
        return self.call.arguments[1], b"".join(_BUFFER.pack(*buffer) for buffer in self.buffers)

    def is_next(self, entered: Entered) -> bool:
        """Whether the task is about to make the piece for which it was sent back."""
        return bool(self.done) and (entered.number, entered.arguments) == (
            self.call.number,
            self._arguments(),
        )

    def words(self, abi: Abi) -> dict[int, int]:
        """The registers that make a call the next piece."""
        return dict(zip(abi.arguments, self._arguments(), strict=True))

    def again(self, abi: Abi) -> dict[int, int]:
        """The registers that send a thread back from the end of a call to its beginning."""
        return {abi.number: self.call.number, abi.pointer: self.call.pointer - abi.instruction}

    def reaches_a_cut(self, result: int) -> bool:
        """Take in what a piece returned. True: it was whole, and the call has further ones."""
        whole = result == self.ends[0] - self.done
        self.done += max(result, 0)
        if whole and len(self.ends) > 1:
            del self.ends[0]
            return True
        return False

    def whole(self, result: int) -> int:
        """What the whole call returns whose last piece returned ``result``."""
        return self.done or result

    def restored(self, abi: Abi, result: int) -> dict[int, int]:
        """The registers as the task's own call would have left them."""
        return {**dict(zip(abi.arguments, self.call.arguments, strict=True)), abi.result: result}
