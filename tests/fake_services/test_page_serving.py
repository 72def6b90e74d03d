"""The page of running services over HTTP, as a script uses it: to read books, to change conduct."""

from __future__ import annotations

import asyncio
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
import stripe

from fake_services.database.service import DatabaseService
from fake_services.page.server import WAITING_MOST
from tests.fake_services.page_running import JSON, Running, running

SERVICES = ["payments", "email", "database", "jobs"]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One serving for all tests."""
    with running(tmp_path_factory.mktemp("page")) as found:
        yield found


@pytest.fixture
def page(served: Running) -> Running:
    """The page of services that have just been reset, without behaviours."""
    for one in served.told("/api/state")["behaviours"]:
        assert served.act("/api/behaviours/forget", {"behaviour": one["behaviour"]}).is_success
    assert served.act("/api/reset", {}).is_success
    return served


def switch(page: Running, behaviour: str, *, on: bool = True) -> JSON:
    """A behaviour switched on or off: the state after it."""
    answer = page.act("/api/behaviours", {"behaviour": behaviour, "on": on})
    assert answer.status_code == 200, answer.text
    state: JSON = answer.json()
    return state


def test_the_state_shows_every_service(page: Running) -> None:
    """How a task finds it, how much was done, what can be asked of it."""
    page.charge(1)
    state = page.told("/api/state")
    services = {one["name"]: one for one in state["services"]}
    assert list(services) == SERVICES
    payments = services["payments"]
    assert payments["environment"] == {
        "CHAOSKIT_PAYMENTS_URL": page.environment["CHAOSKIT_PAYMENTS_URL"]
    }
    assert (payments["effects"], payments["requests"], payments["clock_s"]) == (1, 1, 0)
    assert payments["behaves"]["operations"]["charge"] == 1
    assert (services["database"]["behaves"], services["database"]["has_tables"]) == (None, True)
    assert (state["effects"], state["requests"], state["same_again"]) == (1, 1, 0)


def test_effects_are_read_in_order_and_in_full(page: Running) -> None:
    """A charge and its double, a mail with its HTML, each as line and in detail."""
    page.charge(1, "k1")
    page.charge(1, "k2")
    page.mail("Hello Ann", "line 1\nline 2", "<b>bold</b>")
    told = page.told("/api/effects")
    assert [(row["number"], row["service"], row["same_as"]) for row in told["rows"]] == [
        (1, "payments", None), (2, "payments", 1), (3, "email", None),
    ]  # fmt: skip
    assert told["rows"][1]["key"] == "k2"
    assert page.told("/api/effects?service=email")["total"] == 1
    assert [row["number"] for row in page.told("/api/effects?q=k2&start=0")["rows"]] == [2]
    mail = page.told("/api/effects/3")
    assert mail["line"]["what"] == 'mail "Hello Ann"'
    assert ["To", "ann@example.com"] in mail["facts"]
    assert [(text["title"], text["text"].strip()) for text in mail["texts"]] == [
        ("Text", "line 1\nline 2"), ("HTML, as source", "<b>bold</b>"),
    ]  # fmt: skip
    charge = page.told("/api/effects/2")
    assert ["status", "succeeded"] in charge["facts"]
    assert ["metadata.order", "1"] in charge["fields"]


def test_what_became_of_a_thing_is_shown(page: Running) -> None:
    """A charge is refunded, a job is polled: their lines say so now."""
    made = page.charge(1)
    client = stripe.StripeClient(
        "sk_test_x", base_addresses={"api": page.environment["CHAOSKIT_PAYMENTS_URL"]}
    )
    client.v1.refunds.create({"charge": made.id, "amount": 100})
    jobs = page.environment["CHAOSKIT_JOBS_URL"]
    job = httpx.post(f"{jobs}/jobs", json={"name": "render", "polls": 1}, timeout=300).json()["id"]
    lines = page.told("/api/effects")["rows"]
    assert [line["state"] for line in lines] == ["partly refunded", "", "queued"]
    httpx.get(f"{jobs}/jobs/{job}", timeout=300)
    assert page.told("/api/effects/3")["line"]["state"] == "done"


def test_requests_say_what_came_of_them(page: Running) -> None:
    """A repeat, a refusal and a lost answer have words of their own."""
    page.charge(1, "k1")
    page.charge(1, "k1")
    with pytest.raises(stripe.CardError):
        page.charge(2, source="tok_chargeDeclined")
    switch(page, "lose-reply@payments.charge#4")
    with pytest.raises(stripe.APIConnectionError):
        page.charge(3)
    told = page.told("/api/requests")
    assert [(row["outcome"], row["status"], row["effect"]) for row in told["rows"]] == [
        ("done", 200, 1),
        ("a repeat: answered as before", 200, None),
        ("refused", 402, None),
        ("applied, the answer lost", 200, 2),
    ]
    assert page.told("/api/requests?q=lost")["total"] == 1


def test_rows_of_the_database_are_shown_as_they_are_now(page: Running) -> None:
    """A window of them, without what a column of a secret name holds."""
    version = page.told("/api/state")["version"]
    with closing(sqlite3.connect(page.database)) as database:
        rows = [(f"customer {n}", "hush hush" if n else None) for n in range(5)]
        database.executemany("INSERT INTO orders (customer, password) VALUES (?, ?)", rows)
        database.commit()
    assert page.told("/api/tables") == {"tables": ["orders"]}
    told = page.told("/api/tables/orders?start=1&limit=2")
    assert (told["total"], told["columns"]) == (5, ["id", "customer", "password"])
    assert told["rows"] == [["2", "customer 1", "[redacted]"], ["3", "customer 2", "[redacted]"]]
    assert page.told("/api/tables/orders?limit=1")["rows"] == [["1", "customer 0", None]]
    state = page.after(version)
    assert state["effects"] == 5
    assert page.told("/api/effects/1")["line"]["request"] is None


def test_behaviours_are_switched_on_and_off(page: Running) -> None:
    """The next request meets it, the one after it is switched off does not; it stays listed."""
    text = "reject:429@payments.charge#*"
    state = switch(page, text)
    assert [(one["behaviour"], one["on"]) for one in state["behaviours"]] == [(text, True)]
    with pytest.raises(stripe.RateLimitError):
        page.charge(1)
    state = switch(page, text, on=False)
    assert [(one["behaviour"], one["on"]) for one in state["behaviours"]] == [(text, False)]
    assert page.charge(1).status == "succeeded"
    assert page.act("/api/behaviours/forget", {"behaviour": text}).json()["behaviours"] == []


def test_a_behaviour_of_one_service_leaves_an_outage_of_another_alone(page: Running) -> None:
    """Only the service that a behaviour is for is told, and only where something changes."""
    switch(page, "down:2@payments.*#*")
    with pytest.raises(stripe.APIError):
        page.charge(1)
    switch(page, "lag:1@email.list#*")
    switch(page, "down:2@payments.*#*")
    with pytest.raises(stripe.APIError):
        page.charge(1)
    assert page.charge(1).status == "succeeded"


def test_a_request_that_was_cut_off_is_let_land(page: Running) -> None:
    """It waits, is counted, and is carried out when it is told to."""
    switch(page, "commit-late:end@payments.charge#1")
    with pytest.raises(stripe.APIConnectionError):
        page.charge(1)
    payments = page.told("/api/state")["services"][0]
    assert (payments["waiting"], payments["effects"]) == (1, 0)
    payments = page.act("/api/land", {}).json()["services"][0]
    assert (payments["waiting"], payments["effects"]) == (0, 1)
    (row,) = page.told("/api/requests")["rows"]
    assert (row["outcome"], row["effect"]) == ("cut off, carried out later", 1)


def test_keys_expire_when_the_clock_is_moved_on(page: Running) -> None:
    """A repeat is one until 24 hours later; a reset puts the clock back."""
    page.charge(1, "k1")
    page.charge(1, "k1")
    assert page.told("/api/effects")["total"] == 1
    answer = page.act("/api/clock", {"seconds": 86_400, "service": "payments"})
    clocks = {one["name"]: one["clock_s"] for one in answer.json()["services"]}
    assert clocks == {"payments": 86_400, "email": 0, "database": None, "jobs": 0}
    page.charge(1, "k1")
    assert page.told("/api/effects")["rows"][1]["same_as"] == 1
    assert page.act("/api/clock", {"seconds": 60}).json()["services"][1]["clock_s"] == 60
    state = page.act("/api/reset", {}).json()
    assert [one["clock_s"] for one in state["services"]] == [0, 0, None, 0]


def test_a_reset_empties_the_books_and_keeps_what_is_on(page: Running) -> None:
    """Ids and ordinals begin anew: what met the first request meets the first one again."""
    switch(page, "reject:429@payments.charge#1")
    ids = []
    for _ in range(2):
        with pytest.raises(stripe.RateLimitError):
            page.charge(1)
        ids.append(page.charge(1).id)
        page.mail("x")
        state = page.act("/api/reset", {}).json()
        assert (state["effects"], state["requests"]) == (0, 0)
        assert [one["past"] for one in state["behaviours"]] == [False]
    assert ids[0] == ids[1]
    assert page.told("/api/effects")["rows"] == []


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        ("/api/behaviours", {"behaviour": "lose-repl@payments.charge#1", "on": True}, "lose-reply"),
        ("/api/behaviours", {"behaviour": "lose-reply@payment.charge#1", "on": True},
         "nearest: payments"),
        ("/api/behaviours", {"behaviour": "lose-reply@payments.chrge#1", "on": True},
         "nearest: charge"),
        ("/api/behaviours", {"behaviour": "lose-reply@database.x#1", "on": True},
         "service with behaviours"),
        ("/api/behaviours", {"behaviour": "x"}, "behaviour, on"),
        ("/api/behaviours", {"behaviour": "x", "on": True, "of": 1}, "behaviour, on"),
        ("/api/behaviours/forget", {"behaviour": "fence@payments.*#*"}, "in the list"),
        ("/api/clock", {"seconds": -1}, "more than 0"),
        ("/api/clock", {"seconds": 1e300}, "up to"),
        ("/api/clock", {"seconds": 1, "service": "database"}, "service with a clock"),
        ("/api/clock", [], "seconds, service"),
        ("/api/reset", {"hard": True}, "nothing"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_and_changes_nothing(
    page: Running, path: str, body: Any, says: str
) -> None:
    """400 with the nearest valid names; the state is as it was."""
    before = page.told("/api/state")
    answer = page.act(path, body)
    assert answer.status_code == 400
    assert says in answer.json()["error"]
    after = page.told("/api/state")
    assert after["version"] == before["version"]
    assert after["behaviours"] == before["behaviours"]


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/api/efects", 404, "nearest: /api/effects"),
        ("/api/effects/1", 400, "there is no effect 1"),
        ("/api/effects/x", 400, "number from 0 on"),
        ("/api/effects?service=emial", 400, "nearest: email"),
        ("/api/effects?limit=201", 400, "up to 200"),
        ("/api/effects?start=-1", 400, "number from 0 on"),
        ("/api/effects?sart=1", 400, "nearest: start"),
        ("/api/state?after=x", 400, "number from 0 on"),
        ("/api/tables/order", 400, "nearest: orders"),
        ("/%ff%00<script>", 404, "unknown path"),
    ],
)
def test_what_is_not_there_is_named(page: Running, path: str, status: int, says: str) -> None:
    """With what is nearest to it."""
    answer = page.ask(path)
    assert (answer.status_code, says in answer.json()["error"]) == (status, True), answer.text


def test_other_sites_can_neither_look_nor_act(page: Running) -> None:
    """A foreign Host or Origin, or no token: refused, and nothing has changed."""
    before = page.told("/api/state")["version"]
    for answer in (
        page.ask("/", host="evil.example"),
        page.ask("/api/state", origin="http://evil.example"),
        page.act("/api/reset", {}, host="evil.example"),
        page.act("/api/reset", {}, origin="http://evil.example"),
        page.act("/api/reset", {}, chaoskit_page_token="guessed"),
        httpx.post(f"{page.url}/api/reset", json={}, timeout=300),
    ):
        assert answer.status_code == 403
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in answer.headers
    answer = page.act("/api/reset", {}, content_type="text/plain")
    assert answer.status_code == 415
    assert httpx.options(f"{page.url}/api/reset", timeout=300).status_code == 405
    assert page.told("/api/state")["version"] == before


def test_the_page_allows_its_own_script_and_nothing_else(page: Running) -> None:
    """By a policy with digests; kept nowhere, framed nowhere."""
    answer = page.ask("/")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert policy.count("'sha256-") == 2
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert not [word for word in ("onclick=", "onload=", " style=", "http://", "https://")
                if word in answer.text.split("<script>")[0]]  # fmt: skip


def test_news_is_waited_for(page: Running) -> None:
    """A request for a newer state is answered by the next change, not before it."""

    async def go() -> tuple[int, JSON]:
        async with httpx.AsyncClient(base_url=page.url, timeout=300) as client:
            version = (await client.get("/api/state")).json()["version"]
            waits = asyncio.create_task(
                client.get("/api/state", params={"after": version, "wait_s": 25})
            )
            await asyncio.to_thread(page.charge, 1)
            return version, (await waits).json()

    version, state = asyncio.run(go())
    assert state["version"] > version
    assert state["requests"] == 1


def test_more_than_can_wait_are_answered_at_once(page: Running) -> None:
    """The one beyond the bound gets the state as it is."""

    async def go() -> int:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=page.url, timeout=300, limits=limits) as client:
            version = (await client.get("/api/state")).json()["version"]
            news = {"after": version, "wait_s": 25}
            many = [
                asyncio.create_task(client.get("/api/state", params=news))
                for _ in range(WAITING_MOST + 1)
            ]
            done, waiting = await asyncio.wait(many, return_when=asyncio.FIRST_COMPLETED)
            assert {(await one).json()["version"] for one in done} == {version}
            await asyncio.to_thread(page.charge, 1)
            told = await asyncio.gather(*waiting)
            assert min(answer.json()["version"] for answer in told) > version
            return len(done)

    assert asyncio.run(go()) == 1


def test_a_database_that_cannot_be_read_is_said_and_read_later(page: Running) -> None:
    """What lies there is no database: the page says so and serves on; a reset mends it."""
    beside = page.database.with_name("beside")
    beside.write_bytes(b"this is no database" * 100)
    beside.replace(page.database)  # at once: an empty file would be taken for a new database
    state = page.told("/api/state")
    while not state["services"][2]["trouble"]:
        state = page.after(state["version"])
    assert "no intact SQLite database" in state["services"][2]["trouble"]
    answer = page.ask("/api/tables")
    assert answer.status_code == 503
    assert page.charge(1).status == "succeeded"
    state = page.act("/api/reset", {}).json()
    while state["services"][2]["trouble"]:
        state = page.after(state["version"])
    assert page.told("/api/tables") == {"tables": ["orders"]}


def test_a_look_does_not_wait_for_a_lock(page: Running) -> None:
    """A task holds the database for itself: its rows cannot be read just now, and that is said."""
    with closing(sqlite3.connect(page.database, isolation_level=None)) as database:
        database.execute("BEGIN EXCLUSIVE")
        answer = page.ask("/api/tables/orders")
        assert (answer.status_code, "locked" in answer.text) == (503, True)
        database.execute("ROLLBACK")
    assert page.told("/api/tables/orders")["total"] == 0


def test_both_commands_open_it_and_say_where(tmp_path: Path) -> None:
    """`chaoskit serve` prints the address and the token, too; without --page there is none."""
    words = [sys.executable, "-m", "chaoskit.cli.main", "serve", "payments"]
    for more, opened in (["--page"], True), ([], False):
        process = subprocess.Popen([*words, *more], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("export CHAOSKIT_PAYMENTS_URL=")
        if opened:
            url = process.stdout.readline().removeprefix("export CHAOSKIT_PAGE_URL=").strip()
            token = process.stdout.readline().removeprefix("export CHAOSKIT_PAGE_TOKEN=").strip()
            answer = httpx.post(
                f"{url}/api/reset", json={}, headers={"chaoskit-page-token": token}, timeout=300
            )
            assert answer.status_code == 200
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=300)
        assert (process.returncode, rest) == (0, "")


def test_a_port_of_the_page_that_is_taken_is_said() -> None:
    """With the port, and the way out."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "fake_services", "payments", "--page-port", port]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"page: port {port}" in done.stderr


def test_rows_of_an_unknown_table_are_refused(tmp_path: Path) -> None:
    """Also where there is no database yet, because the task makes it."""
    service = DatabaseService()
    assert service.tables() == ()
    with pytest.raises(Exception, match="unknown table 'x'"):
        service.rows("x", 0, 1)
