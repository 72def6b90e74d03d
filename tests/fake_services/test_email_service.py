"""The email service with real clients: smtplib, httpx, bare sockets, a process that is killed."""

from __future__ import annotations

import asyncio
import select
import signal
import smtplib
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import httpx
import pytest

from chaoskit.model.behaviours import parse_behaviour
from chaoskit.model.effects import Effect
from chaoskit.model.errors import UsageError
from chaoskit.model.hosting import RequestInfo, ServiceSettings
from fake_services.email.service import create

CONVERSATION = (
    b"EHLO c\r\nMAIL FROM:<shop@example.com>\r\nRCPT TO:<ann@example.com>\r\nDATA\r\n"
    b"Subject: Hi\r\n\r\nHello\r\n.\r\n"
)


class Recorder:
    """An observer that writes down what it is told, and may declare the sender dead."""

    def __init__(self, *, dead_at: str = "") -> None:
        self.seen: list[tuple[Any, ...]] = []
        self.dead_at = dead_at
        self.on: dict[str, Callable[[], None]] = {}

    def received(self, request: RequestInfo) -> int | None:
        """A request is here."""
        self._note("received", request)
        return None if self.dead_at == "received" else len(self.seen)

    def applied(self, number: int, effects: Sequence[Effect]) -> bool:
        """It is done."""
        self._note("applied", list(effects))
        return self.dead_at != "applied"

    def answering(self, number: int) -> None:
        """The answer goes out."""
        self._note("answering")

    def answered(self, number: int, status: int, *, deduped: bool, delivered: bool) -> None:
        """It is out, or lost."""
        self._note("answered", status, delivered)

    def landed(self, number: int, effects: Sequence[Effect]) -> None:
        """Later than its sender thinks."""
        self._note("landed", list(effects))

    def windows(self) -> list[str]:
        """The names of the calls."""
        return [name for name, *_ in self.seen]

    def _note(self, name: str, *what: object) -> None:
        self.seen.append((name, *what))
        self.on.get(name, lambda: None)()


def serve(
    client: Callable[[Mapping[str, str]], object],
    observer: Recorder | None = None,
    *behaviours: str,
    quiesce_s: float = 300,
) -> list[Effect]:
    """Run ``client`` in a thread against a fresh service until all connections have ended.

    Returns the ledger. A failure anywhere in the event loop is a failure of the test.
    """
    failures: list[dict[str, Any]] = []

    async def world() -> list[Effect]:
        asyncio.get_running_loop().set_exception_handler(lambda _, what: failures.append(what))
        service = create()
        address = await service.start(observer or Recorder(), ServiceSettings(Path()))
        service.reset(1, [parse_behaviour(text) for text in behaviours])
        try:
            await asyncio.to_thread(client, address.placeholders)
            assert await service.quiesce(quiesce_s)
            return list(service.ledger())
        finally:
            await service.stop()

    ledger = asyncio.run(world())
    assert failures == []
    return ledger


def connect(at: Mapping[str, str]) -> smtplib.SMTP:
    """The standard library's client."""
    return smtplib.SMTP(at["smtp_host"], int(at["smtp_port"]), local_hostname="c", timeout=300)


def mail(**headers: str) -> EmailMessage:
    """A mail to Ann."""
    message = EmailMessage()
    given = {"From": "Shop <shop@example.com>", "To": "ann@example.com", "Subject": "Receipt 17"}
    for name, value in (given | headers).items():
        message[name.replace("_", "-")] = value
    message.set_content("Thank you.\n")
    return message


def send(at: Mapping[str, str], times: int = 1) -> None:
    """Send Ann's mail on one connection."""
    with connect(at) as client:
        for _ in range(times):
            client.send_message(mail())


def converse(at: Mapping[str, str]) -> socket.socket:
    """Send a whole mail in one go and read nothing."""
    link = socket.create_connection((at["smtp_host"], int(at["smtp_port"])), timeout=300)
    link.sendall(CONVERSATION)
    return link


