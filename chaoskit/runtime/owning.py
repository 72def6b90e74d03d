"""Taking a run over, with proof that whoever had it is dead, and giving it back.

The owner stands in the run's own row, and the token beside it grows with each take-over; every
later write checks it. So a process that was only taken for dead can change nothing any more.
"""

from __future__ import annotations

from weakref import WeakValueDictionary

from chaoskit import probe
from chaoskit.runtime.books import Books
from chaoskit.runtime.errors import Owned, announced, command
from chaoskit.runtime.owner import Life, Owner, judge, parse_owner, this_process
from chaoskit.runtime.records import RunRecord


class Tenure:
    """That this process has a run open: as long as somebody holds this."""

    __slots__ = ("__weakref__", "token")

    def __init__(self, token: int) -> None:
        self.token = token


_here: WeakValueDictionary[tuple[str, str], Tenure] = WeakValueDictionary()
"""The runs that this process has open, by place and id."""


def refuse_if_owned(books: Books, run: RunRecord) -> None:
    """Raise `Owned` unless nobody has the run, or its owner is provably dead."""
    if run.owner is None:
        return
    try:
        owner = parse_owner(run.owner)
    except (ValueError, TypeError) as error:
        raise books.unreadable(f"the owner of run {run.run_id!r}", error) from error
    if owner.is_same_process(this_process(0)):
        tenure = _here.get((books.place, run.run_id))
        if tenure is None or tenure.token != run.token:
            return  # this process had it open, and dropped it without closing it
        raise announced(
            Owned(
                f"run {run.run_id!r} is open in this very process already ({owner}): close that "
                "one first, or share it"
            )
        )
    found = judge(owner)
    if found.life is Life.DEAD:
        return
    release = command("release", books.place, run.run_id, "--owner-is-dead")
    if found.life is Life.ALIVE:
        raise announced(
            Owned(
                f"run {run.run_id!r} belongs to {owner}, and {found.why}. Wait for it or end it, "
                "then resume"
            )
        )
    raise announced(
        Owned(
            f"run {run.run_id!r} belongs to {owner}; whether it lives cannot be told from here: "
            f"{found.why}. If you know that it is dead: {release}"
        )
    )


def new_owner() -> Owner:
    """This process, as the owner from now on."""
    return this_process(probe.now())


def take(books: Books, run: RunRecord) -> RunRecord | None:
    """Take the run as it was read, tools and options included; None if it has changed since.

    Raises:
        Owned: somebody has it who may be alive.
    """
    refuse_if_owned(books, run)
    owner = new_owner()
    token = books.take(run, owner)
    return None if token is None else run._replace(token=token, owner=owner.text())


def hold(books: Books, run: RunRecord) -> Tenure:
    """Note that this process has the run open, until what is returned is dropped."""
    tenure = Tenure(run.token)
    _here[books.place, run.run_id] = tenure
    return tenure
