r"""Fine-tunes a BERT to label words: names, parts of speech, anything.

    python run_ner.py --train_file=train.txt --eval_file=valid.txt \
        --predict_file=test.txt --do_train --do_eval --do_predict \
        --vocab_file=vocab.txt --bert_config_file=bert_config.json \
        --init_checkpoint=bert_model.ckpt --output_dir=ner \
        --do_lower_case=False --document_context

Files hold a word a line, its label in the last column (--label_column), a
blank line between sentences and -DOCSTART- between documents.
"""

import dataclasses
import itertools
import json
import os
import sys
from collections.abc import Iterable, Iterator

from absl import flags

from common.errors import UserError
from common.progress import say
from common.storage import write_whole
from data import features
from modeling.formats import model_folder
from tasks import common_flags, finetuning, output_dir, task_run, training_flags
from tasks.ner import conll, entities, windows
from tasks.ner import metrics as scoring
from tasks.ner.entities import ANY, ENTITIES

_TASK_FILE = "task.json"


def define_flags(values: flags.FlagValues) -> None:
    """Defines this script's flags."""
    finetuning.define_flags(values)
    for name, meaning in (
        ("train_file", "Words in columns, for --do_train."),
        ("eval_file", "The same, for --do_eval and --eval_steps."),
        ("predict_file", "Words to label, for --do_predict."),
        ("export_dir", "Write a SavedModel, text to entities, there."),
    ):
        flags.DEFINE_string(name, None, meaning, flag_values=values)
    for name, default, lowest, meaning in (
        ("word_column", 0, 0, "Column of the words."),
        ("label_column", -1, None, "Column of the labels; -1 is the last."),
        ("doc_stride", 0, 0, "Pieces between two rows; 0: half a row."),
    ):
        flags.DEFINE_integer(
            name, default, meaning, flag_values=values, lower_bound=lowest
        )
    flags.DEFINE_enum(
        "label_kind",
        "auto",
        ["auto", ENTITIES, ANY],
        "What labels are: entities (IOB1, BIO, IOBES, BILOU) or any.",
        flag_values=values,
    )
    flags.DEFINE_bool(
        "document_context",
        False,
        "Let rows run over sentences, as far as their document goes.",
        flag_values=values,
    )


@dataclasses.dataclass(frozen=True)
class Job:
    """What the command line asks for, checked.

    Attributes:
        flags: read from it.
        setup: the network's config and more.
        kind: of the labels, `entities` or `any`.
        labels: of the network, in the order of their ids.
        sentences: flag of a file -> what it holds.
    """

    flags: flags.FlagValues
    setup: finetuning.Setup
    kind: str
    labels: list[str]
    sentences: dict[str, list[conll.Sentence]]


def read_flags(argv: list[str]) -> Job:
    """Reads and checks the command line, and the files."""
    values = common_flags.parse(argv, define_flags, __doc__)
    paths = task_run.wanted_files(values)
    half = (values.max_seq_length - 2) // 2
    if values.doc_stride > half:
        raise UserError(
            f"--doc_stride={values.doc_stride}",
            expected=f"at most half a row, {half}",
        )
    setup = finetuning.check(values)
    sentences = {}
    for name, path in paths.items():
        common_flags.list_files(path, name)
        label = None if name == "predict_file" else values.label_column
        columns = conll.Columns(values.word_column, label)
        sentences[name] = conll.read(path, columns)
    kind, labels = _find_labels(values, sentences)
    model_folder.warn_vocabulary(
        values,
        setup.config,
        (" ".join(x.words) for some in sentences.values() for x in some),
    )
    return Job(values, setup, kind, labels, sentences)