def test_a_mail_passes_its_windows_in_order() -> None:
    """A mail is announced, booked, answered and delivered: one effect with all its fields."""
    observer = Recorder()

    def client(at: Mapping[str, str]) -> None:
        with connect(at) as smtp:
            smtp.send_message(mail(Cc="cy@example.com", Bcc="eve@example.com", X_Order="17"))

    (effect,) = serve(client, observer)
    received, applied, answering, answered = observer.seen
    assert received[1].wants is not None
    assert (received[1].operation, received[1].key) == ("send", None)
    assert received[1].wants.fields == effect.fields
    assert applied == ("applied", [effect])
    assert answering == ("answering",)
    assert answered == ("answered", 250, True)
    assert dict(effect.fields) == {
        "from": "Shop <shop@example.com>",
        "to": "ann@example.com",
        "cc": "cy@example.com",
        "bcc": "eve@example.com",
        "subject": "Receipt 17",
        "body": "Thank you.",
        "headers.X-Order": "17",
    }


def test_both_doors_book_the_same_effect() -> None:
    """The same mail is the same business fact, whichever way it came."""

    def client(at: Mapping[str, str]) -> None:
        send(at)
        httpx.post(
            f"{at['url']}/v1/messages",
            json={
                "from": "Shop <shop@example.com>",
                "to": "ann@example.com",
                "subject": "Receipt 17",
                "text": "Thank you.",
            },
            timeout=300,
        ).raise_for_status()

    over_smtp, over_http = serve(client)
    assert over_smtp.fields == over_http.fields
    assert over_smtp.ref != over_http.ref


def test_a_mail_sent_over_smtp_is_found_over_http() -> None:
    """A task that does not know whether its mail went out can look it up by Message-ID."""

    def client(at: Mapping[str, str]) -> None:
        with connect(at) as smtp:
            smtp.send_message(mail(Message_ID="<17@shop>"))
        query = {"message_id": "<17@shop>"}
        page = httpx.get(f"{at['url']}/v1/messages", params=query, timeout=300).json()
        assert [message["subject"] for message in page["data"]] == ["Receipt 17"]

    assert len(serve(client)) == 1


def test_the_reply_is_with_the_kernel_exactly_when_it_is_said_to_be() -> None:
    """Nothing of the answer has left at ``answering``, and all of it at ``answered``."""
    observer, lines = Recorder(), []

    async def world() -> None:
        service, done = create(), asyncio.Event()
        address = await service.start(observer, ServiceSettings(Path()))
        at = address.placeholders
        with socket.create_connection((at["smtp_host"], int(at["smtp_port"])), timeout=300) as link:

            def at_answering() -> None:
                got = b""
                while b"\r\n354 " not in got or not got.endswith(b"\r\n"):
                    got += link.recv(10_000)
                lines.append(got.splitlines())
                assert not select.select([link], [], [], 0)[0]

            def at_answered() -> None:
                assert select.select([link], [], [], 300)[0]
                lines.append(link.recv(10_000).splitlines())
                done.set()

            observer.on = {"answering": at_answering, "answered": at_answered}
            link.sendall(CONVERSATION)
            await done.wait()
        await service.stop()

    asyncio.run(world())
    before, answer = lines
    assert before[-1].startswith(b"354 ")
    assert [line[:4] for line in answer] == [b"250 "]


@pytest.mark.parametrize(
    ("dead_at", "booked", "windows"),
    [("received", 0, ["received"]), ("applied", 1, ["received", "applied"])],
)
def test_a_dead_sender_gets_no_answer(dead_at: str, booked: int, windows: list[str]) -> None:
    """Dead before the change, nothing is booked; dead after it, the mail stays; never an answer."""
    observer = Recorder(dead_at=dead_at)

    def client(at: Mapping[str, str]) -> None:
        with pytest.raises(smtplib.SMTPServerDisconnected):
            send(at)

    assert len(serve(client, observer)) == booked
    assert observer.windows() == windows


