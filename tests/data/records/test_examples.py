"""Examples of a task in memory; batches of similar lengths."""

import numpy as np

from bert.data import batching
from bert.data.records import examples as examples_module
from bert.data.records.encoding import Feature
from bert.data.records.examples import Examples
from tests.helpers.pretraining_rows import padded

S, N, C = 11, 23, 3
SCHEMA = {
    "label_ids": Feature(),
    "score": Feature("float32", size=2),
    "tags": Feature(sequence=True),
}


def make_examples(count=N, choices=1, seed=3):
    rng = np.random.default_rng(seed)
    examples = []
    for i in range(count):
        parts = [
            rng.integers(1, 97, rng.integers(1, S + 1)).tolist()
            for _ in range(choices)
        ]
        made = {
            "input_ids": parts,
            "segment_ids": [[x % 2 for x in part] for part in parts],
            "tags": [[x % 5 for x in part] for part in parts],
        }
        if choices == 1:
            made = {name: value[0] for name, value in made.items()}
        examples.append(made | {"label_ids": [i], "score": [i / 2, -1.0]})
    return examples


def test_blocks_of_examples_are_joined(monkeypatch):
    monkeypatch.setattr(examples_module, "_AT_ONCE", 5)
    rng = np.random.default_rng(7)
    examples = []
    for i in range(N):
        ids = rng.integers(0, 70_000, rng.integers(1, S + 1))
        tags = rng.choice([-1, 7, 200, -40_000], len(ids) if i > 11 else 0)
        tags = [*tags.tolist(), *[1] * (len(ids) - len(tags))]
        score = rng.choice([0.0, -0.0, 1.0, 0.1, 3e38], 2 if i > 9 else 0)
        examples.append(
            {
                "input_ids": ids.tolist(),
                "segment_ids": [i % 2] * len(ids),
                "tags": tags,
                "label_ids": [-i],
                "score": [*score.tolist(), 1.0, 2.0][:2],
            }
        )
    chosen = rng.permutation(N)[:7]
    batch = Examples(examples, SCHEMA).batch(chosen, S)
    some = [examples[i] for i in chosen]
    for name in ("input_ids", "segment_ids", "tags"):
        expected = padded([x[name] for x in some], S, np.int32)
        assert batch[name].tobytes() == expected.tobytes(), name
    lengths = [len(x["input_ids"]) for x in some]
    expected = padded([[1] * n for n in lengths], S, np.int32)
    assert batch["input_mask"].tobytes() == expected.tobytes()
    assert batch["label_ids"].tolist() == [-i for i in chosen]
    scores = np.array([x["score"] for x in some], np.float32)
    assert batch["score"].tobytes() == scores.tobytes()
    assert {x.dtype.name for x in batch.values()} == {"int32", "float32"}


def test_workers_have_their_parts_of_each_batch():
    """Padded to the length of the whole batch."""
    examples = Examples(make_examples(64), SCHEMA)
    lengths = [4, 8, S]

    def take(*share):
        made = batching.training_batches(examples, lengths, 6, 5, 3, *share)
        return list(made.take(20).as_numpy_iterator())

    parts = [take((worker, 3)) for worker in range(3)]
    for whole, *some in zip(take(), *parts, strict=True):
        for name, values in whole.items():
            together = [x[name] for x in some]
            assert {len(x) for x in together} == {2}
            np.testing.assert_array_equal(np.concatenate(together), values)


def test_choices_are_an_axis():
    made = make_examples(choices=C)
    examples = Examples(made, SCHEMA, C)
    longest = [max(map(len, x["input_ids"])) for x in made]
    assert examples.lengths.tolist() == longest
    batch = examples.batch(np.arange(2), S)
    assert batch["input_ids"].shape == (2, C, S)
    assert batch["input_mask"].shape == (2, C, S)
    assert batch["label_ids"].shape == (2,)


def test_batches_are_padded_to_the_first_length_for_all_of_them():
    """A report lists the examples of the batch of a step."""
    examples, allowed = Examples(make_examples(640), SCHEMA), [4, 8, S]
    made = batching.training_batches(examples, allowed, 8, 5, step=3)
    assert made.options().autotune.enabled is False
    widths = []
    for step, batch in enumerate(made.take(61).as_numpy_iterator(), 4):
        chosen = batch["label_ids"].tolist()
        found = batching.report_examples(examples, 8, 5, step)
        assert found == f"examples {', '.join(map(str, chosen))}"
        longest = examples.lengths[chosen].max()
        widths.append(batch["input_ids"].shape[1])
        assert widths[-1] == min(x for x in allowed if x >= longest)
    assert {*widths} == {*allowed}


def test_batches_in_order_repeat_with_a_smaller_last_batch():
    examples = Examples(make_examples(5), SCHEMA)
    made = batching.ordered_batches(examples, [4, 8, S], 2).take(6)
    found = [x["label_ids"].tolist() for x in made.as_numpy_iterator()]
    assert found == [[0, 1], [2, 3], [4]] * 2
