"""How services misbehave: each behaviour at the requests that it names, and the books all the same.

The service is a small one behind the real host; test_misbehaving_services.py has the real ones.
"""

from __future__ import annotations

import asyncio
import itertools
import pickle
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.model.behaviours import parse_behaviour
from chaoskit.model.errors import UsageError
from chaoskit.model.hosting import (
    Clocked,
    Misbehaving,
    Patient,
    Postponing,
    RequestInfo,
    Restorable,
    ServiceSettings,
)
from fake_services.conduct import Conduct, Fence
from fake_services.email.service import create as create_email
from fake_services.host import HttpService
from fake_services.payments.service import create as create_payments
from tests.fake_services.notes import Notes, Watcher, post, serve

CUT = "RemoteProtocolError"
OPERATIONS = ("a", "b", "b.search")


def texts(service: HttpService) -> list[str]:
    """The notes in the ledger."""
    return [dict(effect.fields)["text"] for effect in service.ledger()]


def behave(service: HttpService, *behaviours: str) -> None:
    """From now on."""
    service.behave([parse_behaviour(text) for text in behaviours])


def several(*notes: str, **headers: str) -> Callable[[str, HttpService], Awaitable[object]]:
    """Send these one after the other; what each got."""
    more = {name.replace("_", "-"): value for name, value in headers.items()}

    async def talk(url: str, _: HttpService) -> object:
        return [await post(url, note, more=more) for note in notes]

    return talk


def test_services_can_do_all_that_the_protocols_offer() -> None:
    """The HTTP services can wait, go back, move their clocks, misbehave otherwise and postpone."""
    for service in (create_payments(), create_email(), HttpService(Notes())):
        for protocol in (Patient, Restorable, Clocked, Misbehaving, Postponing):
            assert isinstance(service, protocol)


# Refusing.


@pytest.mark.parametrize(
    ("behaviour", "answers", "kept"),
    [
        ("reject:429@notes.note#2", [200, 429, 200, 200], "acd"),
        ("reject:402@notes.note#*", [402] * 4, ""),
        ("down:2@notes.*#2", [200, 503, 503, 200], "ad"),
        ("down:2@notes.*#*", [503, 503, 200, 200], "cd"),
        ("down:end@notes.*#3", [200, 200, 503, 503], "ab"),
        ("down:9@notes.look#1", [200] * 4, "abcd"),
    ],
)
def test_what_is_refused_is_answered_so_and_changes_nothing(
    tmp_path: Path, behaviour: str, answers: list[int], kept: str
) -> None:
    """The windows are those of any request, and the second one has no effect."""
    watcher = Watcher()
    found, service = serve(tmp_path, several(*"abcd"), watcher, [behaviour])
    assert found == answers
    assert texts(service) == list(kept)
    expected = [
        ["received note", f"applied {int(a == 200)}", "answering", f"answered {a} delivered"]
        for a in answers
    ]
    assert watcher.seen == list(itertools.chain(*expected))


def test_an_outage_is_over_when_the_service_behaves_otherwise(tmp_path: Path) -> None:
    """And comes again when it is asked for again; ordinals go on all the while."""

    async def talk(url: str, service: HttpService) -> object:
        found = [await post(url, "a")]
        behave(service)
        found.append(await post(url, "b"))
        behave(service, "down:1@notes.*#*", "reject:400@notes.note#4")
        return [*found, await post(url, "c"), await post(url, "d"), await post(url, "e")]

    found, service = serve(tmp_path, talk, Watcher(), ["down:end@notes.*#1"])
    assert found == [503, 200, 503, 400, 200]
    assert texts(service) == ["b", "e"]


def test_a_behaviour_of_another_service_is_not_its_own(tmp_path: Path) -> None:
    """And one that covers no operation is refused whenever it is said."""

    async def talk(url: str, service: HttpService) -> object:
        behave(service, "reject:500@payments.charge#*")
        with pytest.raises(UsageError, match="note"):
            behave(service, "reject:500@notes.*nota#*")
        return await post(url)

    assert serve(tmp_path, talk, Watcher())[0] == 200


# Later.