def _find_labels(
    values: flags.FlagValues, sentences: dict
) -> tuple[str, list[str]]:
    """Kind and names of the labels; entities in the files become BIO."""
    task = recorded_task(values)
    kind = task["kind"] if task else values.label_kind
    for name, some in sentences.items():
        if name == "predict_file" or kind == ANY:
            continue
        marked = conll.has_entities(some, values[name].value)
        if not marked and kind == ENTITIES:
            raise UserError(
                f"labels such as {some[0].labels[0]!r}",
                path=values[name].value,
                line=some[0].line,
                expected="O, B- and a type, I- and a type",
                fix="see --label_kind and --label_column",
            )
        kind = ENTITIES if marked else ANY
        for sentence in some if marked else ():
            sentence.labels = entities.to_bio(sentence.labels)
    if "train_file" not in sentences:
        if task is None:
            raise UserError(
                "the labels are not known",
                path=values.output_dir,
                expected=f"{_TASK_FILE} of a trained model",
                fix="pass --do_train, or the --output_dir of the training",
            )
        return kind, task["labels"]
    found = {y for x in sentences["train_file"] for y in x.labels}
    labels = sorted(found)
    if kind == ENTITIES:
        labels = entities.bio_labels(
            label[2:] for label in found if label != entities.OUTSIDE
        )
    _check_recorded(values.output_dir, task, labels)
    return kind, labels


def recorded_task(values: flags.FlagValues) -> dict | None:
    """Labels of the run in output_dir; else, to predict, of the checkpoint."""
    folders = []
    if os.path.exists(os.path.join(values.output_dir, "checkpoint")):
        folders.append(values.output_dir)
    if values.init_checkpoint and not values.do_train:
        folder = model_folder.folder_of(values.init_checkpoint)
        folders.append(folder)
        if os.path.basename(folder) == output_dir.BEST:
            folders.append(os.path.dirname(folder))
    for folder in folders:
        path = os.path.join(folder, _TASK_FILE)
        try:
            with open(path, encoding="utf-8") as file:
                task = json.load(file)
            if task["kind"] in (ENTITIES, ANY) and task["labels"]:
                return task
        except OSError:
            continue
        except (ValueError, KeyError, TypeError):
            pass
        raise UserError(
            "is not of this script",
            path=path,
            expected="labels of words",
            fix="pass another folder",
        )
    return None


def _check_recorded(folder: str, task: dict | None, labels: list[str]) -> None:
    """Refuses a folder with checkpoints of other labels."""
    if task and task["labels"] != labels:
        raise UserError(
            f"holds a run with {len(task['labels'])} labels: "
            f"{', '.join(task['labels'])[:80]}",
            path=folder,
            expected=f"{len(labels)}: {', '.join(labels)[:80]}",
            fix="pass another --output_dir",
        )


