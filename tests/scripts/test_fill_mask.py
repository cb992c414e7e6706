"""fill_mask on checkpoints of ours and of the original."""

import pytest

import fill_mask
from bert.common.formats import tensor_files
from bert.modeling.networks import build_pretraining_model
from bert.tasks.fill_mask import task
from tests.helpers import model_files


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A folder as the original release ships it, with known answers.

    Its word embeddings are zero, so the output bias alone decides.
    """
    folder = tmp_path_factory.mktemp("original")
    config = model_files.write_sizes(folder)
    model = build_pretraining_model(config)
    values = model_files.biased_values(model, river=100, stone=99)
    values["bert/embeddings/word_embeddings"] *= 0
    tensor_files.write(str(folder / "bert_model.ckpt"), values)
    return folder


@pytest.fixture
def fill(run_script, tmp_path):
    def run(checkpoint, sentences, *words, code=0, **named):
        path = tmp_path / "sentences.txt"
        path.write_text(sentences)
        found, out, err = run_script(
            fill_mask,
            *words,
            init_checkpoint=checkpoint,
            input_file=path,
            **named,
        )
        assert found == code, err
        return (out if code == 0 else err).splitlines()

    return run


def test_each_sentence_and_its_words(fill, original):
    lines = fill(
        original,
        "the cat sees the [MASK] .\n\nThe [MASK] likes a [MASK]\n",
        top_k=2,
    )
    words = "    river 0.731, stone 0.269"
    assert lines == [
        "the cat sees the [MASK] .",
        words,
        "The [MASK] likes a [MASK]",
        words,
        words,
    ]


def test_chosen_words_have_their_probabilities(fill, original):
    named = {"top_k": 1, "words": "tree,Stone,river"}
    path = original / "bert_model.ckpt"
    line = fill(path, "a [MASK] .\n", **named)[1]
    assert line.startswith("    river 0.731, stone 0.269, tree ")
    (line,) = fill(path, "a [MASK]\n", words="tree,treestone", code=2)[-1:]
    assert "'treestone' has the tokens" in line
    assert line.endswith("expected a word that is a token of the vocabulary")


def test_masks_are_kept_intact():
    class Tokenizer:
        def tokenize(self, part):
            return part.split()

    tokens = task.tokenize("[MASK] sees[MASK]. [MASK]", Tokenizer())
    assert tokens == ["[MASK]", "sees", "[MASK]", ".", "[MASK]"]
