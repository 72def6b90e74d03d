"""A small service of notes, with all that the host gives it, and an observer that writes down."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import httpx

from chaoskit.model.behaviours import parse_behaviour
from chaoskit.model.effects import Effect
from chaoskit.model.hosting import RequestInfo, ServiceSettings
from fake_services.core import Call, Circumstances, HttpRequest, Outcome, json_reply
from fake_services.host import HttpService


class Notes:
    """A small core: POST /notes keeps a note, everything else only looks."""

    name = "notes"
    operations: Sequence[str] = ("note", "look")

    def __init__(self) -> None:
        self.kept: list[str] = []

    def reset(self, seed: int) -> None:
        """Forget all."""
        self.kept.clear()

    def understand(self, request: HttpRequest) -> Call:
        """A note, or a look."""
        if request.method != "POST":
            return Call(operation="look")
        effect = Effect(service="notes", kind="note", fields=(("text", request.body.decode()),))
        return Call(operation="note", key=request.headers.get("idempotency-key"), wants=effect)

    def apply(self, request: HttpRequest, call: Call, circumstances: Circumstances) -> Outcome:
        """Keep it."""
        if call.wants is None:
            return Outcome(reply=json_reply(200, self.kept))
        if circumstances.in_flight:
            return Outcome(reply=json_reply(409, "in flight"))
        times = 2 if circumstances.apply_twice else 1
        self.kept += [request.body.decode()] * times
        return Outcome(reply=json_reply(200, "kept"), effects=[call.wants] * times)


class Watcher:
    """An observer that writes down what it is told and refuses where it is asked to."""

    def __init__(self, refuse: str = "") -> None:
        self.seen: list[str] = []
        self._refuse = refuse

    def received(self, request: RequestInfo) -> int | None:
        """Window one."""
        self.seen.append(f"received {request.operation}")
        return None if self._refuse == "received" else len(self.seen)

    def applied(self, number: int, effects: Sequence[Effect]) -> bool:
        """Window two."""
        self.seen.append(f"applied {len(effects)}")
        return self._refuse != "applied"

    def answering(self, number: int) -> None:
        """Just before window three."""
        self.seen.append("answering")

    def answered(self, number: int, status: int, *, deduped: bool, delivered: bool) -> None:
        """Window three."""
        self.seen.append(f"answered {status} {'delivered' if delivered else 'lost'}")

    def landed(self, number: int, effects: Sequence[Effect]) -> None:
        """Later than its sender thinks."""
        self.seen.append(f"landed {len(effects)}")


Talk = Callable[[str, HttpService], Awaitable[object]]


def serve(
    tmp_path: Path, talk: Talk, watcher: Watcher, behaviours: Sequence[str] = ()
) -> tuple[object, HttpService]:
    """Start the service, let ``talk`` speak to it, and stop it."""
    service = HttpService(Notes())

    async def go() -> object:
        address = await service.start(watcher, ServiceSettings(tmp_path))
        service.reset(0, [parse_behaviour(text) for text in behaviours])
        try:
            return await talk(address.placeholders["url"], service)
        finally:
            await service.stop()

    return asyncio.run(go()), service


async def post(
    url: str, text: str = "a", key: str | None = None, more: Mapping[str, str] | None = None
) -> object:
    """One POST: the status, or the name of the error."""
    headers = {**({"Idempotency-Key": key} if key else {}), **(more or {})}
    async with httpx.AsyncClient(timeout=300) as client:
        try:
            return (await client.post(f"{url}/notes", content=text, headers=headers)).status_code
        except httpx.TransportError as error:
            return type(error).__name__
