"""Each task keeps the promises of `Task`; see `conformance`."""

import dataclasses
import importlib
import pathlib
import re
import sys

import numpy as np
import pytest

from bert import tasks
from bert.common.errors import UserError
from bert.data.labels import (
    CLASSES,
    MULTI_LABEL,
    REGRESSION,
    Labels,
    PostProcessing,
)
from bert.data.pooling import PoolingConfig
from bert.data.sequences import LongTexts
from bert.modeling.task_heads import (
    CHOICES,
    CLASSIFIER,
    HEADS,
    MASKED_LM,
    SPANS,
    TOKENS,
)
from bert.tasks.classification.files import TextExample
from bert.tasks.classification.task import TextClassification
from bert.tasks.fill_mask.task import MaskedWords, check_length
from bert.tasks.ner.conll import Sentence
from bert.tasks.ner.task import TokenClassification
from bert.tasks.similarity.task import TextEmbedding, TextGroup
from bert.tasks.squad.examples import Answer, SquadExample
from bert.tasks.squad.settings import Settings
from bert.tasks.squad.task import QuestionAnswering
from bert.tasks.swag.examples import ChoiceExample
from bert.tasks.swag.task import MultipleChoice
from tests.helpers import small, text
from tests.tasks import conformance
from tests.tasks.conformance import LONG

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "adding_a_task.md"
S = small.POSITIONS
TEXTS = ["the cat sees a dog", "a bird", "red fish, old house.", LONG]
ODD = ["", " \t", "zzz\x00", LONG, "Tree" * 97]


@pytest.mark.parametrize(
    ("kind", "decision", "long_texts", "has_pairs"),
    [
        (
            CLASSES,
            PostProcessing((), (0.1, -0.2, 0.3), 1.5, 0.01),
            LongTexts("head_tail"),
            None,
        ),
        (
            MULTI_LABEL,
            PostProcessing((0.5, -1.0, 0.0), temperature=0.7),
            LongTexts(pool="max", stride=4),
            False,
        ),
        (REGRESSION, PostProcessing(), LongTexts("tail"), True),
    ],
)
def test_classification(tmp_path, kind, decision, long_texts, has_pairs):
    names = () if kind == REGRESSION else ("a", "b", "1")
    labels = Labels(kind, names, decision=decision)
    model = conformance.model_of(tmp_path, CLASSIFIER, labels.size)
    task = TextClassification(
        *(model.tokenizer, labels, S - 2, long_texts, has_pairs)
    )
    known = {CLASSES: [2, 0, 1, 1], REGRESSION: [0.5, 1.0, -2.0, 3.0]}
    known[MULTI_LABEL] = [[1, 0, 1], [0, 0, 0], [1, 1, 0], [0, 1, 1]]
    second = "" if has_pairs is False else "a small tree"
    rows = [
        TextExample(text=x, text_b=second, label=label)
        for x, label in zip(TEXTS, known[kind])
    ]

    def relabel(rows, predictions):
        def label(found):
            if kind == CLASSES:
                return names.index(found["label"])
            if kind == MULTI_LABEL:
                return [int(name in found["label"]) for name in names]
            return found["value"]

        pairs = zip(rows, map(label, predictions))
        return [row._replace(label=x) for row, x in pairs]

    odd = [{"text": x, "text_b": second and x} for x in ODD]
    conformance.check(tmp_path, task, model, odd, rows, relabel)


@pytest.mark.parametrize("version_2", [True, False])
def test_question_answering(tmp_path, version_2):
    model = conformance.model_of(tmp_path, SPANS, 2)
    settings = dataclasses.replace(
        Settings(),
        max_seq_length=S,
        max_query_length=4,
        doc_stride=3,
        version_2_with_negative=version_2,
        null_score_diff_threshold=0.5,
        max_answer_length=3,
    )
    task = QuestionAnswering(model.tokenizer, settings)
    # Without articles, which do not count.
    contexts = ["old cat sees dog", "red dog", "old cat sees dog near " * 9]
    rows = [
        SquadExample(str(i), "the old cat", x, (Answer(x.split()[1], 4),))
        for i, x in enumerate(contexts)
    ]
    if version_2:
        rows.append(SquadExample("x", "a bird", contexts[0], (), True))

    def relabel(rows, predictions):
        texts = [x["answer"] for x in predictions]
        return [
            dataclasses.replace(
                row, answers=(Answer(x),) if x else (), impossible=not x
            )
            for row, x in zip(rows, texts)
        ]

    assert QuestionAnswering.from_model(model).max_length == S
    silent = {"best_exact/majority": 25.0} if version_2 else {}
    assert task.baselines(rows, [], rows, settings) == silent
    odd = [{"question": a, "context": b} for a in ("", LONG) for b in ODD]
    conformance.check(tmp_path, task, model, odd, rows, relabel, 100.0)


