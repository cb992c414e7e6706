"""A stranger's mistakes: one line, exit code 2, nothing overwritten."""

import json

import pytest

import create_pretraining_data
import create_vocab
import fill_mask
import run_pretraining
from tests.helpers import model_files, text

LENGTHS = {"max_seq_length": 31, "max_predictions_per_seq": 5}


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A folder with good files, made by the scripts."""
    folder = tmp_path_factory.mktemp("good")
    text.write_corpus(folder / "corpus.txt", 7)
    model_files.write_sizes(folder, max_position_embeddings=37)
    flags = {
        "input_file": folder / "corpus.txt",
        "vocab_file": folder / "vocab.txt",
        "output_file": folder / "good.tfrecord",
        **LENGTHS,
    }
    argv = [f"--{name}={value}" for name, value in flags.items()]
    create_pretraining_data.main(["create_pretraining_data", *argv])
    (folder / "model.ckpt-1.meta").touch()  # a part of a checkpoint
    return folder


@pytest.fixture
def refused(good, tmp_path, run_script):
    """Runs a script; returns its one line, without `error: `."""
    defaults = {
        create_vocab: {
            "input_file": good / "corpus.txt",
            "output_file": tmp_path / "out.txt",
        },
        create_pretraining_data: {
            "input_file": good / "corpus.txt",
            "vocab_file": good / "vocab.txt",
            "output_file": tmp_path / "out.tfrecord",
            **LENGTHS,
        },
        run_pretraining: {
            "input_file": good / "good.tfrecord",
            "output_dir": tmp_path / "run",
            "bert_config_file": good / "bert_config.json",
            "do_train": True,
            "num_train_steps": 1,
        },
        fill_mask: {
            "init_checkpoint": good / "model.ckpt-1",
            "input_file": good / "corpus.txt",
        },
    }

    def run(script, *words, **changed):
        before = sorted(good.iterdir()), sorted(tmp_path.iterdir())
        named = {**defaults[script], **changed}
        named = {name: v for name, v in named.items() if v is not None}
        code, out, err = run_script(script, *words, **named)
        assert code == 2, (out, err)
        errors = [x for x in err.splitlines() if x.startswith("error: ")]
        assert len(errors) == 1, err
        assert err.endswith(f"{errors[0]}\n")
        assert "Traceback" not in err
        assert (sorted(good.iterdir()), sorted(tmp_path.iterdir())) == before
        return errors[0].removeprefix("error: ")

    return run


def written(tmp_path, content, name="file"):
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content)
    return path


@pytest.mark.parametrize(
    ("script", "flags", "message"),
    [
        (create_vocab, {"input_file": None}, "input_file"),
        (create_vocab, {"input_file": "/none/*.txt"}, "matches no file"),
        (create_vocab, {"output_file": "/"}, "expected the name of a file"),
        (
            create_vocab,
            {"output_file": "/none/v.txt"},
            "create the folder first",
        ),
        (create_vocab, {"vocab_size": 20}, "--vocab_size=20 is too small"),
        (create_vocab, {"vocab_size": "many"}, "vocab_size"),
        (create_vocab, {"vocab_sise": 20}, "Unknown command line flag"),
        (create_pretraining_data, {"vocab_file": "/none"}, "No such file"),
        (create_pretraining_data, {"vocab_file": "/"}, "/: is a folder"),
        (create_pretraining_data, {"input_file": "/tmp"}, "is a folder"),
        (create_pretraining_data, {"max_seq_length": 4}, "max_seq_length"),
        (create_pretraining_data, {"masked_lm_prob": 1.5}, "masked_lm_prob"),
        (create_pretraining_data, {"dupe_factor": 0}, "dupe_factor"),
        (create_pretraining_data, {"num_processes": 0}, "num_processes"),
        (create_pretraining_data, {"runner": "NoRunner"}, "--runner=NoRunner"),
        (
            create_pretraining_data,
            {"output_file": "a.tfrecord,a.tfrecord"},
            "expected different files in one folder",
        ),
        (
            create_pretraining_data,
            {"output_file": "/"},
            "expected a file name, such as folder/wiki.tfrecord",
        ),
        (run_pretraining, {"do_train": False}, "pass --do_train or --do_eval"),
        (run_pretraining, {"input_file": "/none"}, "matches no file"),
        (run_pretraining, {"bert_config_file": "/none"}, "No such file"),
        (run_pretraining, {"train_batch_size": 0}, "train_batch_size"),
        (
            run_pretraining,
            {"train_batch_size": 6, "distribution": "mirrored"},
            "--train_batch_size=6; expected a multiple of 4",
        ),
        (run_pretraining, {"use_tpu": True}, "no TPU at this host"),
        (run_pretraining, {"init_checkpoint": "/none"}, "no such checkpoint"),
        (
            run_pretraining,
            {"do_train": False, "do_eval": True},
            "no checkpoint; expected a trained model; pass --do_train",
        ),
        (fill_mask, {"init_checkpoint": "/none"}, "no such checkpoint"),
        (fill_mask, {}, "corpus.txt:1: "),
        (fill_mask, {"top_k": 0}, "top_k"),
    ],
)
def test_flags(refused, script, flags, message):
    assert message in refused(script, **flags)


def test_a_value_without_its_flag(refused):
    line = refused(run_pretraining, "and", "more")
    assert line.startswith("unexpected argument 'and'; write --flag=value")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[PAD]\n[UNK]\n[CLS]\n[SEP]\n", "no [MASK] among 4 tokens"),
        (b"PK\x03\x04", "this is a zip archive"),
    ],
)
def test_vocabularies(refused, tmp_path, content, message):
    path = written(tmp_path, content)
    line = refused(create_pretraining_data, vocab_file=path)
    assert line.startswith(f"{path}:")
    assert message in line


@pytest.mark.parametrize("script", [create_vocab, create_pretraining_data])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no document"),
        (b"a b\nc \xe9 d\n", ":2: invalid UTF-8 byte 0xe9 at column 3"),
        ("a b\n".encode("utf-16"), ":1: is UTF-16; expected UTF-8; convert"),
        (b"a b\rc d\re f\r", "line ends are lone carriage returns"),
        (b"\x1f\x8b\x08\x00damaged", "cannot be read"),
    ],
)
def test_corpora(refused, tmp_path, script, content, message):
    name = "file.gz" if "damaged" in repr(content) else "file"
    path = written(tmp_path, content, name)
    line = refused(script, input_file=path)
    assert line.startswith(f"{path}:")
    assert message in line


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"hiden_size": 15}, "did you mean 'hidden_size'?"),
        ({"vocab_size": 11}, f"expected at least {len(text.VOCABULARY)}, the "),
        ({"max_position_embeddings": 29}, "--max_seq_length=31; expected at "),
        ({"num_attention_heads": 4}, "expected a multiple of"),
    ],
)
def test_configs(refused, good, tmp_path, changed, message):
    config = json.loads((good / "bert_config.json").read_text())
    path = written(tmp_path, json.dumps({**config, **changed}))
    assert message in refused(run_pretraining, bert_config_file=path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", ": no records; expected TFRecords"),
        (b"not a TFRecord file at all", ": is text, not TFRecords; make"),
    ],
)
def test_records(refused, tmp_path, content, message):
    path = written(tmp_path, content)
    line = refused(run_pretraining, input_file=path, **LENGTHS)
    assert line.startswith(f"{path}{message}")


def test_a_shard_that_was_cut(refused, good):
    path = good / "good.tfrecord"
    content = path.read_bytes()
    path.write_bytes(content[:-7])
    line = refused(run_pretraining)
    path.write_bytes(content)
    assert line == (
        f"{path}: has {len(content) - 7} bytes; expected {len(content)} "
        "(_good.manifest.json); the file is damaged: make the "
        "records again"
    )


def test_an_output_dir_that_is_a_file(refused, tmp_path):
    path = written(tmp_path, "")
    line = refused(run_pretraining, output_dir=path)
    assert line == f"{path}: is a file; expected a folder"


def test_help_is_no_error(capsys):
    with pytest.raises(SystemExit) as caught:
        run_pretraining.main(["run_pretraining", "--help"])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    assert "--[no]do_train" in shown
    assert shown.startswith("Pre-trains BERT on TFRecords")
