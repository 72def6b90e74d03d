"""wrong_binding: an effect with the identity of one expected effect and the content of another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from chaoskit.checkers.comparison import Seen, compare, in_words, subject, times
from chaoskit.model.effects import Identity
from chaoskit.model.expectation import Expectation
from chaoskit.model.findings import Finding
from chaoskit.model.history import History


class Mixture(NamedTuple):
    """An effect that no undisturbed run has, and the two expected ones that it is made of.

    ``owner`` is the one whose place it took: the one with the same person or thing concerned, where
    only one of the two has it; ``content`` is the other.
    """

    identity: Identity
    seen: Sequence[Seen]
    owner: Identity
    content: Identity


def mixtures(history: History, expectation: Expectation) -> Iterator[Mixture]:
    """The effects each of whose fields is that of one of two expected effects of its operation.

    With a value that no expected effect has, or with values of three, it is not one of these but
    an effect with wrong inputs.
    """
    for identity, seen in compare(history, expectation).strange:
        pair = _two_sources(identity, expectation)
        if pair is None:
            continue
        who = seen[0][1].effect.who
        owner, content = pair
        if _who(content, expectation) == who != _who(owner, expectation):
            owner, content = content, owner
        yield Mixture(identity, seen, owner, content)


def wrong_binding(history: History, expectation: Expectation) -> Iterator[Finding]:
    """A result that was bound to the wrong step: what belongs to B was done to A."""
    for identity, seen, owner, content in mixtures(history, expectation):
        effect = seen[0][1].effect
        theirs = set(identity.fields) - set(owner.fields)
        names = ", ".join(sorted(name for name, _ in theirs)[:3])
        yield Finding(
            kind="wrong_binding",
            operation=identity.operation,
            subject=subject(identity),
            expected=f"{effect.in_words()}: never with what belongs to another effect",
            seen=times(len(seen)),
            because=f"attempt {seen[0][1].attempt} did it; it is {in_words(owner, expectation)!r} "
            f"with the {names} of {in_words(content, expectation)!r}",
            witness=tuple(index for index, _ in seen),
        )


def _two_sources(identity: Identity, expectation: Expectation) -> tuple[Identity, Identity] | None:
    """The two expected effects that have all fields of ``identity`` between them."""
    have = dict(identity.fields)
    agreeing: dict[frozenset[str], Identity] = {}
    for other in expectation.counts:
        if other.operation == identity.operation and dict(other.fields).keys() == have.keys():
            same = frozenset(name for name, value in other.fields if have[name] == value)
            agreeing.setdefault(same, other)
    by_likeness = sorted(agreeing, key=len, reverse=True)
    for one in by_likeness:
        for two in by_likeness:
            if one | two == have.keys():
                return agreeing[one], agreeing[two]
    return None


def _who(identity: Identity, expectation: Expectation) -> str:
    sample = expectation.sample(identity)
    return sample.who if sample is not None else ""