@pytest.mark.parametrize("document_context", [True, False])
def test_token_classification(tmp_path, document_context):
    names = ["O", "B-X", "I-X"]
    model = conformance.model_of(tmp_path, TOKENS, 3)
    task = TokenClassification(
        *(model.tokenizer, names, True, S),
        stride=2,
        document_context=document_context,
    )
    rows = [
        Sentence(x.split(), (names * 30)[: len(x.split())], [], i // 2)
        for i, x in enumerate(TEXTS)
    ]

    def relabel(rows, predictions):
        labels = iter([y["label"] for x in predictions for y in x["words"]])
        return [
            dataclasses.replace(x, labels=[next(labels) for _ in x.words])
            for x in rows
        ]

    # A label that is not in the training file is never right.
    row = dataclasses.replace(rows[0], labels=["B-Y"] * len(rows[0].words))
    assert task.baselines([row], [], rows, None)["accuracy/majority"] == 0.0

    odd = [{"text": x} for x in ODD]
    odd += [{"words": []}, {"words": ["the", "zzz" * 40, "\x00"]}]
    odd.append({"text": "old (dog)", "signature": "words"})
    conformance.check(tmp_path, task, model, odd, rows, relabel)


def test_multiple_choice(tmp_path):
    model = conformance.model_of(tmp_path, CHOICES)
    task = MultipleChoice(model.tokenizer, S, sequences=3)
    choices = ["sees a cat", "a", LONG]
    rows = [
        ChoiceExample(x, choices[: 2 + i % 2], i % 2, i)
        for i, x in enumerate(TEXTS)
    ]

    def relabel(rows, predictions):
        return [
            dataclasses.replace(row, label=x["best"])
            for row, x in zip(rows, predictions)
        ]

    assert MultipleChoice.from_model(model).max_length == S
    odd = [{"context": x, "choices": [LONG, "", "a"]} for x in ODD]
    odd += [{"context": "a", "choices": ["", " "]}]
    conformance.check(tmp_path, task, model, odd, rows, relabel)


def test_embeddings(tmp_path):
    pooling = PoolingConfig("max", True, {"q": "the old "}, "q", 5)
    model = conformance.model_of(tmp_path, None, pooling_config=pooling)
    task = TextEmbedding(model.tokenizer, pooling, S, has_scores=True)
    rows = [
        TextGroup([a, b], i / 3)
        for i, (a, b) in enumerate(zip(TEXTS, TEXTS[1:]))
    ]

    def relabel(rows, predictions):
        x = np.array([y["vector"] for y in predictions]).reshape(-1, 2, 5)
        cosines = (x[:, 0] * x[:, 1]).sum(-1)
        return [row._replace(score=y) for row, y in zip(rows, cosines)]

    odd = [{"text": x} for x in ODD]
    task.metric = "spearman_cosine"
    conformance.check(tmp_path, task, model, odd, rows, relabel)


def test_masked_words(tmp_path):
    model = conformance.model_of(tmp_path, MASKED_LM)
    task = MaskedWords(model.tokenizer, S)
    (encoded,) = task.encode([{"text": "the [MASK] sees [MASK]"}])
    assert encoded.positions == [2, 4]
    check_length(encoded, 6)
    with pytest.raises(UserError, match="6 tokens; expected at most 5"):
        check_length(encoded, 5)
    words = MaskedWords(model.tokenizer, S, words=text.WORDS[:7])
    (found,) = words.combine(encoded, [np.arange(len(text.VOCABULARY)) / 9])
    assert [word for word, _ in found] == text.WORDS[6::-1]
    odd = [{"text": f"{x} [MASK] sees [MASK]"} for x in ODD]
    odd += [{"text": x} for x in ("", "[MASK]" * 40)]
    conformance.check(tmp_path, task, model, odd)


@pytest.mark.parametrize("head", [CHOICES, "ordering"])
def test_the_task_of_the_documentation(tmp_path, monkeypatch, head):
    """Docs: adding_a_task.md, with a head of another task or a new one."""
    new = HEADS[CHOICES]._replace(
        scope="cls/ordering/",
        architecture=None,
        their_layer="cls.ordering",
        pipeline_tag="text-ranking",
    )
    monkeypatch.setitem(HEADS, "ordering", new)
    blocks = re.findall(
        r"^### `bert/tasks/(ordering/\w+.py)`\n\n```python\n(.*?)^```$",
        PAGE.read_text(),
        re.M | re.S,
    )
    (tmp_path / "ordering").mkdir()
    for name, code in blocks:
        (tmp_path / name).write_text(code)
    path = [*tasks.__path__, str(tmp_path)]
    monkeypatch.setattr(tasks, "__path__", path)
    for name in ("", ".settings", ".task"):
        name = f"bert.tasks.ordering{name}"
        module = importlib.import_module(name)
        monkeypatch.delitem(sys.modules, name)

    class TextOrdering(module.TextOrdering):
        def to_json(self):
            return super().to_json() | {"own": [1, 2]}

    TextOrdering.head = head
    model = conformance.model_of(tmp_path, head)
    task = TextOrdering(model.tokenizer, S)
    rows = [
        {"text": a, "text_b": b, "label": i % 2}
        for i, (a, b) in enumerate(zip(TEXTS, TEXTS[1:]))
    ]

    def relabel(rows, predictions):
        return [
            row | {"label": x["first"]} for row, x in zip(rows, predictions)
        ]

    odd = [{"text": x, "text_b": y} for x in ODD for y in ("", "a dog")]
    conformance.check(tmp_path, task, model, odd, rows, relabel)
