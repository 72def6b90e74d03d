"""The campaign store: one SQLite file per campaign, and a folder of artefacts for what failed.

    reports/runs/2026-11-29T15-40-12-forty_calls-1f3a/
        campaign.sqlite      options, survey, expectation, and every trial with its history
        expectation.json     the expectation once more, for the workers
        plan-<n>.json        the schedules of each wave, for the workers
        trials/<n>/          of each failed trial: schedule, history, outputs, work folder
    reports/runs/latest      a link to the newest one

A trial is stored in one transaction when it is over, so a campaign that was killed knows exactly
which trials it has.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Self

import msgspec

from chaoskit.campaign.repeating import Repeated
from chaoskit.campaign.unusable import NOT_WRITTEN, UNUSABLE, as_usage
from chaoskit.model.errors import FormatError, UsageError, naming, unknown_name
from chaoskit.model.expectation import Expectation
from chaoskit.model.findings import Judgement
from chaoskit.model.history import History
from chaoskit.model.schedule import Schedule, parse_schedule

Stack = tuple[tuple[str, int, str], ...]
"""File, line and function of a line of a task's own code, and of those that called it."""

FORMAT = "3"
FILE = "campaign.sqlite"
REFUTED = "refuted"
"""Under which name the store keeps how real kills refuted a snapshot."""

FURTHER = "wave.{}.total"
"""Under which name it keeps how many trials a further wave was chosen from."""

NO_VIEW, CLOSED = "view.none", "view.closed"
"""Under which names it keeps why tasks do not run in a view of the file system, and what they can
only read there, each in a line.
"""

_NORM = "survey.norm"

SOAKED_S = "soak.seconds"
"""Under which name the store keeps for how long a soak has gone on."""

_BUSY_TIMEOUT_S = 30.0

