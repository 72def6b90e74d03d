"""The payments core: a request in, what it asks for or what came of it out; no I/O, no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from chaoskit.model.effects import Effect
from fake_services.core import Call, Circumstances, HttpReply, HttpRequest, Outcome, json_reply
from fake_services.payments.changes import Ordered, carry_out
from fake_services.payments.errors import Refusal, RefusedError, invalid, refused
from fake_services.payments.expand import expanded
from fake_services.payments.forms import Form, decode, texts_of
from fake_services.payments.idempotency import Kept, KeyBook
from fake_services.payments.looks import look
from fake_services.payments.objects import Charge
from fake_services.payments.orders import ConfirmOrder, Order, RefundOrder, read_order
from fake_services.payments.routes import OPERATIONS, UNKNOWN, Route, find_route
from fake_services.payments.wishes import SERVICE, wanted
from fake_services.payments.world import World
from fake_services.shown import Shown

_ALWAYS = {"livemode", "object", "outcome", "payment_method_details"}
"""Members that say the same of everything here."""

FORM_TYPE = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask(Call):
    """A request, decoded once.

    ``refusal`` says what is wrong with it, whatever the state; ``admitted`` is False where it
    comes to no endpoint, so that not even its key is looked at.
    """

    route: Route
    form: Form = field(default_factory=dict)
    order: Order | None = None
    refusal: Refusal | None = None
    admitted: bool = True


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    value: object
    effects: Sequence[Effect] = ()


class PaymentsCore:
    """A Stripe-compatible account. Implements `fake_services.core.HttpCore`."""

    def __init__(self) -> None:
        self.name = SERVICE
        self.operations: Sequence[str] = OPERATIONS
        self._world = World(0)
        self._keys = KeyBook()

    def reset(self, seed: int) -> None:
        """An empty account without keys; see `HttpCore.reset`."""
        self._world = World(seed)
        self._keys.clear()

    def keep_keys(self, seconds: float) -> None:
        """See `chaoskit.model.hosting.Keyed`."""
        self._keys.keep_for(seconds)

    def understand(self, request: HttpRequest) -> Ask:
        """What the request asks for; see `HttpCore.understand`."""
        route = find_route(request.method, request.path)
        posted = request.method == "POST"
        key = (request.headers.get("idempotency-key") or None) if posted else None
        form: Form = {}
        try:
            _admit(request, route)
        except RefusedError as no:
            return Ask(
                operation=route.operation, key=key, route=route, refusal=no.refusal, admitted=False
            )
        try:
            form = decode(request.body.decode("utf-8", "replace") if posted else request.query)
            texts_of(form, "expand")
            order = read_order(route.operation, route.target, form)
        except RefusedError as no:
            return Ask(
                operation=route.operation, key=key, route=route, form=form, refusal=no.refusal
            )
        return Ask(
            operation=route.operation,
            key=key,
            wants=wanted(self._world, order, form, key),
            route=route,
            form=form,
            order=order,
        )

    def apply(self, request: HttpRequest, call: Call, circumstances: Circumstances) -> Outcome:
        """Do it; see `HttpCore.apply`."""
        ask = call if isinstance(call, Ask) else self.understand(request)
        self._world.clock.request = circumstances.request
        headers = self._headers(request)
        keyed = ask.admitted and not circumstances.forget_keys
        key = ask.key if keyed else None
        try:
            kept = self._kept(key, request.path, ask.form, circumstances)
        except RefusedError as no:
            return Outcome(reply=json_reply(no.refusal.status, no.refusal.body(), headers))
        if kept is not None:
            return Outcome(reply=_replay(kept, headers), deduped=True)
        answer = self._answer(ask, circumstances)
        reply = json_reply(answer.status, answer.value, headers)
        if key is not None and ask.refusal is None:
            self._keep(key, request.path, ask.form, reply, circumstances)
        return Outcome(reply=reply, effects=answer.effects)

    def refused(self, status: int, message: str) -> HttpReply:
        """See `fake_services.core.Worded`."""
        return json_reply(status, refused(status, message).body())

    def show(self, ref: str) -> Shown | None:
        """The charge, refund or customer with this id; see `fake_services.shown.Showing`."""
        world = self._world
        thing = world.charges.get(ref) or world.refunds.get(ref) or world.customers.get(ref)
        if thing is None:
            return None
        state = ""
        if isinstance(thing, Charge) and thing.amount_refunded:
            state = "refunded" if thing.refunded else "partly refunded"
        told = msgspec.to_builtins(thing)
        filled = {n: v for n, v in told.items() if n not in _ALWAYS and v not in (None, {}, [])}
        return Shown(state=state, facts=filled)

    def _answer(self, ask: Ask, circumstances: Circumstances) -> _Answer:
        if ask.refusal is not None:
            return _Answer(ask.refusal.status, ask.refusal.body())
        try:
            return self._done(ask, circumstances)
        except RefusedError as no:
            return _Answer(no.refusal.status, no.refusal.body())

    def _done(self, ask: Ask, circumstances: Circumstances) -> _Answer:
        world, paths = self._world, texts_of(ask.form, "expand")
        if ask.order is None:
            seen = look(world, ask.route, ask.form, circumstances.horizon)
            return _Answer(200, expanded(world, seen, paths))
        ordered = Ordered(ask.order, ask.form, self._wanted_now(ask), int(circumstances.now_s))
        done = carry_out(world, ordered)
        effects = tuple(done.effects)
        if circumstances.apply_twice:
            effects += tuple(world.book_again(effect) for effect in effects)
        return _Answer(200, expanded(world, done.thing, paths), effects)

    def _wanted_now(self, ask: Ask) -> Effect | None:
        """The effect; looked up again where it depends on what may have happened meanwhile."""
        if isinstance(ask.order, ConfirmOrder | RefundOrder):
            return wanted(self._world, ask.order, ask.form, ask.key)
        return ask.wants

    def _kept(
        self, key: str | None, path: str, form: Form, circumstances: Circumstances
    ) -> Kept | None:
        if key is None:
            return None
        return self._keys.look_up(
            key, path, form, now_s=circumstances.now_s, in_flight=circumstances.in_flight
        )

    def _keep(
        self, key: str, path: str, form: Form, reply: HttpReply, circumstances: Circumstances
    ) -> None:
        self._keys.keep(
            key,
            Kept(
                path=path,
                form=form,
                first_used_s=circumstances.now_s,
                status=reply.status,
                body=reply.body,
                request_id=reply.headers["request-id"],
            ),
        )

    def _headers(self, request: HttpRequest) -> Mapping[str, str]:
        headers = {"request-id": self._world.new_id("request")}
        version = request.headers.get("stripe-version")
        if version is not None and version.isascii():
            headers["stripe-version"] = version
        return headers


def _replay(kept: Kept, headers: Mapping[str, str]) -> HttpReply:
    """The old answer, with the headers that tell it from a new one."""
    return HttpReply(
        kept.status,
        kept.body,
        {
            "content-type": "application/json",
            "idempotent-replayed": "true",
            "original-request": kept.request_id,
            **headers,
        },
    )


def _admit(request: HttpRequest, route: Route) -> None:
    """Let the request through to its endpoint.

    Raises:
        RefusedError: it comes without an API key, goes nowhere, or is not a form.
    """
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() not in {"bearer", "basic"} or not secret.strip():
        raise invalid(
            "You did not provide an API key. You need to provide your API key in the Authorization "
            "header, using Bearer auth (e.g. 'Authorization: Bearer YOUR_SECRET_KEY'). See "
            "https://stripe.com/docs/api#authentication for details.",
            status=401,
        )
    if route is UNKNOWN:
        where = f"{request.method}: {request.path}".encode("utf-8", "replace").decode()
        raise invalid(
            f"Unrecognized request URL ({where}). Please see https://stripe.com/docs. This service "
            "has charges, payment intents, refunds, customers and the balance.",
            status=404,
        )
    kind = request.headers.get("content-type", FORM_TYPE).partition(";")[0].strip().lower()
    if request.method == "POST" and request.body and kind != FORM_TYPE:
        raise invalid(
            f"Invalid request (check that your POST content type is {FORM_TYPE}).", status=400
        )
