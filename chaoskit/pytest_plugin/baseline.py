"""The baseline: a file of the findings that are known, kept beside the tests and read by people.

    {
      "format": 1,
      "known": [
        {
          "scenario": "scenarios/bill.py",
          "finding": "duplicate_effect@payments.charge",
          "missing": "…",
          "shown_at": ["kill@payments.charge#1.applied"]
        }
      ]
    }

It is sorted, and what still holds stays as it was written, so that a change of it is a change of
what is known. Only the process that talks to the user writes it, at the end, from what the tests of
all workers told.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from chaoskit.model.errors import ChaoskitError, FormatError
from chaoskit.pytest_plugin import setting
from chaoskit.pytest_plugin.gaps import Known
from chaoskit.pytest_plugin.outcome import Gap, Outcome, outcome_from

FORMAT = 1
COMMAND = "$ "
"""What the name of a command begins with, where that of a scenario is its file."""


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One known finding.

    ``scenario`` is a file relative to pytest's root, with ``:name`` where it has another one than
    ``scenario``; or a command after "$ ". ``missing`` is the diagnosis, for readers. ``shown_at``
    are schedules of some trials that showed it.
    """

    scenario: str
    finding: str
    missing: str = ""
    shown_at: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """What there is one entry of."""
        return self.scenario, self.finding


class _Head(msgspec.Struct, frozen=True):
    format: int


class _Baseline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: int
    known: tuple[Entry, ...]


def file_of(config: pytest.Config) -> Path | None:
    """The baseline's file: relative to the present folder; to the root if an ini file names it."""
    name = setting(config, "baseline")
    if not name:
        return None
    by_option = config.getoption("--chaos-baseline") is not None
    return (config.invocation_params.dir if by_option else config.rootpath) / name


def read(file: Path) -> tuple[Entry, ...]:
    """The entries of a baseline; none where there is no file yet.

    Raises:
        FormatError: another version wrote it, or it is damaged.
    """
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return ()
    except OSError as failed:
        raise FormatError(f"the baseline {file} cannot be read: {failed}") from failed
    try:
        found = msgspec.json.decode(data, type=_Head).format
        if found != FORMAT:
            raise FormatError(
                f"the baseline {file} has format {found}, and this chaoskit reads {FORMAT}: "
                "use the version that wrote it, or remove the file and write it anew with "
                "--chaos-update-baseline"
            )
        return msgspec.json.decode(data, type=_Baseline).known
    except (msgspec.DecodeError, UnicodeDecodeError) as broken:
        raise FormatError(
            f"the baseline {file} cannot be read: {broken}; mend it (a merge may have left marks "
            "in it), or remove it and write it anew with --chaos-update-baseline"
        ) from broken


def write(file: Path, entries: Iterable[Entry]) -> None:
    """Put the entries in the place of what is there, sorted, whole or not at all."""
    known = tuple(sorted(entries, key=lambda entry: entry.key))
    text = msgspec.json.format(msgspec.json.encode(_Baseline(FORMAT, known)), indent=2) + b"\n"
    if file.is_file() and file.read_bytes() == text:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_name(f".{file.name}-{os.getpid()}")
    fresh.write_bytes(text)
    fresh.replace(file)


def known_in(entries: Iterable[Entry], scenario: str, file: Path) -> tuple[Known, ...]:
    """What is known of one scenario."""
    return tuple(
        Known(entry.finding, f"known in {file.name}", entry.shown_at, recorded=True)
        for entry in entries
        if entry.scenario == scenario
    )


def updated(entries: Iterable[Entry], outcomes: Sequence[Outcome]) -> tuple[Entry, ...]:
    """The entries after the campaigns of a session: what was found, without what is gone.

    Of two campaigns of one scenario, what one of them found is not gone. An entry that is still
    shown by a trial that it names stays as it is.
    """
    kept = {entry.key: entry for entry in entries}
    found = {
        (outcome.scenario, gap.name): gap
        for outcome in reversed(outcomes)
        for gap in outcome.gaps
        if gap.recorded
    }
    for outcome in outcomes:
        for gone in outcome.gone:
            if gone.recorded and (outcome.scenario, gone.name) not in found:
                kept.pop((outcome.scenario, gone.name), None)
    for key, gap in found.items():
        if key not in kept or set(kept[key].shown_at).isdisjoint(gap.shown_at):
            kept[key] = _entry(key[0], gap)
    return tuple(kept.values())


def stale(entries: Iterable[Entry], root: Path, ran: Iterable[str]) -> tuple[Entry, ...]:
    """The entries whose scenario does not exist any more.

    Args:
        entries: of a baseline.
        root: what the names of files are relative to.
        ran: scenarios that were run just now, which exist.
    """
    there = dict.fromkeys(ran, True)
    found = []
    for entry in entries:
        name = entry.scenario
        if name not in there:
            there[name] = name.startswith(COMMAND) or _exists(root, name)
        if not there[name]:
            found.append(entry)
    return tuple(found)


def settle(session: pytest.Session, texts: Sequence[str]) -> list[str]:
    """At the end of a session: write the baseline where that is asked for; what to tell the user.

    A session whose baseline could not be written does not pass.

    Args:
        session: of the process that talks to the user.
        texts: the outcomes of all campaigns.
    """
    config = session.config
    file = file_of(config)
    update = bool(config.getoption("--chaos-update-baseline"))
    if file is None or not (texts or update):
        return []
    outcomes = [outcome_from(text) for text in texts]
    try:
        before = read(file)
        old = stale(before, config.rootpath, [outcome.scenario for outcome in outcomes])
        if not update:
            return [_advice(file, entry) for entry in old]
        after = updated([entry for entry in before if entry not in old], outcomes)
        write(file, after)
    except (FormatError, OSError) as failed:
        if session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        return [f"the baseline was not written: {failed}"]
    return _changes(file, {e.key: e for e in before}, {e.key: e for e in after})


def _advice(file: Path, entry: Entry) -> str:
    return (
        f"{file.name}: {entry.scenario} is not there any more; --chaos-update-baseline takes its "
        f"{entry.finding} out"
    )


def _changes(
    file: Path,
    before: Mapping[tuple[str, str], Entry],
    after: Mapping[tuple[str, str], Entry],
) -> list[str]:
    new = [f"{file.name}: added {' '.join(key)}" for key in sorted(after.keys() - before.keys())]
    gone = [f"{file.name}: removed {' '.join(key)}" for key in sorted(before.keys() - after.keys())]
    return [*new, *gone] or [f"{file.name}: nothing is new, nothing is gone"]


def _entry(scenario: str, gap: Gap) -> Entry:
    return Entry(scenario=scenario, finding=gap.name, missing=gap.missing, shown_at=gap.shown_at)


def _exists(root: Path, name: str) -> bool:
    path, _, own = name.partition(":")
    file = root / path
    if not file.is_file() or not own:
        return file.is_file()
    from chaoskit.trial.loading import scenarios_in

    try:
        return own in scenarios_in(file)
    except ChaoskitError:  # what cannot be loaded now says nothing
        return True
