"""Folds of the training file of each task but classification."""

import json

import pytest

import run_ner
import run_similarity
import run_squad
import run_swag
from bert.common import command_line
from bert.runs import sweep
from bert.tasks.ner import inputs as ner
from bert.tasks.similarity import inputs as similarity
from bert.tasks.squad import inputs as squad
from bert.tasks.swag import inputs as swag
from bert.tasks.task import DEV, TRAIN
from tests.helpers import run_folders

K = 3
PARTS = TRAIN, DEV


def write_lines(path, rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def write_questions(path):
    """Titles of two paragraphs each, and paragraphs without a title."""
    articles = []
    for i in range(7):
        paragraphs = [
            {"context": f"c{i}{x}", "qas": [question(f"{i}{x}{y}") for y in z]}
            for x, z in (("a", "12"), ("b", "3"))
        ]
        articles.append({"title": f"t{i}" * (i < 5), "paragraphs": paragraphs})
    path.write_text(json.dumps({"data": articles}))


def question(key):
    answer = {"text": "c", "answer_start": 0}
    return {"id": key, "question": "?", "answers": [answer]}


def write_words(path):
    documents = [f"w{i} O\n\nx{i} O\n" for i in range(7)]
    path.write_text("\n-DOCSTART- O\n\n".join(documents))


def write_sentences(path):
    """Without documents: copies of seven sentences."""
    path.write_text("\n".join(f"w{i % 7} O\n" for i in range(19)))


def write_choices(path):
    rows = [
        {"context": f"c{i % 7}", "choices": ["a", f"b{i}"], "label": 0}
        for i in range(19)
    ]
    write_lines(path, rows)


def write_similar(path):
    rows = [
        {"text": f"t{i % 7}", "text_b": f"u{i}", "score": i} for i in range(19)
    ]
    write_lines(path, rows)


TASKS = {  # script, writer, reader, rows -> (row, its key) of each
    "questions": (
        run_squad,
        write_questions,
        squad.read,
        lambda x: [(q.id, q.title or q.context) for q in x],
    ),
    "documents": (
        run_ner,
        write_words,
        ner.read,
        lambda x: [(y.words[0], y.document) for y in x],
    ),
    "sentences": (
        run_ner,
        write_sentences,
        ner.read,
        lambda x: [(y.lines[0], y.words[0]) for y in x],
    ),
    "choices": (
        run_swag,
        write_choices,
        swag.read,
        lambda x: [(y.choices[1], y.context) for y in x],
    ),
    "vectors": (
        run_similarity,
        write_similar,
        similarity.read,
        lambda x: [((*y.texts, y.score), y.texts[0]) for y in x],
    ),
}


@pytest.mark.parametrize("name", TASKS)
def test_related_rows_are_held_out_together(tmp_path, name):
    script, write, read, pairs_of = TASKS[name]
    suffix = "txt" if script is run_ner else "jsonl"
    path = tmp_path / f"train.{suffix}"
    write(path)
    words = ["--do_train", "--do_eval", f"--num_folds={K}", "--output_dir=x"]
    settings = command_line.parse(
        ["script", *words, f"--train_file={path}"], script.Settings, ""
    )

    def rows_of(settings):
        _, files = read(run_folders.opened(settings))
        return [
            [y for x in files[part] for y in pairs_of(x.rows)] for part in PARTS
        ]

    whole, none = rows_of(settings)
    assert not none
    seen = []
    for trial in sweep.expand_trials(settings):
        train, held_out = rows_of(trial.settings)
        assert sorted(train + held_out) == sorted(whole)
        assert not {x for _, x in train} & {x for _, x in held_out}
        seen += held_out
    assert sorted(seen) == sorted(whole)
