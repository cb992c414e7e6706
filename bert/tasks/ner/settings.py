"""Settings of run_ner.py."""

import dataclasses

from bert.common.flags import RARE, flag
from bert.common.rules import at_most, excludes
from bert.tasks.finetuning_settings import FineTuning
from bert.tasks.ner.entities import ANY, ENTITIES
from bert.tasks.recipe import RecipeFlags


@dataclasses.dataclass(frozen=True)
class Settings(FineTuning, RecipeFlags):
    """Settings of run_ner.py."""

    RULES = [
        excludes("num_folds", "eval_file"),
        at_most(
            "doc_stride", lambda s: (s.max_seq_length - 2) // 2, "half a window"
        ),
    ]
    unit = "windows"

    train_file: str | None = flag(
        None,
        "File with a word and its label per line, for --do_train.",
        path=True,
    )
    eval_file: str | None = flag(
        None, "Labelled file for --do_eval and --eval_steps.", path=True
    )
    predict_file: str | None = flag(
        None, "File with a word per line, for --do_predict.", path=True
    )
    word_column: int = flag(0, "Column of the words.", at_least=0)
    label_column: int = flag(-1, "Column of the labels; -1 is the last.")
    doc_stride: int = flag(
        0,
        "Tokens between the starts of two windows; 0 for half a window.",
        at_least=0,
        recorded=True,
        topic=RARE,
    )
    label_kind: str = flag(
        "auto",
        "Kind of the labels: entities (IOB1, BIO, IOBES, BILOU) or any.",
        choices=("auto", ENTITIES, ANY),
        topic=RARE,
    )
    document_context: bool = flag(
        False,
        "Let windows span several sentences of a document.",
        recorded=True,
    )
