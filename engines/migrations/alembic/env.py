"""Alembic's own way, with its defaults: one transaction for all that is not applied yet."""

import os

from alembic import context
from sqlalchemy import create_engine, pool

url = os.environ["CHAOSKIT_DATABASE_URL"].replace("postgresql", "postgresql+psycopg", 1)
with create_engine(url, poolclass=pool.NullPool).connect() as connection:
    context.configure(connection=connection)
    with context.begin_transaction():
        context.run_migrations()
