# For the scripts of this folder and below, which set `engines`, its path, before they read this.

chaoskit=${CHAOSKIT:-$engines/../.venv/bin/chaoskit}
[ -x "$chaoskit" ] || { echo "no $chaoskit: run 'make setup' first, or set CHAOSKIT" >&2; exit 2; }

# environment NAME: the one of an engine, made anew when its requirements have changed.
environment() {
  wanted=$engines/requirements-$1.txt
  made=$engines/.envs/$1
  cmp -s "$wanted" "$made/requirements.txt" && return
  echo "installing $1 ..." >&2
  "${PYTHON:-python3}" -m venv --clear "$made"
  "$made/bin/python" -m pip install -qq --disable-pip-version-check -r "$wanted"
  cp "$wanted" "$made/requirements.txt"
}
