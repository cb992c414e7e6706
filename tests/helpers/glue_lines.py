"""Lines of the files of GLUE and XNLI, in their real formats."""

from tasks.classification.inputs import DEV, TEST, TRAIN

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

# Lines of dev files whose columns differ from those of test files.
DEV_LINES = {
    "cola": ["gj04\t1\t\tThe sailors rode.", "gj04\t0\t*\tAnson he."],
    "sst2": ["sentence\tlabel", "it 's charming . \t1"],
    "mrpc": ["Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", "1\t7\t8\tA.\tB."],
    "qqp": [
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate",
        "201359\t303345\t303346\tWhy?\tHow?\t0",
    ],
}
