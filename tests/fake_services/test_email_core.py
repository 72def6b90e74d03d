"""The rules of the email provider, without a socket."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.model.effects import Effect
from fake_services.core import Circumstances, HttpRequest, Outcome
from fake_services.email.core import KEY_LIFETIME_S, EmailCore
from fake_services.texts import shortened

MAIL: Mapping[str, Any] = {
    "from": "Shop <shop@example.com>",
    "to": ["bob@example.com", "Ann <ann@example.com>"],
    "subject": "Receipt 17",
    "text": "Thank you.\n",
    "headers": {"X-Order": "17"},
}

_printable = st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="\x7f"))
_any_text = st.text(st.characters(exclude_categories=["Cs"]))


def call(core: EmailCore, request: HttpRequest, **circumstances: Any) -> Outcome:
    """Understand and apply at once, as the host does."""
    now_s = circumstances.pop("now_s", 1000.0)
    understood = core.understand(request)
    assert understood.operation in core.operations
    return core.apply(request, understood, Circumstances(now_s=now_s, **circumstances))


def post(payload: object, key: str | None = None) -> HttpRequest:
    """A request that sends ``payload``."""
    headers = {} if key is None else {"idempotency-key": key}
    return HttpRequest("POST", "/v1/messages", "", headers, json.dumps(payload).encode())


def get(path: str, **query: Any) -> HttpRequest:
    """A request that looks."""
    return HttpRequest("GET", path, urlencode(query, doseq=True))


def answer(outcome: Outcome) -> Any:
    """The JSON of an outcome's reply."""
    return json.loads(outcome.reply.body)


def found(core: EmailCore, **query: Any) -> list[str]:
    """The ids that a search returns."""
    return [message["id"] for message in answer(call(core, get("/v1/messages", **query)))["data"]]


def test_a_mail_is_one_effect_whose_recipients_are_sorted() -> None:
    """A mail to two people is one effect, and the order in which they were named is no matter."""
    core = EmailCore()
    outcome = call(core, post({**MAIL, "cc": "cy@example.com", "reply_to": "help@example.com"}))
    assert outcome.reply.status == 202
    assert outcome.effects == [
        Effect(
            service="email",
            kind="send",
            fields=(
                ("body", "Thank you."),
                ("cc", "cy@example.com"),
                ("from", "Shop <shop@example.com>"),
                ("headers.Reply-To", "help@example.com"),
                ("headers.X-Order", "17"),
                ("subject", "Receipt 17"),
                ("to", "ann@example.com, bob@example.com"),
            ),
            who="bob@example.com, ann@example.com",
            what='mail "Receipt 17"',
            ref=answer(outcome)["id"],
        )
    ]


def test_what_is_wanted_is_what_happens() -> None:
    """The effect that is announced before the change differs from the booked one only in its id."""
    core, request = EmailCore(), post(MAIL, "k")
    wants = core.understand(request).wants
    (effect,) = call(core, request).effects
    assert wants is not None
    assert (wants.fields, wants.key, wants.ref) == (effect.fields, "k", "")
    assert (wants.who, wants.what) == (effect.who, effect.what)


@given(subject=_printable, body=_any_text)
def test_any_subject_and_body_come_back(subject: str, body: str) -> None:
    """Whatever text a mail holds, the provider shows it again and the ledger tells it apart."""
    core = EmailCore()
    outcome = call(core, post({**MAIL, "subject": subject, "text": body}))
    shown = answer(call(core, get(f"/v1/messages/{answer(outcome)['id']}")))
    assert (shown["subject"], shown["text"]) == (subject, body)
    fields = dict(outcome.effects[0].fields)
    assert fields["subject"] == subject
    assert fields["body"] == shortened(body.replace("\r\n", "\n").rstrip("\n"))


def test_long_texts_are_told_apart_by_their_digest() -> None:
    """Two long bodies with the same beginning are two different effects."""
    core = EmailCore()
    bodies = [
        dict(call(core, post({**MAIL, "text": "x" * 5000 + end})).effects[0].fields)["body"]
        for end in ("a", "b")
    ]
    assert bodies[0] != bodies[1]
    assert max(map(len, bodies)) < 700


def test_html_is_the_body_where_there_is_no_text() -> None:
    """A mail with HTML alone is booked by its HTML."""
    payload = {**MAIL, "html": "<b>Hi</b>", "text": None}
    (effect,) = call(EmailCore(), post(payload)).effects
    assert dict(effect.fields)["body"] == "<b>Hi</b>"


