"""Whom the trials of a campaign reached, or tried to reach, that is no service of the run.

A task may ask a stranger only when it resumes; its undisturbed runs do not show that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from chaoskit.campaign.store import Store
from chaoskit.explore.plan import noted
from chaoskit.model.history import History
from chaoskit.trace import ALLOWED, NOBODY, STRANGER

_KEY = "met"


def take_note(store: Store, history: bytes) -> None:
    """Remember whom a trial met, by its encoded history; of most there is nothing to remember."""
    if not may_note(history, (ALLOWED, STRANGER)):
        return
    met = json.loads(store.get(_KEY) or "{}")
    known = {what: list(met.get(what, ())) for what in (ALLOWED, STRANGER)}
    for what, found in known.items():
        found += [one for one in noted([History.decode(history)], what) if one not in found]
    if known != met:
        store.put(_KEY, json.dumps(known))


def may_note(history: bytes, kinds: Iterable[str]) -> bool:
    """Whether an encoded history is worth decoding, to look for notes of these kinds."""
    return any(f'"{kind}"'.encode() in history for kind in kinds)


def met(store: Store, what: str) -> list[str]:
    """Everybody of that sort whom an undisturbed run or a trial met, each once, sorted.

    A port of this machine at which nobody listened is one that was tried only where that was in an
    undisturbed run: a resume may look for the server of the attempt before it.
    """
    survey = store.survey()
    runs = survey[:2] if survey else ()
    found = {*noted(runs, what), *json.loads(store.get(_KEY) or "{}").get(what, ())}
    if what == STRANGER:
        found |= set(noted(runs, NOBODY))
    return sorted(found)
