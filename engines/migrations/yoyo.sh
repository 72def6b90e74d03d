#!/bin/sh
# Applies what is not applied yet. With UNLOCK=1 it first removes the lock, as yoyo's message says.
here=$(dirname "$(readlink -f "$0")")
yoyo=$here/../.envs/migrations/bin/yoyo
set -- --batch --no-config-file \
  --database "postgresql+psycopg${CHAOSKIT_DATABASE_URL#postgresql}" "$here/yoyo"
[ -z "${UNLOCK:-}" ] || "$yoyo" break-lock "$@" || exit
exec "$yoyo" apply "$@"
