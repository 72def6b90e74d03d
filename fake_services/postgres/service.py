"""The PostgreSQL database service: a server of its own, with books inside it, behind a proxy."""

from __future__ import annotations

import os
from collections.abc import Sequence

from chaoskit.model.behaviours import Behaviour, BehaviourKind
from chaoskit.model.effects import Effect
from chaoskit.model.errors import ScenarioError, UsageError, unknown_name
from chaoskit.model.hosting import Address, Observer, Service, ServiceSettings
from fake_services.conduct import Conduct
from fake_services.database.books import SERVICE as DATABASE
from fake_services.host import LOOPBACK
from fake_services.ledger import Ledger
from fake_services.postgres.books import (
    Entry,
    Layout,
    effects_of,
    entries_after,
    layouts,
    operations_of,
    some_rows,
)
from fake_services.postgres.client import Client, SqlError
from fake_services.postgres.proxy import SERVICE, Door
from fake_services.postgres.server import USER, Server, find_binaries
from fake_services.postgres.triggers import INSTALL, WATCH
from fake_services.postgres.units import DEEDS
from fake_services.shown import Repertoire, Rows

TASK = "task"
"""The database that the task finds."""

_TEMPLATE = "template_of_the_task"
_NOBODY = "postgres"

CAN_DO: Sequence[BehaviourKind] = ("lose-reply", "late-reply", "down")
"""The behaviours that it knows."""

_REQUESTS = (*DEEDS, "connect")


