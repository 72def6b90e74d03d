"""Opening a run, which is also resuming it: the same call, whatever happened before."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from chaoskit.runtime import results
from chaoskit.runtime.books import Books, Durability, open_books
from chaoskit.runtime.errors import (
    Misuse,
    OtherInputs,
    Owned,
    Refused,
    StoreUnavailable,
    announced,
)
from chaoskit.runtime.fingerprint import Fingerprint, differences, fingerprint
from chaoskit.runtime.owning import new_owner, take
from chaoskit.runtime.records import RunRecord
from chaoskit.runtime.run import Run
from chaoskit.runtime.tools import Tool, compared, pinned

_RACES_MAX = 100


class _Asked(NamedTuple):
    """What the caller wants to run."""

    run_id: str
    inputs: Fingerprint
    options: Mapping[str, Any] | None
    tools: Mapping[str, Tool]


def open_run(  # noqa: PLR0913
    path: str | os.PathLike[str],
    *,
    inputs: object,
    run_id: str = "default",
    durability: Durability = "full",
    options: Mapping[str, Any] | None = None,
    tools: Mapping[str, Tool] | None = None,
    ordered: bool = True,
) -> Run:
    """Start the run, or resume it, or find it finished: the store knows which.

    Args:
        path: the SQLite file of the store, or the URL ``postgresql://…`` of a database that it is
            in (the extra ``chaoskit[postgres]``); made if there is none; it may hold many runs.
        inputs: what the whole task depends on, any JSON value, None if it has none. A mapping is
            compared per key. Asked for each time, so that leaving it out is never taken for
            "as before".
        run_id: which run in this file.
        durability: ``"full"`` survives power loss, ``"normal"`` any kill of the process.
        options: how the task is to be run, JSON values by name, kept with the run. What a resume
            leaves out it gets from there (`Run.options`); what it gives must be the same.
        tools: what the task relies on besides its code, and may not lose; see `Tool`.
        ordered: the task takes its steps one after the other in the same order in each attempt,
            so that one that was renamed, inserted, swapped or removed is noticed. Steps of other
            threads and tasks are never expected in any order. False for a task that skips.

    Raises:
        OtherInputs: the run was started with other inputs or options; the message names them.
        ToolChanged: a tool is missing, or another one.
        Owned: another process has the run, or nobody can prove that it is dead.
        DamagedStore: the file is not a whole store. An empty file is damage too: a new store is
            made under another name and renamed into place whole, so no crash leaves one.
        OlderStore: the store was replaced by an older copy, or has gone.
        StoreUnavailable: rights, locks or the disk do not allow to use it just now.
        Refused: the store has another format.
        FileNotFoundError: the folder does not exist.
        Misuse: the arguments have no meaning.
    """
    if not isinstance(run_id, str) or not run_id:
        raise Misuse(f"a run's id is a text that is not empty, not {run_id!r}")
    tools = {} if tools is None else tools
    pinned(tools)
    asked = _Asked(run_id, fingerprint(inputs), _checked(options), tools)
    try:
        books = open_books(path, durability)
    except StoreUnavailable as error:
        raise announced(error) from error
    try:
        return Run(books, _opened(books, asked), ordered=ordered)
    except BaseException as error:
        books.close()
        if isinstance(error, Refused) and not error.told:
            announced(error)
        raise


def _checked(options: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if options is None:
        return None
    results.encode(dict(options), "options=", "Nothing was done")
    return dict(options)


def _opened(books: Books, asked: _Asked) -> RunRecord:
    """The run as it is recorded, with this process as its owner; a finished run has none."""
    for _ in range(_RACES_MAX):
        run = books.find_run(asked.run_id)
        if run is None:
            owner = new_owner().text()
            fresh = RunRecord(
                run_id=asked.run_id,
                uid=os.urandom(16).hex(),
                inputs=asked.inputs,
                options=asked.options or {},
                tools=pinned(asked.tools),
                token=1,
                owner=owner,
            )
            if books.add_run(fresh):
                return fresh
            continue
        if found := differences(run.inputs, asked.inputs):
            raise announced(OtherInputs(_other_inputs(run, found)))
        options = _options(run, asked.options)
        if run.finished:
            return run
        tools = compared(run.run_id, run.tools, asked.tools)
        taken = take(books, run._replace(options=options, tools=tools))
        if taken is not None:
            return taken
    raise announced(Owned(f"run {asked.run_id!r} is taken over again and again by others"))


def _options(run: RunRecord, given: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The options to go on with: those recorded; what is given must be the same."""
    wrong = [
        f"option {name!r} ({_was(run.options, name)}, given {value!r})"
        for name, value in (given or {}).items()
        if name not in run.options or not _same(run.options[name], value)
    ]
    if wrong:
        raise announced(
            OtherInputs(
                f"run {run.run_id!r} was started with other options: {'; '.join(wrong)}. Leave "
                "them out to go on with the recorded ones, or start another run with another run_id"
            )
        )
    return run.options


def _same(one: object, other: object) -> bool:
    return fingerprint([one]) == fingerprint([other])


def _was(options: Mapping[str, Any], name: str) -> str:
    return f"recorded {options[name]!r}" if name in options else "not recorded"


def _other_inputs(run: RunRecord, found: str) -> str:
    if run.finished:
        return (
            f"run {run.run_id!r} is finished, and had other inputs: {found}. Give the new inputs "
            "a run_id of their own"
        )
    return (
        f"run {run.run_id!r} was started with other inputs: {found}. Resume it with those, or "
        "start another run with another run_id"
    )
