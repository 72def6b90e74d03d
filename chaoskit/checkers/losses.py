"""What explains that an expected effect is missing, with the evidence in the history."""

from __future__ import annotations

from chaoskit.checkers.comparison import compare, subject
from chaoskit.checkers.effects import STILL_TAKEN, deleted
from chaoskit.checkers.outputs import OUTPUTS
from chaoskit.model.events import AttemptEnded, ReplySent, RequestReceived
from chaoskit.model.expectation import Expectation
from chaoskit.model.findings import Diagnosis, Finding
from chaoskit.model.history import History
from chaoskit.model.last_words import QUOTED_CHARACTERS, telling_line

COARSE_KEY = "idempotency key from the arguments only, not from the step (KEY-2)"
EARLY_RECORD = "record written before the effect and read as 'done' (LOST-6)"
PASSED_OVER = "the resume passes over a step that was never done"
HALF_REPLACED = "a row is deleted in one transaction and inserted in the next (class HALF)"
ERROR_AS_END = "a refused request is followed by a claim of success"
NOTHING_DONE = "an attempt that does nothing claims success"
NOT_FREED = "a row that an undisturbed run frees again stays taken after a success"
EARLY_FINISH = "success is claimed before the end of the work is done (class LOST)"


def lost(finding: Finding, history: History, expectation: Expectation) -> Diagnosis:
    """Why an effect in the middle of the work never happened."""
    if finding.seen == STILL_TAKEN:
        return Diagnosis(NOT_FREED, finding.because, "free it on every way to the end")
    swallowed = [
        (index, body)
        for index, body in history.requests
        if _asks_for(body, finding, expectation) and _deduped(body, history)
    ]
    if swallowed:
        return Diagnosis(
            COARSE_KEY,
            f"the request at event {swallowed[0][0]} asked for it with the key "
            f"{swallowed[0][1].key}, which the service had already seen",
            "make the key from the run and the step, so that two identical effects differ",
        )
    missing = [
        i for i, *_ in compare(history, expectation).missing if subject(i) == finding.subject
    ]
    if any(deleted(identity, history, expectation) for identity in missing):
        return Diagnosis(
            HALF_REPLACED,
            "the row was deleted, that was committed, and no attempt inserted it again",
            "delete and insert in one transaction; or update the row in place (ON CONFLICT DO "
            "UPDATE)",
        )
    _, claim = history.claim
    if (refused := _refused(claim, history)) is not None:
        return _error_as_end(claim, refused)
    if not any(_asks_for(body, finding, expectation) for _, body in _since_the_kill(history)):
        return _never_asked(claim, expectation)
    return Diagnosis(
        PASSED_OVER,
        f"it was asked for after the kill, did not happen, and attempt {claim.attempt} ended with "
        "success",
        "look at the answer to each request, and do not record a step that was not done",
    )


def _never_asked(claim: AttemptEnded, expectation: Expectation) -> Diagnosis:
    cure = (
        "record the completion after the effect; what is written before it is an intent, and a "
        "resume must look up what came of it"
    )
    if expectation.record_first:
        return Diagnosis(
            EARLY_RECORD,
            "no attempt asked for it after the kill, and an undisturbed run writes its files "
            "before each effect and none after the last one",
            cure,
        )
    return Diagnosis(
        PASSED_OVER,
        f"no attempt asked for it after the kill; attempt {claim.attempt} ended with success",
        f"find what tells the resume that the step is done: {cure}",
    )


def success_without_its_end(
    finding: Finding, history: History, expectation: Expectation
) -> Diagnosis | None:
    """Why success was claimed although the end of the work is missing; None of an output, which has
    its diagnosis as `diverged_state`.
    """
    if finding.operation == OUTPUTS:
        return None
    _, claim = history.claim
    if (refused := _refused(claim, history)) is not None:
        return _error_as_end(claim, refused)
    asked = [body for _, body in history.requests if body.attempt == claim.attempt and body.wants]
    cure = (
        "end with an error where the work cannot be done; and where 'all steps done' stands for "
        "'run done', make the end of the run a step with a record of its own (LOST-10)"
    )
    if asked or not history.landed:
        return Diagnosis(EARLY_FINISH, finding.because, cure)
    words = telling_line(claim.output_tail)[:QUOTED_CHARACTERS]
    said = f"; its last words: {words}" if words else ""
    return Diagnosis(
        NOTHING_DONE,
        f"attempt {claim.attempt} asked for no effect and ended with status {claim.code}{said}",
        cure,
    )


def _error_as_end(claim: AttemptEnded, refused: ReplySent) -> Diagnosis:
    return Diagnosis(
        ERROR_AS_END,
        f"request {refused.request} of attempt {claim.attempt} was answered with status "
        f"{refused.status}, and the attempt ended with success all the same",
        "end with an error where a request fails for good; claim success only for what was done",
    )


def _refused(claim: AttemptEnded, history: History) -> ReplySent | None:
    """The answer to the last request of the attempt that claims success, if that was refused."""
    asked = [body.request for _, body in history.requests if body.attempt == claim.attempt]
    reply = history.replies.get(asked[-1]) if asked else None
    return reply[1] if reply is not None and reply[1].status >= 400 else None


def _since_the_kill(history: History) -> list[tuple[int, RequestReceived]]:
    landed = [index for index, _ in history.landed]
    since = landed[-1] if landed else -1
    return [(index, body) for index, body in history.requests if index > since]


def _asks_for(body: RequestReceived, finding: Finding, expectation: Expectation) -> bool:
    if body.wants is None:
        return False
    identity = expectation.identify(body.wants)
    return identity.operation == finding.operation and subject(identity) == finding.subject


def _deduped(body: RequestReceived, history: History) -> bool:
    reply = history.replies.get(body.request)
    return reply is not None and reply[1].deduped
