"""The readers that are fuzzed, each with valid files to edit.

Each function writes the files and returns the cases. It imports what it needs,
so that the memory of a process is that of its reader.
"""

import functools
import gzip
import json
import pathlib
import struct

from tests.helpers import fuzz_edits
from tests.helpers.fuzzing import Case

TOKENS = "[PAD] [UNK] [CLS] [SEP] [MASK] the a cat dog ##s .".split()
CONFIG = {
    "vocab_size": len(TOKENS),
    "hidden_size": 6,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 7,
    "hidden_act": "gelu",
    "max_position_embeddings": 13,
    "type_vocab_size": 2,
    "initializer_range": 0.02,
}
TASK = {"task": "classification", "kind": "classes", "labels": ["x", "y"]}
SQUAD_ANSWER = {"text": "1895", "answer_start": 15}
QUESTION = {"id": "q1", "question": "When?", "answers": [SQUAD_ANSWER]}
PARAGRAPH = {"context": "It was made in 1895.", "qas": [QUESTION]}
SQUAD = {"version": "1.1", "data": [{"paragraphs": [PARAGRAPH]}]}
RECORD = {
    "id": "7",
    "context": "It was made in 1895.",
    "question": "When?",
    "answers": {"text": ["1895"], "answer_start": [15]},
}


def of_bytes(path: pathlib.Path, content: bytes, read) -> Case:
    path.write_bytes(content)
    return Case(path, functools.partial(fuzz_edits.edit_bytes, content), read)


def of_json(path: pathlib.Path, value, read) -> Case:
    path.write_text(json.dumps(value))
    return Case(path, functools.partial(fuzz_edits.edit_json, value), read)


def vocabulary_text() -> bytes:
    return "".join(f"{token}\n" for token in TOKENS).encode()


def vocabulary(folder: pathlib.Path) -> list[Case]:
    from data.text import vocabulary, vocabulary_checks

    known, path = folder / "known.txt", folder / "vocab.txt"
    known.write_bytes(vocabulary_text())

    def read():
        tokens = vocabulary.read_vocabulary(str(path))
        assert list(tokens.values()) == list(range(len(tokens)))
        vocabulary_checks.check_exportable(str(path), tokens)
        vocabulary.check_same(str(path), str(known), "fix")

    return [of_bytes(path, vocabulary_text(), read)]


def config(folder: pathlib.Path) -> list[Case]:
    from modeling.config import BertConfig
    from modeling.formats import huggingface, model_folder

    path, theirs = folder / "bert_config.json", folder / "config.json"
    return [
        of_json(path, CONFIG, lambda: BertConfig.from_json_file(str(path))),
        of_json(
            theirs,
            {"model_type": "bert", "layer_norm_eps": 1e-12, **CONFIG},
            lambda: huggingface.read_config(str(theirs)),
        ),
        of_json(
            folder / "task.json",
            TASK,
            lambda: model_folder.recorded_task(str(folder)),
        ),
    ]


def manifest(folder: pathlib.Path) -> list[Case]:
    from data.records import manifest, writer

    shard = folder / "wiki.tfrecord"
    vocab = folder / "vocab.txt"
    vocab.write_bytes(vocabulary_text())
    entry = writer.write_records(str(shard), [b"abc"])
    settings = {
        "max_seq_length": 7,
        "max_predictions_per_seq": 2,
        "vocab_size": len(TOKENS),
        "do_lower_case": True,
        "strip_accents": True,
        "statistics": {"records": 1},
    }
    names = {shard.name: entry}
    writer.write_manifest(str(folder), names, str(vocab), settings)
    path = pathlib.Path(manifest.name_for(str(shard)))
    path = folder / path.name
    listed = json.loads(path.read_text())

    def read():
        for run in manifest.manifests_of([str(shard)]):
            if run:
                manifest.check_vocabulary(run)

    return [of_json(path, listed, read)]


