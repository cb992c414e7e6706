"""Teachers: trained models whose outputs a student learns (distillation).

check(task of the teacher, student)
targets(predictor, student, rows)  # float32 [N, ...]
with_outputs(examples, student, rows, outputs, weight)
"""

import numpy as np
from numpy.typing import NDArray

from bert.common.errors import UserError
from bert.data import feature_names, postprocessing
from bert.data.labels import Labels
from bert.data.records.encoding import Feature
from bert.data.records.examples import Examples
from bert.inference.predictor import Predictor
from bert.tasks.classification.task import TextClassification
from bert.tasks.task import Task


def check(teacher: Task, student: Task, path: str) -> None:
    """Checks that a student can learn the outputs of a teacher.

    Args:
        teacher: Task. Task of the teacher.
        student: TextClassification or TextEmbedding. Task of the student.
        path: str. Folder of the teacher, for messages.

    Raises:
        UserError: The tasks differ, the labels differ in more than their
            order, or the teacher does not read pairs.
    """
    if type(teacher) is not type(student):
        raise UserError(
            f"a model of another task, {teacher.name}",
            path=path,
            expected=f"a model for {student.name}",
        )

    read = (*teacher.inputs, *teacher.optional_inputs)
    lacking = [name for name in student.inputs if name not in read]
    if lacking:
        raise UserError(
            f"a model without {', '.join(lacking)}",
            path=path,
            expected=f"a model that reads {', '.join(student.inputs)}",
        )

    if isinstance(student, TextClassification):
        assert isinstance(teacher, TextClassification)
        _check_labels(teacher.labels, student.labels, path)


def _check_labels(found: Labels, wanted: Labels, path: str) -> None:
    """Raises a UserError if labels differ in more than their order."""
    differing = {*found.names} ^ {*wanted.names}
    if found.kind == wanted.kind and not differing:
        return
    listed = ", ".join(sorted(differing)[:10])
    raise UserError(
        f"labels {found}",
        path=path,
        expected=f"{wanted}, in any order"
        + f"; only one of both has {listed}" * bool(differing),
    )


def targets(predictor: Predictor, student: Task, rows: list) -> NDArray:
    """Computes the outputs of a teacher for the rows of a student.

    Args:
        predictor: Predictor. The teacher; see `check`.
        student: TextClassification or TextEmbedding. Task of the student.
        rows: list. N rows of a file of the student.

    Returns:
        float32 [N, C], logits in the order of the student's labels; or
        [N * T, D], embeddings of the T texts of each row.

    Raises:
        UserError: an output is not finite.
    """
    task = predictor.task
    examples = student.inputs_of(rows)
    _, outputs = zip(*predictor.compute_all(examples, "teacher"))
    results = np.stack(outputs)
    if count := int((~np.isfinite(results).all(-1)).sum()):
        raise UserError(
            f"teacher: outputs for {count:,} of {len(results):,} texts are not "
            "finite",
            fix="check the texts and the training of the teacher",
        )
    if isinstance(student, TextClassification):
        assert isinstance(task, TextClassification)
        names = task.labels.names
        order = [names.index(x) for x in student.labels.names]
        return results[:, order] if order else results
    return results


def with_outputs(
    examples: Examples,
    student: TextClassification,
    rows: list,
    outputs: NDArray,
    weight: float,
) -> Examples:
    """Returns the training examples of a student with a teacher's outputs.

    Args:
        examples: Examples. The examples of the rows.
        student: TextClassification. Task of the student.
        rows: list. N rows; those without a label only learn from the teacher.
        outputs: float32 [N, C]. See `targets`.
        weight: float. Weight of the teacher beside a label.
    """
    # Without a label, the accuracy compares with the teacher.
    predicted = postprocessing.predictions(outputs, student.labels.kind)
    labels = [
        found if row.label is None else row.label
        for row, found in zip(rows, predicted, strict=True)
    ]
    shares = [1.0 if row.label is None else weight for row in rows]
    name, feature = feature_names.LABEL_IDS, Feature("float32")
    return (
        with_vectors(examples, outputs)
        .with_feature(name, student.schema[name], np.array(labels))
        .with_feature(feature_names.TEACHER_WEIGHTS, feature, np.array(shares))
    )


def with_vectors(examples: Examples, outputs: NDArray) -> Examples:
    """Returns examples with the outputs of a teacher, float32 [N, D]."""
    feature = Feature("float32", size=outputs.shape[1])
    return examples.with_feature(
        feature_names.TEACHER_OUTPUTS, feature, outputs
    )


def resized(vectors: NDArray, size: int) -> NDArray:
    """Maps vectors to another size, so that their cosines change least.

    Fewer values are the projection on the singular vectors with the largest
    singular values; more values are zeros.

    Args:
        vectors: float32 [N, D].
        size: int. H.

    Returns:
        float32 [N, H], vectors of length 1.
    """
    count = vectors.shape[1]
    if size < count:
        _, directions = np.linalg.eigh(vectors.T @ vectors)
        vectors = vectors @ directions[:, count - size :]
    vectors = np.pad(vectors, ((0, 0), (0, max(0, size - count))))
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(lengths, 1e-12)
