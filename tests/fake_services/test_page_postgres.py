"""The page of a running PostgreSQL service: its rows, its requests, and its own behaviours."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tests.fake_services.page_running import running
from tests.fake_services.postgres_running import needs_postgres


@needs_postgres
def test_rows_requests_and_behaviours_of_postgres(tmp_path: Path) -> None:
    """Effects come with their request; rows are those of now; a commit loses its answer; a table
    that is locked is said to be; and a reset empties it all.
    """
    with running(tmp_path, "postgres") as page:
        url = page.environment["CHAOSKIT_DATABASE_URL"]
        with psycopg.connect(url) as task:
            rows = [(n, f"customer {n}", "hush hush") for n in range(5)]
            task.cursor().executemany("INSERT INTO orders VALUES (%s, %s, %s)", rows)
        told = page.told("/api/effects")
        assert (told["total"], told["rows"][0]["kind"]) == (5, "orders.insert")
        assert told["rows"][4]["request"] == page.told("/api/requests")["total"] == 1
        shown = page.told("/api/tables/orders?start=3&limit=1")
        assert (shown["total"], shown["columns"]) == (5, ["id", "customer", "password"])
        assert shown["rows"] == [["3", "customer 3", "[redacted]"]]
        (service,) = page.told("/api/state")["services"]
        assert service["behaves"]["service"] == "postgres"
        assert service["behaves"]["operations"] == {"commit": 1, "statement": 0, "connect": 0}
        wrong = page.act("/api/behaviours", {"behaviour": "lag:1@postgres.commit#1", "on": True})
        assert "behaviour of postgres" in wrong.json()["error"]
        text = "lose-reply@postgres.commit#2"
        assert page.act("/api/behaviours", {"behaviour": text, "on": True}).is_success
        with pytest.raises(psycopg.OperationalError), psycopg.connect(url) as task:
            task.execute("DELETE FROM orders WHERE id = 0")
        assert page.told("/api/tables/orders")["total"] == 4
        assert page.told("/api/requests?q=lost")["total"] == 1
        with psycopg.connect(url) as task:
            task.execute("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
            answer = page.ask("/api/tables/orders")
            assert (answer.status_code, "just now" in answer.text) == (503, True)
            task.rollback()
        assert page.told("/api/tables/orders")["total"] == 4
        assert page.act("/api/reset", {}).json()["effects"] == 0
        assert page.told("/api/tables/orders")["rows"] == []