def records(folder: pathlib.Path) -> list[Case]:
    import tensorflow as tf

    from common.formats import checksums
    from data import features
    from data.records import frames, reader, shard_check

    schema = features.pretraining_schema(7, 2)
    example = tf.train.Example()
    for name, (kind, length) in schema.items():
        feature = example.features.feature[name]
        if kind == "int64":
            feature.int64_list.value.extend([1] * length)
        else:
            feature.float_list.value.extend([0.5] * length)
    content = example.SerializeToString()

    def read_from(path):
        reader.read_lengths(str(path))
        shard_check.check_shard(str(path), None)
        reader.check_records(str(path), schema, len(TOKENS))

    def framed(edits):
        edited = fuzz_edits.edit_message(example, edits)
        return frames.join([content, edited])

    def with_length(edits):
        """A wrong length whose checksum is right."""
        good = frames.join([content])
        _, where, value = edits[0]
        length = fuzz_edits.pick([2**34, *fuzz_edits.NUMBERS], value)
        header = struct.pack("<Q", length % 2**64)
        header += struct.pack("<I", checksums.masked_crc32c(header))
        rest = fuzz_edits.edit_bytes(good[12:], edits[1:])
        return good * (where % 3) + header + rest

    cases = []
    for name, edit in (
        ("framed", framed),
        ("length", with_length),
        ("bytes", functools.partial(fuzz_edits.edit_bytes, framed([]))),
    ):
        path = folder / f"{name}.tfrecord"
        path.write_bytes(framed([]))
        cases.append(Case(path, edit, functools.partial(read_from, path)))
    return cases


def checkpoint_index(folder: pathlib.Path) -> list[Case]:
    import numpy as np
    from tensorflow.core.protobuf import tensor_bundle_pb2

    from checks import model
    from common.formats import checksums
    from tests.helpers import sorted_table

    prefix, data, protos = folder / "bert_model.ckpt", b"", []
    header = tensor_bundle_pb2.BundleHeaderProto(num_shards=1)
    header.version.producer = 1
    protos.append((b"", header))
    for name, shape in (("bert/a", [2, 3]), ("bert/layer_0/b", []), ("c", [5])):
        array = np.ones(shape, np.float32).tobytes()
        entry = tensor_bundle_pb2.BundleEntryProto(
            dtype=1,
            offset=len(data),
            size=len(array),
            crc32c=checksums.masked_crc32c(array),
        )
        entry.shape.SetInParent()
        for size in shape:
            entry.shape.dim.add(size=size)
        protos.append((name.encode(), entry))
        data += array
    pathlib.Path(f"{prefix}.data-00000-of-00001").write_bytes(data)

    def edit(edits):
        """One entry is edited, and its table gets the right checksums."""
        which = edits[0][1] % len(protos) if edits else -1
        entries = [
            (
                key,
                fuzz_edits.edit_message(proto, edits)
                if number == which
                else proto.SerializeToString(),
            )
            for number, (key, proto) in enumerate(protos)
        ]
        if edits and edits[0][0] == 8:
            name = fuzz_edits.pick(fuzz_edits.BYTES, edits[0][2])
            entries.append((b"d" + name, entries[-1][1]))
        return sorted_table.write(entries)

    def read():
        model.examine(str(prefix), None, None, None)

    path = pathlib.Path(f"{prefix}.index")
    path.write_bytes(edit([]))
    edit_raw = functools.partial(fuzz_edits.edit_bytes, edit([]))
    return [Case(path, edit, read), Case(path, edit_raw, read)]


def checkpoints_of_a_run(folder: pathlib.Path) -> list[Case]:
    import numpy as np

    from modeling import checkpoints
    from training.saver import Saver

    values = {"bert/a": np.ones(5, np.float32)}
    for step in (3, 7):
        Saver(str(folder)).save(step, values, {"a": 1}, {"step": step})

    def read():
        Saver(str(folder)).restore_latest()

    described = folder / "model.ckpt-7.json"
    state = folder / "checkpoint"
    return [
        of_json(described, json.loads(described.read_text()), read),
        of_bytes(
            state, state.read_bytes(), lambda: checkpoints.read(str(folder))
        ),
    ]


