"""Lines of code: of production, and those that run_pretraining.py reaches.

    python -m tests.helpers.code_size

A line of code is not blank, not a comment and no docstring.
"""

import ast
import collections
import pathlib
import subprocess
import tokenize

ROOT = pathlib.Path(__file__).parents[2]
_SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def tree_of(path: pathlib.Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.Module) -> set[str]:
    """`a.b` for `import a.b` and `from a import b`."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def lines_of_code(path: pathlib.Path) -> int:
    with tokenize.open(path) as file:
        tokens = list(tokenize.generate_tokens(file.readline))
    lines = set()
    for token in tokens:
        if token.type not in _SILENT:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            first = node.body[0] if node.body else None
            if ast.get_docstring(node) is not None:
                lines -= set(range(first.lineno, first.end_lineno + 1))
    return len(lines)


def reached(script: str) -> set[pathlib.Path]:
    """Modules of ours that a script imports, also late, and the script."""
    found, waiting = set(), [ROOT / script]
    while waiting:
        path = waiting.pop()
        found.add(path)
        for name in imported(tree_of(path)):
            for module in (name, name.rpartition(".")[0]):
                source = ROOT / (module.replace(".", "/") + ".py")
                if source.is_file() and source not in found:
                    waiting.append(source)
    return found


def _print(title: str, lines: dict[str, int]) -> None:
    print(f"{sum(lines.values()):6,} {title}")
    for name, count in sorted(lines.items()):
        print(f"{count:6,}     {name}")


def main() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "*.py"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    production, pretraining = collections.Counter(), collections.Counter()
    for name in listed.stdout.split():
        folder = name.split("/")[0] if "/" in name else "scripts"
        if folder not in ("tests", "benchmarks"):
            production[folder] += lines_of_code(ROOT / name)
    for path in reached("run_pretraining.py"):
        folder = str(path.parent.relative_to(ROOT))
        pretraining[folder] += lines_of_code(path)
    _print("production, without tests and benchmarks", production)
    _print("reachable from run_pretraining.py", pretraining)


if __name__ == "__main__":
    main()