@pytest.mark.parametrize(
    ("behaviours", "answers", "kept"),
    [
        (["commit-late:1@notes.note#1"], [CUT, 200, 200, 200], "bacd"),
        (["commit-late:3@notes.note#1"], [CUT, 200, 200, 200], "bcda"),
        (["commit-late:end@notes.note#2"], [200, CUT, 200, 200], "acdb"),
        (["commit-late:9@notes.note#2"], [200, CUT, 200, 200], "acdb"),
        (["commit-late:1@notes.note#*"], [CUT] * 4, "abcd"),
        (["commit-late:2@notes.note#1", "reject:429@notes.note#2"], [CUT, 429, 200, 200], "cad"),
        (["commit-late:1@notes.note#1", "reject:429@notes.note#1"], [429, 200, 200, 200], "bcd"),
    ],
)
def test_what_is_postponed_is_cut_and_lands_after_so_many_further_requests(
    tmp_path: Path, behaviours: Sequence[str], answers: list[object], kept: str
) -> None:
    """Refused ones count too; what is left lands at the end; what is refused never lands."""

    async def talk(url: str, service: HttpService) -> object:
        found = await several(*"abcd")(url, service)
        service.end()
        assert service.postponed == 0
        return found

    watcher = Watcher()
    found, service = serve(tmp_path, talk, watcher, behaviours)
    assert found == answers
    assert texts(service) == list(kept)
    assert watcher.seen.count("landed 1") == answers.count(CUT)


def test_a_postponed_request_has_its_windows_and_lands_by_the_number_it_had(tmp_path: Path) -> None:
    """Nothing is changed at its second window, its answer is lost, and it lands before another."""
    watcher = Watcher()
    serve(tmp_path, several("a", "b", "c"), watcher, ["commit-late:1@notes.note#1"])
    assert watcher.seen == [
        *("received note", "applied 0", "answered 504 lost"),
        *("received note", "applied 1", "answering", "answered 200 delivered"),
        *("received note", "landed 1", "applied 1", "answering", "answered 200 delivered"),
    ]


def test_a_dead_sender_does_not_keep_others_from_landing(tmp_path: Path) -> None:
    """A request whose sender is killed at its second window counts like any other."""

    class Second(Watcher):
        def applied(self, number: int, effects: Sequence[object]) -> bool:
            return len([line for line in self.seen if line.startswith("received")]) < 2

    found, service = serve(tmp_path, several(*"abc"), Second(), ["commit-late:1@notes.note#1"])
    assert found == [CUT, CUT, CUT]
    assert texts(service) == ["b", "a", "c"]


# Fencing.


async def with_token(url: str, text: str, token: str, run: str | None = None) -> object:
    """One POST with a fencing token."""
    named = {} if run is None else {"Chaoskit-Run": run}
    return await post(url, text, more={"Chaoskit-Fencing-Token": token, **named})


SENT = [
    *(("a", "3", None), ("b", "2", None), ("c", "3", ""), ("d", "1", "other")),
    *(("e", "x", None), ("f", "4", None)),
]


@pytest.mark.parametrize(
    ("behaviours", "answers"),
    [
        ([], [200] * 6),
        (["fence@notes.*#*"], [200, 412, 200, 200, 400, 200]),
        (["fence@notes.note#2"], [200, 412, 200, 200, 200, 200]),
        (["fence@notes.look#*"], [200] * 6),
    ],
)
def test_an_older_token_is_refused_where_the_service_fences(
    tmp_path: Path, behaviours: Sequence[str], answers: list[int]
) -> None:
    """Tokens are compared within a run, equal ones pass, and without a fence all do."""

    async def talk(url: str, _: HttpService) -> object:
        return [await with_token(url, *sent) for sent in SENT]

    found, service = serve(tmp_path, talk, Watcher(), behaviours)
    assert found == answers
    assert texts(service) == [
        sent[0] for sent, status in zip(SENT, answers, strict=True) if status == 200
    ]


def test_the_refusal_says_which_token_was_seen(tmp_path: Path) -> None:
    """The words are for whoever has to find out why a runner was shut out."""

    async def talk(url: str, _: HttpService) -> object:
        await with_token(url, "a", "7", "nightly")
        headers = {"Chaoskit-Fencing-Token": "6", "Chaoskit-Run": "nightly"}
        async with httpx.AsyncClient(timeout=300) as client:
            return (await client.post(f"{url}/notes", content="b", headers=headers)).json()

    found, _ = serve(tmp_path, talk, Watcher(), ["fence@notes.*#*"])
    assert found == {
        "error": {
            "type": "api_error",
            "message": "fencing token 6 of run 'nightly' is too old: 7 has been seen, so another "
            "process owns the run",
        }
    }


