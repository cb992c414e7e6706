"""Files of every task: lines in the real format to texts and labels."""

import json

import pytest

from common import flags
from common.errors import UserError
from tasks.classification import examples as classification
from tasks.classification import inputs
from tasks.classification.inputs import DEV, TEST, TRAIN
from tasks.classification.settings import Settings
from tasks.classification.tasks import TASKS

NLI = ("contradiction", "entailment", "neutral")
MNLI_HEADER = (
    "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\t"
    "sentence2_binary_parse\tsentence1_parse\tsentence2_parse\tsentence1\t"
    "sentence2\tlabel1\tgold_label"
)
XNLI_HEADER = (
    "language\tgold_label\tsentence1_binary_parse\tsentence2_binary_parse\t"
    "sentence1_parse\tsentence2_parse\tsentence1\tsentence2\tpromptID\t"
    "pairID\tgenre\tlabel1\tmatch"
)
STSB_HEADER = (
    "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\t"
    "sentence1\tsentence2"
)


def mnli(label, a, b):
    return f"0\t31193\t31193n\tgovernment\t( x )\t( y )\t(X)\t(Y)\t{a}\t{b}" + (
        f"\tneutral\t{label}" if label else ""
    )


def xnli(language, label, a, b):
    return (
        f"{language}\t{label}\t\t\t\t\t{a}\t{b}\t1\t1\tfacetoface\t{label}\tT"
    )


