"""A row of a user's table is the same example for every program."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert.common import command_line
from bert.data.labels import Labels
from bert.data.row_settings import RowSettings
from bert.inference import jsonl
from bert.tasks.classification import inputs as classification
from bert.tasks.classification.settings import Settings as ClassifierSettings
from bert.tasks.classification.task import TextClassification
from bert.tasks.similarity import inputs as similarity
from bert.tasks.similarity.settings import Settings as SimilaritySettings
from bert.tasks.swag import examples as swag
from tests.helpers import run_folders
from tests.helpers.tables import FORMATS, cell, write

FIELDS = "text", "text_b", "label"
# Each reader maps a file, the columns of the fields and a delimiter to
# (line, text, second text, label) of each row; similarity has no lines.


def _files(inputs, kind, **flags):
    argv = [f"--{name}={x}" for name, x in flags.items() if x is not None]
    argv = ["script", "--output_dir=none", *argv]
    parsed = command_line.parse(argv, kind, "")
    return inputs.read(run_folders.opened(parsed))


def by_classifier(path, columns, delimiter):
    given = {f"{field}_column": column for field, column in columns.items()}
    task, files = _files(
        classification,
        ClassifierSettings,
        task_name="tsv",
        do_train=True,
        do_eval=True,
        train_file=path,
        eval_file=path,
        delimiter=delimiter,
        **given,
    )
    assert task.inputs == ("text", "text_b")
    train, evaluated = run_folders.splits(files)
    assert train.rows == evaluated.rows
    assert [x.id for x in train.rows] == [
        str(i) for i in range(len(train.rows))
    ]
    return [
        (x.line, x.text, x.text_b, task.labels.names[x.label])
        for x in train.rows
    ]


def by_trained_classifier(path, columns, delimiter):
    """The column of the ids has the labels."""
    _, files = _files(
        classification,
        ClassifierSettings,
        task_name="csv",
        labels="a,b",
        do_predict=True,
        predict_file=path,
        delimiter=delimiter,
        text_column=columns["text"],
        text_b_column=columns["text_b"],
        id_column=columns["label"],
    )
    (split,) = run_folders.splits(files)
    assert {x.label for x in split.rows} == {None}
    return [(x.line, x.text, x.text_b, x.id) for x in split.rows]


def by_similarity(path, columns, delimiter):
    _, files = _files(
        similarity,
        SimilaritySettings,
        init_checkpoint="none",
        do_train=True,
        train_file=path,
        text_columns=f"{columns['text']},{columns['text_b']}",
        score_column=columns["label"],
        delimiter=delimiter,
    )
    (split,) = run_folders.splits(files)
    return [(None, *x.texts, x.score) for x in split.rows]


def by_predict(path, columns, delimiter):
    """The column of the ids has the labels."""
    task = TextClassification(None, Labels(names=("a", "b")), 7, has_pairs=True)
    settings = RowSettings(
        text_column=str(columns["text"]),
        text_b_column=str(columns["text_b"]),
        id_column=str(columns["label"]),
        delimiter=delimiter,
    )
    examples = jsonl.read(settings, task, path, FIELDS[:2])
    return [
        (x.line, x.fields["text"], x.fields["text_b"], x.kept["id"])
        for some in examples
        for x in some
    ]


def by_swag(path, columns, delimiter):
    rows = swag.read(path, labelled=True).rows
    return [(x.line, x.context, x.choices[0], x.label) for x in rows]


OWN_NAMES = {"text": "Body", "text_b": "text", "label": "q, 1"}
READERS = {
    **dict.fromkeys(
        (by_classifier, by_trained_classifier, by_similarity, by_predict),
        [OWN_NAMES, {"text": 1, "text_b": 2, "label": -1}],
    ),
    by_swag: [{"text": "sent1", "text_b": "ending0", "label": "label"}],
}
TEXT = st.text(min_size=1).filter(str.strip)
ROWS = st.lists(st.tuples(TEXT, TEXT, st.integers(0, 1)), max_size=5)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
@settings(max_examples=15)
@given(drawn=ROWS, data=st.data())
def test_a_row_is_the_same_example(tmp_path_factory, read, name, drawn, data):
    columns = data.draw(st.sampled_from(READERS[read]))
    delimiters = [None, ";"] if "csv" in name else [None, ";", "::"]
    delimiter = None
    if read is not by_swag:
        delimiter = data.draw(st.sampled_from(delimiters))

    # Training needs two labels; a byte order mark must not come first.
    rows = [("a 'b'", '"', 1), ("one", "two", 0), ("one", "a", 1), *drawn]
    rows = [(*(cell(x, name, delimiter) for x in two), y) for *two, y in rows]
    names = columns if read is by_swag else OWN_NAMES
    more = {"sent2": "", "ending1": "no"} if read is by_swag else {"n": 7}
    path = write(
        tmp_path_factory.mktemp("table") / name,
        [{**more, **dict(zip(names.values(), row))} for row in rows],
        header=isinstance(columns["text"], str),
        delimiter=delimiter,
    )
    found = read(path, columns, delimiter)

    # A field of a CSV file may span lines.
    line = 1 + (isinstance(columns["text"], str) and ".jsonl" not in name)
    expected = []
    for number, (text, text_b, label) in enumerate(rows, 1):
        here = number if "parquet" in name or "jsonl" in name else line
        line += 1 + text.count("\n") + text_b.count("\n")
        if read is by_swag:
            text_b = text_b.strip()
        expected.append((here, text, text_b, label))
    if read is by_similarity:
        expected = [(None, *others) for _, *others in expected]
    assert [(*x, float(label)) for *x, label in found] == expected
