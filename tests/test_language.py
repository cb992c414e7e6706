"""The glossary: words that code, tests and pages do not use."""

import ast
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[1]
SKIPPED = {"build", "quickstart"}  # besides hidden folders
ALLOWED_FILES = {pathlib.Path(__file__)}
ALLOWED = re.compile(
    r"\bin[-\s](?:the first\s)?place\b"
    r"|\bdecimal places?\b"
    r"|\b(?:take|takes|took|taking)\s+place\b"
    r"|\bcompute_word_piece_vocabulary\b"  # of KerasHub
    r"|\bpiece_(?:starts|limits)\b",  # features of SQuAD's records
    re.IGNORECASE,
)
# "piece" for a token, "place" for a position; `WordPiece` is a name.
WORDS = re.compile(
    r"(?<![A-Za-z])(?:[Pp]iece|[Pp]lace|PIECE|PLACE)[Ss]?(?![a-z])"
    r"|(?<=[a-z])(?<!Word)(?<!Sentence)(?:Piece|Place)s?(?![a-z])"
)
# A summary line starts with the thing or with an imperative.
FIRST_WORDS = re.compile(r"(?:What|How|Which)\b")


def files(*suffixes: str) -> list[pathlib.Path]:
    found = [x for x in ROOT.iterdir() if x.suffix in suffixes]
    for folder in ROOT.iterdir():
        hidden = folder.name.startswith(".") or folder.name in SKIPPED
        if folder.is_dir() and not hidden:
            found += [x for x in folder.rglob("*") if x.suffix in suffixes]
    return sorted(set(found) - ALLOWED_FILES)


def folders(paths: list[pathlib.Path]) -> list[str]:
    return sorted({str(x.parent.relative_to(ROOT)) for x in paths})


def unwanted(text: str) -> list[int]:
    """Lines with a word that the glossary replaces."""
    allowed = [x.span() for x in ALLOWED.finditer(text)]
    return [
        text.count("\n", 0, x.start()) + 1
        for x in WORDS.finditer(text)
        if not any(start <= x.start() < end for start, end in allowed)
    ]


@pytest.mark.parametrize("folder", folders(files(".py", ".md")))
def test_a_token_is_a_token_and_a_position_a_position(folder):
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in files(".py", ".md")
        if path.parent == ROOT / folder
        for line in unwanted(path.read_text(encoding="utf-8"))
    ]
    assert found == [], f"{len(found)} words"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("a piece, pieces_of and `PIECES`", 3),
        ("the place\nof a masked_place", 2),
        ("MyPlaces", 1),
        ("replaces a placeholder by a WordPiece, in place", 0),
        ("in the first place, 2 decimal places; it takes place", 0),
    ],
)
def test_words_are_found_in_prose_and_in_names(text, count):
    assert len(unwanted(text)) == count


def test_no_summary_of_a_docstring_asks():
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef
    found = []
    for path in files(".py"):
        if path.is_relative_to(ROOT / "tests"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = ast.get_docstring(node) if isinstance(node, kinds) else None
            if FIRST_WORDS.match(text or ""):
                line = getattr(node, "lineno", 1)
                found.append(f"{path.relative_to(ROOT)}:{line}")
    assert found == [], f"{len(found)} summaries"
