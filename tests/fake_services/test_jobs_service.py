"""The jobs service: remote jobs that are submitted now and done later, over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.model.behaviours import parse_behaviour
from chaoskit.model.hosting import Clocked, Service, ServiceSettings
from chaoskit.trial.services import create_services
from fake_services.core import Circumstances, HttpRequest
from fake_services.jobs.core import JobsCore
from tests.fake_services.notes import Watcher

Talk = Callable[[httpx.AsyncClient, Service], Awaitable[None]]


def with_jobs(talk: Talk, *behaviours: str) -> None:
    """Let ``talk`` speak to the service that the entry point names."""

    async def go() -> None:
        (service,) = create_services(["jobs"])
        address = await service.start(Watcher(), ServiceSettings(Path()))
        assert address.environment == {"CHAOSKIT_JOBS_URL": address.placeholders["url"]}
        service.reset(1, [parse_behaviour(text) for text in behaviours])
        try:
            base = address.placeholders["url"]
            async with httpx.AsyncClient(base_url=base, timeout=300) as client:
                await talk(client, service)
        finally:
            await service.stop()

    asyncio.run(go())


async def submit(
    client: httpx.AsyncClient, key: str | None = None, **job: object
) -> tuple[int, dict[str, Any]]:
    """Submit a job; status and answer."""
    headers = {"Idempotency-Key": key} if key else {}
    answer = await client.post("/jobs", json={"name": "nightly", **job}, headers=headers)
    return answer.status_code, answer.json()


def test_a_job_goes_on_by_being_polled() -> None:
    """It is queued, running, and done with its result after as many polls as were asked for."""

    async def talk(client: httpx.AsyncClient, service: Service) -> None:
        status, job = await submit(client, input={"day": 3}, polls=2)
        assert (status, job["status"], job["result"]) == (201, "queued", None)
        seen = [(await client.get(f"/jobs/{job['id']}")).json() for _ in range(3)]
        assert [one["status"] for one in seen] == ["running", "done", "done"]
        assert seen[1]["result"] == {"name": "nightly", "input": {"day": 3}}
        (effect,) = service.ledger()
        assert (effect.operation, effect.ref) == ("jobs.submit", job["id"])
        assert effect.fields == (("input.day", "3"), ("name", "nightly"))

    with_jobs(talk)


def test_without_a_key_or_an_id_two_submissions_are_two_jobs() -> None:
    """Nothing tells a repeat from a second job; `forget-keys` makes keys count for nothing."""

    async def talk(client: httpx.AsyncClient, service: Service) -> None:
        assert (await submit(client))[1]["id"] != (await submit(client))[1]["id"]
        assert (await submit(client, key="k"))[1]["id"] != (await submit(client, key="k"))[1]["id"]
        assert len(service.ledger()) == 4

    with_jobs(talk, "forget-keys@jobs.submit#*")


def test_a_key_makes_a_repeat_the_same_job_for_a_day() -> None:
    """The same answer again, an error for another job, and a new job when the key has expired."""

    async def talk(client: httpx.AsyncClient, service: Service) -> None:
        assert isinstance(service, Clocked)
        first, again = await submit(client, key="k"), await submit(client, key="k")
        assert first == again
        assert (await submit(client, key="k", input=1))[0] == 422
        assert len(service.ledger()) == 1
        service.shift_clock(7 * 86400.0)
        assert (await submit(client, key="k"))[1]["id"] != first[1]["id"]
        assert len(service.ledger()) == 2

    with_jobs(talk)


def test_an_id_that_the_caller_chose_is_unique() -> None:
    """A second job with it is refused, and the first one is found by it."""

    async def talk(client: httpx.AsyncClient, service: Service) -> None:
        assert (await submit(client, id="run-7"))[0] == 201
        status, refused = await submit(client, id="run-7")
        assert (status, refused["error"]["code"]) == (409, "id_taken")
        assert (await client.get("/jobs/run-7")).json()["status"] == "running"
        assert len(service.ledger()) == 1

    with_jobs(talk)


@pytest.mark.parametrize(("lag", "found"), [((), 1), (("lag:1@jobs.list#1",), 0)])
def test_a_job_is_found_by_its_key(lag: tuple[str, ...], found: int) -> None:
    """Also by one that is forgotten; where the look-up lags, not at once."""

    async def talk(client: httpx.AsyncClient, service: Service) -> None:
        _, job = await submit(client, key="k")
        for query in ("key=k", "name=nightly", "status=queued"):
            data = (await client.get(f"/jobs?{query}")).json()["data"]
            assert [one["id"] for one in data] == [job["id"]] * found
            if lag:
                break
        assert (await client.get("/jobs?key=l")).json()["data"] == []
        assert (await client.get("/jobs?kye=k")).status_code == 400

    with_jobs(talk, *lag)


def test_a_cancelled_job_is_cancelled_once() -> None:
    """A repeat is told so, a job that is done cannot be cancelled, one that is not there is 404."""

    async def talk(client: httpx.AsyncClient, service: Service) -> None:
        for job in ("a", "b"):
            await submit(client, id=job, polls=1)
        await client.get("/jobs/b")
        asked = [await client.post(f"/jobs/{job}/cancel") for job in ("a", "a", "b", "c")]
        assert [answer.status_code for answer in asked] == [200, 200, 409, 404]
        assert (await client.get("/jobs/a")).json()["status"] == "cancelled"
        assert [e.operation for e in service.ledger()] == ["jobs.submit"] * 2 + ["jobs.cancel"]

    with_jobs(talk)


def test_a_submission_that_is_carried_out_late_is_one_more_job() -> None:
    """Its sender was cut off, looked for it in vain and submitted again: two jobs."""

    async def talk(client: httpx.AsyncClient, service: Service) -> None:
        with pytest.raises(httpx.RemoteProtocolError):
            await submit(client)
        assert (await client.get("/jobs?name=nightly")).json()["data"] == []
        await submit(client)
        assert len(service.ledger()) == 2

    with_jobs(talk, "commit-late:1@jobs.submit#1")


@given(
    st.sampled_from(["GET", "POST", "PUT"]),
    st.text("/jobs.cancel?x", max_size=14),
    st.text(max_size=8),
    st.binary(max_size=40) | st.sampled_from([b'{"name":"a","polls":0}', b'{"id":"","name":""}']),
)
def test_no_request_is_too_odd_to_be_answered(
    method: str, path: str, query: str, body: bytes
) -> None:
    """Whatever comes is answered, and what changes nothing was not said to want anything."""
    core = JobsCore()
    for odd in (path, "/jobs"):
        request = HttpRequest(method, odd, query, {}, body)
        call = core.understand(request)
        assert call.operation in core.operations
        outcome = core.apply(request, call, Circumstances(now_s=0.0))
        assert 200 <= outcome.reply.status < 500
        assert call.wants is not None or not outcome.effects
