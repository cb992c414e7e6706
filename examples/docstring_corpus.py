"""Writes a corpus of the English docstrings of Python packages.

    python examples/docstring_corpus.py FOLDER [PACKAGE ...]

The docstrings of these packages, each a folder, by default of the standard
library, NumPy, Keras and TensorFlow, are written to FOLDER/train.txt, and those
of one module in twenty to FOLDER/held_out.txt: one sentence per line, a blank
line between documents. A document is a module.

FOLDER/packages_train.tsv and FOLDER/packages_held_out.tsv hold the same number
of these sentences for each package, with the name of the package.
"""

import ast
import os
import re
import sys
import sysconfig
import warnings
import zlib

LIBRARIES = ("numpy", "keras", "tensorflow")
OF_EACH_PACKAGE = {"train": 1000, "held_out": 100}  # number of sentences
# A blank line, or a line such as `Args:`.
_BLOCK_END = re.compile(r"\n\s*\n(?:\s*\w+:\s*\n)?|\n\s*\w+:\s*\n")
_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+(?=[A-Z`\"'(])")
_WORD = re.compile(r"[A-Za-z]{2,}")


def main() -> None:
    """Writes the corpus."""
    folder, *packages_to_read = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    seen: set[str] = set()
    documents: dict[str, list[list[str]]] = {"train": [], "held_out": []}
    packages: dict[str, dict[str, list[str]]] = {"train": {}, "held_out": {}}
    for module, path in modules(packages_to_read):
        lines = sentences(path, seen)
        if len(lines) >= 4:
            held_out = zlib.crc32(module.encode()) % 20 == 0
            part = "held_out" if held_out else "train"
            documents[part].append(lines)
            package = module.partition("/")[0]
            packages[part].setdefault(package, []).extend(lines)
    for name, texts in documents.items():
        path = os.path.join(folder, f"{name}.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n\n".join("\n".join(lines) for lines in texts) + "\n")
        print(f"wrote {sum(map(len, texts)):,} sentences to {path}")
        write_packages(
            os.path.join(folder, f"packages_{name}.tsv"),
            packages[name],
            OF_EACH_PACKAGE[name],
        )


def write_packages(path: str, packages: dict, count: int) -> None:
    """Writes sentences of each package, spread over its modules."""
    with open(path, "w", encoding="utf-8") as file:
        file.write("package\tsentence\n")
        for package, lines in sorted(packages.items()):
            for number in range(min(count, len(lines))):
                line = lines[number * len(lines) // min(count, len(lines))]
                file.write(f"{package}\t{line}\n")


def modules(folders: list[str]):
    """Yields (name, path) of every Python source except tests, sorted."""
    roots = [(os.path.basename(folder), folder) for folder in folders]
    if not roots:
        paths = sysconfig.get_paths()
        roots = [("python", paths["stdlib"])]
        roots += [
            (name, os.path.join(paths["purelib"], name)) for name in LIBRARIES
        ]
    for name, root in roots:
        for folder, subfolders, files in os.walk(root):
            subfolders[:] = sorted(
                sub
                for sub in subfolders
                if sub not in ("site-packages", "__pycache__", "idlelib")
                and "test" not in sub
            )
            for file in sorted(files):
                if file.endswith(".py") and "test" not in file:
                    path = os.path.join(folder, file)
                    yield f"{name}/{os.path.relpath(path, root)}", path


def sentences(path: str, seen: set[str]) -> list[str]:
    """Returns the docstring sentences of a module that are not in `seen`."""
    try:
        with open(path, encoding="utf-8") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(file.read())
    except (SyntaxError, ValueError, OSError):
        return []
    found = []
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    for node in ast.walk(tree):
        text = ast.get_docstring(node) if isinstance(node, kinds) else None
        for sentence in split(text or ""):
            if sentence not in seen:
                seen.add(sentence)
                found.append(sentence)
    return found


def split(text: str) -> list[str]:
    """Splits a docstring into sentences, without code and signatures."""
    kept = []
    for block in _BLOCK_END.split(text):
        block = " ".join(block.split())
        if not block or block.startswith((">>>", "```", "...", "@", ".. ")):
            continue
        for sentence in _SENTENCE_END.split(block):
            words = _WORD.findall(sentence)
            if len(words) >= 4 and len("".join(words)) > len(sentence) / 2:
                kept.append(sentence)
    return kept


if __name__ == "__main__":
    main()
