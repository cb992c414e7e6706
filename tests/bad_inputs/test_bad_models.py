"""SavedModels that cannot be asked: one line."""

import pytest
import tensorflow as tf

SPEC = [tf.TensorSpec([None], tf.string, name="text")]


def save(folder, call, **signatures):
    root = tf.Module()
    root.call = tf.function(call, SPEC)
    tf.saved_model.save(root, str(folder), signatures or root.call)
    return str(folder)


def nested(text):
    return {"label_names": tf.strings.length(text), "probabilities": text}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda text: {"a": tf.size(text)},
            "the output 'a' has the shape []; expected 1 rows, one for each",
        ),
        (
            lambda text: {"a": tf.zeros([3])},
            "the output 'a' has the shape [3]; expected 1 rows, one for each",
        ),
        (lambda text: {"a": tf.strings.to_number(text)}, "cannot be run: "),
    ],
)
def test_outputs_without_a_row_for_each_line(tmp_path, ask, call, message):
    code, answers, err = ask(save(tmp_path / "model", call), b"a\n")
    assert (code, answers) == (2, [])
    assert err.splitlines()[-1].startswith(
        f"error: {tmp_path}/model: {message}"
    )


def test_outputs_that_cannot_be_grouped_are_printed(tmp_path, ask):
    code, answers, _ = ask(save(tmp_path / "model", nested), b"abc\n")
    assert code == 0
    assert answers == [{"label_names": 3, "probabilities": "abc"}]


def test_a_model_without_signatures(tmp_path, ask):
    root = tf.Module()
    root.call = tf.function(lambda text: text, SPEC)
    tf.saved_model.save(root, str(tmp_path / "model"), {})
    code, _, err = ask(str(tmp_path / "model"), b"a\n")
    assert code == 2
    assert "no signature 'serving_default' with text inputs" in err
