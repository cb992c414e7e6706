"""Runs a script: `bert SCRIPT --flag=value ...`, or `python -m bert SCRIPT`.

bert run_classifier --task_name=mrpc ...
bert run_classifier --help
bert configs            prints the folder of bert_base.json and the others
"""

import ast
import contextlib
import difflib
import runpy
import sys

from bert import locations


def scripts() -> dict[str, str]:
    """Returns name -> first line of the docstring of each script."""
    found = {}
    for path in sorted(locations.SCRIPTS.glob("*.py")):
        with contextlib.suppress(SyntaxError):  # of the user's own scripts
            tree = ast.parse(path.read_text(encoding="utf-8"))
            usage = ast.get_docstring(tree) or " "
            if path.stem != "__init__":
                found[path.stem] = usage.splitlines()[0]
    return found


def main() -> int:
    """Runs the script that the command line names; returns an exit code."""
    name, *words = sys.argv[1:] or ["--help"]
    if name == "configs":
        print(locations.CONFIGS)
        return 0
    known = scripts()
    if name in ("--help", "-h"):
        print(f"{__doc__}\nScripts:\n")
        for script, summary in known.items():
            print(f"    {script:24} {summary}")
        return 0
    name = name.removesuffix(".py")
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]}?" if near else "see bert --help"
        print(f"error: unknown script {name!r}; {hint}", file=sys.stderr)
        return 2
    if not locations.IS_INSTALLED and str(locations.SCRIPTS) not in sys.path:
        sys.path.insert(0, str(locations.SCRIPTS))
    sys.argv = [f"bert {name}", *words]
    # As a module with a name, which processes that it starts import again.
    module = f"{__package__}.scripts.{name}" if locations.IS_INSTALLED else name
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
