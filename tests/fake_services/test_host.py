"""The HTTP host: windows, behaviours, and certainty about who is still connected."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.model.errors import UsageError
from chaoskit.model.hosting import RequestInfo
from fake_services.host import HttpService
from tests.fake_services.notes import Talk, Watcher, post, serve


def test_a_request_passes_its_windows_in_order(tmp_path: Path) -> None:
    """received, applied with its effects, answering, answered."""
    watcher = Watcher()
    status, _ = serve(tmp_path, lambda url, _: post(url), watcher)
    assert status == 200
    assert watcher.seen == ["received note", "applied 1", "answering", "answered 200 delivered"]


@pytest.mark.parametrize(("window", "effects"), [("received", 0), ("applied", 1)])
def test_a_sender_that_died_gets_no_answer(tmp_path: Path, window: str, effects: int) -> None:
    """After a kill at received nothing is changed; after one at applied nothing is answered."""
    watcher = Watcher(refuse=window)
    status, service = serve(tmp_path, lambda url, _: post(url), watcher)
    assert status != 200
    assert len(service.ledger()) == effects
    assert not [line for line in watcher.seen if line.startswith("answered")]


@pytest.mark.parametrize(
    ("behaviour", "status", "effects"),
    [
        ("lose-reply@notes.note#1", "RemoteProtocolError", 1),
        ("fail-after-commit@notes.note#1", 500, 1),
        ("late-reply:30ms@notes.note#1", 200, 1),
        ("apply-twice@notes.note#1", 200, 2),
        ("lose-reply@notes.note#2", 200, 1),
        ("fail-after-commit@notes.note#*", 500, 1),
    ],
)
def test_behaviours_do_what_they_say(
    tmp_path: Path, behaviour: str, status: object, effects: int
) -> None:
    """Each behaviour shows at the request that it names, and the ledger has the truth."""
    found, service = serve(tmp_path, lambda url, _: post(url), Watcher(), [behaviour])
    assert found == status
    assert len(service.ledger()) == effects


def test_a_key_is_in_flight_until_its_answer_is_out(tmp_path: Path) -> None:
    """A second request with the key of one whose answer is still to come is a conflict."""

    async def talk(url: str, _: HttpService) -> object:
        return sorted(
            map(str, await asyncio.gather(post(url, key="k"), post(url, key="k"), post(url)))
        )

    found, service = serve(tmp_path, talk, Watcher(), ["late-reply:2000ms@notes.note#1"])
    assert found == ["200", "200", "409"]
    assert len(service.ledger()) == 2


def test_an_unknown_operation_in_a_behaviour_is_refused(tmp_path: Path) -> None:
    """The error names the operations that there are."""
    with pytest.raises(UsageError, match="note"):
        serve(tmp_path, lambda url, _: post(url), Watcher(), ["lose-reply@notes.nota#1"])


@pytest.mark.parametrize(
    "behaviour", ["late-reply:30ms@notes.note#1", "late-reply:1h@notes.note#1"]
)
def test_a_sender_that_left_before_a_late_answer_is_not_waited_for(
    tmp_path: Path, behaviour: str
) -> None:
    """Its connection ends with the answer that nobody reads, or when the world is made new."""
    request = b"POST /notes HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na"
    watcher = Watcher()

    async def talk(url: str, service: HttpService) -> object:
        _, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(request)
        while "applied 1" not in watcher.seen:  # noqa: ASYNC110 - the observer is told on this very loop
            await asyncio.sleep(0)
        writer.close()
        await writer.wait_closed()
        if "ms@" not in behaviour:
            for _ in range(8):  # until it has been seen to leave
                await asyncio.sleep(0)
            service.reset(1, ())
        return await service.quiesce(300)

    found, _ = serve(tmp_path, talk, watcher, [behaviour.replace("1h", "3600000ms")])
    assert found is True


def test_quiesce_waits_for_what_a_dead_sender_had_sent(tmp_path: Path) -> None:
    """Bytes that lay in the socket when the sender closed it are applied before quiesce returns."""
    request = b"POST /notes HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na"

    async def talk(url: str, service: HttpService) -> object:
        port = int(url.rpartition(":")[2])
        for _ in range(50):
            with socket.create_connection(("127.0.0.1", port)) as sender:
                sender.sendall(request)
        assert await service.quiesce(300)
        return len(service.ledger())

    found, _ = serve(tmp_path, talk, Watcher())
    assert found == 50


def test_a_process_that_stood_still_accuses_nobody(tmp_path: Path) -> None:
    """A pause longer than the whole time, while a sender ends, does not make it one that stays."""

    async def talk(url: str, service: HttpService) -> object:
        loop = asyncio.get_running_loop()
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))):
            asked = asyncio.ensure_future(service.quiesce(5.0))
            await asyncio.sleep(0)  # it has begun
        told = loop.time
        setattr(loop, "time", lambda: told() + 60)  # noqa: B010 - a method, in mypy's eyes
        return await asked

    assert serve(tmp_path, talk, Watcher())[0] is True


def test_quiesce_says_when_somebody_stays(tmp_path: Path) -> None:
    """An open connection makes quiesce give up after its time, and say so."""

    async def talk(url: str, service: HttpService) -> object:
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))):
            return await service.quiesce(0.1)

    assert serve(tmp_path, talk, Watcher())[0] is False


async def raw(url: str, data: bytes, answers: int) -> bytes:
    """Send bytes, read until ``answers`` status lines have come or the connection ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    writer.write(data)
    got = b""
    while got.count(b"HTTP/1.1 ") < answers and (more := await reader.read(65536)):
        got += more
    writer.close()
    return got


