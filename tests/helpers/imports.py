"""Modules that a file of the project imports, directly and further on."""

import ast
import pathlib

ROOT = pathlib.Path(__file__).parents[2]


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


def reached(script: str) -> set[pathlib.Path]:
    """Modules of ours that a script imports, also late, and the script."""
    modules, waiting = set(), [ROOT / script]
    while waiting:
        path = waiting.pop()
        modules.add(path)
        for name in imported(tree_of(path)):
            for module in (name, name.rpartition(".")[0]):
                source = ROOT / (module.replace(".", "/") + ".py")
                if source.is_file() and source not in modules:
                    waiting.append(source)
    return modules
