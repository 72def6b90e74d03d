"""``chaoskit serve``: the fake services alone, for a task in another language.

The serving itself comes, like the services, through an entry point.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path

import click

from chaoskit.cli.process import check_output
from chaoskit.cli.words import text_of
from chaoskit.model.behaviours import parse_behaviour
from chaoskit.model.errors import UsageError, unknown_name
from chaoskit.trial.services import create_services, instances_of, service_names

_GROUP = "chaoskit.serving"

_BACKENDS = {"postgres"}
"""Other backends of a service that is there already; they have to be asked for."""


@click.command(short_help="Serve the fake services alone.")
@click.argument("services", nargs=-1)
@click.option("--port", "ports", multiple=True, metavar="SERVICE=PORT", help="As payments=8080.")
@click.option("--smtp-port", default=0, help="The SMTP door of email.")
@click.option("--tables", type=click.Path(path_type=Path, exists=True), help="SQL of the tables.")
@click.option("--behaviour", "behaviours", multiple=True, help="As lose-reply@payments.charge#3.")
@click.option("--seed", default=0, show_default=True)
@click.option("--page", is_flag=True, help="Show the books as a web page, and switch behaviours.")
@click.option("--page-port", type=int, help="The port of the page; any free one by default.")
def serve(
    services: tuple[str, ...],
    ports: tuple[str, ...],
    smtp_port: int,
    tables: Path | None,
    behaviours: tuple[str, ...],
    seed: int,
    page: bool,
    page_port: int | None,
) -> int:
    """Serve SERVICES (all but postgres by default) on loopback until interrupted. payments:eu is
    one under the name eu, so that there can be two.

    Addresses come first, as lines for a shell; then one JSON line for each effect. With --page,
    CHAOSKIT_PAGE_URL is that of a page for your browser; see docs/serve.md.
    """
    names = services or tuple(name for name in service_names() if name not in _BACKENDS)
    points = list(entry_points(group=_GROUP))
    if not points:
        raise UsageError("no package that serves services is installed")
    make, run = points[0].load()
    instances = instances_of(names)
    by_kind = {
        "email": {"smtp_port": str(smtp_port)},
        "database": {"tables": text_of(tables, "--tables")} if tables else {},
    }
    serving = make(
        services=create_services(names),
        ports=dict(_port(text, [one.name for one in instances]) for text in ports),
        options=by_kind | {one.name: by_kind.get(one.kind, {}) for one in instances},
        behaviours=tuple(map(parse_behaviour, behaviours)),
        seed=seed,
        page_port=(page_port or 0) if page or page_port is not None else None,
    )
    asyncio.run(run(serving, _say, _say))
    return 0


def _say(line: str) -> None:
    click.echo(line)
    check_output()


def _port(text: str, names: Sequence[str]) -> tuple[str, int]:
    service, _, number = text.partition("=")
    if not number.isdigit():
        raise UsageError(f"--port takes SERVICE=PORT with a number, not {text!r}")
    if service not in names:
        raise unknown_name("service in --port", service, names)
    return service, int(number)
