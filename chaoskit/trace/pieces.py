"""A write that is made in pieces, so that a task can be met with some of its bytes written.

The task sees one call: the pieces follow each other on the same registers, changed for each of
them, and at the end it finds in them what the whole call would have left there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from chaoskit.trace.abi import Abi, Kind
from chaoskit.trace.ptrace import Entered


@dataclass(slots=True)
class Pieces:
    """One call in its pieces.

    Args:
        call: as the task made it.
        places: it says itself where in the file its bytes go.
        ends: where the pieces end that are still to be made; the last one is the call's own end.
        done: how many bytes are written.
    """

    call: Entered
    places: bool
    ends: list[int]
    done: int = 0

    @classmethod
    def of(cls, call: Entered, kind: Kind, cuts: Iterable[int]) -> Pieces:
        """The pieces of a call of a kind that counts bytes in its third argument."""
        return cls(call, kind.name == "pwrite", [*sorted(cuts), call.arguments[2]])

    def _arguments(self) -> tuple[int, ...]:
        """Of the next piece."""
        descriptor, buffer, _, place, *others = self.call.arguments
        moved = place + self.done if self.places else place
        return (descriptor, buffer + self.done, self.ends[0] - self.done, moved, *others)

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
