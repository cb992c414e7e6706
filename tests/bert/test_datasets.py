import numpy as np
import pytest

import bert
from bert.common.errors import UserError
from tests.helpers import pretraining_files, small

S, P = small.S, small.P


def records(tmp_path, name="a.tfrecord", rows=7, **options):
    path = tmp_path / "records" / name
    pretraining_files.write_records(path, rows, **options)
    return str(path)


@pytest.mark.parametrize("listed", [True, False])
def test_batches_hold_inputs_labels_and_weights(listed, tmp_path):
    path = records(tmp_path, listed=listed)
    batches = bert.pretraining_dataset(path, 2, next_sentence=True)
    given, labels, weights = next(iter(batches))
    assert {name: x.shape for name, x in given.items()} == {
        "input_ids": (2, S),
        "input_mask": (2, S),
        "segment_ids": (2, S),
        "masked_lm_positions": (2, P),
    }
    assert labels["masked_lm_logits"].shape == (2, P)
    assert labels["next_sentence_logits"].shape == (2, 1)
    assert set(np.unique(weights["masked_lm_logits"])) <= {0, 1}
    assert weights["next_sentence_logits"].numpy().tolist() == [1, 1]


def test_an_epoch_has_every_record_once_and_resumes(tmp_path):
    files = [records(tmp_path), records(tmp_path, "b.tfrecord", 4, seed=2)]

    def ids(count, **options):
        made = bert.pretraining_dataset(files, 1, seed=5, **options).take(count)
        return [batch[0]["input_ids"].numpy().tobytes() for batch in made]

    epoch = ids(11)
    assert len(set(epoch)) == 11
    assert ids(4, step=7) == epoch[7:]
    assert len(bert.pretraining_dataset(files, 1).element_spec[1]) == 1


def test_records_that_cannot_be_used(tmp_path):
    packed = records(tmp_path, pack_sequences=True, max_sequences_per_row=2)
    with pytest.raises(UserError, match="has packed rows"):
        bert.pretraining_dataset(packed, 2)
    with pytest.raises(UserError, match="matches no file"):
        bert.pretraining_dataset(str(tmp_path / "none*"), 2)
    (tmp_path / "text").write_text("no record")
    with pytest.raises(UserError, match="is text, not TFRecords; make"):
        bert.pretraining_dataset(str(tmp_path / "text"), 2)
