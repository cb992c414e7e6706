"""The trainer of fine-tuning: its layers and its weights."""

import dataclasses

import numpy as np
import pytest

from bert.common.formats import tensor_files
from bert.data import feature_names
from bert.data.bucketing import BatchLengths
from bert.data.labels import Labels
from bert.data.records.examples import Examples
from bert.modeling import networks
from bert.modeling.formats.model_folder import ModelFolder
from bert.modeling.task_heads import CLASSIFIER
from bert.runs import finetuning, objectives
from bert.tasks.classification.settings import Settings
from bert.tasks.classification.task import TextClassification
from bert.training import training_loop
from bert.training.saver import Saver
from tests.helpers import model_files, run_folders, small

TASK = TextClassification(None, Labels(names=("a", "b", "c")), small.S)
ROWS = 23


def make_run(folder, **named):
    """A run of the classifier, as a script makes it."""
    named |= {"output_dir": str(folder), "max_seq_length": small.S}
    settings = dataclasses.replace(Settings(), **named)
    model = ModelFolder.open(settings.init_checkpoint)
    run = run_folders.made(settings, model=model, tokenizer=None)
    data = finetuning.TrainingData([], [None] * ROWS, "rows")
    devices = finetuning.checked_devices(run)
    with devices.scope():
        network = objectives.build_network(TASK, run.config, run.settings)
    return finetuning.make_trainer(run, TASK, data, network, devices, None)


@pytest.mark.parametrize("frozen", [0, 1])
def test_layers_have_rates_and_some_are_frozen(tmp_path, frozen):
    """Frozen ones have no moments."""
    run = make_run(
        tmp_path,
        do_train=True,
        freeze_layers=frozen,
        layer_decay=0.5,
        optimizer="lamb",
        precision="bfloat16",
    )
    expected = {}
    for name in run.named:
        expected[name] = 1.0
        if "embeddings" in name:
            expected[name] = 0.25
        elif "layer_0" in name:
            expected[name] = 0.5
    if frozen:
        expected = {name: x for name, x in expected.items() if x == 1.0}
    model, optimizer = run.train_step.model, run.train_step.optimizer
    names = {id(x): name for name, x in run.named.items()}
    trained = [names[id(x)] for x in model.trainable_variables]
    factors = dict(zip(trained, optimizer.rate_factors, strict=True))
    assert factors == expected
    assert len(optimizer.adam_m) == len(expected)
    assert optimizer.rule == "lamb"
    assert model.get_layer("bert").compute_dtype == "bfloat16"


@pytest.mark.usefixtures("eagerly")
def test_frozen_layers_are_not_trained(tmp_path):
    run = make_run(tmp_path, do_train=True, freeze_layers=1, train_batch_size=9)
    rows = [
        {
            feature_names.INPUT_IDS: np.arange(1, 2 + i % small.S),
            feature_names.SEGMENT_IDS: np.zeros(1 + i % small.S, int),
            feature_names.LABEL_IDS: [i % 3],
            feature_names.IS_REAL_EXAMPLE: [1],
        }
        for i in range(ROWS)
    ]
    before = run.weights()
    examples = Examples(rows, TASK.schema)
    lengths = BatchLengths([small.S], may_fuse=False)
    phase = finetuning.phase(run.settings, run, examples, lengths)
    training_loop.fit(run, [phase])
    after = run.weights()
    frozen = ("bert/embeddings/", "bert/encoder/layer_0/")
    for name, value in before.items():
        # The gradient of a key's bias is only rounding.
        if not name.endswith("key/bias"):
            is_same = (value == after[name]).all()
            assert is_same == name.startswith(frozen), name


def test_the_best_checkpoint_does_not_replace_the_given_weights(tmp_path):
    """A folder may have no checkpoint but the best, as after a kill."""
    network = networks.build(small.config(), CLASSIFIER, 3)
    values = model_files.random_values(network, 0.5)
    given = str(tmp_path / "model.ckpt")
    tensor_files.write(given, values)
    (tmp_path / "bert_config.json").write_text(small.config().to_json())
    best = {name: value + 1 for name, value in values.items()}
    Saver(str(tmp_path / "run" / "best")).save(2, best, {})
    run = make_run(tmp_path / "run", init_checkpoint=given)
    run.restore_best()
    assert run.weights_step == 0
    for name, value in run.weights().items():
        np.testing.assert_array_equal(value, values[name])