def test_a_lost_reply_is_that_of_the_request_with_this_number_at_either_door() -> None:
    """Requests are counted over both doors: the second mail loses its reply, not the first one."""
    observer = Recorder()

    def client(at: Mapping[str, str]) -> None:
        payload = {"from": "a@example.com", "to": "b@example.com"}
        httpx.post(f"{at['url']}/v1/messages", json=payload, timeout=300).raise_for_status()
        with pytest.raises(smtplib.SMTPServerDisconnected):
            send(at)
        send(at)

    assert len(serve(client, observer, "lose-reply@email.send#2")) == 3
    answers = [seen[1:] for seen in observer.seen if seen[0] == "answered"]
    assert answers == [(202, True), (250, False), (250, True)]
    assert observer.windows().count("answering") == 2


def test_fail_after_commit_answers_with_an_error_to_a_mail_that_was_sent() -> None:
    """The client sees 451 and will try again, but the mail is out."""
    observer = Recorder()

    def client(at: Mapping[str, str]) -> None:
        with pytest.raises(smtplib.SMTPDataError) as refused:
            send(at)
        assert refused.value.smtp_code == 451

    assert len(serve(client, observer, "fail-after-commit@email.send#*")) == 1
    assert observer.seen[-1] == ("answered", 451, True)


def test_apply_twice_books_twice() -> None:
    """The provider itself sends the mail two times and answers once."""
    first, second = serve(send, None, "apply-twice@email.send#1")
    assert first.fields == second.fields
    assert first.ref != second.ref


def test_a_late_reply_comes_after_the_change() -> None:
    """The mail is booked at once, and its answer is delivered in the end."""
    observer = Recorder()
    assert len(serve(send, observer, "late-reply:1ms@email.send#*")) == 1
    assert observer.windows() == ["received", "applied", "answering", "answered"]


def test_nobody_waits_for_a_late_reply_whose_reader_has_gone() -> None:
    """A client that hangs up during the delay is over at once, its answer reported as lost."""
    observer = Recorder()
    applied = asyncio.Event()

    async def world() -> None:
        service = create()
        address = await service.start(observer, ServiceSettings(Path()))
        service.reset(1, [parse_behaviour("late-reply:3600000ms@email.send#*")])
        observer.on["applied"] = applied.set
        link = await asyncio.to_thread(converse, address.placeholders)
        await applied.wait()
        link.close()
        assert await service.quiesce(300)
        assert observer.seen[-1] == ("answered", 250, False)
        await service.stop()

    asyncio.run(world())