# task -> split, file, its lines, the examples in it.
CASES = {
    "cola": [
        (
            TRAIN,
            "train.tsv",
            ['gj04\t1\t\tHe said, "I won\'t."', "gj04\t0\t*\tThey drank pub."],
            [
                ("0", 'He said, "I won\'t."', "", 1),
                ("1", "They drank pub.", "", 0),
            ],
        ),
        (
            TEST,
            "test.tsv",
            ["index\tsentence", "0\tBill whistled."],
            [("0", "Bill whistled.", "", None)],
        ),
    ],
    "mnli": [
        (
            TRAIN,
            "train.tsv",
            [MNLI_HEADER, mnli("neutral", "Cream skims.", "It has two.")],
            [("0", "Cream skims.", "It has two.", 2)],
        ),
        (
            DEV,
            "dev_matched.tsv",
            [MNLI_HEADER, mnli("contradiction", "One.", "Two.")],
            [("0", "One.", "Two.", 0)],
        ),
        (
            DEV,
            "dev_mismatched.tsv",
            [MNLI_HEADER, mnli("entailment", "Three.", "Four.")],
            [("0", "Three.", "Four.", 1)],
        ),
        (
            TEST,
            "test_matched.tsv",
            [
                MNLI_HEADER.rpartition("\tlabel1")[0],
                mnli("", "Hierbas is a name.", "It is."),
            ],
            [("0", "Hierbas is a name.", "It is.", None)],
        ),
    ],
    "mrpc": [
        (
            TRAIN,
            "train.tsv",
            [
                "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String",
                '1\t70\t71\tHe said "yes.\tThe "witness" agreed.',
            ],
            [("0", 'He said "yes.', 'The "witness" agreed.', 1)],
        ),
        (
            TEST,
            "test.tsv",
            [
                "\ufeffindex\t#1 ID\t#2 ID\t#1 String\t#2 String",
                "0\t1089\t1090\tMr So.\tSo.",
            ],
            [("0", "Mr So.", "So.", None)],
        ),
    ],
    "xnli": [
        (
            TRAIN,
            "multinli/multinli.train.zh.tsv",
            ["premise\thypo\tlabel", "从 概念 上\t产品 和\tcontradictory"],
            [("0", "从 概念 上", "产品 和", 0)],
        ),
        (
            DEV,
            "xnli.dev.tsv",
            [
                XNLI_HEADER,
                xnli("ar", "neutral", "a", "b"),
                xnli("zh", "entailment", "他 说", "妈妈"),
            ],
            [("0", "他 说", "妈妈", 1)],
        ),
        (
            TEST,
            "xnli.test.tsv",
            [XNLI_HEADER, xnli("zh", "contradiction", "嗯", "我")],
            [("0", "嗯", "我", 0)],
        ),
    ],
    "sst2": [
        (
            TRAIN,
            "train.tsv",
            ["sentence\tlabel", "hide new secretions \t0", "10,000 \t1"],
            [
                ("0", "hide new secretions ", "", 0),
                ("1", "10,000 ", "", 1),
            ],
        ),
        (
            TEST,
            "test.tsv",
            ["index\tsentence", "0\tno movement , no yuks"],
            [("0", "no movement , no yuks", "", None)],
        ),
    ],
    "qnli": [
        (
            TRAIN,
            "train.tsv",
            [
                "index\tquestion\tsentence\tlabel",
                "0\tWhen did it?\tIt began.\tnot_entailment",
                '1\tWho "is"?\tNobody.\tentailment',
            ],
            [
                ("0", "When did it?", "It began.", 1),
                ("1", 'Who "is"?', "Nobody.", 0),
            ],
        ),
        (
            TEST,
            "test.tsv",
            ["index\tquestion\tsentence", "0\tWhat?\tThis."],
            [("0", "What?", "This.", None)],
        ),
    ],
    "qqp": [
        (
            TRAIN,
            "train.tsv",
            [
                "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate",
                "133273\t213221\t213222\tHow is life?\tIs it?\t0",
                "402555\t536040\t536041\tHow do I",
                "360472\t364011\t490273\tWhat causes\tWhat can\t1",
            ],
            [
                ("0", "How is life?", "Is it?", 0),
                ("1", "What causes", "What can", 1),
            ],
        ),
        (
            TEST,
            "test.tsv",
            ["id\tquestion1\tquestion2", "0\tWould it?\tIs it?"],
            [("0", "Would it?", "Is it?", None)],
        ),
    ],
    "rte": [
        (
            TRAIN,
            "train.tsv",
            [
                "index\tsentence1\tsentence2\tlabel",
                "0\tNo Weapons.\tWeapons.\tnot_entailment",
            ],
            [("0", "No Weapons.", "Weapons.", 1)],
        ),
        (
            TEST,
            "test.tsv",
            ["index\tsentence1\tsentence2", "0\tMangla was.\tShukla is."],
            [("0", "Mangla was.", "Shukla is.", None)],
        ),
    ],
    "wnli": [
        (
            TRAIN,
            "train.tsv",
            [
                "index\tsentence1\tsentence2\tlabel",
                "0\tI stuck a pin.\tThe carrot.\t1",
            ],
            [("0", "I stuck a pin.", "The carrot.", 1)],
        ),
        (
            TEST,
            "test.tsv",
            ["index\tsentence1\tsentence2", "0\tMaude and\tDora had"],
            [("0", "Maude and", "Dora had", None)],
        ),
    ],
    "stsb": [
        (
            TRAIN,
            "train.tsv",
            [
                f"{STSB_HEADER}\tscore",
                "0\tmain\tMSRvid\t2012\t1\tnone\tnone\tA plane.\tAn air.\t3.8",
            ],
            [("0", "A plane.", "An air.", 3.8)],
        ),
        (
            TEST,
            "test.tsv",
            [
                STSB_HEADER,
                "0\tmain\tMSRvid\t2012\t24\tnone\tnone\tA girl.\tHer hair.",
            ],
            [("0", "A girl.", "Her hair.", None)],
        ),
    ],
    "ax": [
        (
            DEV,
            "diagnostic-full.tsv",
            [
                "Lexical Semantics\tLogic\tDomain\tPremise\tHypothesis\tLabel",
                "\tNegation\tNews\tThe cat sat.\tIt did not.\tcontradiction",
            ],
            [("0", "The cat sat.", "It did not.", 0)],
        ),
        (
            TEST,
            "diagnostic.tsv",
            ["index\tsentence1\tsentence2", "0\tThe cat sat.\tIt did not."],
            [("0", "The cat sat.", "It did not.", None)],
        ),
    ],
}
NAMES = {
    "mnli": NLI,
    "xnli": NLI,
    "ax": NLI,
    "qnli": ("entailment", "not_entailment"),
    "rte": ("entailment", "not_entailment"),
    "stsb": (),
}
METRICS = {
    "cola": ("matthews", "accuracy"),
    "ax": ("matthews", "accuracy"),
    "mrpc": ("accuracy", "f1"),
    "qqp": ("accuracy", "f1"),
    "stsb": ("pearson", "spearman"),
}


