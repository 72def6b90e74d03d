"""The tracer: follows every thread and process of a task, names its state-changing calls, and holds
the task still where it was asked to.

It lives in the launcher, which is single-threaded and the parent of the task: ptrace belongs to
one thread, and what it traces dies with it.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from chaoskit.trace import FOREIGN, MAPPED, OUTSIDE, UNMOVED, ptrace
from chaoskit.trace import filter as seccomp
from chaoskit.trace.abi import Abi, Kind
from chaoskit.trace.aside import Aside
from chaoskit.trace.clock import Asked, Clock
from chaoskit.trace.cuts import cuts_of, vectors
from chaoskit.trace.naming import Names, Scope, Target, is_synced
from chaoskit.trace.outside import Outside, Settle
from chaoskit.trace.pieces import Pieces
from chaoskit.trace.ptrace import Entered
from chaoskit.trace.strangers import Strangers

_STOPPING = {
    getattr(signal, name)
    for name in ("SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU")
    if hasattr(signal, name)  # not on Windows, where this is imported and not used
}
_GONE = (ProcessLookupError,)
_DEAD = (b"Z", b"X")
_SHORT = "+short:"
_COMES_AGAIN = {-512, -513, -514, -516}
"""What a call returns that a signal interrupted before it did anything; it is made once more, and
that is another one."""

_INDEX_SUFFIX = "-shm"
"""SQLite's wal-index is a mapped file, and is made anew from the log when nobody has it open."""

Say = Callable[[dict[str, object]], None]


@dataclass(frozen=True, slots=True)
class Wishes:
    """What an attempt is traced for.

    Args:
        hold: texts of points at which the task is held until `Tracer.go`.
        exits: hold after every call that counts, too (to see what each of them changed).
        tell: say of every call that it is about to be made.
    """

    hold: frozenset[str] = frozenset()
    exits: bool = False
    tell: bool = False

    @property
    def light(self) -> bool:
        """Only for whom the task reaches; none of its calls is a point."""
        return not (self.hold or self.exits or self.tell)


