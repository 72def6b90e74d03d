#!/bin/sh
# Runs one campaign as a step of a build, anywhere that has a POSIX shell and Python.
#
#   sh ci/chaoskit.sh scenarios/shop.py --max-points 200
#   sh ci/chaoskit.sh --services payments -- ./bill.sh
#
# All words go to `chaoskit run`. Settings, all optional, come from the environment:
#
#   CHAOS_INSTALL  what pip installs first, as in chaoskit==0.1.0 or .; empty: nothing
#   CHAOS_PYTHON   the Python that installs and runs it (python3)
#   CHAOS_OUT      the folder of what is kept: reports, and the stored run (chaoskit-out)
#   CHAOS_SHARD    K/N: only this part of the campaign; `chaoskit join` joins the folders `run`
#
# Exit codes: 0 valid, 1 findings, 2 wrong words, 3 chaoskit itself failed, 4 unknown.
set -eu

python=${CHAOS_PYTHON:-python3}
out=${CHAOS_OUT:-chaoskit-out}

if [ -n "${CHAOS_INSTALL:-}" ]; then
  "$python" -m pip install --quiet --disable-pip-version-check "$CHAOS_INSTALL" || {
    echo "chaoskit.sh: pip could not install $CHAOS_INSTALL" >&2
    exit 3
  }
fi

if [ -e "$out/run" ]; then
  echo "chaoskit.sh: $out/run is there already: remove it, or name another folder in CHAOS_OUT" >&2
  exit 2
fi
mkdir -p "$out"

# What was asked for comes last, so that it may choose another file.
if [ -n "${CHAOS_SHARD:-}" ]; then
  set -- --shard "$CHAOS_SHARD" "$@"
fi
code=0
"$python" -m chaoskit.cli.main run --quiet --runs "$out/runs" \
  --html "$out/report.html" --json "$out/report.json" --junit "$out/report.xml" \
  --sarif "$out/report.sarif" --markdown "$out/report.md" --badge "$out/badge.svg" \
  "$@" || code=$?

# The stored run under a name that does not change; without links, which artefacts do not keep.
for file in "$out"/runs/*/campaign.sqlite; do
  folder=${file%/campaign.sqlite}
  if [ -f "$file" ] && [ ! -L "$folder" ]; then
    mv "$folder" "$out/run"
    rm -rf "$out/runs"
    break
  fi
done

# The page of a job on GitHub. Elsewhere report.md is there to be shown.
if [ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -f "$out/report.md" ]; then
  cat "$out/report.md" >> "$GITHUB_STEP_SUMMARY"
fi
exit "$code"