def parse(*words, **named):
    named = {"output_dir": "nowhere", **named}
    argv = ["script", *words, *(f"--{k}={v}" for k, v in named.items())]
    return flags.parse(argv, Settings, "")


def read(*words, **named):
    return inputs.read(parse(*words, **named))


def examples(data, split):
    return [
        [tuple(e) for e in classification.examples(part.source, data.labels)]
        for part in data.of(split)
    ]


@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("task", TASKS)
def test_tasks_read_lines_in_the_real_format(tmp_path, task, ending):
    for _, file, lines, _ in CASES[task]:
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        path.write_bytes("".join(line + ending for line in lines).encode())
    splits = sorted({split for split, *_ in CASES[task]})
    words = {TRAIN: "--do_train", DEV: "--do_eval", TEST: "--do_predict"}
    data = read(
        *(words[split] for split in splits), task_name=task, data_dir=tmp_path
    )
    for split in splits:
        expected = [found for s, _, _, found in CASES[task] if s == split]
        assert examples(data, split) == expected
        assert [part.count for part in data.of(split)] == [
            len(found) for found in expected
        ]
    assert data.labels.names == NAMES.get(task, ("0", "1"))
    assert data.metrics == METRICS.get(task, ("accuracy",))


def test_every_task_has_a_case():
    assert CASES.keys() == TASKS.keys()


def test_files_of_several_parts_have_names(tmp_path):
    for _, file, lines, _ in CASES["mnli"]:
        (tmp_path / file).write_text("\n".join(lines))
    data = read(
        "--do_eval", "--do_predict", task_name="MNLI", data_dir=tmp_path
    )
    assert [p.name for p in data.of(DEV)] == ["", "mismatched"]
    assert [p.submission for p in data.of(TEST)] == ["MNLI-m"]
    matched, mismatched = data.of(DEV)
    assert matched.file("eval", ".tf_record") == "eval.tf_record"
    assert mismatched.file("eval", ".tf_record") == "eval_mismatched.tf_record"


def test_the_names_of_glue_are_known_in_any_spelling(tmp_path):
    for _, file, lines, _ in CASES["sst2"]:
        (tmp_path / file).write_text("\n".join(lines))
    for name in ("sst2", "SST-2", "sst-2"):
        data = read("--do_predict", task_name=name, data_dir=tmp_path)
        assert data.of(TEST)[0].submission == "SST-2"


def test_languages_of_xnli_can_differ(tmp_path):
    (tmp_path / "multinli").mkdir()
    (tmp_path / "multinli" / "multinli.train.en.tsv").write_text(
        "premise\thypo\tlabel\none\ttwo\tneutral\n"
    )
    (tmp_path / "xnli.dev.tsv").write_text(
        "\n".join([XNLI_HEADER, xnli("ur", "neutral", "a", "b")])
    )
    data = read(
        "--do_train",
        "--do_eval",
        task_name="xnli",
        data_dir=tmp_path,
        language="ur",
        train_language="en",
    )
    assert examples(data, TRAIN) == [[("0", "one", "two", 2)]]
    assert examples(data, DEV) == [[("0", "a", "b", 2)]]


OWN = [{"t": "one", "u": "x", "l": "no"}, {"t": "two", "u": "", "l": "yes"}]