class PostgresService:
    """Implements `chaoskit.model.hosting.Service`; it cannot go back to a saved world, because a
    server copies no database that somebody is connected to.

    The option ``tables`` holds the SQL that creates the tables (and any rows that are there from
    the start). Its effects are named ``database.<table>.insert``, ``.update`` and ``.delete``, as
    those of the embedded database. Its requests are ``postgres.commit``, a COMMIT that ends a
    block, and ``postgres.statement``, a change outside of any block, which is its own commit.
    ``server`` is the server, once it is started.
    """

    def __init__(self) -> None:
        self.name = DATABASE
        self.operations: Sequence[str] = ()
        self._conduct = Conduct(SERVICE, _REQUESTS)
        self._door = Door(self._conduct, self._committed)
        self.server: Server | None = None
        self._keeper: Client | None = None
        self._reader: Client | None = None
        self._layouts: dict[str, Layout] = {}
        self._ledger = Ledger()
        self._collected = 0
        self._told: dict[int, int] = {}

    async def start(self, observer: Observer, settings: ServiceSettings) -> Address:
        """Start a server and make the database; see `Service.start`.

        Raises:
            UsageError: there is no PostgreSQL, it does not start, or the port is taken.
            ScenarioError: PostgreSQL refuses the option ``tables``.
        """
        folder = settings.folder.absolute()
        folder.mkdir(parents=True, exist_ok=True)
        self.server = Server(folder / "server", os.environ)
        try:
            await self.server.start()
            self._keeper = Client(self.server.socket, USER, _NOBODY)
            self._keeper.query(f"CREATE DATABASE {_TEMPLATE}")
            self._make_tables(settings.options.get("tables", ""))
            self.reset(0, ())
            port = await self._door.start(observer, settings.port, self.server.socket)
        except BaseException:
            await self.stop()
            raise
        url = f"postgresql://{USER}@{LOOPBACK}:{port}/{TASK}"
        placeholders = {"url": url, "host": LOOPBACK, "port": str(port)}
        return Address(placeholders, {"CHAOSKIT_DATABASE_URL": url}, (port,))

    def missing(self) -> str:
        """See `chaoskit.model.hosting.Demanding`."""
        try:
            find_binaries(os.environ)
        except UsageError as missing:
            return str(missing)
        return ""

    def _make_tables(self, tables_sql: str) -> None:
        maker = self._connect(_TEMPLATE)
        try:
            maker.query(INSTALL)
            if tables_sql.strip():
                maker.query(tables_sql)
            maker.query(WATCH)
        except SqlError as refused:
            raise ScenarioError(f"the tables cannot be created: {refused}") from refused
        finally:
            maker.close()

    def _connect(self, database: str) -> Client:
        assert self.server is not None
        return Client(self.server.socket, USER, database)

    def reset(self, seed: int, behaviours: Sequence[Behaviour]) -> None:
        """The database as after the start; see `Service.reset`. It takes some 20 ms.

        Raises:
            UsageError: a behaviour is one that this service does not know.
        """
        self._check(behaviours)
        assert self._keeper is not None
        self._door.cut()
        if self._reader is not None:
            self._reader.close()
        # FORCE: nobody may be connected, and those whose connection was cut may still be there.
        self._keeper.query(f"DROP DATABASE IF EXISTS {TASK} WITH (FORCE)")
        self._keeper.query(f"CREATE DATABASE {TASK} TEMPLATE {_TEMPLATE} STRATEGY FILE_COPY")
        self._reader = self._connect(TASK)
        self._conduct.reset(behaviours)
        self._ledger.clear()
        self._collected = 0
        self._told = {}
        self._learn()

    def behave(self, behaviours: Sequence[Behaviour], *, anew: bool = False) -> None:
        """See `chaoskit.model.hosting.Misbehaving`."""
        self._check(behaviours)
        self._conduct.behave(behaviours, anew=anew)

    def _check(self, behaviours: Sequence[Behaviour]) -> None:
        for behaviour in behaviours:
            if behaviour.service == SERVICE and behaviour.kind not in CAN_DO:
                raise unknown_name("behaviour of postgres", behaviour.kind, CAN_DO)
            if behaviour.service == self.name:
                raise UsageError(f"{behaviour}: write {SERVICE}.commit, .statement or .connect")

    def delay_replies(self, seconds: float, total_s: float) -> None:
        """See `chaoskit.model.hosting.Patient`."""
        self._conduct.delay_replies(seconds, total_s)

    # The books.

    def _learn(self) -> None:
        assert self._reader is not None
        self._layouts = layouts(self._reader)
        self.operations = operations_of(self._layouts)

    def _committed(self, backend: int) -> Sequence[Effect]:
        """What a server process has committed since it was last asked; see `EffectsOf`."""
        assert self._reader is not None
        return self._book(entries_after(self._reader, self._told.get(backend, 0), backend))

    def _book(self, entries: Sequence[Entry]) -> Sequence[Effect]:
        if any(entry.kind == "layout" for entry in entries):
            self._learn()
        for entry in entries:
            self._told[entry.backend] = max(entry.seq, self._told.get(entry.backend, 0))
        effects = effects_of(entries, self._layouts)
        self._ledger.book(effects)
        return effects

    def collect(self) -> Sequence[Effect]:
        """Effects of statements that nobody took for a commit, such as a SELECT of a function that
        writes, and of clients that were gone when the server had done it; see `Service.collect`.
        """
        assert self._reader is not None
        entries = entries_after(self._reader, self._collected)
        if entries:
            self._collected = entries[-1].seq
        return self._book([e for e in entries if e.seq > self._told.get(e.backend, 0)])

    def ledger(self) -> Sequence[Effect]:
        """Every effect since the reset, in the order in which we learnt of it."""
        return self._ledger.entries

    def tables(self) -> Sequence[str]:
        """See `fake_services.shown.Tabular`."""
        return sorted(self._layouts)

    def rows(self, table: str, start: int, limit: int) -> Rows:
        """See `fake_services.shown.Tabular`."""
        assert self._reader is not None
        if table not in self._layouts:
            raise unknown_name("table", table, self._layouts)
        try:
            return some_rows(self._reader, table, self._layouts[table].key, start, limit)
        except SqlError as refused:
            raise ScenarioError(f"{table} cannot be read just now: {refused}") from refused

    @property
    def repertoire(self) -> Repertoire:
        """See `fake_services.shown.Particular`."""
        return Repertoire(SERVICE, _REQUESTS, CAN_DO)

    async def quiesce(self, timeout_s: float) -> bool:
        """Every connection has ended, and its server process; see `Service.quiesce`."""
        return await self._door.quiesce(timeout_s)

    async def stop(self) -> None:
        """End the server, and remove its files."""
        await self._door.stop()
        for client in (self._reader, self._keeper):
            if client is not None:
                client.close()
        self._reader = self._keeper = None
        if self.server is not None:
            await self.server.stop()
            self.server = None


def create() -> Service:
    """The factory that the ``chaoskit.services`` entry point names."""
    return PostgresService()
