#!/bin/sh
# Campaigns against real engines: one environment per engine, one table at the end.
#
#   engines/run.sh                                  thirty points of each variant
#   engines/run.sh --max-points 240 --mechanisms windows
#   ENGINES=dbos engines/run.sh --seed 7            one engine only
#
# Arguments go to `chaoskit run`. The environment may say:
#   ENGINES   which engines (langgraph dbos)
#   VARIANTS  which variants, by the names below (all)
#   CHAOSKIT  which chaoskit (.venv/bin/chaoskit of this repository)
#   PYTHON    which Python makes the environments (python3)
#   OUT       where reports and runs go (a new temporary folder)
#   REPEATS   how often the variants with a race are run (3)
set -eu

here=$(cd "$(dirname "$0")" && pwd)
engines=$here
. "$here/environment.sh"
out=${OUT:-$(mktemp -d)}
chosen=${ENGINES:-langgraph dbos}
repeats=${REPEATS:-3}
mkdir -p "$out/work"

# among WORD WORDS: whether it is one of them.
among() {
  case " $2 " in *" $1 "*) return 0 ;; *) return 1 ;; esac
}

# campaign NUMBER ENGINE VARIANT PROGRAM RUNS SETTINGS [OPTION OF CHAOSKIT]...
campaign() {
  number=$1 engine=$2 variant=$3 program=$4 runs=$5 settings=$6
  shift 6
  for setting in $settings; do
    set -- --env "$setting" "$@"
  done
  for again in $(seq "$runs"); do
    name=$number.$engine.$variant.$again
    echo "$engine, $variant: run $again of $runs ..." >&2
    status=0
    # From a folder of its own: what lies in the current one must not reach chaoskit.
    (cd "$out/work" && "$chaoskit" run --services payments,email --max-points 30 "$@" \
      --quiet --fresh --runs "$out/runs" --work-dir "$out/work" --json "$out/$name.json" \
      -- "$here/.envs/$engine/bin/python" "$here/$engine/$program") \
      >"$out/$name.txt" 2>&1 || status=$?
    case $status in
      0 | 1 | 4) ;;
      *) cat "$out/$name.txt" >&2; exit "$status" ;;
    esac
  done
}

for engine in $chosen; do
  environment "$engine"
done

# number|engine|variant|program|runs|settings
variants="\
11|langgraph|one-node|task.py|1|
12|langgraph|one-node+keys|task.py|1|KEYS=1
13|langgraph|two-nodes|task.py|1|SPLIT=1
14|langgraph|two-nodes+keys|task.py|1|SPLIT=1 KEYS=1
15|langgraph|tasks|tasks_api.py|$repeats|
16|langgraph|tasks+keys|tasks_api.py|1|KEYS=1
17|langgraph|async|task.py|$repeats|SPLIT=1 DURABILITY=async
18|langgraph|async+keys|task.py|1|SPLIT=1 DURABILITY=async KEYS=1
21|dbos|one-step|task.py|1|
22|dbos|one-step+keys|task.py|1|KEYS=1
23|dbos|two-steps|task.py|1|SPLIT=1
24|dbos|two-steps+keys|task.py|1|SPLIT=1 KEYS=1"

rm -f "$out"/*.json
echo "$variants" | while IFS='|' read -r number engine variant program runs settings; do
  among "$engine" "$chosen" || continue
  among "$variant" "${VARIANTS:-$variant}" || continue
  campaign "$number" "$engine" "$variant" "$program" "$runs" "$settings" "$@"
done

"${PYTHON:-python3}" "$here/table.py" "$out"/*.json
echo
echo "reports and runs: $out"
