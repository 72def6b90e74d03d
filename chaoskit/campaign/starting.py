"""Tasks that cannot begin, or do not find their files: what their surveys say of that."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from chaoskit.explore.completion import with_records
from chaoskit.explore.file_work import with_file_work
from chaoskit.explore.names import renamed, varying
from chaoskit.explore.survey import expect
from chaoskit.model.declared import Declared, declared, differences
from chaoskit.model.errors import ScenarioError
from chaoskit.model.expectation import Expectation
from chaoskit.model.history import History
from chaoskit.model.schedule import Schedule
from chaoskit.trial.loading import Loaded

SHOWN_MOST = 5

_ELSEWHERE = "run this from the folder where the run was made"


def survey_of(
    runs: Sequence[History],
    loaded: Loaded,
    norm: Sequence[History] = (),
    *,
    expected: Sequence[Declared] = (),
    again: bool = False,
) -> Expectation:
    """What undisturbed runs teach; where they fail for a file's sake, that too.

    Args:
        runs: two undisturbed runs or more.
        loaded: what was run.
        norm: runs that say what is expected, where these do not; see `expect`.
        expected: what an undisturbed run must do besides what the scenario says of that.
        again: it was run before, possibly from another folder.

    Raises:
        ScenarioError: the task cannot be started.
    """
    for history in (*runs, *norm):
        if history.last.how == "not-started":
            where = _where(loaded) if again else ""
            raise ScenarioError(f"the task cannot be started: {history.last.output_tail}{where}")
    first, second, *later = runs
    expectation = expect(first, second, loaded.scenario, *later, norm=norm)
    wanted = (*declared(loaded.scenario.expect), *expected)
    otherwise = tuple(differences(wanted, expectation.effects))
    names = varying(runs)
    named = [renamed(run, names) for run in runs]
    expectation = msgspec.structs.replace(
        with_file_work(with_records(expectation, named), named, loaded.scenario.recorded),
        varying=names,
        problems=(*expectation.problems, *otherwise),
    )
    if recorded := _unrecorded(loaded, expectation):
        problems = (*expectation.problems, recorded)
        expectation = msgspec.structs.replace(expectation, problems=problems)
    if not any(_failed(history) for history in norm or runs):
        left = "" if expectation.evidence or expectation.problems else _left_here(loaded)
        return msgspec.structs.replace(expectation, problems=(left,)) if left else expectation
    elsewhere = [_ELSEWHERE] if again and loaded.typed else []
    problems = (*expectation.problems, *_misplaced(loaded), *elsewhere)
    return msgspec.structs.replace(expectation, problems=problems)


def _unrecorded(loaded: Loaded, expectation: Expectation) -> str:
    """Why what the scenario names as records shows nothing; empty where it does."""
    patterns = loaded.scenario.recorded
    if not patterns or expectation.files or expectation.steps or not expectation.order:
        return ""
    return (
        f"recorded={list(patterns)} tells nothing: an undisturbed run leaves no such file that it "
        "was seen to write after an effect (the files are those at its end, in the folder in which "
        "it runs; system calls must be traced, and requests must not overlap)"
    )


def _where(loaded: Loaded) -> str:
    """Of a program that is looked for from the present folder."""
    program = loaded.scenario.command[0] if loaded.scenario.command else ""
    if loaded.file is not None or "/" not in program or os.path.isabs(program):
        return ""
    return f"; {program} is a relative path: {_ELSEWHERE}"


def _left_here(loaded: Loaded) -> str:
    """Why a task that runs where it was typed may have had nothing to do; empty: who knows."""
    words = {word.removeprefix("./") for word in loaded.scenario.command}
    there = sorted(os.listdir(loaded.here)) if loaded.typed else []
    found = [name for name in there if name not in words and not name.startswith("reports")]
    if not found:
        return ""
    more = f" and {len(found) - SHOWN_MOST} more" if len(found) > SHOWN_MOST else ""
    return (
        "there is nothing to judge by: the task called no service and left no declared output. If "
        "an earlier run has left its state, hide that with --clean PATH; here are "
        f"{', '.join(found[:SHOWN_MOST])}{more}"
    )


def _failed(history: History) -> bool:
    """Whether the task ended by itself, and said that it failed."""
    ended = history.attempts[0][1]
    return ended.how == "exit" and ended.code != 0


def _misplaced(loaded: Loaded) -> list[str]:
    """The words of the command that name a file from where it was written down, but not from where
    the task runs. The program itself is found from there, see `chaoskit.trial.stage`.
    """
    if loaded.typed:
        return []
    given = loaded.file is None
    where, prefix = ("here", "$PWD") if given else ("beside the scenario", "{here}")
    return [
        f"`{word}` is a file {where}, but the task runs in its work folder: "
        f'write "{prefix}/{word.removeprefix("./")}"'
        for word in dict.fromkeys(loaded.scenario.command[1:])
        if not os.path.isabs(word) and os.path.isfile(loaded.here / word)  # a word may be too long
    ]


def refuse_unstartable(history: History, schedule: Schedule) -> None:
    """A command that resumes nothing because there is no such program is no fault of the task.

    Raises:
        ScenarioError: the last attempt could not be started, and nothing but kills came before it.
    """
    faults = [fault for faults in schedule.attempts for fault in faults]
    if history.last.how == "not-started" and not any(fault.is_prelude for fault in faults):
        raise ScenarioError(f"the task cannot be resumed: {history.last.output_tail}")
