"""Folds of the training file of each task but classification."""

import json

import pytest

import run_ner
import run_similarity
import run_squad
import run_swag
from bert.common.errors import UserError
from bert.runs import sweep
from bert.tasks.ner import inputs as ner
from bert.tasks.similarity import inputs as similarity
from bert.tasks.squad import inputs as squad
from bert.tasks.swag import inputs as swag
from bert.tasks.task import DEV, TRAIN
from tests.helpers import run_folders

K = 3


def article(i):
    """A title of two paragraphs; the last ones have no title."""
    qas = [
        {"id": f"{i}{x}", "question": "?", "answers": [ANSWER]} for x in "abc"
    ]
    paragraphs = [
        {"context": f"c{i}", "qas": qas[:2]},
        {"context": f"d{i}", "qas": qas[2:]},
    ]
    return {"title": f"t{i}" * (i < 5), "paragraphs": paragraphs}


ANSWER = {"text": "c", "answer_start": 0}
QUESTIONS = json.dumps({"data": [article(i) for i in range(7)]})
DOCUMENTS = "\n-DOCSTART- O\n\n".join(f"w{i} O\n\nsame O\n" for i in range(7))
SENTENCES = "\n".join(f"w{i % 7} O\n" for i in range(19))  # without documents
CHOICES = "".join(
    json.dumps({"context": f"c{i % 7}", "choices": ["a", f"b{i}"], "label": 0})
    + "\n"
    for i in range(19)
)
SIMILAR = "".join(
    json.dumps({"text": f"t{i % 7}", "text_b": f"u{i}", "score": i}) + "\n"
    for i in range(19)
)
TASKS = {  # script, file, reader, (row, its key) of a row
    "questions": (
        run_squad,
        QUESTIONS,
        squad.read,
        lambda x: (x.id, x.title or x.context),
    ),
    "documents": (
        run_ner,
        DOCUMENTS,
        ner.read,
        lambda x: (x.lines[0], x.document),
    ),
    "sentences": (
        run_ner,
        SENTENCES,
        ner.read,
        lambda x: (x.lines[0], x.words[0]),
    ),
    "choices": (
        run_swag,
        CHOICES,
        swag.read,
        lambda x: (x.choices[1], x.context),
    ),
    "vectors": (
        run_similarity,
        SIMILAR,
        similarity.read,
        lambda x: ((*x.texts, x.score), x.texts[0]),
    ),
}


@pytest.mark.parametrize("name", TASKS)
def test_related_rows_are_held_out_together(tmp_path, name):
    script, content, read, pair_of = TASKS[name]
    path = tmp_path / f"train.{'txt' if script is run_ner else 'jsonl'}"
    path.write_text(content)

    def settings_of(**named):
        words = "--do_train", "--do_eval"
        named["train_file"] = path
        return run_folders.parse(script.Settings, *words, **named)

    def rows_of(settings):
        _, files = read(run_folders.opened(settings))
        return [
            [pair_of(x) for file in files[part] for x in file.rows]
            for part in (TRAIN, DEV)
        ]

    folds = {}
    for seed in (7, 8, -2):
        settings = settings_of(num_folds=K, random_seed=seed)
        whole, none = rows_of(settings)
        assert not none
        seen = folds[seed] = []
        for trial in sweep.expand_trials(settings):
            train, held_out = rows_of(trial.settings)
            assert sorted(train + held_out) == sorted(whole)
            assert not {x for _, x in train} & {x for _, x in held_out}
            seen.append(held_out)
        assert sorted(sum(seen, [])) == sorted(whole)
    assert folds[7] != folds[8]

    groups = len({key for _, key in whole})
    *_, last = sweep.expand_trials(settings_of(num_folds=groups))
    assert len({key for _, key in rows_of(last.settings)[1]}) == 1
    *_, last = sweep.expand_trials(settings_of(num_folds=groups + 1))
    with pytest.raises(UserError, match=f"={groups + 1} with {groups} diff"):
        rows_of(last.settings)
