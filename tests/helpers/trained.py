"""A run of each task, made by its script, that no test changes.

TEXTS and others -> files -> run_classifier.py, ... -> run, export
"""

import contextlib
import json
import pathlib
import random
from collections.abc import Callable
from typing import NamedTuple

import pytest

import run_classifier
import run_ner
import run_similarity
import run_squad
import run_swag
from bert.common.formats import tensor_files
from bert.data.text import tokenization, vocabulary
from bert.modeling import networks
from bert.modeling.formats import sentence_files
from bert.modeling.formats.sentence_files import PoolingConfig
from tests.helpers import (
    determinism,
    model_files,
    names,
    once,
    small,
    squad_files,
    swag_files,
    text,
)

L, S, POSITIONS = 1, 17, 19
RATE = 0.004  # of learning
PATHS = "_file", "_dir", "_checkpoint"  # endings of flags
LONG = " ".join(random.Random(1).choices(text.WORDS, k=53))
TEXTS = [
    "the cat sees a dog",
    "a tree",
    "zzz",
    LONG,
    "cat" * 97,  # longer than the tokenizer's longest word
    "...!?¿—",
    "Étude: 日本語 Straße привет 한국어 नमस्ते صباح",
    "e\u0301te\u0301 I\u0307stanbul \u03a3\u0391\u03a3 \u1e9b\u0323 🐈",
    "the\x00 cat\x07\u200bsees\ufffd\u00a0a\u2028dog\x1b",
    "the house near the river, (old) 'and' warm",
]
BLANK = ["", " \t\u3000 ", "\x00\x07"]  # without any token
CONTEXTS = [
    f"Anna lives in Paris. {LONG} Bob, in Oslo, sees the Étude: 日本語.",
    *TEXTS,
]
QUESTIONS = ["Where does Anna live?", LONG, "日本?", "..."]
CHOICES = [[a, b, c] for a, b, c in zip(TEXTS, TEXTS[3:], TEXTS[5:])]
SENTENCES = [
    ["the", "cat", "sees", "Anna", "Bob"],
    ["zzz"],
    LONG.split(),
    ["cat" * 97, "...!?¿—", "日本語", "Étude", "e\u0301te\u0301", "🐈"],
    ["\u200b", "a\ufffd", "\u00a0", "(old)", "\ufe0f"],
]
TAGS = [
    [
        ["O", "B-PER", "I-PER", "B-LOC"][(i // 2 + len(x)) % 4]
        for i, x in enumerate(words)
    ]
    for words in SENTENCES
]
LABELS = ["yes", "no", "maybe é"]
SEVERAL = [LABELS[: i % 4] for i in range(13)]
NUMBERS = [i % 5 - 2.5 for i in range(13)]
SINGLE = [(x, "") for x in [*TEXTS, *BLANK]]
PAIRS = [
    *zip(TEXTS, [*TEXTS[3:], *TEXTS[:3]]),
    *((x, y) for x in BLANK for y in (*BLANK, TEXTS[0])),
    *((TEXTS[3], x) for x in BLANK),
]
ASKED_QUESTIONS = [
    (QUESTIONS[i % len(QUESTIONS)], x) for i, x in enumerate(CONTEXTS)
]


class Run(NamedTuple):
    """A run and its export.

    Attributes:
        run: folder of the checkpoints and the files of predictions.
        export: folder of the export.
    """

    run: pathlib.Path
    export: pathlib.Path


def folder(factory: pytest.TempPathFactory, name: str) -> Run:
    """The run of a task, shared by all tests.

    Args:
        factory: `tmp_path_factory`.
        name: key of `TASKS`.
    """

    def write(folder: pathlib.Path) -> None:
        script, _, write_files = TASKS[name]
        write_model(folder)
        write_files(folder)
        flags = flags_of(folder, name)
        words = [f"--{key}={value}" for key, value in flags.items()]
        with (
            pytest.MonkeyPatch.context() as patch,
            open(folder / "printed.txt", "w") as file,
            contextlib.redirect_stdout(file),
        ):
            patch.setattr(networks, "POOLED_DROPOUT", 0.0)
            script.main([f"{script.__name__}.py", *words])
        determinism.end()

    made = once.written(factory, f"trained_{name}", write)
    return Run(made / "run", made / "export")


def flags_of(folder: pathlib.Path, name: str, **changed) -> dict:
    """Flags of the run of a task.

    Args:
        folder: of its files.
        name: key of `TASKS`.
        **changed: other values; None omits a flag.
    """
    flags = {
        "bert_config_file": "bert_config.json",
        "vocab_file": "vocab.txt",
        "init_checkpoint": "bert_model.ckpt",
        "do_lower_case": True,
        "length_buckets": False,
        "max_seq_length": S,
        "train_batch_size": 7,
        "num_train_epochs": 2,
        "learning_rate": RATE,
        "do_train": True,
        "do_predict": True,
        "report": False,
        "output_dir": "run",
        "export_dir": "export",
        **TASKS[name][1],
        **changed,
    }
    return {
        key: folder / x if key.endswith(PATHS) else x
        for key, x in flags.items()
        if x is not None
    }


def write_model(folder: pathlib.Path, **changed: float) -> None:
    """Writes vocab.txt, bert_config.json and random weights.

    Args:
        folder: to write to.
        **changed: values of the config.
    """
    config = model_files.write_sizes(
        folder,
        tokens=tokens(),
        max_position_embeddings=POSITIONS,
        num_hidden_layers=L,
        **changed,
    )
    network = networks.build_similarity_model(config, "mean")
    values = model_files.random_values(network, 0.4)
    tensor_files.write(str(folder / "bert_model.ckpt"), values)


def tokens() -> list[str]:
    """A vocabulary of words, and of most characters of the texts."""
    basic = tokenization.BasicTokenizer(do_lower_case=True)
    words = basic.tokenize(" ".join([*CONTEXTS, *QUESTIONS]))
    letters = sorted({c for word in words for c in word} - set("🐈z"))
    pieces = [f"##{c}" for c in letters]
    more = [*squad_files.WORDS, *text.WORDS]
    return [
        *dict.fromkeys([*vocabulary.SPECIAL_TOKENS, *letters, *pieces, *more])
    ]


def _write_lines(path: pathlib.Path, rows) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def _write_texts(label_of: Callable, has_pairs: bool = False) -> Callable:
    """A function that writes the files of run_classifier.py.

    Args:
        label_of: number of an example -> its label.
        has_pairs: whether an example has two texts.
    """

    def write(folder: pathlib.Path) -> None:
        for name in ("train", "asked"):
            rows = []
            for number, (a, b) in enumerate(PAIRS if has_pairs else SINGLE):
                rows.append({"text": a, "text_b": b})
                if not has_pairs:
                    del rows[-1]["text_b"]
                if name == "train":
                    rows[-1]["label"] = label_of(number)
            _write_lines(folder / f"{name}.jsonl", rows)

    return write


def _write_questions(folder: pathlib.Path) -> None:
    squad_files.write(folder / "train.json", 16, seed=1)
    paragraphs = []
    for number, (question, context) in enumerate(ASKED_QUESTIONS):
        words = context.split()
        answers = [{"text": x, "answer_start": context.index(x)} for x in words]
        qa = {"id": f"q{number}", "question": question, "answers": answers}
        qa["is_impossible"] = not answers
        paragraphs.append({"context": context, "qas": [qa]})
    content = json.dumps({"data": [{"paragraphs": paragraphs}]})
    (folder / "asked.json").write_text(content)


def _write_words(folder: pathlib.Path) -> None:
    lines = [
        "".join(f"{word}\t{tag}\n" for word, tag in zip(words, tags))
        for words, tags in zip(SENTENCES, TAGS)
    ]
    for name in ("train", "asked"):
        (folder / f"{name}.txt").write_text("\n".join(lines))


def _write_choices(folder: pathlib.Path) -> None:
    rows = [
        {"context": context, "choices": choices, "label": i % 3}
        for i, (context, choices) in enumerate(zip(TEXTS, CHOICES * 3))
    ]
    for name in ("train", "asked"):
        _write_lines(folder / f"{name}.jsonl", rows)


def _write_similar(folder: pathlib.Path) -> None:
    said = PoolingConfig("mean", True, {"query": "the cat: "}, "query")
    sentence_files.write(str(folder), said, small.H, POSITIONS)
    rows = [
        {"text": a, "text_b": b, "score": i / 10}
        for i, (a, b) in enumerate(zip(TEXTS, TEXTS[1:]))
    ]
    for name in ("train", "asked"):
        _write_lines(folder / f"{name}.jsonl", rows)


def _write_names(folder: pathlib.Path) -> None:
    """Sentences of a grammar that tells the kind of a name."""
    model_files.write_sizes(
        folder, tokens=names.vocabulary(), max_position_embeddings=19, **_LARGER
    )
    rng = random.Random(1)
    for name, count, every in (("train", 3000, 2), ("eval", 211, 5)):
        sentences = [
            names.sentence(rng, rng.randint(1, 3)) for _ in range(count)
        ]
        names.write(folder / f"{name}.txt", sentences, every)


def _write_cities(folder: pathlib.Path) -> None:
    """Questions that the word after "in" answers."""
    model_files.write_sizes(
        folder,
        tokens=squad_files.VOCABULARY,
        hidden_size=30,
        max_position_embeddings=43,
    )
    for name, count, seed in (("train", 97, 1), ("dev", 31, 2)):
        squad_files.write(folder / f"{name}.json", count, seed)


def _write_likes(folder: pathlib.Path) -> None:
    """Choices of what the animal of the context likes."""
    model_files.write_sizes(
        folder,
        tokens=swag_files.VOCABULARY,
        max_position_embeddings=swag_files.S,
        **_LARGER,
    )
    swag_files.write_csv(folder / "train.csv", 997, 1)
    swag_files.write_csv(folder / "val.csv", 199, 2)
    swag_files.write_csv(folder / "test.csv", 61, 3, labelled=False)


_LARGER = {
    "hidden_size": 24,
    "num_attention_heads": 3,
    "intermediate_size": 37,
}
# Batches of all examples, whose order is of no account.
_WHOLE = {
    "train_batch_size": 13,
    "num_train_epochs": 24,
    "random_seed": 1,
    "do_eval": True,
}
# From random weights, on examples that can be learned.
_LEARNS = {"init_checkpoint": None, "export_dir": None, "do_eval": True}
_SHARED = {"train_file": "train.jsonl", "predict_file": "asked.jsonl"}
_TEXTS = (
    _WHOLE
    | _SHARED
    | {
        "task_name": "jsonl",
        "recipe": "original",
        "eval_file": "train.jsonl",
        "tfidf_baseline": False,
    }
)
_QUESTIONS = _WHOLE | {
    "train_batch_size": 40,
    "train_file": "train.json",
    "predict_file": "asked.json",
    "max_query_length": 5,
    "version_2_with_negative": True,
}
_WORDS = _WHOLE | {
    "recipe": "original",
    "train_batch_size": 12,
    "train_file": "train.txt",
    "eval_file": "train.txt",
    "predict_file": "asked.txt",
}
TASKS: dict[str, tuple] = {  # name -> script, flags, function that writes files
    "labels": (
        run_classifier,
        _TEXTS
        | {
            "labels": ",".join(LABELS),
            "class_weights": "balanced",
            "calibrate": True,
            "unknown_below": 0.82,
        },
        _write_texts(lambda i: LABELS[i * i % 3]),
    ),
    "several": (
        run_classifier,
        _TEXTS
        | {
            "labels": ",".join(LABELS),
            "multi_label": True,
            "tune_thresholds": True,
        },
        _write_texts(SEVERAL.__getitem__),
    ),
    "numbers": (
        run_classifier,
        _TEXTS
        | {
            "regression": True,
            "truncate": "head_tail",
        },
        _write_texts(NUMBERS.__getitem__),
    ),
    "pairs": (
        run_classifier,
        _TEXTS
        | {
            "text_b_column": "text_b",
            "text_column": "text",
            "labels": "1,0",
            "train_batch_size": 25,
        },
        _write_texts(lambda i: str(i % 2), has_pairs=True),
    ),
    "windows": (
        run_classifier,
        _TEXTS
        | {
            "labels": ",".join(LABELS),
            "long_texts": "windows",
            "pool_windows": "max",
            "doc_stride": 7,
            "multi_label": True,
            "tune_thresholds": True,
            "calibrate": True,
        },
        _write_texts(SEVERAL.__getitem__),
    ),
    "questions": (
        run_squad,
        _QUESTIONS
        | {
            "doc_stride": 4,
            "n_best_size": 5,
            "max_answer_length": 4,
            "null_score_diff_threshold": 1.3,
        },
        _write_questions,
    ),
    "alignment": (
        run_squad,
        _QUESTIONS | {"answer_text": "original"},
        _write_questions,
    ),
    "words": (run_ner, _WORDS, _write_words),
    "documents": (
        run_ner,
        _WORDS | {"doc_stride": 3, "document_context": True},
        _write_words,
    ),
    "choices": (run_swag, _SHARED, _write_choices),
    "vectors": (
        run_similarity,
        _SHARED | {"text_columns": "text,text_b"},
        _write_similar,
    ),
    "names": (
        run_ner,
        _LEARNS
        | {
            "train_file": "train.txt",
            "eval_file": "eval.txt",
            "predict_file": "eval.txt",
            "max_seq_length": 19,
            "train_batch_size": 61,
            "eval_batch_size": 29,
            "num_train_epochs": 8,
            "document_context": True,
        },
        _write_names,
    ),
    "cities": (
        run_squad,
        _LEARNS
        | {
            "train_file": "train.json",
            "predict_file": "dev.json",
            "max_seq_length": 23,
            "max_query_length": 7,
            "doc_stride": 5,
            "n_best_size": 5,
            "max_answer_length": 3,
            "train_batch_size": 13,
            "learning_rate": 0.003,
            "num_train_epochs": 12,
            "version_2_with_negative": True,
            "tune_null_threshold": True,
        },
        _write_cities,
    ),
    "likes": (
        run_swag,
        _LEARNS
        | {
            "train_file": "train.csv",
            "eval_file": "val.csv",
            "predict_file": "test.csv",
            "max_seq_length": swag_files.S,
            "train_batch_size": 31,
            "eval_batch_size": 29,
            "num_train_epochs": 6,
            "eval_steps": 97,
        },
        _write_likes,
    ),
}
