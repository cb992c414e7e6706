"""The linear model of frozen features, and the recipe of a run."""

import dataclasses
import math
import types

import numpy as np
import pytest
from scipy import special

from bert.common.errors import UserError
from bert.data.labels import CLASSES, MULTI_LABEL, REGRESSION, Labels
from bert.runs import finetuning, head_start
from bert.runs.start import ChosenDevices
from bert.tasks import frozen, recipe
from bert.tasks.classification import tfidf
from bert.tasks.classification.settings import Settings
from bert.tasks.classification.task import TextClassification
from bert.tasks.ner import settings as ner
from bert.tasks.ner.entities import ENTITIES
from bert.tasks.ner.task import TokenClassification
from bert.tasks.recipe import FrozenHead, Recipe
from bert.tasks.run import Trained
from tests.helpers import run_folders, small

N, H, C = 211, 13, 3
_RNG = np.random.default_rng(7)
FEATURES = np.tanh(_RNG.normal(0.3, 1, (N, H))).astype("f4")
TRUE = FEATURES @ _RNG.normal(0, 2, (H, C))


def logits(found, features=FEATURES):
    head = found.weights
    assert head.shape == (head.shape[0], H + 1) and head.dtype == "f4"
    return features @ head[:, :-1].T + head[:, -1]


def test_classes_are_predicted_with_probabilities():
    gold = TRUE.argmax(-1)
    found = logits(frozen.fit(FEATURES[:150], gold[:150], CLASSES, C))
    assert (found.argmax(-1) == gold)[150:].mean() > 0.75
    chances = special.softmax(found, -1)[np.arange(N), gold]
    assert -np.log(chances[150:]).mean() < 0.5  # nats; chance has 1.1


@pytest.mark.parametrize("kind", [CLASSES, MULTI_LABEL, REGRESSION])
def test_only_features_of_the_labels_predict(kind):
    gold = {
        CLASSES: TRUE.argmax(-1),
        MULTI_LABEL: (TRUE > [0, 1, 99]).astype(int),
        REGRESSION: TRUE[:, 0].astype("f4"),
    }[kind]
    size = 1 if kind == REGRESSION else C
    weights = np.where(np.arange(N) % 3, 1.0, 2.0)
    for given in (None, weights):
        assert frozen.fit(FEATURES, gold, kind, size, given).predicts
    # Other texts' labels; a constant has no order.
    others = np.random.default_rng(11).permutation(gold)
    predicts = frozen.fit(FEATURES, others, kind, size).predicts
    assert predicts == (kind == REGRESSION)


@pytest.mark.parametrize(("noise", "predicts"), [(2.5, True), (9.0, False)])
def test_a_tiny_gain_is_no_prediction(noise, predicts):
    """Of many texts, for which it is far above a standard error."""
    rng = np.random.default_rng(3)
    features = rng.normal(size=(4000, H)).astype("f4")
    gold = (features[:, 0] + rng.normal(0, noise, 4000) > 0).astype(int)
    assert frozen.fit(features, gold, CLASSES, 2).predicts == predicts


@pytest.mark.parametrize(("noise", "predicts"), [(0, True), (3, False)])
def test_words_predict_labels(noise, predicts):
    """One word of ten decides, and the others are noise."""
    rng = np.random.default_rng(5)
    bags = rng.integers(0, 30, (300, 10))
    gold = ((bags == 7).any(1) + rng.normal(0, noise, 300) > 0.5).astype(int)
    bags = bags.tolist()
    found = tfidf.fit_words(bags, gold, CLASSES, 2, 40)
    assert (found is not None) == predicts
    if predicts:
        assert found.shape == (40, 2) and not found[30:].any()
        assert found[:, 1].argmax() == found[:, 0].argmin() == 7
    assert tfidf.fit_words([[]] * 300, gold, CLASSES, 2, 40) is None


def test_few_texts_show_what_words_predict():
    """Each word is in two texts: a fold must not omit many of both."""
    rng = np.random.default_rng(3)
    words = np.arange(60) // 2
    gold = (words % 2) ^ (rng.random(60) < 0.15)
    bags = [[word, 100 + i] for i, word in enumerate(words.tolist())]
    assert tfidf.fit_words(bags, gold, CLASSES, 2, 200) is not None
    for size in (10, 15):  # fewer texts than folds
        tfidf.fit_words(bags[:size], gold[:size], CLASSES, 2, 200)