@given(
    method=st.sampled_from(["GET", "POST", "PUT", "DELETE", "BREW"]),
    path=st.sampled_from(["/v1/messages", "/v1/messages/", "/v1/messages/x", "/"]) | st.text(),
    query=st.text(),
    headers=st.dictionaries(st.sampled_from(["idempotency-key", "authorization"]), st.text()),
    body=st.binary()
    | st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from([*MAIL, "cc"]), inner),
    ).map(lambda value: json.dumps(value).encode()),
)
def test_no_request_is_too_odd_for_an_answer(
    method: str, path: str, query: str, headers: dict[str, str], body: bytes
) -> None:
    """Any request gets a JSON answer with a sensible status, and only a 202 changes anything."""
    outcome = call(EmailCore(), HttpRequest(method, path, query, headers, body))
    json.loads(outcome.reply.body)
    msgspec.json.encode(list(outcome.effects))
    assert outcome.reply.status in {200, 202, 400, 404, 405, 422}
    assert bool(outcome.effects) == (outcome.reply.status == 202)


@pytest.mark.parametrize(
    ("payload", "status", "name"),
    [
        ([], 422, "validation_error"),
        ({}, 422, "validation_error"),
        ({**MAIL, "to": []}, 422, "validation_error"),
        ({**MAIL, "to": "nobody"}, 422, "validation_error"),
        ({**MAIL, "from": "a@b\r\nBcc: c@d"}, 422, "validation_error"),
        ({**MAIL, "subject": "Hi\r\nBcc: eve@example.com"}, 422, "validation_error"),
        ({**MAIL, "headers": {"X-A": "1\nX-B: 2"}}, 422, "validation_error"),
        ({**MAIL, "headers": {"Bcc": "eve@example.com"}}, 422, "validation_error"),
        ({**MAIL, "headers": {"no header": "1"}}, 422, "validation_error"),
        ({**MAIL, "subject": "\ud800"}, 400, "invalid_json"),
        ({**MAIL, "subject": 17}, 422, "validation_error"),
    ],
)
def test_what_is_no_mail_is_refused(payload: object, status: int, name: str) -> None:
    """A request that is no mail announces nothing, changes nothing and gets an error back."""
    core, request = EmailCore(), post(payload)
    assert core.understand(request).wants is None
    outcome = call(core, request)
    assert (outcome.reply.status, answer(outcome)["name"]) == (status, name)
    assert found(core) == []


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"to": "\xff"}', b'{"x":' * 100_000])
def test_what_is_no_json_is_refused(body: bytes) -> None:
    """A body that is no JSON is answered with 400, however deep it goes."""
    outcome = call(EmailCore(), HttpRequest("POST", "/v1/messages", body=body))
    assert outcome.reply.status == 400


def test_the_same_key_gets_the_same_answer_and_no_second_mail() -> None:
    """A repeated request is answered from memory, is marked as a replay and changes nothing."""
    core = EmailCore()
    first = call(core, post(MAIL, "k"))
    reordered = dict(reversed(list(MAIL.items())))
    again = call(core, post(reordered, "k"))
    assert again.reply.body == first.reply.body
    assert again.reply.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.reply.headers
    assert (again.deduped, again.effects) == (True, ())


def test_a_key_is_for_one_mail() -> None:
    """Another mail under a used key is refused, and the first stays the only one."""
    core = EmailCore()
    call(core, post(MAIL, "k"))
    other = call(core, post({**MAIL, "subject": "Receipt 18"}, "k"))
    assert (other.reply.status, answer(other)["name"]) == (409, "invalid_idempotent_request")
    assert not other.deduped
    assert len(found(core)) == 1


def test_a_key_in_flight_is_refused() -> None:
    """A request that comes before the first one with its key is answered is a conflict."""
    outcome = call(EmailCore(), post(MAIL, "k"), in_flight=True)
    assert answer(outcome)["name"] == "concurrent_idempotent_requests"
    assert (outcome.reply.status, outcome.effects) == (409, ())


def test_a_key_expires_by_the_clock_of_the_service() -> None:
    """A key holds for 24 hours after its first use and not a second longer."""
    core = EmailCore()
    call(core, post(MAIL, "k"), now_s=0)
    assert call(core, post(MAIL, "k"), now_s=KEY_LIFETIME_S - 1).deduped
    assert call(core, post(MAIL, "k"), now_s=KEY_LIFETIME_S).effects


def test_a_refused_request_uses_up_no_key() -> None:
    """After a mail that was refused its key is still free."""
    core = EmailCore()
    call(core, post({**MAIL, "to": []}, "k"))
    assert call(core, post(MAIL, "k")).effects


@pytest.mark.parametrize("key", ["", "x" * 257, "é", "a\tb"])
def test_a_key_that_no_provider_takes_is_refused(key: str) -> None:
    """A key has 1 to 256 printable ASCII characters."""
    outcome = call(EmailCore(), post(MAIL, key))
    assert (outcome.reply.status, answer(outcome)["name"]) == (400, "invalid_idempotency_key")


def test_forget_keys_sends_again() -> None:
    """A provider that does not look at keys sends every time, even while one is in flight."""
    core = EmailCore()
    for _ in range(2):
        outcome = call(core, post(MAIL, "k"), forget_keys=True, in_flight=True)
        assert (len(outcome.effects), outcome.effects[0].key) == (1, "k")


def test_apply_twice_books_two_mails_with_two_ids() -> None:
    """A provider that sends twice has both in its ledger and its mailbox, and tells of one."""
    core = EmailCore()
    outcome = call(core, post(MAIL, "k"), apply_twice=True)
    refs = [effect.ref for effect in outcome.effects]
    assert found(core) == refs
    assert (len(set(refs)), answer(outcome)["id"]) == (2, refs[0])


def test_a_message_id_does_not_dedupe() -> None:
    """The same Message-ID twice is two mails, as with any mail server, and both are found by it."""
    core = EmailCore()
    for message_id in ("<17@shop>", "17@shop"):
        call(core, post({**MAIL, "message_id": message_id}))
    assert len(found(core, message_id="<17@shop>")) == 2
    assert found(core, message_id="17@shop") == found(core, header="Message-ID: <17@shop>")


def test_a_message_id_is_an_effect_only_where_the_sender_chose_it() -> None:
    """A generated Message-ID is no part of what was asked for; a chosen one is."""
    core = EmailCore()
    generated = call(core, post(MAIL))
    chosen = call(core, post({**MAIL, "headers": {"message-id": "<17@shop>"}}))
    assert "headers.Message-ID" not in dict(generated.effects[0].fields)
    assert dict(chosen.effects[0].fields)["headers.Message-ID"] == "<17@shop>"
    assert answer(chosen)["message_id"] == "<17@shop>"


def test_search_is_exact_and_all_criteria_must_agree() -> None:
    """A mail is found by header, recipient and subject; case matters only in values."""
    core = EmailCore()
    first, second = (
        answer(call(core, post({**MAIL, "headers": {"X-Order": order}})))["id"]
        for order in ("17", "170")
    )
    assert found(core, header="x-order:17") == [first]
    assert found(core, to="ANN@example.com") == [first, second]
    assert found(core, to="ann@example.com", header="X-Order: 170") == [second]
    assert found(core, header=["X-Order:17", "X-Order:170"]) == []
    assert found(core, subject="Receipt 17") == [first, second]
    assert found(core, subject="receipt 17") == []
    assert found(core, to="eve@example.com") == []


@given(count=st.integers(0, 12), limit=st.integers(1, 5))
def test_pages_give_every_mail_once(count: int, limit: int) -> None:
    """Following ``after`` from page to page gives every mail once, oldest first."""
    core = EmailCore()
    sent = [answer(call(core, post(MAIL)))["id"] for _ in range(count)]
    seen: list[str] = []
    while True:
        query = {"limit": limit} | ({"after": seen[-1]} if seen else {})
        page = answer(call(core, get("/v1/messages", **query)))
        seen += [message["id"] for message in page["data"]]
        if not page["has_more"]:
            break
    assert seen == sent


@pytest.mark.parametrize(
    "query", [{"limit": "0"}, {"limit": "1001"}, {"limit": "²"}, {"header": "17"}, {"q": "x"}]
)
def test_a_search_that_makes_no_sense_is_refused(query: dict[str, str]) -> None:
    """A misspelt criterion is an error and not a search for everything."""
    outcome = call(EmailCore(), get("/v1/messages", **query))
    assert (outcome.reply.status, answer(outcome)["name"]) == (400, "invalid_parameter")


def test_operations_are_told_apart() -> None:
    """Each kind of request has the operation that its points are named by."""
    core = EmailCore()
    for request, operation in (
        (post(MAIL), "send"),
        (post({}), "send"),
        (get("/v1/messages"), "list"),
        (get("/v1/messages", to="ann@example.com"), "search"),
        (get("/v1/messages/msg_1"), "retrieve"),
        (HttpRequest("DELETE", "/v1/messages/msg_1"), "unknown"),
        (get("/v2"), "unknown"),
    ):
        assert core.understand(request).operation == operation


def test_ids_follow_from_the_seed() -> None:
    """Equal seeds give equal ids, other seeds others, and a reset empties the box and the keys."""
    core, ids = EmailCore(), []
    for seed in (1, 1, 2):
        core.reset(seed)
        assert found(core) == []
        ids.append(answer(call(core, post(MAIL, "k")))["id"])
    assert ids[0] == ids[1] != ids[2]
