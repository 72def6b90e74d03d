#!/bin/sh
# Two migration tools on PostgreSQL, killed and run again: alembic, yoyo, and yoyo with its lock
# removed before it is run again. Arguments go to `chaoskit run`.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
engines=$here/..
. "$engines/environment.sh"
environment migrations

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
