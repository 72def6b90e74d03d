"""What a Python command runs before its own code, when PYTHONPATH begins with this folder.

It starts `chaoskit.probe.where` and `chaoskit.probe.lines` where their variables are set. They are
loaded by where they lie, under names that are given back afterwards: the interpreter may have no
chaoskit, another one, or none of the versions that ours needs, and then nothing happens. At the end
this folder leaves the path and the next sitecustomize is imported in its place: that it succeeds,
fails or is not there is then for `site` to handle, as if this one had never been.

Any Python can read this file: there is no annotation in it, for that reason.
"""  # noqa: INP001

import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))

if os.environ.get("CHAOSKIT_WHERE") or os.environ.get("CHAOSKIT_LINES"):
    _theirs = {}
    for _name in [n for n in sys.modules if n.split(".")[0] == "chaoskit"]:
        _theirs[_name] = sys.modules.pop(_name)
    try:
        _folder = os.path.dirname(_here)
        for _name, _path in (("chaoskit", os.path.dirname(_folder)), ("chaoskit.probe", _folder)):
            sys.modules[_name] = type(sys)(_name)
            sys.modules[_name].__path__ = [_path]
        from chaoskit.probe import where

        where.start()
        if os.environ.get("CHAOSKIT_LINES"):
            from chaoskit.probe import lines

            lines.start()
    except Exception:  # noqa: BLE001, S110 - a task must not notice
        pass
    finally:
        for _name in [n for n in sys.modules if n.split(".")[0] == "chaoskit"]:
            del sys.modules[_name]
        sys.modules.update(_theirs)

_others = [entry for entry in sys.path if entry != _here]
if len(_others) < len(sys.path):
    sys.path[:] = _others
    _ourselves = sys.modules.pop(__name__)  # held: some versions clear a module that nobody holds
    __import__(__name__)