def safetensors(folder: pathlib.Path) -> list[Case]:
    import numpy as np
    from safetensors import numpy as theirs

    from modeling.formats import huggingface

    tensors = {
        "bert.embeddings.word_embeddings.weight": np.ones([11, 6], np.float32),
        "bert.encoder.layer.0.output.dense.weight": np.ones([6, 7], np.float32),
        "classifier.weight": np.ones([2, 6], np.float32),
        "cls.predictions.bias": np.ones([11], np.float32),
    }
    content = theirs.save(tensors)
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    path = folder / "model.safetensors"

    def edit(edits):
        text = fuzz_edits.edit_json(header, edits)
        return struct.pack("<Q", len(text)) + text + content[8 + length :]

    def read():
        huggingface.read(str(folder))
        huggingface.read_task(str(folder))

    described = {
        "model_type": "bert",
        "architectures": ["BertForSequenceClassification"],
        "id2label": {"0": "x", "1": "y"},
        "problem_type": "single_label_classification",
    }
    several = folder / "several"
    several.mkdir()
    (several / "part.safetensors").write_bytes(content)
    index = {"weight_map": dict.fromkeys(tensors, "part.safetensors")}
    (several / "config.json").write_text(json.dumps(described))
    cases = [of_json(folder / "config.json", described, read)]
    path.write_bytes(content)
    return [
        *cases,
        Case(path, edit, read),
        of_bytes(path, content, read),
        of_json(
            several / "model.safetensors.index.json",
            index,
            lambda: huggingface.read(str(several)),
        ),
    ]


def tokenizer_json(folder: pathlib.Path) -> list[Case]:
    from data.text import tokenizer_files, vocabulary

    tokenizer_files.write_config(str(folder), True, None)
    tokenizer_files.write_pipeline(str(folder), TOKENS, True, None)
    files = {
        name: json.loads((folder / name).read_text())
        for name in (tokenizer_files.PIPELINE, tokenizer_files.CONFIG)
    }
    files["special_tokens_map.json"] = {
        "unk_token": "[UNK]",
        "mask_token": {"content": "[MASK]", "lstrip": False},
        "additional_special_tokens": [],
    }
    files["added_tokens.json"] = {"[MASK]": 4}
    files["config.json"] = {"tokenizer_class": "BertTokenizer"}
    written = str(folder / "written.txt")

    def read():
        tokens = tokenizer_files.read(str(folder)).tokens
        tokenizer_files.read_casing(str(folder))
        if tokens is not None:
            vocabulary.write_vocabulary(written, tokens)
            lines = vocabulary.read_lines(written)
            assert len(lines) == len(tokens) + 1, "other lines than tokens"

    return [of_json(folder / name, x, read) for name, x in files.items()]


def tables(folder: pathlib.Path) -> list[Case]:
    from data import tables

    def case(name, content, columns, header, edit=None):
        path = folder / name

        def read():
            for _ in tables.rows(str(path), columns, header):
                pass

        made = of_bytes(path, content, read)
        return Case(path, edit or made.edit, read)

    lines = [{"text": "a cat", "label": 1}, {"text": "b", "label": "x"}]

    def edit_line(edits):
        edited = fuzz_edits.edit_json(lines[0], edits).replace(b"\n", b" ")
        return json.dumps(lines[1]).encode() + b"\n" + edited

    text = b"text\tlabel\na cat\t1\nthe dog\t0\n"
    quoted = b'text,label\n"a, ""b""\nc",1\nd,0\n'
    jsonl = "".join(f"{json.dumps(x)}\n" for x in lines).encode()
    packed = gzip.compress(text)

    def edit_packed(edits):
        if edits[0][0] % 2:
            return fuzz_edits.edit_bytes(packed, edits)
        return gzip.compress(fuzz_edits.edit_bytes(text, edits))

    names = ["text", "label"]
    return [
        case("a.tsv", text, names, True),
        case("b.tsv", text, [0, -1], False),
        case("c.csv", quoted, names, True),
        case("d.jsonl", jsonl, names, True),
        case("e.jsonl", jsonl, names, True, edit_line),
        case("f.tsv.gz", packed, names, True, edit_packed),
    ]


