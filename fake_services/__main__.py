"""``python -m fake_services``: serve payments, email, jobs and a database on loopback."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from chaoskit.model.behaviours import parse_behaviour
from chaoskit.model.errors import ChaoskitError, unknown_name
from fake_services.database.service import create as create_database
from fake_services.email.service import create as create_email
from fake_services.jobs.service import create as create_jobs
from fake_services.payments.service import create as create_payments
from fake_services.postgres.service import create as create_postgres
from fake_services.serving import Serving, serve

SERVICES = {
    "payments": create_payments,
    "email": create_email,
    "database": create_database,
    "jobs": create_jobs,
    "postgres": create_postgres,
}

_BY_DEFAULT = [name for name in SERVICES if name != "postgres"]
"""It is another backend of the database."""


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fake_services",
        description="Serve fake services on loopback until interrupted. Addresses come first, "
        "then one JSON line for each effect.",
    )
    parser.add_argument("services", nargs="*", default=_BY_DEFAULT, help=", ".join(SERVICES))
    parser.add_argument("--payments-port", type=int, default=0)
    parser.add_argument("--email-port", type=int, default=0)
    parser.add_argument("--smtp-port", type=int, default=0)
    parser.add_argument("--tables", type=Path, help="a file with SQL that makes the tables")
    parser.add_argument("--behaviour", action="append", default=[], metavar="TEXT")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", action="store_true", help="show the books as a web page")
    parser.add_argument("--page-port", type=int, help="the port of the page")
    return parser


def main() -> int:
    """Serve; 0 after a signal, 2 where the words or a port are wrong."""
    given = _arguments().parse_args()
    try:
        for name in given.services:
            if name not in SERVICES:
                raise unknown_name("service", name, SERVICES)
        tables = {"tables": given.tables.read_text(encoding="utf-8")} if given.tables else {}
        serving = Serving(
            services=[SERVICES[name]() for name in given.services],
            ports={"payments": given.payments_port, "email": given.email_port},
            options={"email": {"smtp_port": str(given.smtp_port)}, "database": tables},
            behaviours=tuple(map(parse_behaviour, given.behaviour)),
            seed=given.seed,
            page_port=(given.page_port or 0) if given.page or given.page_port is not None else None,
        )
        asyncio.run(serve(serving, _tell, _tell))
    except (ChaoskitError, OSError) as wrong:
        print(f"fake_services: {wrong}", file=sys.stderr)  # noqa: T201 - a command's own words
        return 2
    return 0


def _tell(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - this is the command's output


if __name__ == "__main__":
    sys.exit(main())
