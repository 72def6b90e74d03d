"""Which lines of a task's own code called the one that is running."""

from __future__ import annotations

from chaoskit.probe import where
from tests.probe.conftest import Begin


def test_the_callers_are_shown_with_the_line(begin: Begin) -> None:
    """Those in own code, the innermost first: while it runs, after a return, in a generator that
    somebody else resumes, and after an exception.
    """
    task = begin(
        """
        import library

        def inner():
            library.stop()

        def steps():
            yield library.stop()
            raise ValueError

        def outer(made):
            inner(); library.stop()
            library.call_and_stop(inner)
            next(made)
            try:
                next(made)
            except ValueError:
                library.stop()

        outer(steps())
        """
    )
    shown = []
    for _ in range(6):
        stack = where.stack(str(task.where), task.stopped())
        shown.append(" ".join(f"{at.function}:{at.line}" for at in stack))
        task.go()
    assert task.ended() == (0, "")
    assert shown == [
        "inner:5 outer:12 <module>:20",
        "outer:12 <module>:20",
        "inner:5 outer:13 <module>:20",
        "outer:13 <module>:20",
        "steps:8 outer:14 <module>:20",
        "outer:18 <module>:20",
    ]


def test_as_many_callers_are_shown_as_there_is_room(begin: Begin) -> None:
    """A deep recursion fills the page with whole lines, and the innermost is always there."""
    task = begin(
        """
        import library

        def deeper(left):
            return deeper(left - 1) if left else library.stop()

        deeper(200)
        """
    )
    stack = where.stack(str(task.where), task.stopped())
    task.go()
    assert task.ended() == (0, "")
    assert 2 < len(stack) < 200
    assert {(at.line, at.function) for at in stack} == {(5, "deeper")}