def own_file(folder, name):
    path = folder / name
    if name.endswith(".jsonl"):
        lines = [json.dumps(row) for row in OWN]
    else:
        between = "," if name.endswith(".csv") else "\t"
        lines = [
            between.join(row.values())
            for row in [{"t": "t", "u": "u", "l": "l"}, *OWN]
        ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("name", ["train.tsv", "train.csv", "train.jsonl"])
def test_own_files_need_only_columns(tmp_path, name):
    own_file(tmp_path, name)
    data = read(
        "--do_train",
        task_name="tsv",
        data_dir=tmp_path,
        text_column="t",
        text_b_column="u",
        label_column="l",
    )
    assert examples(data, TRAIN) == [
        [("0", "one", "x", 0), ("1", "two", "", 1)]
    ]
    assert data.labels.names == ("no", "yes")
    assert data.has_pairs


def test_own_labels_can_be_given_and_are_recorded(tmp_path):
    path = own_file(tmp_path, "mails.tsv")
    named = {"task_name": "tsv", "text_column": 0, "eval_file": path}
    named |= {"label_column": 2, "output_dir": tmp_path}
    data = read("--do_eval", "--header", labels="yes, no ,maybe", **named)
    assert data.labels.names == ("yes", "no", "maybe")
    assert [e[3] for e in examples(data, DEV)[0]] == [1, 0]
    with pytest.raises(UserError, match="the labels are unknown"):
        read("--do_eval", "--header", **named)
    (tmp_path / "task.json").write_text(
        json.dumps({"kind": "classes", "labels": ["yes", "no"]})
    )
    (tmp_path / "checkpoint").touch()
    data = read("--do_eval", "--header", **named)
    assert data.labels.names == ("yes", "no")


def test_an_export_alone_has_both_texts(tmp_path):
    named = {"task_name": "tsv", "labels": "a,b", "export_dir": "none"}
    named |= {"text_column": "t", "output_dir": tmp_path}
    assert read(text_b_column="u", **named).has_pairs
    assert not read(**named).has_pairs


def test_a_share_of_examples_with_several_labels_is_that_of_all(tmp_path):
    path, letters = tmp_path / "t.tsv", "abcdefghij"
    pairs = [f"{x},{y}" for x in letters for y in letters if x < y]
    path.write_text("t\tl\n" + "".join(f"text\t{x}\n" for x in pairs))
    named = {"train_file": path, "task_name": "tsv", "eval_share": 0.2}
    named |= {"text_column": "t", "label_column": "l"}
    data = read("--do_train", "--do_eval", "--multi_label", **named)
    assert [part.count for part in data.parts] == [36, 9]


def test_evaluations_during_training_read_their_file(tmp_path):
    path = own_file(tmp_path, "mails.tsv")
    named = {"train_file": path, "eval_file": path, "task_name": "tsv"}
    named |= {"text_column": "t", "label_column": "l"}
    for steps, count in ((0, 0), (5, 1)):
        data = read("--do_train", eval_steps=steps, **named)
        assert len(data.of(DEV)) == count


def test_prediction_needs_no_label(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("id,t\nm1,one\nm2,two\n")
    data = read(
        "--do_predict",
        task_name="tsv",
        predict_file=path,
        text_column="t",
        label_column="l",
        id_column="id",
        labels="a,b",
    )
    assert examples(data, TEST) == [
        [("m1", "one", "", None), ("m2", "two", "", None)]
    ]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["--task_name=colla"], "--task_name=colla; expected csv or tsv"),
        (
            [],
            "no --task_name; expected csv or tsv for your own tables, or one",
        ),
        (["--task_name=tsv"], "pass --text_column"),
        (["--task_name=cola", "--text_column=0"], "--text_column with"),
        (["--task_name=cola", "--labels=a,b"], "--labels with"),
        (["--task_name=cola"], "no --data_dir; pass it or --train_file"),
        (["--task_name=ax", "--data_dir=x"], "has no train file"),
        (
            ["--task_name=tsv", "--text_column=0", "--data_dir=x"],
            "x: no files train{.tsv,.csv,.jsonl,.parquet}[.gz]; expected one; ",
        ),
        (
            ["--task_name=tsv", "--text_column=0", "--train_file=x"],
            "no --label_column",
        ),
        (
            ["--task_name=tsv", "--text_column=0", "--regression"]
            + ["--multi_label"],
            "--multi_label and --regression; expected one of them",
        ),
    ],
)
def test_contradicting_flags_are_reported(words, found):
    with pytest.raises(UserError) as error:
        read("--do_train", *words)
    assert found in str(error.value)