@pytest.mark.parametrize("num_outputs", [2, 20])
def test_word_embeddings_get_directions_of_their_size(num_outputs):
    """Of classes; more of them than H - 1 share directions."""
    rng = np.random.default_rng(6)
    weights = rng.normal(size=(30, num_outputs)).astype("f4")
    weights[10:] = 0  # in no text
    table = rng.normal(0, 0.1, (32, H)).astype("f4")
    found = frozen.word_embeddings(weights, table)
    assert found.shape == table.shape and not found[10:].any()
    np.testing.assert_allclose(found.mean(-1), 0, atol=1e-6)
    sizes = [np.square(x).mean() for x in (found[:10], table)]
    np.testing.assert_allclose(*sizes, rtol=1e-4)
    if num_outputs == 2:  # as far from each other as before, in one scale
        ratio = (found @ found.T)[:10, :10] / (weights @ weights.T)[:10, :10]
        np.testing.assert_allclose(ratio, ratio[0, 0], rtol=1e-3)


def test_numbers_are_predicted():
    gold = (TRUE[:, 0] + 5).astype("f4")
    found = logits(frozen.fit(FEATURES[:150], gold[:150], REGRESSION, 1))
    assert np.corrcoef(found[150:, 0], gold[150:])[0, 1] > 0.97
    assert found.mean() == pytest.approx(gold.mean(), abs=0.2)


def test_training_starts_from_smaller_outputs():
    """A head passes on what a step changes in the encoder, times its size."""
    classes = frozen.fit(FEATURES, TRUE.argmax(-1), CLASSES, C)
    np.testing.assert_allclose(classes.start, 0.3 * classes.weights, rtol=1e-6)
    numbers = frozen.fit(FEATURES, TRUE[:, 0] + 5, REGRESSION, 1)
    found = logits(numbers)
    start = logits(numbers._replace(weights=numbers.start))
    mean = (TRUE[:, 0] + 5).mean()
    np.testing.assert_allclose(start - mean, 0.3 * (found - mean), atol=1e-4)


def test_several_labels_are_predicted():
    gold = (TRUE > [0, 1, 99]).astype(int)  # nobody has the last one
    found = logits(frozen.fit(FEATURES[:150], gold[:150], MULTI_LABEL, C))
    assert ((found > 0) == gold)[150:].mean() > 0.75
    assert (found[:, 2] < 0).all()


@pytest.mark.parametrize("kind", [CLASSES, MULTI_LABEL])
def test_features_that_tell_nothing_get_small_weights(kind):
    gold = np.random.default_rng(1).integers(0, 2, N)
    gold = gold if kind == CLASSES else gold[:, None]
    head = frozen.fit(FEATURES, gold, kind, 2 if kind == CLASSES else 1)
    assert logits(head).std(0).max() < 0.3


def test_a_weight_counts_as_copies():
    gold = TRUE.argmax(-1)[:60]
    twice = np.concatenate([FEATURES[:60], FEATURES[:60][gold == 1]])
    again = np.concatenate([gold, gold[gold == 1]])
    weights = np.where(gold == 1, 2.0, 1.0)
    weighted = frozen.fit(FEATURES[:60], gold, CLASSES, C, weights)
    copied = frozen.fit(twice, again, CLASSES, C)
    shares = [logits(x).argmax(-1) for x in (weighted, copied)]
    assert (shares[0] == shares[1]).mean() > 0.9


def settings_of(*given, **values):
    made = Settings(task_name="csv", do_train=True, **values)
    return dataclasses.replace(made, given=frozenset(given))


_ZEROS = np.zeros((2, H + 1), "f4")
HEAD = FrozenHead(_ZEROS, _ZEROS, True, CLASSES)
WEAK = HEAD._replace(predicts=False)
RATE, LOW = 5e-5, 3e-5
LARGE = small.config(hidden_size=390)
NUMBERS = HEAD._replace(kind=REGRESSION)
OF_WORDS = HEAD._replace(kind=ENTITIES)


