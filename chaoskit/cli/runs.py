"""``chaoskit runs``: what a person sees and decides of the runs of `chaoskit.runtime`."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from typing import Any

import click

from chaoskit.model.errors import UsageError
from chaoskit.runtime import advice, operating
from chaoskit.runtime.errors import Misuse, Refused
from chaoskit.runtime.owner import judge, parse_owner
from chaoskit.runtime.records import Order, RunRecord, StepRecord

FILE = click.argument("file", metavar="FILE")
RUN = click.argument("run_id", metavar="RUN")


def _told(command: Callable[..., int]) -> Callable[..., int]:
    """The command, with what the runtime raises as a message and an exit code."""

    @wraps(command)
    def run(*given: Any, **options: Any) -> int:
        try:
            return command(*given, **options)
        except Refused as refused:
            click.echo(f"chaoskit: {refused}", err=True)
            return refused.exit_code
        except (Misuse, FileNotFoundError) as wrong:
            raise UsageError(str(wrong)) from wrong

    return run


@click.group(short_help="Look at the runs of the runtime, and decide what only a person can.")
def runs() -> None:
    """The runs in a store of `chaoskit.runtime`, seen and decided upon from outside.

    FILE is the store that the task opens, RUN the id of the run in it ("default" unless the task
    says otherwise).

    Exit 0 when done, 1 when the answer is no, 2 for a wrong name, 75 when the store or the run's
    owner does not allow it.
    """


@runs.command("list", short_help="Every run in a store.")
@FILE
@_told
def list_runs(file: str) -> int:
    """Every run in FILE: how far it is, who has it, and what waits for a person."""
    for run in operating.all_runs(file):
        click.echo(f"{run.run_id}: {_state(run)}")
        if not run.finished:
            steps = operating.view(file, run.run_id).steps
            done = sum(step.proof is not None for step in steps if step.order is not Order.PHASE)
            click.echo(f"  steps done: {done}")
            for step in steps:
                if step.in_doubt:
                    click.echo(f"  begun, outcome not recorded: {step.name}")
    return 0


@runs.command(short_help="Everything that is recorded of a run.")
@FILE
@RUN
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@_told
def show(file: str, run_id: str, as_json: bool) -> int:
    """Everything that FILE holds of RUN: its steps in the order of their latest record."""
    found = operating.view(file, run_id)
    if as_json:
        click.echo(json.dumps(_as_json(found), ensure_ascii=False, indent=2))
        return 0
    run = found.run
    click.echo(f"{run.run_id}: {_state(run)}")
    click.echo(f"  inputs: {_fields(run.inputs)}")
    for name, value in run.options.items():
        click.echo(f"  option {name}: {json.dumps(value, ensure_ascii=False)}")
    for name, tool in run.tools.items():
        click.echo(f"  tool {name}@{tool['version']} {tool['binding']}".rstrip())
    for pin in found.pins:
        click.echo(f"  pin {pin.name}: {pin.value if pin.value is not None else pin.digest}")
    for step in found.steps:
        click.echo(f"  {_line(step)}")
    if run.result is not None:
        click.echo(f"  result: {run.result}")
    return 0


@runs.command(short_help="Say whether a step in doubt happened.")
@FILE
@RUN
@click.argument("step", metavar="STEP")
@click.argument("verdict", type=click.Choice(["happened", "did-not-happen"]))
@click.option("--result", metavar="JSON", help="What the step's call would have returned.")
@_told
def settle(file: str, run_id: str, step: str, verdict: str, result: str | None) -> int:
    """Say whether STEP of RUN happened; the next resume goes on from there.

    A step that happened counts as completed, with --result or null as its result. One that did not
    is called again, with its old key.
    """
    try:
        value = None if result is None else json.loads(result)
    except ValueError as error:
        raise UsageError(
            f"--result takes JSON ({error}): quote a text, as in '\"ch_1\"'"
        ) from error
    operating.settle(file, run_id, step, verdict == "happened", value)
    click.echo(f"{step}: settled as {verdict}; resume the task")
    return 0


@runs.command(short_help="Let no step of a run begin any more.")
@FILE
@RUN
@click.option("--reason", default="cancelled by hand", show_default=True)
@_told
def cancel(file: str, run_id: str, reason: str) -> int:
    """Cancel RUN durably, whoever works on it: no step begins after this."""
    operating.cancel(file, run_id, reason)
    click.echo(f"{run_id}: cancelled")
    return 0


@runs.command(short_help="Let a cancelled run go on.")
@FILE
@RUN
@_told
def uncancel(file: str, run_id: str) -> int:
    """Let a cancelled RUN go on at its next resume."""
    operating.uncancel(file, run_id)
    click.echo(f"{run_id}: not cancelled any more; resume the task")
    return 0


@runs.command(short_help="Take a run away from an owner that is dead.")
@FILE
@RUN
@click.option("--owner-is-dead", is_flag=True, help="You know that its process runs no more.")
@_told
def release(file: str, run_id: str, owner_is_dead: bool) -> int:
    """Take RUN away from its owner, where only a person can know that it is dead.

    If it lives after all, it can record nothing any more; what it does elsewhere goes on.
    """
    if not owner_is_dead:
        raise UsageError(
            "make sure that the owner is dead (chaoskit runs list FILE names it), then say so with "
            "--owner-is-dead"
        )
    operating.release(file, run_id)
    click.echo(f"{run_id}: has no owner any more; resume the task")
    return 0


@runs.command("advise", short_help="Which granularity a run's own figures suggest.")
@FILE
@click.argument("run_id", metavar="[RUN]", default="default")
@_told
def advise(file: str, run_id: str) -> int:
    """Say what RUN spent on calls and on records, and what a kill would cost either way."""
    found = operating.view(file, run_id)
    for line in advice.advice(advice.figures(found.run, found.steps)):
        click.echo(line)
    return 0


@runs.command("tools", short_help="Which unfinished runs refer to which tools.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--may-remove", metavar="TOOL@VERSION", help="Ask about this one: exit 0 yes, 1 no.")
@_told
def tools(files: tuple[str, ...], may_remove: str | None) -> int:
    """List the tools that unfinished runs in all FILES refer to, or ask whether one may go.

    A cancelled run still refers to its tools, because it may be uncancelled.
    """
    uses = operating.tool_uses(files)
    if may_remove is not None:
        name, at, version = may_remove.partition("@")
        if not (name and at and version):
            raise UsageError(
                f"--may-remove takes TOOL@VERSION, as in mailer@1.4, not {may_remove!r}"
            )
        uses = [use for use in uses if (use.tool, use.version) == (name, version)]
        click.echo(
            f"no: {len(uses)} unfinished runs refer to {may_remove}"
            if uses
            else f"yes: no unfinished run in these stores refers to {may_remove}"
        )
    for use in uses:
        bound = f" {use.binding}" if use.binding else ""
        cancelled = " (cancelled)" if use.cancelled else ""
        click.echo(f"  {use.tool}@{use.version}{bound}: run {use.run_id} in {use.place}{cancelled}")
    return 1 if may_remove is not None and uses else 0


def _state(run: RunRecord) -> str:
    if run.finished:
        return "finished"
    words = ["unfinished"]
    if run.cancelled is not None:
        words.append(f"cancelled ({run.cancelled})")
    if run.compensating:
        words.append("being taken back")
    if run.owner is None:
        words.append("nobody has it open")
    else:
        owner = parse_owner(run.owner)
        words.append(f"last opened by {owner}: {judge(owner).why}")
    return ", ".join(words)


def _line(step: StepRecord) -> str:
    words = [f"{step.name}: {step.state.value}", f"{step.order.value}, {step.policy}"]
    if step.position is not None:
        words.append(f"index {step.position}")
    if step.begun_at is not None:
        began = datetime.fromtimestamp(step.begun_at, tz=UTC)
        words.append(f"first begun {began:%Y-%m-%d %H:%M:%S} UTC")
    words.append(f"key {step.key}")
    if step.produced:
        words.append(f"made {', '.join(step.produced)}")
    if step.proof is not None:
        words.append(f"by {step.proof.value}")
    return "; ".join(words)


def _fields(inputs: Any) -> str:
    return ", ".join(f"{name or 'as a whole'} {digest}" for name, digest in inputs.items())


def _as_json(found: operating.RunView) -> dict[str, Any]:
    return {
        "run": found.run._asdict(),
        "pins": [pin._asdict() for pin in found.pins],
        "steps": [
            step._asdict()
            | {
                "order": step.order.value,
                "state": step.state.value,
                "proof": step.proof and step.proof.value,
            }
            for step in found.steps
        ],
    }