def test_pipelined_requests_are_answered_in_turn(tmp_path: Path) -> None:
    """Two requests in one packet get two answers, also when the first one is late."""
    one = b"POST /notes HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na"
    data = one + one.replace(b"\r\n\r\na", b"\r\n\r\nb")
    found, service = serve(
        tmp_path, lambda url, _: raw(url, data, 2), Watcher(), ["late-reply:20ms@notes.note#1"]
    )
    assert isinstance(found, bytes)
    assert found.count(b"HTTP/1.1 200") == 2
    assert [dict(e.fields)["text"] for e in service.ledger()] == ["a", "b"]


def test_chunked_bodies_and_expectations_are_understood(tmp_path: Path) -> None:
    """A client that asks before it sends, and sends in chunks, is served."""
    data = (
        b"POST /notes HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"
    )
    _, service = serve(tmp_path, lambda url, _: raw(url, data, 2), Watcher())
    assert [dict(e.fields)["text"] for e in service.ledger()] == ["abc"]


@given(st.binary(min_size=1, max_size=200))
def test_no_bytes_bring_the_host_down(data: bytes) -> None:
    """Whatever comes, the next proper request is served."""

    async def talk(url: str, _: HttpService) -> object:
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as sender:
            sender.sendall(data)
        return await post(url)

    assert serve(Path(), talk, Watcher())[0] == 200


class Order(Watcher):
    """Which of the requests were sent before the one ahead of them was answered."""

    def __init__(self) -> None:
        super().__init__()
        self.early: list[bool] = []

    def received(self, request: RequestInfo) -> int | None:
        """Window one."""
        self.early.append(request.early)
        return super().received(request)


def sent(*parts: bytes, wait: bool = False) -> Talk:
    """Requests over one connection, a part at a time; ``wait`` for the answer to each part."""

    async def talk(url: str, _: HttpService) -> None:
        address = urlsplit(url)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        for part in parts:
            writer.write(part)
            await writer.drain()
            if wait:
                await reader.readuntil(b"kept")
        writer.write_eof()
        await reader.read()
        writer.close()

    return talk


NOTE = b"POST /notes HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na"


def test_a_request_that_was_sent_before_the_last_answer_is_early(tmp_path: Path) -> None:
    """Whole or in pieces, read with the one ahead of it or after it; the next one that waited is
    not early any more.
    """
    cases = (
        (sent(NOTE, NOTE, NOTE, wait=True), [False, False, False]),
        (sent(NOTE + NOTE + NOTE), [False, True, True]),
        (sent(NOTE + NOTE[:9], NOTE[9:]), [False, True]),
        (sent(NOTE[:9], NOTE[9:] + NOTE[:1], NOTE[1:] + b"\r\n"), [False, True]),
    )
    for talk, early in cases:
        order = Order()
        serve(tmp_path, talk, order)
        assert order.early == early


def test_a_request_that_comes_while_the_last_one_waits_for_its_answer_is_early(
    tmp_path: Path,
) -> None:
    """A late answer shows what is sent without waiting, in however many writes."""
    order = Order()
    serve(tmp_path, sent(NOTE, NOTE), order, ["late-reply:30ms@notes.note#1"])
    assert order.early == [False, True]
