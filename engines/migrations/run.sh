#!/bin/sh
# Two migration tools on PostgreSQL, killed and run again: alembic, yoyo, and yoyo with its lock
# removed before it is run again. Arguments go to `chaoskit run`.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
chaoskit=${CHAOSKIT:-$here/../../.venv/bin/chaoskit}
[ -x "$chaoskit" ] || { echo "no $chaoskit: run 'make setup' first, or set CHAOSKIT" >&2; exit 2; }
wanted=$here/../requirements-migrations.txt
made=$here/../.envs/migrations
if ! cmp -s "$wanted" "$made/requirements.txt"; then
  "${PYTHON:-python3}" -m venv --clear "$made"
  "$made/bin/python" -m pip install -qq --disable-pip-version-check -r "$wanted"
  cp "$wanted" "$made/requirements.txt"
fi

campaign() {
  status=0
  "$chaoskit" run --services postgres --fresh "$@" || status=$?
  case $status in 0 | 1 | 4) ;; *) exit "$status" ;; esac
}

campaign "$@" -- "$here/alembic.sh"
campaign --max-points 30 "$@" -- "$here/yoyo.sh"  # each trial that is stuck waits for 40 s
# A lock that is set again, and a log line that is written again, are not what this is about.
campaign --contract 'database.yoyo_lock.*=at-least-once,database._yoyo_log.*=at-least-once' \
  "$@" --resume "env UNLOCK=1 $here/yoyo.sh" -- "$here/yoyo.sh"
