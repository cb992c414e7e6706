"""The exported graph equals tasks.squad.windows and tasks.squad.answers."""

import random
import types

import numpy as np
import pytest
import tensorflow as tf

from bert.common import flags
from bert.data import features, sequences
from bert.data.text import vocabulary
from bert.modeling import checkpoints, task_models
from bert.serving import graphs
from bert.tasks.squad import answers as spans
from bert.tasks.squad import export as serving
from bert.tasks.squad import windows as squad_windows
from bert.tasks.squad.examples import SquadExample
from bert.tasks.squad.settings import Settings
from tests.helpers import small

WORDS = "a b c ##d e ##f g . ( é 18 ##95".split()
TOKENS = [*vocabulary.SPECIAL_TOKENS, *WORDS]
WRITTEN = "A b cd ef É e\u0301 (g). 1895 b\u00a0c \u200b, xyz ab\n\u2603".split(
    " "
)
SIZES = (23, 3, 5)  # of a sequence, the stride, a question


@pytest.fixture(scope="module")
def network():
    """Weights of a network with large logits, and the network."""
    model = task_models.build_span_model(config(), 7)
    rng = np.random.default_rng(3)
    named = checkpoints.model_variables(model)
    weights = {
        name: rng.normal(0, 0.6, value.shape).astype(np.float32)
        for name, value in named.items()
    }
    checkpoints.assign(named, weights, "")
    ids = tf.TensorSpec([None, None], tf.int32)
    signature = [dict.fromkeys(features.ENCODER_INPUTS, ids)]
    run = tf.function(model, input_signature=signature, autograph=False)
    return weights, run


def config():
    return small.config(max_position_embeddings=31)


@pytest.fixture(scope="module")
def vocab_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    path.write_text("".join(f"{token}\n" for token in TOKENS))
    return str(path)


def settings(vocab_file, threshold, **changed):
    sizes = ("max_seq_length", "doc_stride", "max_query_length")
    values = {
        **dict(zip(sizes, SIZES)),
        "n_best_size": 7,
        "max_answer_length": 4,
        **changed,
    }
    return flags.replace(
        Settings(),
        vocab_file=vocab_file,
        do_lower_case=True,
        version_2_with_negative=threshold is not None,
        null_score_diff_threshold=threshold or 0.0,
        **values,
    )


def expected(settings, model, examples):
    """Answers, window by window."""
    tokenizer = settings.finetuning.text.tokenizer()
    maker = squad_windows.WindowMaker(
        tokenizer,
        settings,
    )
    windows = {}
    for row in maker.prediction_records(examples):
        ids, segments = row[features.INPUT_IDS], row[features.SEGMENT_IDS]
        inputs = zip(features.ENCODER_INPUTS, (ids, ids * 0 + 1, segments))
        found = model({name: x[None] for name, x in inputs})
        window = spans.WindowLogits(
            found["start_logits"].numpy()[0],
            found["end_logits"].numpy()[0],
            row[features.TOKEN_STARTS],
            row[features.TOKEN_LIMITS],
            row[features.TOKEN_IS_MAX_CONTEXT],
        )
        index = row[features.EXAMPLE_INDEX][0]
        windows.setdefault(index, []).append(window)
    for index, example in enumerate(examples):
        own = windows.get(index, [])
        yield (
            len(own),
            spans.extract(
                own,
                spans.offsets_text(example.context, own),
                settings.n_best_size,
                settings.max_answer_length,
                settings.version_2_with_negative,
            ),
        )


def ask(model, examples):
    return model.serve(
        question=tf.constant([x.question for x in examples]),
        context=tf.constant([x.context for x in examples]),
    )


def random_examples(count, seed, longest=20):
    rng = random.Random(seed)

    def text(size):
        words = rng.choices(WRITTEN, k=rng.randrange(size))
        return "".join(word + rng.choice([" ", "  ", "\n"]) for word in words)

    return [SquadExample(str(i), text(6), text(longest)) for i in range(count)]


def compare(settings, network, examples):
    weights, run = network
    threshold = settings.null_score_diff_threshold
    source = types.SimpleNamespace(
        config=config(), tokenizer=settings.finetuning.text.tokenizer()
    )
    model = serving.QuestionAnswering(source, settings, threshold, weights)
    found = ask(model, examples)
    found = {name: x.numpy() for name, x in found.items()}
    if not settings.version_2_with_negative:
        threshold = np.inf
    windows = kept = 0
    for i, (count, answers) in enumerate(expected(settings, run, examples)):
        entry, example = answers.best, examples[i]
        if not entry or answers.null_odds > threshold:
            entry = next(x for x in answers.nbest if not x.text)
        assert found["answer"][i].decode() == entry.text, i
        start, end = found["start"][i], found["end"][i]
        assert (start, end) == (entry.start, entry.limit)
        assert example.context[start:end] == entry.text
        assert found["probability"][i] == pytest.approx(
            entry.probability, abs=1e-5
        )
        assert found["null_odds"][i] == pytest.approx(
            answers.null_odds, abs=1e-4
        )
        windows, kept = max(windows, count), kept + bool(entry.text)
    return windows, kept


@pytest.mark.slow
@pytest.mark.parametrize("threshold", [None, 2.0])
def test_answers_equal_those_of_the_script(vocab_file, network, threshold):
    examples = [
        *random_examples(23, seed=5),
        *random_examples(2, seed=6, longest=200),
        SquadExample("empty", "a", ""),
        SquadExample("blank", "", " \n\u200b"),
        SquadExample("one token", "b", "a"),
        SquadExample("duplicates", "b", "a b a b a b a b a b"),
    ]
    windows, kept = compare(settings(vocab_file, threshold), network, examples)
    assert windows > 32  # more than one batch of the network
    assert 5 < kept < len(examples) - 2


@pytest.mark.parametrize("seed", range(3))
def test_most_context_equals_that_of_the_windows(seed):
    rng = np.random.default_rng(seed)
    count, size = rng.integers(1, 60, 31), rng.integers(1, 20, 31)
    stride = np.minimum(size, rng.integers(1, 25, 31))
    cut = [sequences.cut(*x) for x in zip(count, size, stride)]
    paragraphs = serving._Paragraphs(
        questions=tf.RaggedTensor.from_row_lengths([], [0] * 31),
        tokens=tf.RaggedTensor.from_row_lengths(
            tf.zeros(count.sum(), tf.int32), count
        ),
        starts=None,
        limits=None,
        size=tf.constant(size),
        stride=tf.constant(stride),
        windows=tf.constant([len(x) for x in cut], tf.int64),
    )
    windows = graphs.cut(tf.constant(count), paragraphs.size, paragraphs.stride)
    pairs = np.stack([windows.starts, windows.lengths], 1).tolist()
    assert pairs == [list(x) for some in cut for x in some]
    tokens = windows.starts[:, None] + tf.range(20, dtype=tf.int64)
    inside = serving._inside(tokens, windows).numpy()
    found = serving._has_most_context(tokens, paragraphs, windows).numpy()
    for row, (of, number) in enumerate(zip(windows.of, windows.numbers)):
        owners = squad_windows.max_context(cut[of], count[of])
        for token in tokens.numpy()[row][inside[row]]:
            position = token - windows.starts.numpy()[row]
            assert found[row, position] == (owners[token] == number.numpy())
