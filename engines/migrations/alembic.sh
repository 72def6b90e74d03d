#!/bin/sh
# Applies what is not applied yet; the address of the database comes from the environment.
here=$(dirname "$(readlink -f "$0")")
exec "$here/../.envs/migrations/bin/alembic" --config "$here/alembic/alembic.ini" upgrade head