class Labelling:
    """A run: the network, its rows, and what it says about words.

    Args:
        job: what is asked for.

    Attributes:
        tuning: `finetuning.FineTuning`.
    """

    def __init__(self, job: Job):
        from data.records import example_files
        from data.text import tokenization
        from modeling import losses, models

        self._job, self._values = job, job.flags
        values = job.flags
        tokenizer = tokenization.FullTokenizer(
            values.vocab_file, values.do_lower_case, values.strip_accents
        )
        self._row_maker = windows.RowMaker(
            lambda word: tokenizer.convert_tokens_to_ids(
                tokenizer.tokenize(word)
            ),
            tokenizer.vocab,
            {label: i for i, label in enumerate(job.labels)},
            values.max_seq_length,
            values.doc_stride,
            values.document_context,
        )
        schema = {
            features.LABEL_IDS: example_files.Feature(sequence=True),
            features.LABEL_WEIGHTS: example_files.Feature(
                "float32", sequence=True
            ),
        }
        rows = self._row_maker.rows(job.sentences.get("train_file", ()))
        self._rows = example_files.Rows(rows, schema)
        self.tuning = finetuning.FineTuning(
            values,
            job.setup,
            finetuning.Task(
                lambda: models.build_token_classifier(
                    job.setup.config, len(job.labels), values.random_seed
                ),
                (losses.TOKEN,),
                losses.token_weights,
                losses.token_sums,
                len(self._rows),
            ),
        )

    def start(self) -> None:
        """Finds the weights to start from and prepares the folder."""
        values = self._values
        self.tuning.start()
        output_dir.prepare(
            values.output_dir, self._job.setup.config, values.vocab_file
        )
        task = {"labels": self._job.labels, "kind": self._job.kind}
        write_whole(
            os.path.join(values.output_dir, _TASK_FILE),
            json.dumps(task, indent=2, ensure_ascii=False) + "\n",
        )

    def train(self) -> str:
        """Trains; returns the prefix of the checkpoint."""
        held_out = self.evaluate if self._values.eval_steps else None
        metric = "f1" if self._job.kind == ENTITIES else "accuracy"
        return self.tuning.train(
            self._rows, held_out, f"eval_{metric}" if held_out else None
        )

    def evaluate(self) -> dict[str, float]:
        """Scores of --eval_file."""
        sentences = self._job.sentences["eval_file"]
        gold = [x.labels for x in sentences]
        self._tell_unknown(gold)
        answers = list(
            self._answers(sentences, self._values.eval_batch_size, "evaluated")
        )
        guesses = self._by_sentence(sentences, (label for label, _ in answers))
        score = scoring.score_labels
        if self._job.kind == ENTITIES:
            score = scoring.score_entities
        result = score(gold, guesses)
        result["loss"] = sum(loss for _, loss in answers) / len(answers)
        return {f"eval_{name}": value for name, value in result.items()}

    def predict(self) -> Iterator[str]:
        """Yields the label of each word of --predict_file."""
        sentences = self._job.sentences["predict_file"]
        answers = self._answers(
            sentences, self._values.predict_batch_size, "predicted"
        )
        for labels in self._by_sentence(sentences, (x for x, _ in answers)):
            yield from labels

    def write_predictions(self, folder: str) -> str:
        """Writes --predict_file with a label behind each word."""
        path = os.path.join(folder, "predictions.conll")
        columns = conll.Columns(self._values.word_column, None)
        conll.write_predictions(
            self._values.predict_file, path, columns, self.predict()
        )
        return path

    def save_model(self, folder: str) -> None:
        """Writes the SavedModel."""
        from tasks.ner import export as serving

        values = self._values
        settings = serving.Settings(
            self._job.setup.config,
            self._job.labels,
            self._job.kind == ENTITIES,
            values.vocab_file,
            values.do_lower_case,
            values.strip_accents,
            values.max_seq_length,
            values.doc_stride,
        )
        weights = self.tuning.weights()
        serving.save(serving.Labeller(settings, weights), folder)

    def _answers(
        self, sentences: list[conll.Sentence], batch_size: int, what: str
    ) -> Iterator[tuple[str, float]]:
        """Yields label and loss of each word; the loss is that of its gold."""
        import numpy as np

        rows, again = itertools.tee(self._row_maker.rows(sentences))
        count = sum(1 for _ in self._row_maker.rows(sentences))
        outputs = self.tuning.predict(again, batch_size, what, count)
        for row, output in zip(rows, outputs):
            places = np.flatnonzero(row[features.LABEL_WEIGHTS])
            logits = output["logits"][places].astype(np.float64)
            logits -= logits.max(-1, keepdims=True)
            losses = np.log(np.exp(logits).sum(-1))
            gold = np.array(row[features.LABEL_IDS])[places]
            losses -= np.take_along_axis(logits, gold[:, None], -1)[:, 0]
            for best, loss in zip(logits.argmax(-1), losses):
                yield self._job.labels[best], float(loss)

    def _by_sentence(
        self, sentences: list[conll.Sentence], labels: Iterable[str]
    ) -> list[list[str]]:
        """Labels of each sentence; of entities, such as BIO allows."""
        labels = iter(labels)
        found = [
            list(itertools.islice(labels, len(x.words))) for x in sentences
        ]
        if self._job.kind == ENTITIES:
            return [entities.to_bio(x) for x in found]
        return found

    def _tell_unknown(self, gold: list[list[str]]) -> None:
        unknown = {y for x in gold for y in x} - set(self._job.labels)
        if unknown:
            say(
                "warning: labels that training did not have count as wrong: "
                f"{', '.join(sorted(unknown))[:80]}"
            )


def main(argv: list[str]) -> None:
    """Runs the script."""
    job = read_flags(argv)
    task_run.carry_out(job.flags, Labelling(job))


if __name__ == "__main__":
    sys.exit(training_flags.run(main, sys.argv))
