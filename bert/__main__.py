"""Runs a script: `bert SCRIPT --flag=value ...`, or `python -m bert SCRIPT`.

bert run_classifier --task_name=mrpc ...
bert run_classifier --help
bert configs            prints the folder of the configs, e.g. bert_base.json
"""

import ast
import pathlib
import runpy
import sys

from bert import scripts


def describe_scripts() -> dict[str, str]:
    """Returns script name -> first line of its docstring."""
    summaries = {}
    folders = map(pathlib.Path, scripts.__path__)
    for path in sorted(x for y in folders for x in y.glob("[!_]*.py")):
        usage = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        summaries[path.stem] = (usage or "").partition("\n")[0]
    return summaries


def main() -> int:
    """Runs the script named on the command line; returns an exit code."""
    name, *words = sys.argv[1:] or ["--help"]
    if name == "configs":
        print(pathlib.Path(__file__).parent / "configs")
        return 0

    summaries = describe_scripts()
    if name in ("--help", "-h"):
        print(f"{__doc__}\nScripts:\n")
        for script, summary in summaries.items():
            print(f"    {script:24} {summary}")
        return 0

    name = name.removesuffix(".py")
    if name not in summaries:
        message = f"error: unknown script {name!r}; see bert --help"
        print(message, file=sys.stderr)
        return 2

    sys.argv = [f"bert {name}", *words]
    # Run as a named module, which processes that it starts can import.
    module = f"bert.scripts.{name}"
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
