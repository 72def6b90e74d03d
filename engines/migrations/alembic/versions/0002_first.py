"""Three customers."""

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Three customers."""
    op.execute("INSERT INTO customers VALUES (1, 'Ada', 10), (2, 'Bo', 20), (3, 'Cy', 30)")