def test_a_killed_sender_has_sent_what_it_had_sent(tmp_path: Path) -> None:
    """A process that dies by SIGKILL right after its last byte leaves a booked mail."""
    script = tmp_path / "sender.py"
    script.write_text(
        "import os, signal, socket, sys\n"
        "link = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
        f"link.sendall({CONVERSATION!r})\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )

    def client(at: Mapping[str, str]) -> None:
        command = [sys.executable, str(script), at["smtp_host"], at["smtp_port"]]
        assert subprocess.run(command, timeout=300).returncode == -signal.SIGKILL

    (effect,) = serve(client)
    assert effect.who == "ann@example.com"


def test_half_a_mail_is_none() -> None:
    """A connection that ends before the last dot changes nothing and opens no window."""
    observer = Recorder()

    def client(at: Mapping[str, str]) -> None:
        with socket.create_connection((at["smtp_host"], int(at["smtp_port"])), timeout=300) as link:
            link.sendall(CONVERSATION[:-3])

    assert serve(client, observer) == []
    assert observer.seen == []


@pytest.mark.parametrize(
    "talk",
    [
        b"\r\n\xff\xfe\r\nVRFY <<\xff>>\r\nBREW coffee\r\n",
        b"EHLO c\r\nMAIL FROM:<\xff@x>\r\nRCPT TO:<<>>\r\nDATA\r\n",
        b"X" * 200_000 + b"\r\n",
        b"EHLO c\r\nAUTH PLAIN !\r\nAUTH LOGIN\r\n*\r\nAUTH CRAM-MD5\r\n",
    ],
)
def test_odd_talk_does_no_harm(talk: bytes) -> None:
    """After a client that talks nonsense the next one is served, and nothing has failed inside."""

    def client(at: Mapping[str, str]) -> None:
        with socket.create_connection((at["smtp_host"], int(at["smtp_port"])), timeout=300) as link:
            link.sendall(talk + b"QUIT\r\n")
            while link.recv(100_000):
                pass
        send(at)

    assert len(serve(client)) == 1


def test_a_log_in_and_an_address_in_any_script_are_accepted() -> None:
    """Credentials are not checked, and SMTPUTF8 carries addresses and subjects as they are."""

    def client(at: Mapping[str, str]) -> None:
        with connect(at) as smtp:
            smtp.login("anyone", "anything")
            smtp.send_message(mail(To="jürgen@bücher.example", Subject="Grüße"))

    (effect,) = serve(client)
    fields = dict(effect.fields)
    assert (fields["to"], fields["subject"]) == ("jürgen@bücher.example", "Grüße")


def test_a_long_line_is_a_line() -> None:
    """A body without line breaks arrives whole."""
    body = "x" * 60_000

    def client(at: Mapping[str, str]) -> None:
        with connect(at) as smtp:
            smtp.sendmail("a@example.com", "b@example.com", f"Subject: Hi\r\n\r\n{body}")
        found = httpx.get(f"{at['url']}/v1/messages", timeout=300).json()["data"]
        assert [message["text"].strip() for message in found] == [body]

    serve(client)


def test_quiesce_waits_for_whoever_is_connected() -> None:
    """A connection to either door keeps the service busy until it ends."""

    async def world() -> None:
        service = create()
        address = await service.start(Recorder(), ServiceSettings(Path()))
        at = address.placeholders
        for port in (int(at["smtp_port"]), int(at["url"].rpartition(":")[2])):
            _, writer = await asyncio.open_connection(at["smtp_host"], port)
            assert not await service.quiesce(0.01)
            writer.close()
            assert await service.quiesce(300)
        await service.stop()

    asyncio.run(world())


def test_the_address_names_both_doors() -> None:
    """A task finds both doors by placeholder and by variable."""

    async def world() -> None:
        service = create()
        address = await service.start(Recorder(), ServiceSettings(Path()))
        at = address.placeholders
        assert address.environment == {
            "CHAOSKIT_EMAIL_URL": at["url"],
            "CHAOSKIT_SMTP_HOST": at["smtp_host"],
            "CHAOSKIT_SMTP_PORT": at["smtp_port"],
        }
        await service.stop()

    asyncio.run(world())


@pytest.mark.parametrize("door", ["http", "smtp"])
def test_a_taken_port_is_named_and_the_other_door_is_not_left_open(door: str) -> None:
    """A port in use is an error that names it and the fix, and holds no other port."""
    with socket.create_server(("127.0.0.1", 0)) as busy, socket.socket() as ours:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        ours.bind(("127.0.0.1", 0))  # free for who asks for it, and given to nobody else meanwhile
        taken, free = busy.getsockname()[1], ours.getsockname()[1]
        http, smtp = (taken, free) if door == "http" else (free, taken)
        settings = ServiceSettings(Path(), http, {"smtp_port": str(smtp)})
        with pytest.raises(UsageError, match=rf"\b{taken}\b.*choose another.*or 0"):
            asyncio.run(create().start(Recorder(), settings))
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", free), timeout=300)


@pytest.mark.parametrize("port", ["", "x", "-1", "65536", "²"])
def test_what_is_no_port_is_refused(port: str) -> None:
    """The option ``smtp_port`` is a number that a port can have."""
    settings = ServiceSettings(Path(), 0, {"smtp_port": port})
    with pytest.raises(UsageError, match="smtp_port"):
        asyncio.run(create().start(Recorder(), settings))


def test_equal_seeds_give_equal_ids() -> None:
    """Two runs that do the same get the same ids and Message-IDs."""
    assert serve(lambda at: send(at, 3)) == serve(lambda at: send(at, 3))


def test_a_failure_of_the_observer_is_not_swallowed() -> None:
    """When the trial itself fails inside a window, the event loop is told, not just the client."""
    observer = Recorder()

    def fail() -> None:
        raise RuntimeError("boom")

    observer.on["received"] = fail

    def client(at: Mapping[str, str]) -> None:
        with pytest.raises(smtplib.SMTPDataError):
            send(at)

    with pytest.raises(AssertionError, match="boom"):
        serve(client, observer)