@dataclass(slots=True)
class _Thread:
    """One thread of the task. ``running`` until it is known to stand still. ``then`` takes the
    result of a call that is no point, once it is made.

    ``who`` names its process: which thread of a pool takes a job is chance, so threads have no
    names of their own.
    """

    tid: int
    process: int
    who: str
    running: bool = True
    waits_for_child: bool = False
    call: _Call | None = None
    pieces: Pieces | None = None
    asked: Asked | None = None
    then: Settle | None = None


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that a thread is making.

    Args:
        text: of its point.
        kind: what it is.
        target: what it acts on.
        synced: what it writes is durable at once.
        cuts: how many of its bytes a kill can leave, if not all or none.
    """

    text: str
    kind: Kind
    target: Target
    synced: bool = False
    cuts: tuple[int, ...] = ()


@dataclass(slots=True)
class Tracer:
    """One attempt's tracing. Feed it every status that waitpid returns.

    Args:
        abi: this machine's tables.
        scope: what counts.
        wishes: what the attempt is traced for.
        say: takes a message for the supervisor.
        ended: takes the thread and the status of each end.
        clock: the task's, where it is not the machine's.
    """

    abi: Abi
    scope: Scope
    wishes: Wishes
    say: Say
    ended: Callable[[int, int], None]
    clock: Clock | None = None
    _kinds: dict[int, Kind] = field(init=False)
    _names: Names = field(init=False)
    _outside: Outside = field(init=False)
    _strangers: Strangers = field(init=False)
    _aside: Aside = field(init=False)
    _threads: dict[int, _Thread] = field(default_factory=dict)
    _early: dict[int, int] = field(default_factory=dict)
    _births: Counter[str] = field(default_factory=Counter)
    _counts: Counter[str] = field(default_factory=Counter)
    _held: _Thread | None = None
    _waiting: list[tuple[int, int]] = field(default_factory=list)
    _noted: set[tuple[str, str]] = field(default_factory=set)
    _cuts: dict[str, set[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._kinds = self.abi.kinds()
        self._names = Names(self.scope)
        self._outside = Outside(self.scope.quiet)
        self._strangers = Strangers(
            self.scope.ports, self.scope.quiet, self.scope.allowed, self._processes
        )
        self._aside = Aside(self.abi, self._names, self._outside, self._strangers, self._mapped)
        for text in self.wishes.hold:
            call, is_short, cut = text.partition(_SHORT)
            if is_short:
                self._cuts.setdefault(call, set()).add(int(cut))

    def adopt(self, pid: int) -> None:
        """Trace the first process of the task, or of a further runner; it has not begun yet.

        Raises:
            OSError: the kernel does not let us.
        """
        ptrace.seize(pid)
        if self.clock is not None:
            self.clock.hide(pid)
        self._threads[pid] = _Thread(pid, pid, "")

    def go(self) -> None:
        """Let the task go on from where it is held."""
        held, self._held = self._held, None
        if held is None:
            return
        call = held.call
        with suppress(*_GONE):
            if held.pieces is not None and held.pieces.done:
                self._next_piece(held, held.pieces)
            elif call is not None and (held.pieces is not None or self._stops_after(call)):
                self._finish(held)
            else:
                held.call = None
                self._run(held)
        waiting, self._waiting = self._waiting, []
        for tid, status in waiting:
            self.handle(tid, status)

    def handle(self, tid: int, status: int) -> None:
        """Take one status of waitpid in; ``ended`` is told of those that say an end."""
        if not os.WIFSTOPPED(status):
            self._threads.pop(tid, None)
            self._early.pop(tid, None)
            self.ended(tid, status)
            return
        thread = self._threads.get(tid)
        if thread is None:
            self._early[tid] = status  # its parent's report is still to come
            return
        thread.running = False
        if self._held is not None:
            self._waiting.append((tid, status))
            return
        with suppress(*_GONE):
            self._stopped(thread, status)

    def notes(self) -> Iterable[tuple[str, str]]:
        """What limits the claim of this trace, in pairs of what and where; sorted."""
        outside = {(OUTSIDE, path) for path in self._outside.paths if "__pycache__" not in path}
        return sorted(self._noted | self._aside.noted | outside | self._strangers.notes())

    def _processes(self) -> set[int]:
        return {thread.process for thread in self._threads.values()}

    # One stop.

    def _stopped(self, thread: _Thread, status: int) -> None:
        number, event = os.WSTOPSIG(status), status >> 16
        if event == ptrace.SECCOMP:
            self._entry(thread)
        elif number == signal.SIGTRAP | 0x80:
            self._exit(thread)
        elif event in {ptrace.FORK, ptrace.VFORK, ptrace.CLONE}:
            thread.waits_for_child = event == ptrace.VFORK
            self._born(ptrace.event_message(thread.tid), thread)
            self._run(thread)
        elif event == ptrace.VFORK_DONE:
            thread.waits_for_child = False
            self._run(thread)
        elif event == ptrace.EXEC:
            self._executed(thread, ptrace.event_message(thread.tid))
            self._run(thread)
        elif event == ptrace.STOP:
            if number in _STOPPING:
                ptrace.listen(thread.tid)
            else:
                self._run(thread)
        else:
            self._run(thread, number)

    def _run(self, thread: _Thread, number: int = 0) -> None:
        thread.running = True
        ptrace.go_on(thread.tid, number)

    def _born(self, tid: int, parent: _Thread) -> None:
        is_thread = os.path.exists(f"/proc/{parent.process}/task/{tid}")
        who = parent.who
        if not is_thread:
            self._births[parent.who] += 1
            own = f"p{self._births[parent.who]}"
            who = f"{parent.who}.{own}" if parent.who else own
        self._threads[tid] = _Thread(tid, parent.process if is_thread else tid, who)
        early = self._early.pop(tid, None)
        if early is not None:
            self.handle(tid, early)

    def _executed(self, thread: _Thread, former: int) -> None:
        """A process runs another program: its other threads are gone, and said nothing."""
        thread.call = thread.pieces = thread.asked = thread.then = None
        thread.waits_for_child = False
        if self.clock is not None:
            try:
                self.clock.hide(thread.tid)
            except OSError:  # a program that only its owner may read
                self._noted.add((UNMOVED, _program(thread.process)))
        for other in [t for t in self._threads.values() if t.process == thread.process]:
            if other.tid != thread.tid:
                del self._threads[other.tid]
        self._early.pop(former, None)

    def _entry(self, thread: _Thread) -> None:
        entered = ptrace.entered(thread.tid)
        pieces = thread.pieces
        if entered is not None and pieces is not None and pieces.is_next(entered):
            self._finish(thread)
            return
        if entered is not None and self.clock is not None:
            thread.asked = self.clock.entered(thread.tid, entered)
            if thread.asked is not None:
                self._finish(thread)
                return
        thread.then = None
        if entered is None:
            self._run(thread)
        elif entered.data == seccomp.FOREIGN:
            self._noted.add((FOREIGN, str(entered.number)))
            self._run(thread)
        elif entered.number in self._aside:
            self._then(thread, self._aside.entering(thread.tid, entered))
        elif entered.number in self._kinds:
            self._entered(thread, self._kinds[entered.number], entered)
        else:
            self._run(thread)

    def _entered(self, thread: _Thread, kind: Kind, entered: Entered) -> None:
        """A call is about to be made that may count."""
        answer = self._strangers.answer(thread.tid, kind, entered)
        if answer is not None:
            ptrace.skip_call(thread.tid, self.abi, answer)
        if answer is not None or self.wishes.light:
            self._run(thread)
            return
        target = self._names.of(thread.tid, kind, entered)
        if kind.shape == "map":
            self._then(thread, self._aside.maps(thread.tid, kind, target, entered))
        elif target is not None:
            self._outside.moved_on()
            self._outside.moved(kind, target.paths, self._names.elsewhere)
            self._counted(thread, kind, target, entered)
        else:
            paths = self._names.elsewhere
            self._then(thread, self._outside.entering(thread.tid, kind, entered, paths))

    def _then(self, thread: _Thread, settle: Settle | None) -> None:
        """Let a call be made that is no point, and look at its result if ``settle`` asks for it."""
        thread.then = settle
        if settle is None:
            self._run(thread)
        else:
            thread.call = thread.pieces = None
            self._finish(thread)

    def _mapped(self, target: Target) -> None:
        """Stores into this file are no calls, and move no time stamp; said at once."""
        if not target.name.endswith(_INDEX_SUFFIX):
            self._noted.add((MAPPED, target.name))
        self.say({"mapped": target.paths})

    def _counted(self, thread: _Thread, kind: Kind, target: Target, entered: Entered) -> None:
        """A call that counts is about to be made."""
        who = f"{thread.who}:" if thread.who else ""
        base = f"{who}{kind.name}({target.name})"
        self._counts[base] += 1
        text = f"{base}#{self._counts[base]}"
        synced = self.wishes.exits and is_synced(thread.tid, kind, entered.arguments[0])
        told = self.wishes.tell and bool(target.paths)
        cuts = cuts_of(thread.tid, kind, entered) if told else ()
        call = thread.call = _Call(text, kind, target, synced, cuts)
        thread.pieces = self._pieces_of(thread, kind, entered, text)
        if text in self.wishes.hold:
            self._hold(thread, "before", 0)
            return
        if self.wishes.tell:
            self._tell(thread, call, "before", held=False, result=0)
        if thread.pieces is not None or self._stops_after(call):
            self._finish(thread)
        else:
            self._run(thread)

    def _pieces_of(self, thread: _Thread, kind: Kind, entered: Entered, text: str) -> Pieces | None:
        """The pieces of a call that is to be cut short somewhere."""
        if text not in self._cuts:
            return None
        buffers = vectors(thread.tid, entered) if kind.shape == "writev" else ()
        return Pieces.of(entered, kind, self._cuts[text], buffers)

    def _stops_after(self, call: _Call) -> bool:
        return self.wishes.exits or f"{call.text}+after" in self.wishes.hold

    def _finish(self, thread: _Thread) -> None:
        """Let a call be made, or the next piece of it, and stop when that is done."""
        pieces = thread.pieces
        if pieces is not None and not pieces.done:
            if _placed(thread.tid, pieces.memory()):
                ptrace.set_words(thread.tid, self.abi.words, pieces.words(self.abi))
            else:
                thread.pieces = None  # it cannot be cut: the vectors stand where nobody can write
        thread.running = True
        ptrace.finish_call(thread.tid)

    def _next_piece(self, thread: _Thread, pieces: Pieces) -> None:
        """Let a thread that has made a piece of a call make the call again, for the next one."""
        _placed(thread.tid, pieces.memory())
        ptrace.set_words(
            thread.tid, self.abi.words, pieces.words(self.abi) | pieces.again(self.abi)
        )
        self._run(thread)

    def _exit(self, thread: _Thread) -> None:
        asked, thread.asked = thread.asked, None
        if asked is not None and self.clock is not None:
            self.clock.left(thread.tid, asked, ptrace.result(thread.tid))
        call, pieces = thread.call, thread.pieces
        then, thread.then = thread.then, None
        if then is not None:
            then(ptrace.result(thread.tid))
        if call is None:
            self._run(thread)
            return
        result = ptrace.result(thread.tid)
        if pieces is not None and pieces.reaches_a_cut(result):
            self._hold(thread, "short", pieces.done, cut=pieces.done)
            return
        if pieces is not None:
            result = pieces.whole(result)
            _placed(thread.tid, pieces.memory_restored())
            ptrace.set_words(thread.tid, self.abi.words, pieces.restored(self.abi, result))
            thread.pieces = None
        if self._stops_after(call) and result not in _COMES_AGAIN:
            self._hold(thread, "after", result)
        else:
            self._run(thread)
        thread.call = None

    def _hold(self, thread: _Thread, side: str, result: int, cut: int = 0) -> None:
        """Stop everything, say where, and wait for `go`."""
        assert thread.call is not None
        self._held = thread
        self._stop_the_others(thread)
        self._tell(thread, thread.call, side, held=True, result=result, cut=cut)

    def _stop_the_others(self, held: _Thread) -> None:
        """Bring every other thread to a stop; what it stops for is looked at after `go`."""
        waiting = [t for t in self._threads.values() if t.running and not t.waits_for_child]
        waiting = [thread for thread in waiting if thread is not held]
        for other in waiting:
            with suppress(*_GONE):
                ptrace.interrupt(other.tid)
        while any(self._moves(other) for other in waiting):
            with suppress(ChildProcessError):
                tid, status = os.waitpid(-1, ptrace.WALL | os.WNOHANG)
                if tid:
                    self.handle(tid, status)
                else:
                    os.sched_yield()  # nothing tells of a thread that ended so

    def _moves(self, thread: _Thread) -> bool:
        """Whether a thread may still do something.

        A main thread that has ended says so only after all others of its process, and one that
        another thread's exec has ended never does.
        """
        if not thread.running or self._threads.get(thread.tid) is not thread:
            return False
        try:
            with open(f"/proc/{thread.process}/task/{thread.tid}/stat", "rb") as stat:
                return stat.read().rpartition(b") ")[2][:1] not in _DEAD
        except OSError:
            return False

    def _tell(  # noqa: PLR0913 - all that is known of a stop
        self,
        thread: _Thread,
        call: _Call,
        side: str,
        *,
        held: bool,
        result: int,
        cut: int = 0,
    ) -> None:
        message: dict[str, object] = {
            "call": call.text,
            "side": side,
            "sends": call.target.sends,
            "bytes": call.target.bytes,
            "cuts": call.cuts,
            "program": ptrace.program(thread.process) if thread.who else "",
            "alone": len(self._threads) == 1,
            "held": held,
            "name": call.kind.name,
            "paths": call.target.paths,
        }
        if held:
            message["cut"] = cut
            message["synced"] = call.synced
            message["result"] = result
            message["tid"] = self._held.tid if self._held is not None else 0
        self.say(message)


def _program(pid: int) -> str:
    """The program that a process executes, as far as we may see that."""
    with suppress(OSError):
        return os.readlink(f"/proc/{pid}/exe")
    return "a program"


def _placed(tid: int, content: tuple[int, bytes] | None) -> bool:
    """Put what a piece needs into the task's memory; False: that cannot be done."""
    return content is None or ptrace.set_memory(tid, *content)