_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE trials (
    schedule TEXT PRIMARY KEY,
    wave INTEGER NOT NULL,
    position INTEGER NOT NULL,
    judgement TEXT NOT NULL,
    landed INTEGER NOT NULL,
    real INTEGER NOT NULL,
    world TEXT NOT NULL,
    shared INTEGER NOT NULL,
    history BLOB NOT NULL
);
CREATE TABLE soaked (
    position INTEGER PRIMARY KEY,
    drawn TEXT NOT NULL,
    schedule TEXT NOT NULL,
    verdict TEXT NOT NULL
);
CREATE TABLE repeats (
    schedule TEXT PRIMARY KEY,
    first INTEGER NOT NULL,
    shown INTEGER NOT NULL,
    times INTEGER NOT NULL
) WITHOUT ROWID;
"""


class StoredTrial(msgspec.Struct, frozen=True):
    """One finished trial.

    ``landed``: every fault of its schedule took place. ``real``: by killing a process; else the
    resume went on from a copy of the world at the point. ``world`` names the durable state there,
    empty where it was not looked at; ``shared``: another point with this state had the resume.
    """

    schedule: str
    wave: int
    position: int
    judgement: Judgement
    landed: bool
    real: bool
    world: str = ""
    shared: bool = False


class Soaked(msgspec.Struct, frozen=True):
    """One trial of a soak: its number, what was drawn, what of that landed, and what it showed.

    Several may have run the same schedule; its entry among the trials is that of the worst one.
    """

    position: int
    drawn: str
    schedule: str
    verdict: str


class Store:
    """One campaign on disk. Holds a lock on its folder as long as it is open for writing."""

    def __init__(self, folder: Path, *, writable: bool = False) -> None:
        self.folder = folder
        self._lock: int | None = None
        file = folder / FILE
        self._writable = writable
        if writable:
            self._lock = _lock(folder)
        elif not os.path.isfile(file):
            raise UsageError(f"{folder} holds no campaign: there is no {FILE} in it")
        try:
            with self.telling():
                if writable and not os.path.exists(file):
                    _make(file)
                self._open(file)
            self._check()
        except BaseException:
            self.close()
            raise

    def _open(self, file: Path) -> None:
        """Open the file. Another user may only read it: then as one that nobody writes to, if all
        that was ever written is in it, and not in its log.
        """
        self._db = sqlite3.connect(file, timeout=_BUSY_TIMEOUT_S)
        try:
            self._db.execute("SELECT 1 FROM sqlite_master")
        except sqlite3.OperationalError:
            log = file.with_name(f"{FILE}-wal")
            if self._writable or os.access(self.folder, os.W_OK) or log.exists():
                raise
            self._db.close()
            self._db = sqlite3.connect(f"{file.absolute().as_uri()}?immutable=1", uri=True)
        self._db.execute("PRAGMA synchronous = NORMAL")

    def _check(self) -> None:
        with self.telling():
            found = self.get("format")
        if found != FORMAT:
            raise FormatError(
                f"{self.folder} has format {found}, and this chaoskit reads {FORMAT}: "
                "read it with the version that wrote it"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Close the campaign.

        Raises:
            UsageError: in place of an error of the database, with the file and a fix.
        """
        self.close()
        if isinstance(error, UNUSABLE):
            raise as_usage(error, self.folder / FILE, writable=self._writable) from error

    @contextmanager
    def telling(self) -> Iterator[None]:
        """What goes wrong with the database in here, in words that name its file and a fix.

        Raises:
            UsageError: in place of an error of the database.
        """
        try:
            yield
        except UNUSABLE as error:
            raise as_usage(error, self.folder / FILE, writable=self._writable) from error

    def close(self) -> None:
        """Close the file and give the lock back."""
        if hasattr(self, "_db"):
            self._db.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def get(self, key: str) -> str | None:
        """A value that `put` stored."""
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def put(self, key: str, value: str) -> None:
        """Store a value under a name, in a transaction of its own."""
        with self._db:
            self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def put_survey(
        self,
        first: History,
        second: History,
        expectation: Expectation,
        norm: Sequence[History] = (),
    ) -> None:
        """Store both surveys, what they teach, and the runs that say what is expected where these
        do not, in one transaction.
        """
        encoded = msgspec.json.encode(expectation)
        with naming(self.expectation_file, *NOT_WRITTEN):
            self.expectation_file.write_bytes(encoded)
        with self._db:
            for key, value in (
                ("survey.1", first.encode().decode()),
                ("survey.2", second.encode().decode()),
                ("expectation", encoded.decode()),
                (_NORM, msgspec.json.encode([run.encode().decode() for run in norm]).decode()),
            ):
                self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    @property
    def expectation_file(self) -> Path:
        """Where workers read the expectation."""
        return (self.folder / "expectation.json").resolve()

    def survey(self) -> tuple[History, History, Expectation] | None:
        """What `put_survey` stored."""
        first, second, expectation = map(self.get, ("survey.1", "survey.2", "expectation"))
        if first is None or second is None or expectation is None:
            return None
        return (
            self._history(first.encode()),
            self._history(second.encode()),
            msgspec.json.decode(expectation, type=Expectation),
        )

    def norm(self) -> list[History]:
        """The runs that say what is expected, where the surveys do not."""
        texts = msgspec.json.decode(self.get(_NORM) or "[]", type=list[str])
        return [self._history(text.encode()) for text in texts]

    def put_trial(self, trial: StoredTrial, history: bytes) -> None:
        """Store one finished trial."""
        with self._db:
            self._insert(trial, history)

    def _insert(self, trial: StoredTrial, history: bytes) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO trials VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                trial.schedule,
                trial.wave,
                trial.position,
                msgspec.json.encode(trial.judgement).decode(),
                trial.landed,
                trial.real,
                trial.world,
                trial.shared,
                zlib.compress(history, 1),
            ),
        )

    def forget(self, trials: Iterable[StoredTrial]) -> None:
        """Take finished trials out, and what was kept of them."""
        gone = tuple(trials)
        for trial in gone:
            shutil.rmtree(self.artefacts(trial.wave, trial.position), ignore_errors=True)
        with self._db:
            self._db.executemany(
                "DELETE FROM trials WHERE schedule = ?", [(trial.schedule,) for trial in gone]
            )

    def put_soaked(
        self, soaked: Soaked, trial: StoredTrial, history: bytes | None, seconds: float
    ) -> None:
        """Store one finished trial of a soak, in one transaction.

        Args:
            soaked: its place in the soak.
            trial: what it was.
            history: of it; None where the entry of this schedule is to stay as it is.
            seconds: for how long the soak has gone on by now.
        """
        with self._db:
            self._db.execute(
                "INSERT INTO soaked VALUES (?, ?, ?, ?)", msgspec.structs.astuple(soaked)
            )
            self._db.execute(
                "INSERT OR REPLACE INTO meta VALUES (?, ?)", (SOAKED_S, f"{seconds:.3f}")
            )
            if history is not None:
                self._insert(trial, history)

    def soaked(self) -> Iterator[Soaked]:
        """Every finished trial of a soak, in the order in which they were drawn."""
        for row in self._db.execute("SELECT * FROM soaked ORDER BY position"):
            yield Soaked(*row)

    def put_repeats(self, schedule: str, repeated: Repeated) -> None:
        """Store what repeats of a trial showed."""
        row = (schedule, repeated.first, repeated.shown, repeated.times)
        with self._db:
            self._db.execute("INSERT OR REPLACE INTO repeats VALUES (?, ?, ?, ?)", row)

    def repeats(self) -> dict[str, Repeated]:
        """What `put_repeats` stored, by schedule."""
        rows = self._db.execute("SELECT schedule, first, shown, times FROM repeats")
        return {s: Repeated(bool(first), shown, times) for s, first, shown, times in rows}

    def put_judgement(self, schedule: str, judgement: Judgement) -> None:
        """Replace what the checkers said of a stored trial."""
        text = msgspec.json.encode(judgement).decode()
        with self._db:
            self._db.execute("UPDATE trials SET judgement = ? WHERE schedule = ?", (text, schedule))

    def trials(self) -> Iterator[StoredTrial]:
        """Every finished trial, in the order of the plan."""
        rows = self._db.execute(
            "SELECT schedule, wave, position, judgement, landed, real, world, shared FROM trials "
            "ORDER BY wave, position"
        )
        for schedule, wave, position, judgement, landed, real, world, shared in rows:
            decoded = msgspec.json.decode(judgement, type=Judgement)
            yield StoredTrial(
                schedule, wave, position, decoded, bool(landed), bool(real), world, bool(shared)
            )

    def known(self) -> set[str]:
        """The schedules of every finished trial."""
        return {str(row[0]) for row in self._db.execute("SELECT schedule FROM trials")}

    def history(self, schedule: str) -> History:
        """The history of one finished trial.

        Raises:
            UsageError: there is no such trial.
        """
        row = self._db.execute(
            "SELECT history FROM trials WHERE schedule = ?", (schedule,)
        ).fetchone()
        if row is None:
            raise unknown_name("trial", schedule, self.known())
        return self._history(zlib.decompress(row[0]))

    def _history(self, data: bytes) -> History:
        try:
            return History.decode(data)
        except FormatError as error:
            raise as_usage(error, self.folder / FILE, writable=self._writable) from error

    def histories(self, wave: int) -> Iterator[tuple[Schedule, History]]:
        """Every trial of one wave without a finding that did not share another one's resume."""
        for schedule, data in self._db.execute(
            "SELECT schedule, history FROM trials WHERE wave = ? AND NOT shared "
            'AND judgement NOT LIKE \'%"verdict":"INVALID"%\' ORDER BY position',
            (wave,),
        ):
            yield parse_schedule(schedule), self._history(zlib.decompress(data))

    def put_locations(self, locations: Mapping[str, Stack]) -> None:
        """Store which line of the task was running at some points, and what had called it."""
        self.put("stacks", msgspec.json.encode(locations).decode())

    def locations(self) -> dict[str, Stack]:
        """What `put_locations` stored, by the text of a point; older runs have no callers."""
        if (stored := self.get("stacks")) is not None:
            return msgspec.json.decode(stored, type=dict[str, Stack])
        lines = self.get("locations") or "{}"
        found = msgspec.json.decode(lines, type=dict[str, tuple[str, int, str]])
        return {point: (line,) for point, line in found.items()}

    def put_plan(self, wave: int, schedules: Sequence[Schedule]) -> Path:
        """Write down the schedules of a wave for the workers; the file."""
        file = (self.folder / f"plan-{wave}.json").resolve()
        with naming(file, *NOT_WRITTEN):
            file.write_bytes(msgspec.json.encode([str(schedule) for schedule in schedules]))
        return file

    def artefacts(self, wave: int, position: int) -> Path:
        """Where the artefacts of one failed trial go."""
        return self.folder / "trials" / f"{wave}-{position:05d}"


def _make(file: Path) -> None:
    """A campaign without anything in it; it has its name once it is whole, as others may read it
    at any moment.
    """
    fresh = file.with_name(f".{file.name}")
    fresh.unlink(missing_ok=True)  # of a process that was killed here
    with closing(sqlite3.connect(fresh)) as database:
        database.executescript(_TABLES)
        with database:
            database.execute("INSERT INTO meta VALUES ('format', ?)", (FORMAT,))
        database.execute("PRAGMA journal_mode = WAL")
    fresh.replace(file)


def _lock(folder: Path) -> int:
    """A lock on ``folder`` that the kernel gives back when this process ends, however it ends."""
    import fcntl  # not on Windows, where no task can be run either

    with naming(folder, "cannot be used"):
        lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise UsageError(f"{folder} is being written by another chaoskit") from None
    return lock
