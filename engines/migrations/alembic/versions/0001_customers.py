"""The table."""

from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """The table."""
    op.execute(
        "CREATE TABLE customers "
        "(id INTEGER PRIMARY KEY, name TEXT NOT NULL, balance INTEGER NOT NULL)"
    )