def completed(settings, recorded, head=HEAD, rows=400, num_devices=1):
    trained = Trained("out", True, None, recorded) if recorded else None
    run = run_folders.made(settings, trained=trained, config=LARGE)
    task = TextClassification(None, Labels(CLASSES, ("a", "b")), small.S)
    run = head_start.with_recipe(run, task, rows, head, num_devices)
    return Recipe.of_flags(vars(run.settings))


@pytest.mark.parametrize(
    ("head", "chosen", "line"),
    [
        (
            HEAD,
            Recipe(True, 6.0, LOW),
            "head from frozen features, 6 epochs (75 steps), learning rate "
            "3e-05",
        ),
        (
            WEAK,
            Recipe(False, 3.0, RATE),
            "linear models do not predict the labels, head from random "
            "weights, 3 epochs (37 steps), learning rate 5e-05",
        ),
        (
            None,
            Recipe(False, 6.0, RATE),
            "6 epochs (75 steps), learning rate 5e-05",
        ),
    ],
)
def test_a_table_has_a_recipe_that_is_printed(capsys, head, chosen, line):
    assert completed(settings_of(), {}, head) == chosen
    assert capsys.readouterr().err == (
        f"recipe: 400 rows, 2 labels, 2 x 390: {line}; "
        "--recipe=original for the original's\n"
    )


@pytest.mark.parametrize(
    ("rows", "epochs"),
    [(10, 20), (200, 10), (400, 6), (900, 6), (1200, 5), (1706, 4), (1707, 3)],
)
def test_few_rows_are_read_more_often(rows, epochs):
    def choose(*given):
        return recipe.choose(rows, None, 768, *given)

    assert choose(HEAD) == Recipe(True, epochs, LOW)
    assert choose(None) == Recipe(False, epochs, RATE)
    assert choose(WEAK) == Recipe(False, 3.0, RATE)
    assert choose(WEAK, True) == Recipe(True, 3.0, RATE)
    for head in (NUMBERS, OF_WORDS):
        assert choose(head) == Recipe(True, epochs, RATE)


@pytest.mark.parametrize(
    ("hidden_size", "batch_size", "rate"),
    [
        (64, None, 2.1e-4),
        (128, 32, 3e-4),
        (384, None, 7.1e-5),
        (384, 32, 1e-4),
        (768, None, 3.5e-5),
        (768, 32, 5e-5),
        (1024, 64, 5.3e-5),
    ],
)
def test_rows_that_nothing_predicts_get_small_batches_if_they_are_many(
    hidden_size, batch_size, rate
):
    def choose(rows, *given):
        return recipe.choose(rows, batch_size, hidden_size, WEAK, *given)

    usual = batch_size or 32
    least = math.ceil(200 * usual / 3)  # for 200 steps
    assert choose(least - 1) == Recipe(train_batch_size=usual)
    found = choose(least)
    size = batch_size or 16
    assert found == Recipe(False, 3.0, rate, "corrected_adamw", size)
    assert choose(least, True) == found._replace(start_head=True)
    # At least a row for each device.
    for parts in (16, 32):
        size = batch_size or parts
        assert choose(least, False, parts).train_batch_size == size


