"""Writes in pieces, on both machines: the registers of each piece, played through without one."""

from __future__ import annotations

import struct

import pytest
from hypothesis import assume, given
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
    assert pieces is not None
    assert pieces.memory() is pieces.memory_restored() is None
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


@given(st.data())
def test_all_pieces_of_a_vector_are_the_vector(data: st.DataObject) -> None:
    """Whatever its buffers and the cuts: the pieces are its bytes in their order, each piece within
    the buffers, and afterwards they stand as they stood.
    """
    lengths = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=6))
    size = sum(lengths)
    assume(size > 1)
    cuts = data.draw(st.sets(st.integers(1, size - 1), min_size=1, max_size=4))
    buffers = [(1000 * (number + 1), length) for number, length in enumerate(lengths)]
    entered = Entered(20, (FILE, BUFFER, len(buffers), 50, 0, 0), 0, POINTER)
    places = data.draw(st.booleans())
    kind = Kind("pwritev" if places else "writev", "writev")
    pieces = Pieces.of(entered, kind, cuts, buffers)
    assert pieces is not None
    abi, written, done = ABIS["x86_64"], [], 0
    while True:
        words = pieces.words(abi)
        _, vector, count, place, *_ = (words[word] for word in abi.arguments)
        assert place == (50 + done if places else 50)
        memory = pieces.memory()
        assert memory is not None
        assert memory[0] == BUFFER
        listed = list(struct.iter_unpack("=QQ", memory[1]))
        chosen = listed[(vector - BUFFER) // 16 :][:count]
        written += [address + at for address, length in chosen for at in range(length)]
        result = sum(length for _, length in chosen)
        done += result
        if not pieces.reaches_a_cut(result):
            break
    assert written == [address + at for address, length in buffers for at in range(length)]
    restored = pieces.memory_restored()
    assert restored is not None
    assert list(struct.iter_unpack("=QQ", restored[1])) == buffers
    assert pieces.whole(0) == size


@pytest.mark.parametrize("cuts", [(), (0,), (10,), (11, 5000)])
def test_a_cut_that_is_not_inside_makes_no_pieces(cuts: tuple[int, ...]) -> None:
    """Before the first byte and after the last one a call is whole."""
    entered = Entered(1, (FILE, BUFFER, 10, 0, 0, 0), 0, POINTER)
    assert Pieces.of(entered, Kind("write", "write"), cuts) is None
    assert Pieces.of(entered, Kind("sendmsg", "fd"), (5,)) is None
