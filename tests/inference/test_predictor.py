"""A `Predictor` computes any number of examples in bounded memory."""

import hypothesis
import pytest
from hypothesis import strategies

import bert
from bert.common.errors import UserError
from bert.common.formats import tensor_files
from bert.data.sequences import Encoded
from bert.inference import example_parsing
from bert.inference import predictor as predictor_lib
from bert.inference.predictor import Predictor
from bert.modeling.formats import checkpoint_files
from bert.modeling.formats.model_folder import ModelFolder
from bert.tasks.swag.task import CHOICE_TEXTS
from tests.helpers import library_files
from tests.helpers.predictors import predictor_of


@hypothesis.given(
    strategies.lists(strategies.lists(strategies.integers(1, 9), max_size=3))
)
def test_a_group_ends_once_it_has_enough_tokens(examples):
    """An example with several sequences is not divided."""
    predictor, most, groups = predictor_of(), 17, []
    predictor._sorted_tokens = most
    predictor.task.combine = lambda encoded, outputs: outputs
    predictor.compute_sequences = lambda rows: [ids for (ids, _), _ in rows]
    encoded = [
        Encoded([([i] * size, []) for size in sizes])
        for i, sizes in enumerate(examples)
    ]
    found = [*predictor.compute(iter(encoded), groups.append)]
    assert found == [(x, [ids for ids, _ in x.sequences]) for x in encoded]

    # The numbers of examples that were done at the end of each group.
    expected, tokens = [], 0
    for done, sizes in enumerate(examples, 1):
        tokens += sum(sizes)
        if tokens >= most or done == len(examples):
            expected.append(done)
            tokens = 0
    assert groups == expected


def test_an_example_has_at_least_one_choice():
    task = predictor_of(dict, CHOICE_TEXTS).task
    example = {CHOICE_TEXTS: ["a"]}
    assert example_parsing.parse(task, example) == example
    with pytest.raises(UserError, match=CHOICE_TEXTS):
        example_parsing.parse(task, {CHOICE_TEXTS: []})


def test_every_entry_point_reads_the_best_checkpoint(tmp_path):
    """Of predict.py, of classes, of conversions and of --init_checkpoint."""
    run = tmp_path / "run"
    last = {name: 0 * x for name, x in library_files.run(run).items()}
    tensor_files.write(str(run / "model.ckpt-7"), last)
    best = library_files.run(run / "best")["output_weights"]
    task = {"kind": "classes", "labels": ["a", "b", "c"]}
    checkpoint_files.write_task(str(run), task)
    expected = pytest.approx(best)
    assert predictor_lib.open_model(str(run)).values["output_weights"] == (
        expected
    )
    assert ModelFolder.open(str(run)).values["output_weights"] == expected
    network = bert.TextClassifier(str(run)).network
    head = network.get_layer("classifier").output_weights
    assert head.numpy() == expected
    again = Predictor.open(str(run)).task
    assert again.labels.names == ("a", "b", "c")

    # Only the last checkpoint has the state of the optimizer.
    model = ModelFolder.open(str(run))
    assert model.last().resolve() == f"{run}/model.ckpt-7"


def test_a_folder_without_a_model_is_named(tmp_path):
    """No flag would help: --vocab_file is not a flag of predict.py."""
    (tmp_path / "mail.txt").touch()
    for opened in (predictor_lib.open_model, Predictor.open):
        with pytest.raises(UserError, match="no checkpoints in this folder"):
            opened(str(tmp_path))
