"""Lines of the files of GLUE and XNLI, in their real formats.

In `fixtures/glue.txt` a heading names the task, the split and the file; what
follows `->` are the examples of the lines above.
"""

import pathlib

FILE = pathlib.Path(__file__).parents[1] / "fixtures" / "glue.txt"


def _example(line, task):
    number, text, text_b, label = line.split("\t")
    parse = float if task == "stsb" else int
    return number, text, text_b, parse(label) if label else None


def _read():
    cases, dev_lines = {}, {}
    for part in FILE.read_text(encoding="utf-8").split("## ")[1:]:
        heading, *lines = part.splitlines()
        task, split, file = heading.split()
        if split == "own":
            dev_lines[task] = lines
            continue
        end = lines.index("->")
        examples = [_example(line, task) for line in lines[end + 1 :]]
        cases.setdefault(task, []).append((split, file, lines[:end], examples))
    return cases, dev_lines


# Task -> (split, file, its lines, the examples in it); and the lines of dev
# files whose columns differ from those of test files.
CASES, DEV_LINES = _read()
