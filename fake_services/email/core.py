"""The rules of the email provider: a pure core, with no I/O and no clock.

Idempotency keys follow what Resend documents for its API: a key holds for 24 hours; the same
request again gets the first answer again; another request with the same key is refused with
``invalid_idempotent_request``, and one that comes before the first is answered with
``concurrent_idempotent_requests``, both 409. A refused request uses up no key.
https://resend.com/docs/dashboard/emails/idempotency-keys
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from chaoskit.model.effects import Effect
from fake_services.core import Call, Circumstances, HttpReply, HttpRequest, Outcome, json_reply
from fake_services.email.api import (
    BadRequestError,
    Query,
    message_json,
    page_json,
    problem,
    read_payload,
    read_query,
)
from fake_services.email.mail import Mail, effect_of
from fake_services.email.mailbox import Mailbox, Sent
from fake_services.keys import KeyStore
from fake_services.shown import Shown

KEY_LIFETIME_S = 24 * 60 * 60
"""How long a key is remembered, where nobody says otherwise."""

MESSAGES = "/v1/messages"

_REFUSALS = {
    412: "precondition_failed",
    429: "rate_limit_exceeded",
    500: "application_error",
    503: "service_unavailable",
}
"""How the provider names some refusals (429 and 500: resend.com/docs/api-reference/errors)."""

_KEY = re.compile(r"[\x20-\x7e]{1,256}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Send(Call):
    mail: Mail
    effect: Effect


@dataclass(frozen=True, slots=True, kw_only=True)
class _Retrieve(Call):
    mail_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Find(Call):
    query: Query


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refused(Call):
    reply: HttpReply


class EmailCore:
    """One mailbox with an HTTP API. Implements `fake_services.core.HttpCore`.

    Operations: ``send``, ``retrieve`` (by id), ``search`` (by Message-ID, header, recipient or
    subject), ``list`` (all), and ``unknown`` for whatever is none of these.
    """

    name = "email"
    operations: Sequence[str] = ("send", "retrieve", "search", "list", "unknown")

    def __init__(self) -> None:
        self._box = Mailbox(0)
        self._keys = KeyStore(KEY_LIFETIME_S)

    def reset(self, seed: int) -> None:
        """An empty mailbox, and no key used."""
        self._box = Mailbox(seed)
        self._keys.clear()

    def keep_keys(self, seconds: float) -> None:
        """See `chaoskit.model.hosting.Keyed`."""
        self._keys.keep_for(seconds)

    def understand(self, request: HttpRequest) -> Call:
        """What the request asks for; see `HttpCore.understand`."""
        path, method = request.path.rstrip("/"), request.method
        if path == MESSAGES and method == "POST":
            return _understand_send(request)
        if path == MESSAGES and method == "GET":
            return _understand_find(request.query)
        folder, _, mail_id = path.rpartition("/")
        if folder == MESSAGES and method == "GET":
            return _Retrieve(operation="retrieve", mail_id=mail_id)
        if MESSAGES in {path, folder}:
            reply = problem(405, "method_not_allowed", f"{path} does not take {method}")
        else:
            reply = problem(404, "not_found", f"there is no {path}")
        return _Refused(operation="unknown", reply=reply)

    def apply(self, request: HttpRequest, call: Call, circumstances: Circumstances) -> Outcome:
        """Do it; see `HttpCore.apply`."""
        match call:
            case _Send():
                return self._send(call, circumstances)
            case _Retrieve():
                return Outcome(reply=self._retrieve(call.mail_id))
            case _Find(query=query):
                page, more = self._box.find(
                    query.terms,
                    after=query.after,
                    limit=query.limit,
                    horizon=circumstances.horizon,
                )
                return Outcome(reply=json_reply(200, page_json(page, more=more)))
            case _Refused():
                return Outcome(reply=call.reply)
        raise TypeError(f"not a call of this core: {call!r}")

    def refused(self, status: int, message: str) -> HttpReply:
        """See `fake_services.core.Worded`."""
        return problem(status, _REFUSALS.get(status, "refused"), message)

    def show(self, ref: str) -> Shown | None:
        """The mail with this id; see `fake_services.shown.Showing`."""
        sent = self._box.get(ref)
        if sent is None:
            return None
        mail = sent.mail
        facts = {
            "From": mail.sender,
            "To": ", ".join(mail.to),
            "Cc": ", ".join(mail.cc),
            "Bcc": ", ".join(mail.bcc),
            "Subject": mail.subject,
            "Message-ID": sent.message_id,
        }
        texts = (("Text", mail.text), ("HTML, as source", mail.html))
        return Shown(
            # A header may be there twice, and one may have the name of a fact.
            facts={n: v for n, v in facts.items() if v} | {"Headers": _listed(mail.headers)},
            texts=[(title, text) for title, text in texts if text],
        )

    def deliver(
        self, mail: Mail, wanted: Effect, circumstances: Circumstances
    ) -> tuple[Sent, Sequence[Effect]]:
        """Put ``mail`` into the box, as both doors do.

        Args:
            mail: what to send.
            wanted: its effect, as announced before anything changed.
            circumstances: the time, the number of the request, and whether the provider is at
                fault and sends it twice.

        Returns:
            The first copy, and an effect for each.
        """
        copies = 2 if circumstances.apply_twice else 1
        sent = [
            self._box.put(mail, circumstances.now_s, circumstances.request) for _ in range(copies)
        ]
        return sent[0], [msgspec.structs.replace(wanted, ref=each.id) for each in sent]

    def _send(self, call: _Send, circumstances: Circumstances) -> Outcome:
        key = None if circumstances.forget_keys else call.key
        if key is not None and (repeated := self._repeated(key, call.mail, circumstances)):
            return repeated
        sent, effects = self.deliver(call.mail, call.effect, circumstances)
        reply = json_reply(202, {"id": sent.id, "message_id": sent.message_id})
        if key is not None:
            self._keys.remember(key, call.mail, reply, circumstances.now_s)
        return Outcome(reply=reply, effects=effects)

    def _repeated(self, key: str, mail: Mail, circumstances: Circumstances) -> Outcome | None:
        """What a key that is already in use makes of a request; None where it is new."""
        if circumstances.in_flight:
            return _conflict("concurrent_idempotent_requests", "the first one is not answered yet")
        first = self._keys.find(key, circumstances.now_s)
        if first is None:
            return None
        if first.fingerprint != mail:
            return _conflict("invalid_idempotent_request", "the key was used for another mail")
        headers = {**first.reply.headers, "idempotent-replayed": "true"}
        return Outcome(reply=replace(first.reply, headers=headers), deduped=True)

    def _retrieve(self, mail_id: str) -> HttpReply:
        sent = self._box.get(mail_id)
        if sent is None:
            return problem(404, "not_found", f"there is no mail {mail_id!r}")
        return json_reply(200, message_json(sent))


def _understand_send(request: HttpRequest) -> Call:
    key = request.headers.get("idempotency-key")
    try:
        if key is not None and not _KEY.fullmatch(key):
            raise BadRequestError(400, "invalid_idempotency_key", "a key has 1 to 256 characters")  # noqa: TRY301
        mail = read_payload(request.body)
    except BadRequestError as wrong:
        return _Refused(operation="send", reply=wrong.reply)
    effect = effect_of(mail, key=key)
    return _Send(operation="send", key=key, wants=effect, mail=mail, effect=effect)


def _understand_find(query: str) -> Call:
    try:
        wanted = read_query(query)
    except BadRequestError as wrong:
        return _Refused(operation="search", reply=wrong.reply)
    return _Find(operation="search" if wanted.terms else "list", query=wanted)


def _listed(headers: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    by_name: dict[str, list[str]] = {}
    for name, value in headers:
        by_name.setdefault(name, []).append(value)
    return by_name


def _conflict(name: str, message: str) -> Outcome:
    return Outcome(reply=problem(409, name, message))