@pytest.mark.parametrize(
    ("hidden_size", "rows", "epochs", "rate"),
    [
        (384, 1000, 6, 3e-5),
        (256, 1000, 8, 6.8e-5),
        (128, 1000, 16, 2.7e-4),
        (15, 1000, 16, 2.7e-4),
        (128, 50, 60, 2.7e-4),
        (128, 4000, 4, 2.7e-4),
    ],
)
def test_small_networks_take_more_and_larger_steps(
    hidden_size, rows, epochs, rate
):
    found = recipe.choose(rows, None, hidden_size, HEAD)
    assert found == Recipe(True, epochs, rate)
    found = recipe.choose(rows // 2, 16, hidden_size, HEAD)
    assert found == Recipe(True, epochs, rate, train_batch_size=16)


def test_labelled_words_have_the_recipe(capsys):
    tokenizer = run_folders.MODEL.tokenizer
    task = TokenClassification(tokenizer, ["O", "B-X", "I-X"], True, 9)
    run = run_folders.made(ner.Settings(do_train=True), config=LARGE)
    capsys.readouterr()
    run = head_start.with_recipe(run, task, 200, OF_WORDS, 1)
    assert Recipe.of_flags(vars(run.settings)) == Recipe(True, 10.0, RATE)
    assert capsys.readouterr().err == (
        "recipe: 200 windows, 3 labels, 2 x 390: head from frozen features, 10 "
        "epochs (62 steps), learning rate 5e-05; --recipe=original for the "
        "original's\n"
    )
    for values in ({"do_train": True, "recipe": "original"}, {}):
        run = run_folders.made(ner.Settings(**values))
        assert head_start.with_recipe(run, task, 200, HEAD, 1) is run


def test_the_original_has_no_recipe(capsys):
    for values in ({"recipe": "original"}, {"task_name": "cola"}):
        settings = dataclasses.replace(settings_of(), **values)
        assert completed(settings, {}) == Recipe(False, 3.0, RATE)
    assert not capsys.readouterr().err
    settings = dataclasses.replace(settings, recipe="table")
    assert completed(settings, {}) == Recipe(True, 6.0, LOW)


def test_a_given_flag_keeps_its_value():
    settings = settings_of("num_train_epochs", num_train_epochs=1.0)
    assert completed(settings, {}) == Recipe(True, 1.0, LOW)
    settings = settings_of("learning_rate", learning_rate=3e-5)
    assert completed(settings, {}) == Recipe(True, 6.0, 3e-5)
    settings = settings_of("start_head", start_head=False)
    assert completed(settings, {}, None) == Recipe(False, 6.0, RATE)
    settings = settings_of("start_head", start_head=True)
    assert completed(settings, {}, WEAK) == Recipe(True, 3.0, RATE)
    settings = settings_of("optimizer", optimizer="bert_adam")
    assert completed(settings, {}, WEAK, 4000) == Recipe(False, 3.0, RATE)
    assert completed(settings, {}) == Recipe(True, 6.0, LOW)
    settings = settings_of("optimizer", optimizer="lamb")
    assert completed(settings, {}) == Recipe(True, 6.0, RATE, "lamb")
    settings = settings_of("train_batch_size", train_batch_size=32)
    corrected = Recipe(False, 3.0, 9.8e-5, "corrected_adamw")
    assert completed(settings, {}, WEAK, 4000) == corrected


def test_devices_and_micro_batches_share_a_batch(capsys):
    for given, num_devices, size in [(1, 1, 16), (4, 8, 32), (1, 32, 32)]:
        settings = settings_of(gradient_accumulation_steps=given)
        found = completed(settings, {}, WEAK, 4000, num_devices)
        assert found.train_batch_size == size
        line = capsys.readouterr().err
        assert f"({12000 // size} steps)" in line
        assert (f"corrected_adamw, batches of {size};" in line) == (size != 32)


def test_a_resumed_run_keeps_its_values():
    recorded = {
        "start_head": True,
        "num_train_epochs": 7.0,
        "learning_rate": RATE,
    }
    assert completed(settings_of(), recorded) == Recipe(True, 7.0, RATE)
    # An earlier version had no recipe.
    earlier = {"num_train_epochs": 3.0, "learning_rate": RATE}
    assert completed(settings_of(), earlier) == Recipe(False, 3.0, RATE)
    settings = settings_of("optimizer", optimizer="lamb")
    kept = Recipe(True, 7.0, 1e-4, "lamb")
    assert completed(settings, {**recorded, "learning_rate": 1e-4}) == kept
    smaller = {**recorded, "train_batch_size": 8}
    kept = Recipe(True, 7.0, RATE, train_batch_size=8)
    assert completed(settings_of(), smaller) == kept
    earlier["optimizer"] = "adamw"  # the former name of bert_adam
    assert completed(settings_of(), earlier) == Recipe(False, 3.0, RATE)


def test_a_recorded_batch_has_to_fit_other_devices():
    """A resumed run has it, even if its default would fit."""
    run = run_folders.made(
        settings_of(),
        trained=Trained("out", True, None, {"train_batch_size": 6}),
        config=LARGE,
    )
    task = TextClassification(None, Labels(CLASSES, ("a", "b")), small.S)
    run = head_start.with_recipe(run, task, 400, None, 4)
    strategy = types.SimpleNamespace(num_replicas_in_sync=4)
    devices = ChosenDevices(strategy, "float32", False, False)
    message = "--train_batch_size=6; expected a multiple of 4"
    with pytest.raises(UserError, match=message):
        finetuning.batch_lengths(run, [None], devices)