def raw_text(folder: pathlib.Path) -> list[Case]:
    from data.corpus import raw_text

    def case(name, content, edit=None):
        path = folder / name

        def read():
            for _, paragraph in raw_text.read_paragraphs(
                [str(path)], "file", "text"
            ):
                raw_text.split_sentences(paragraph, "en")

        made = of_bytes(path, content, read)
        return Case(path, edit or made.edit, read)

    line = {"text": "A cat. It is old.\nB.", "id": 3}
    text = b"The cat sleeps. It\nis old.\n\nThe dog sees it.\n"
    return [
        case("a.txt", text),
        case("b.jsonl", json.dumps(line).encode() + b"\n"),
        case(
            "c.jsonl",
            json.dumps(line).encode() + b"\n",
            lambda edits: fuzz_edits.edit_json(line, edits),
        ),
        case("d.txt.gz", gzip.compress(text)),
    ]


def squad(folder: pathlib.Path) -> list[Case]:
    from tasks.squad import examples

    cases = []
    for name, value in (("a.json", SQUAD), ("b.json", [RECORD])):
        for needed in (examples.NOTHING, examples.TEXTS, examples.SPANS):
            path = folder / f"{needed}-{name}"

            def read(path=path, needed=needed):
                found = examples.read(str(path), needed)
                examples.check_version(found, False)
                for example in found.examples:
                    examples.word_numbers(example.context)

            cases.append(of_json(path, value, read))
    return cases


def conll(folder: pathlib.Path) -> list[Case]:
    from tasks.ner import conll

    text = (
        b"-DOCSTART- -X- O\n\nAngela NNP B-PER\nvisits VBZ O\n\nBerlin N S-L\n"
    )
    path = folder / "train.txt"

    def read():
        sentences = conll.SentenceFile(str(path), conll.Columns())
        conll.has_entities(sentences, str(path))

    return [of_bytes(path, text, read)]


def saved_model(folder: pathlib.Path) -> list[Case]:
    import tensorflow as tf
    from tensorflow.core.protobuf import saved_model_pb2

    from checks import saved_model_scan
    from modeling.formats import saved_models
    from tests.helpers import lookup

    (folder.parent / "vocab.txt").write_bytes(vocabulary_text())
    root = tf.train.Checkpoint(variable=tf.Variable([1.0, 2.0]))
    root.table = lookup.text_file_table(folder.parent / "vocab.txt")
    root.call = tf.function(
        lambda x: (root.table.lookup(x), root.variable),
        [tf.TensorSpec([None], tf.string)],
    )
    tf.saved_model.save(root, str(folder))
    path = folder / "saved_model.pb"
    proto = saved_model_pb2.SavedModel.FromString(path.read_bytes())

    def read():
        saved_model_scan.scan(str(folder))
        saved_models.variables_of(str(folder))

    return [
        Case(path, functools.partial(fuzz_edits.edit_message, proto), read),
        of_bytes(path, path.read_bytes(), read),
    ]


READERS = {
    "vocabulary": vocabulary,
    "config": config,
    "manifest": manifest,
    "records": records,
    "checkpoint_index": checkpoint_index,
    "checkpoints_of_a_run": checkpoints_of_a_run,
    "safetensors": safetensors,
    "tokenizer_json": tokenizer_json,
    "tables": tables,
    "raw_text": raw_text,
    "squad": squad,
    "conll": conll,
    "saved_model": saved_model,
}