def test_a_token_is_booked_with_its_request(tmp_path: Path) -> None:
    """Whether it is looked at or not; none, or one that is no number, is None."""
    tokens: list[int | None] = []

    class Tokens(Watcher):
        def received(self, request: RequestInfo) -> int | None:
            tokens.append(request.token)
            return super().received(request)

    async def talk(url: str, _: HttpService) -> object:
        for token in ("12", "x", "-1"):
            await with_token(url, "a", token)
        return await post(url)

    serve(tmp_path, talk, Tokens())
    assert tokens == [12, None, None, None]


def test_what_lands_late_is_fenced_as_well(tmp_path: Path) -> None:
    """A request of the former owner that lands after the new one's first changes nothing."""

    async def talk(url: str, service: HttpService) -> object:
        found = [await with_token(url, "old", "1"), await with_token(url, "new", "2")]
        service.end()
        return found

    watcher = Watcher()
    behaviours = ["commit-late:1@notes.note#1", "fence@notes.*#*"]
    found, service = serve(tmp_path, talk, watcher, behaviours)
    assert found == [CUT, 200]
    assert texts(service) == ["new"]
    assert "landed 0" in watcher.seen


@given(st.lists(st.tuples(st.sampled_from(["", "r"]), st.integers(0, 4)), max_size=12))
def test_no_lower_token_passes_after_a_higher_one(sent: list[tuple[str, int]]) -> None:
    """Within each run the tokens that pass never fall, and those that would not fall pass."""
    conduct = Conduct("s", OPERATIONS)
    conduct.reset([parse_behaviour("fence@s.*#*")])
    for at, (run, token) in enumerate(sent):
        highest = max((t for r, t in sent[:at] if r == run), default=0)
        treatment = conduct.treat("a", Fence(run, token))
        assert (treatment.refused is None) == (token >= highest)


# Counting, and going back.


@given(st.lists(st.sampled_from(OPERATIONS), max_size=10), st.integers(1, 6))
def test_an_ordinal_counts_what_its_operation_covers(asked: list[str], ordinal: int) -> None:
    """Alone for a name, all together for a star."""
    for pattern in ("a", "b*", "*"):
        conduct = Conduct("s", OPERATIONS)
        behaviour = parse_behaviour(f"reject:500@s.{pattern}#{ordinal}")
        conduct.reset([behaviour])
        refused = [i for i, name in enumerate(asked) if conduct.treat(name).refused is not None]
        covered = [i for i, name in enumerate(asked) if behaviour.covers(name)]
        assert refused == covered[ordinal - 1 : ordinal]


def test_ordinals_begin_anew_where_that_is_asked_for() -> None:
    """What was asked before counts no more; how many requests there were stays known."""
    conduct = Conduct("x", OPERATIONS)
    conduct.treat("a")
    conduct.behave([parse_behaviour("lose-reply@x.a#1")], anew=True)
    restored = Conduct("x", OPERATIONS)
    restored.restore(pickle.loads(pickle.dumps(conduct.save())))  # noqa: S301
    for one in (conduct, restored):
        first, second = one.treat("a"), one.treat("a")
        assert ("lose-reply" in first, "lose-reply" in second) == (True, False)
        assert (first.request, second.request) == (2, 3)


def test_a_world_that_is_gone_back_to_has_all_that_was_known(tmp_path: Path) -> None:
    """Outage, ordinals, tokens, clock and what is postponed are as they were."""
    behaviours = ["commit-late:2@notes.note#1", "down:2@notes.*#2", "fence@notes.*#*"]

    async def talk(url: str, service: HttpService) -> list[object]:
        await with_token(url, "a", "5")
        await post(url, "b")
        service.shift_clock(100.0)
        saved = service.save()
        ways: list[object] = []
        for _ in range(2):
            service.restore(saved)
            assert service.postponed == 1
            found = [await post(url, "c"), await with_token(url, "d", "4"), await post(url, "e")]
            ways.append((found, texts(service), round(service.conduct.now_s() - clock(), 3)))
            behave(service)
            service.shift_clock(7.0)
        return ways

    def clock() -> float:
        return 1000.0

    service = HttpService(Notes(), clock)

    async def go() -> list[object]:
        address = await service.start(Watcher(), ServiceSettings(tmp_path))
        service.reset(0, [parse_behaviour(text) for text in behaviours])
        try:
            return await talk(address.placeholders["url"], service)
        finally:
            await service.stop()

    first, second = asyncio.run(go())
    assert first == second == ([503, 412, 200], ["a", "e"], 100.0)
