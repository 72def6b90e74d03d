"""The rules of the jobs service: a pure core, with no I/O and no clock.

A remote job is submitted, goes on by itself and is asked for again and again; who forgets its id
has only look-ups and keys to find it by. ``Idempotency-Key`` follows the IETF draft
(draft-ietf-httpapi-idempotency-key-header-07, 2.6 and 2.7): the same request again gets the first
answer again, another one with the same key 422, and one that comes before the first is answered
409. A key is forgotten 24 hours after its first use. An id that the caller chose is unique for
ever: a second job with it is refused with 409. Nothing but polling makes a job go on, so that its
end does not hang on a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from chaoskit.model.effects import Effect, flatten
from fake_services.core import Call, Circumstances, HttpReply, HttpRequest, Outcome, json_reply
from fake_services.jobs.api import (
    BadRequestError,
    Job,
    Wanted,
    job_json,
    problem,
    read_filters,
    read_wanted,
)
from fake_services.keys import KeyStore
from fake_services.shown import Shown

KEY_LIFETIME_S = 24 * 60 * 60
"""How long a key is remembered, where nobody says otherwise."""

KEY_CHARS_MAX = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class _Submit(Call):
    wanted: Wanted
    effect: Effect


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cancel(Call):
    job_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Poll(Call):
    job_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Find(Call):
    filters: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refused(Call):
    reply: HttpReply


class JobsCore:
    """Jobs by id. Implements `fake_services.core.HttpCore`.

    Operations: ``submit``, ``cancel``, ``poll`` (by id, which makes the job go on), ``list`` (all,
    or by key, name or status), and ``unknown`` for whatever is none of these.
    """

    name = "jobs"
    operations: Sequence[str] = ("submit", "cancel", "poll", "list", "unknown")

    def __init__(self) -> None:
        self._keys = KeyStore(KEY_LIFETIME_S)
        self.reset(0)

    def reset(self, seed: int) -> None:
        """No job, and no key used."""
        self._seed = seed
        self._made = 0
        self._jobs: dict[str, Job] = {}
        self._keys.clear()

    def keep_keys(self, seconds: float) -> None:
        """See `chaoskit.model.hosting.Keyed`."""
        self._keys.keep_for(seconds)

    def understand(self, request: HttpRequest) -> Call:
        """What the request asks for; see `HttpCore.understand`."""
        match request.method, request.path.rstrip("/").split("/"):
            case "POST", ["", "jobs"]:
                return _understand_submit(request)
            case "GET", ["", "jobs"]:
                return _understand_find(request.query)
            case "GET", ["", "jobs", job_id]:
                return _Poll(operation="poll", job_id=job_id)
            case "POST", ["", "jobs", job_id, "cancel"]:
                return _Cancel(operation="cancel", job_id=job_id, wants=self._cancelling(job_id))
        words = f"there is no {request.method} {request.path}"
        return _Refused(operation="unknown", reply=problem(404, "not_found", words))

    def apply(self, request: HttpRequest, call: Call, circumstances: Circumstances) -> Outcome:
        """Do it; see `HttpCore.apply`."""
        match call:
            case _Submit():
                return self._submit(call, circumstances)
            case _Cancel():
                return self._cancel(call.job_id)
            case _Poll():
                return Outcome(reply=self._poll(call.job_id))
            case _Find():
                return Outcome(reply=self._find(call.filters, circumstances.horizon))
            case _Refused():
                return Outcome(reply=call.reply)
        raise TypeError(f"not a call of this core: {call!r}")

    def refused(self, status: int, message: str) -> HttpReply:
        """See `fake_services.core.Worded`."""
        return problem(status, "refused", message)

    def show(self, ref: str) -> Shown | None:
        """The job with this id; see `fake_services.shown.Showing`."""
        job = self._jobs.get(ref)
        if job is None:
            return None
        asked = f"{job.polled} of {job.wanted.polls} times"
        return Shown(state=job.status, facts={**job_json(job), "asked for": asked})

    def _submit(self, call: _Submit, circumstances: Circumstances) -> Outcome:
        key = None if circumstances.forget_keys else call.key
        if key is not None and (repeated := self._repeated(key, call.wanted, circumstances)):
            return repeated
        if call.wanted.id in self._jobs:
            words = f"there is a job {call.wanted.id!r} already; GET /jobs/{call.wanted.id}"
            return Outcome(reply=problem(409, "id_taken", words))
        copies = 2 if circumstances.apply_twice else 1
        made = [self._make(call.wanted, call.key, circumstances.request) for _ in range(copies)]
        reply = json_reply(201, job_json(made[0]))
        if key is not None:
            self._keys.remember(key, call.wanted, reply, circumstances.now_s)
        effects = [_submitted(job.wanted, call.key, job.id) for job in made]
        return Outcome(reply=reply, effects=effects)

    def _repeated(self, key: str, wanted: Wanted, circumstances: Circumstances) -> Outcome | None:
        """What a key that is already in use makes of a request; None where it is new."""
        if circumstances.in_flight:
            words = "a request with this key is not answered yet"
            return Outcome(reply=problem(409, "key_in_flight", words))
        first = self._keys.find(key, circumstances.now_s)
        if first is None:
            return None
        if first.fingerprint != wanted:
            return Outcome(reply=problem(422, "key_reused", "the key was used for another job"))
        headers = {**first.reply.headers, "idempotent-replayed": "true"}
        return Outcome(reply=replace(first.reply, headers=headers), deduped=True)

    def _make(self, wanted: Wanted, key: str | None, request: int) -> Job:
        self._made += 1
        made_up = sha256(f"{self._seed}|{self._made}".encode()).hexdigest()[:24]
        free = wanted.id is not None and wanted.id not in self._jobs
        job = Job(wanted.id if free and wanted.id else f"job_{made_up}", wanted, key, request)
        self._jobs[job.id] = job
        return job

    def _cancelling(self, job_id: str) -> Effect | None:
        job = self._jobs.get(job_id)
        if job is None or job.status in {"done", "cancelled"}:
            return None
        return Effect(
            service="jobs",
            kind="cancel",
            fields=flatten({"name": job.wanted.name, "input": job.wanted.input}),
            who=job.wanted.name,
            what="job cancelled",
            ref=job.id,
        )

    def _cancel(self, job_id: str) -> Outcome:
        effect, job = self._cancelling(job_id), self._jobs.get(job_id)
        if job is None:
            return Outcome(reply=_no_such(job_id))
        if effect is None:
            status = 200 if job.cancelled else 409
            return Outcome(reply=json_reply(status, job_json(job)), deduped=job.cancelled)
        job = self._jobs[job_id] = replace(job, cancelled=True)
        return Outcome(reply=json_reply(200, job_json(job)), effects=[effect])

    def _poll(self, job_id: str) -> HttpReply:
        job = self._jobs.get(job_id)
        if job is None:
            return _no_such(job_id)
        job = self._jobs[job_id] = replace(job, polled=job.polled + 1)
        return json_reply(200, job_json(job))

    def _find(self, filters: dict[str, str], horizon: int | None) -> HttpReply:
        seen = (job for job in self._jobs.values() if horizon is None or job.submitted <= horizon)
        shown = map(job_json, seen)
        return json_reply(
            200,
            {"data": [job for job in shown if all(job[n] == v for n, v in filters.items())]},
        )


def _understand_submit(request: HttpRequest) -> Call:
    key = request.headers.get("idempotency-key") or None
    try:
        if key is not None and len(key) > KEY_CHARS_MAX:
            raise BadRequestError(400, "invalid_key", f"a key has up to {KEY_CHARS_MAX} characters")  # noqa: TRY301
        wanted = read_wanted(request.body)
    except BadRequestError as wrong:
        return _Refused(operation="submit", reply=wrong.reply)
    effect = _submitted(wanted, key)
    return _Submit(operation="submit", key=key, wants=effect, wanted=wanted, effect=effect)


def _understand_find(query: str) -> Call:
    try:
        return _Find(operation="list", filters=read_filters(query))
    except BadRequestError as wrong:
        return _Refused(operation="list", reply=wrong.reply)


def _submitted(wanted: Wanted, key: str | None, ref: str = "") -> Effect:
    fields: dict[str, object] = {"name": wanted.name, "input": wanted.input}
    if wanted.id is not None:
        fields["id"] = wanted.id
    return Effect(
        service="jobs",
        kind="submit",
        fields=flatten(fields),
        who=wanted.name,
        what="job submitted",
        key=key,
        ref=ref,
    )


def _no_such(job_id: str) -> HttpReply:
    return problem(404, "not_found", f"there is no job {job_id!r}")
