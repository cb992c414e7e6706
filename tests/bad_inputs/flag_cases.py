"""Flags that contradict each other or the files, beside those of a run."""

NO_TRAINING = {"do_train": None, "do_predict": None}
FULL = {"export_dir": "{folder}/model"}
OTHER_VOCABULARY = "token 'house'; expected 'tree', as in "
RECORDS = "{folder}/records/good.tfrecord"
LINES = {"input_file": "{folder}/corpus.jsonl"}
EVALUATES = {
    **NO_TRAINING,
    "do_eval": True,
    "eval_file": "{folder}/table.tsv",
    "labels": "x,y",
}
TUNES_THRESHOLD = {
    "tune_null_threshold": True,
    "predict_file": "{folder}/squad.json",
}
TUNING = (  # of every script that fine-tunes
    (NO_TRAINING, "nothing to do; pass --do_train"),
    ({"do_train": True, "train_file": None}, "--train_file"),
    ({"max_seq_length": 38}, "at most max_position_embeddings, 37"),
    (FULL, "model: already exists; expected a new or empty folder"),
)
FLAGS = (
    ("create_vocab", {"input_file": "/none/*.txt"}, "matches no file"),
    ("create_vocab", {"output_file": "/none/v.txt"}, "create the folder first"),
    ("create_vocab", LINES, "is JSON lines, by its name; expected one sent"),
    ("create_pretraining_data", LINES, "is JSON lines, by its name; expected"),
    ("create_pretraining_data", {"runner": "No"}, "--runner=No"),
    (
        "create_pretraining_data",
        {"output_file": "/"},
        "expected a file name, such as folder/wiki.tfrecord",
    ),
    ("run_pretraining", {"do_train": None}, "pass --do_train or --do_eval"),
    (
        "convert_google",
        {"to": "litert"},
        "--to=litert was removed; load the model with `import bert`, and call ",
    ),
    ("run_pretraining", {"use_tpu": True}, "no TPU at this host"),
    (
        "run_pretraining",
        {"gradient_accumulation_steps": 3},
        "--gradient_accumulation_steps=3; expected a divisor of 32",
    ),
    (
        "run_pretraining",
        {"max_seq_length": 13},
        "max_seq_length is 31; expected 13, as in the flags; omit",
    ),
    (
        "run_pretraining",
        {"input_file": None, "phases": f"{RECORDS}:0"},
        "/good.tfrecord:0'; expected files:weight or file",
    ),
    (
        "run_pretraining",
        {"input_file": None, "phases": "{folder}/none*:1"},
        "/none*' matches no file",
    ),
    (
        "run_pretraining",
        {"schedule": "clock"},
        "--schedule=clock was removed; choose --num_train_steps for the time, ",
    ),
    (
        "run_pretraining",
        {"do_train": None, "do_eval": True},
        "no checkpoint; expected a trained model; pass --do_train",
    ),
    *(
        (name, {"vocab_file": "{folder}/other.txt"}, OTHER_VOCABULARY)
        for name in (
            *("convert_google", "doctor_checkpoint", "export_hub"),
            *("extract_features", "fill_mask", "run_classifier", "run_ner"),
        )
    ),
    *(
        (f"run_{task}", flags, message)
        for task in ("classifier", "ner", "squad", "swag")
        for flags, message in TUNING
    ),
    (
        "run_classifier",
        {**EVALUATES, "num_seeds": 3},
        "--num_seeds=3; expected --do_train",
    ),
    ("run_classifier", {**EVALUATES, "init_checkpoint": None}, "no checkpoint"),
    (
        "run_classifier",
        {"train_batch_size": 7, "gradient_accumulation_steps": 2},
        "--gradient_accumulation_steps=2; expected a divisor of 7",
    ),
    *(
        ("run_classifier", flags, message)
        for flags, message in (
            ({"layer_decay": 0}, "--layer_decay=0.0; expected at least 1e-06"),
            ({"layer_decay": 1.1}, "--layer_decay=1.1; expected at most 1.0"),
            ({"warmup_proportion": 2}, "=2.0; expected at most 1"),
            ({"freeze_layers": 3}, "at most num_hidden_layers, 2"),
            ({"optimizer": "adamw"}, "the former adamw is bert_adam; AdamW"),
            ({"optimizer": "sgd"}, "one of bert_adam, corrected_adamw, lamb"),
        )
    ),
    (
        "run_classifier",
        {
            **EVALUATES,
            "bert_hub_module_handle": "x",
            "init_checkpoint": None,
        },
        "x: no such checkpoint; expected the file x.index, or a folder",
    ),
    (
        "run_ner",
        {
            "do_train": True,
            "train_file": "{folder}/tags.txt",
            "label_kind": "entities",
        },
        "tags.txt:1: labels such as 'DT'; expected O, or B-",
    ),
    (
        "run_ner",
        {"output_dir": "{folder}/tuned"},
        "tuned: its task.json was not written by run_ner.py; expected a",
    ),
    (
        "run_ner",
        {"init_checkpoint": None},
        "out: unknown labels; expected task.json of a trained",
    ),
    (
        "run_squad",
        {"max_query_length": 28},
        "--max_seq_length=31; expected more than --max_query_length + 3 = 31",
    ),
    (
        "run_squad",
        {
            **TUNES_THRESHOLD,
            "version_2_with_negative": True,
            "null_score_diff_threshold": 0,
        },
        "--tune_null_threshold with --null_score_diff_threshold",
    ),
    ("run_swag", {"max_seq_length": 4}, "=4; expected at least 5"),
)
