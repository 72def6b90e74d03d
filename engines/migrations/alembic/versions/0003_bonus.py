"""Something for each of them."""

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Something for each of them."""
    op.execute("UPDATE customers SET balance = balance + 5")
