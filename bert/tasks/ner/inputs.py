"""Reads the files of run_ner.py, and determines the labels."""

import dataclasses

from bert.common import storage
from bert.common.errors import UserError
from bert.data.labels import Labels
from bert.data.tables import InputFile
from bert.modeling.formats import checkpoint_files
from bert.tasks import folds
from bert.tasks.ner import conll, entities
from bert.tasks.ner.entities import ANY, ENTITIES
from bert.tasks.ner.settings import Settings
from bert.tasks.ner.task import TokenClassification
from bert.tasks.run import Run
from bert.tasks.task import Files


def read(run: Run[Settings]) -> tuple[TokenClassification, Files]:
    """Reads the files that the settings require, and determines the labels.

    Sentences of a document stay together in a fold. In a file without
    documents, equal sentences do.

    Args:
        run: Run. The run.

    Returns:
        the task of the run, and its files of `conll.Sentence`s.

    Raises:
        UserError: a file is missing or has an invalid line, or the labels are
            unknown, or differ from the labels that the run was trained with.
    """
    settings, sentences = run.settings, {}
    for name, path in settings.files.items():
        label = None if name == "predict_file" else settings.label_column
        columns = conll.Columns(settings.word_column, label)
        sentences[name] = conll.read(path, columns)
    kind, names = find(run, sentences)
    run.warn_of_vocabulary(
        " ".join(x.words) for file in sentences.values() for x in file
    )

    files: dict[str, InputFile[conll.Sentence]] = {}
    for name, rows in sentences.items():
        path, is_trained = settings.files[name], name == "train_file"
        sha256 = storage.hash_file(path) if is_trained else ""
        files[name] = InputFile(path, rows, sha256)

    has_documents = "train_file" in sentences and (
        sentences["train_file"][-1].document > 0
    )
    task = TokenClassification(
        run.model.tokenizer,
        names,
        kind == ENTITIES,
        settings.max_seq_length,
        settings.doc_stride,
        settings.document_context,
    )

    return task, folds.files_of(
        settings,
        files,
        lambda x: x.document if has_documents else (*x.words,),
    )


def find(
    run: Run[Settings], sentences: dict[str, list[conll.Sentence]]
) -> tuple[str, list[str]]:
    """Determines the labels, and converts entity labels to BIO.

    Args:
        run: Run. The run.
        sentences: dict, flag of a file -> its sentences; entries with entity
            labels are replaced.

    Returns:
        kind and names of the labels.

    Raises:
        UserError: if the labels are unknown, or differ from the labels that
            the run was trained with.
    """
    settings = run.settings
    task_json = run.evaluated_task_json
    if task_json and not (
        task_json["kind"] in (ENTITIES, ANY) and task_json["labels"]
    ):
        raise UserError(
            f"its {checkpoint_files.TASK} was not written by run_ner.py",
            path=run.trained and run.trained.path,
            expected="a model for token classification",
            fix="pass another folder",
        )

    # The kind is recorded in a trained model, else inferred from the labels.
    kind = task_json["kind"] if task_json else settings.label_kind
    for name, part in sentences.items():
        if name == "predict_file" or kind == ANY:
            continue
        path = getattr(settings, name)
        marked = conll.has_entities(part, path)
        if not marked and kind == ENTITIES:
            _check_entities(part, path)
            marked = True

        kind = ENTITIES if marked else ANY
        if marked:
            sentences[name] = [
                dataclasses.replace(x, labels=entities.to_bio(x.labels))
                for x in part
            ]

    # Without training: the labels of the model.
    if "train_file" not in sentences:
        if task_json is None:
            raise UserError(
                "unknown labels",
                path=settings.output_dir,
                expected=f"{checkpoint_files.TASK} of a trained model",
                fix="pass --do_train, or the --output_dir of a training run",
            )
        return kind, task_json["labels"]

    # Sorted, as their order is the order of the logits.
    distinct = {y for x in sentences["train_file"] for y in x.labels}
    labels = sorted(distinct)
    if kind == ENTITIES:
        labels = entities.bio_labels(
            label[2:] for label in distinct if label != entities.OUTSIDE
        )
    run.check_same_labels(Labels(kind, tuple(labels)))
    return kind, labels


def _check_entities(sentences: list[conll.Sentence], path: str) -> None:
    """Raises a UserError for the first label that marks no entity."""
    for sentence in sentences:
        for line, label in zip(sentence.lines, sentence.labels, strict=True):
            if not entities.is_entity_label(label):
                raise UserError(
                    f"labels such as {label!r}",
                    path=path,
                    line=line,
                    expected="O, or B- or I- and a type",
                    fix="see --label_kind and --label_column",
                )
