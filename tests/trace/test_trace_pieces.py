"""Writes in pieces, on both machines: the registers of each piece, played through without one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.trace.abi import ABIS, Abi, Kind
from chaoskit.trace.pieces import Pieces
from chaoskit.trace.ptrace import Entered

BUFFER, POINTER, FILE = 0x7000_0000_1000, 0x5555_0000_0100, 5
WORD = 1 << 64


class Machine:
    """A thread that is about to write, and a kernel that takes what it is given, or less."""

    def __init__(self, abi: Abi, call: str, size: int, place: int) -> None:
        self.abi = abi
        self.number = abi.numbers[call]
        self.registers = [1000 + word for word in range(abi.words)]
        arguments = (FILE, BUFFER, size, place, 77, 88)
        self._set(dict(zip(abi.arguments, arguments, strict=True)))
        self._set({abi.number: self.number, abi.pointer: POINTER})
        self.entered = Entered(self.number, arguments, 0, POINTER)
        self.asked = list(self.registers)
        self.written: list[tuple[int, int, int]] = []

    def _set(self, words: dict[int, int]) -> None:
        for word, value in words.items():
            self.registers[word] = value % WORD

    def change(self, words: dict[int, int]) -> None:
        """What the tracer does to the registers at a stop."""
        self._set(words)

    def make(self, most: int) -> int:
        """Make the call that stands in the registers; it writes ``most`` bytes or fewer."""
        file, buffer, size, place, *others = (self.registers[w] for w in self.abi.arguments)
        assert (file, others) == (FILE, [77, 88])
        result = min(size, most)
        if result > 0:
            self.written.append((buffer - BUFFER, place, result))
        self._set({self.abi.result: result})
        return result

    def call_again(self) -> Entered:
        """The thread goes on: it must be about to make the same call, with what stands there."""
        assert self.registers[self.abi.pointer] == POINTER - self.abi.instruction
        assert self.registers[self.abi.number] == self.number
        self._set({self.abi.pointer: POINTER})
        arguments = tuple(self.registers[w] for w in self.abi.arguments)
        return Entered(self.number, arguments, 0, POINTER)


CALLS = {"write": False, "pwrite64": True, "sendto": False}
"""Whether the fourth argument says where the bytes go."""


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("machine", sorted(ABIS))
@given(st.data())
def test_all_pieces_together_are_the_call(machine: str, call: str, data: st.DataObject) -> None:
    """Whatever the cuts, and wherever the kernel stops: the bytes, the result, the registers."""
    abi, places = ABIS[machine], CALLS[call]
    size = data.draw(st.integers(2, 10**6))
    cuts = sorted(data.draw(st.sets(st.integers(1, size - 1), min_size=1, max_size=5)))
    most = data.draw(st.just(size) | st.integers(-20, size))
    place = data.draw(st.integers(0, 10**6))
    thread = Machine(abi, call, size, place)
    kind = Kind("pwrite" if places else call, "write")
    pieces = Pieces.of(thread.entered, kind, cuts)
    assert not pieces.is_next(thread.entered)
    thread.change(pieces.words(abi))
    met, left = [], most
    result = thread.make(left)
    while pieces.reaches_a_cut(result):
        met.append(pieces.done)
        left -= result
        thread.change(pieces.words(abi) | pieces.again(abi))
        assert pieces.is_next(thread.call_again())
        result = thread.make(left)
    whole = pieces.whole(result)
    thread.change(pieces.restored(abi, whole))
    assert whole == most
    assert met == [cut for cut in cuts if cut <= most]
    assert sum(size for _, _, size in thread.written) == max(most, 0)
    done = 0
    for buffer, at, piece in thread.written:
        assert (buffer, at) == (done, place + done if places else place)
        done += piece
    expected = list(thread.asked)
    expected[abi.result] = most % WORD
    if abi.number != abi.result:
        expected[abi.number] = thread.number
    assert thread.registers == expected
