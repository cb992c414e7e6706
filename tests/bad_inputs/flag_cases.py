"""Flags that contradict each other or the files, beside those of a run."""

from tests.helpers.small import P, S

NO_TRAINING = {"do_train": None, "do_predict": None}
FULL = {"export_dir": "{folder}/model"}
OTHER_VOCABULARY = "token 'house'; expected 'tree', as in "
RECORDS = "{folder}/records/good.tfrecord"
PLAIN = "{folder}/plain/0.tfrecord"
LENGTHS = {"max_seq_length": None, "max_predictions_per_seq": None}
PREPROCESSOR = {"export_type": "preprocessing"}
BASE = {"base_vocab": "{folder}/model/vocab.txt", "num_new_tokens": 5}
UNSUITABLE = "; expected a word that the tokenizer keeps whole"
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
RECORDS_APART = (  # records that do not belong together
    (
        {"input_file": f"{PLAIN},{{folder}}/long/0.tfrecord"},
        f"max_seq_length is 13; expected {S}, as in ",
    ),
    (
        {"input_file": f"{PLAIN},{{folder}}/more/0.tfrecord"},
        f"max_predictions_per_seq is {P + 1}; expected {P}, as in ",
    ),
    (
        {"input_file": f"{PLAIN},{{folder}}/accents/0.tfrecord"},
        "strip_accents is True; expected False, as in ",
    ),
    (
        {"input_file": "{folder}/longer/0.tfrecord"},
        "--max_seq_length=41; expected at most max_position_embeddings, 37",
    ),
    (
        {
            "input_file": PLAIN,
            "eval_input_file": "{folder}/cased/0.tfrecord",
        },
        "do_lower_case is True; expected False, as in ",
    ),
    (
        {
            "input_file": PLAIN,
            "eval_input_file": "{folder}/other_vocabulary/0.tfrecord",
        },
        "make all records with one vocabulary and casing",
    ),
    (
        {"init_checkpoint": "{folder}/renamed/x.ckpt"},
        "token 'tree'; expected 'house', as in ",
    ),
    (
        {
            "input_file": None,
            "phases": f"{RECORDS}:1,{PLAIN}:90",
            "num_train_steps": 7,
        },
        "--phases: 0 of 7 steps for '",
    ),
)
HUB = (
    ({"export_path": "s3://bucket/x"}, "a local path or gs://"),
    ({"export_path": "{folder}/model"}, "pass another --export_path"),
    ({"static_seq_length": 38}, "at most max_position_embeddings, 37"),
    ({**PREPROCESSOR, "precision": "float16"}, "apply to models only"),
    ({**PREPROCESSOR, "static_seq_length": 7}, "apply to models only"),
    (
        {
            **PREPROCESSOR,
            "vocab_file": "{folder}/wide.txt",
            "model_checkpoint_path": None,
        },
        "257 bytes; expected ",
    ),
    (
        {**PREPROCESSOR, "vocab_file": None, "model_checkpoint_path": None},
        "no --vocab_file",
    ),
)
FEATURES = (
    ({"input_file": "/none"}, "--input_file='/none' matches no file"),
    ({"layers": 2}, "--layers: '2'; expected numbers from -2 to 1"),
    ({"max_seq_length": 38}, "at most max_position_embeddings, 37"),
    (
        {"output_file": "{folder}/out.npy"},
        "--output_format=npy without --pooling",
    ),
    (
        {
            "output_file": "{folder}/out.parquet",
            "pooling": "mean",
            "layers": "-1,-2",
        },
        "--output_format=parquet with 2 layers; expected one vector",
    ),
)
CONVERSION = (
    ({"input": "/none"}, "no such checkpoint"),
    ({"output": "{folder}/model"}, "expected a new or empty folder"),
    ({"extend_positions": 99}, "--extend_positions was removed; for longer"),
    ({"extend_vocab": "/none"}, "No such file"),
    ({"extend_vocab": "{folder}/hyphen.txt"}, UNSUITABLE),
    (
        {"extend_vocab": "{folder}/capital.txt", "do_lower_case": True},
        f"'Tree' is split into 'tree'{UNSUITABLE}",
    ),
)
PREDICTION = (
    ({"input_file": "{folder}/none"}, "none: no such file; check --input"),
    ({"input_file": "{folder}"}, ": is a folder; check --input_file"),
    (
        {"input_file": "{folder}/table.tsv"},
        "no column 'text'; expected one",
    ),
    (
        {"text_column": "b"},
        "no column 'b'; expected one of 2 columns: id",
    ),
    ({"delimiter": "ab"}, "expected one character"),
    (
        {"text_column": 1, "text_b_column": 0},
        "--text_b_column=0; expected a model of two texts",
    ),
    ({"text_b_column": "id"}, "=id; expected a model of two texts"),
    (
        {"input_file": None, "text_column": 0},
        "standard input has no columns",
    ),
    ({"inputs": "text_b"}, "--inputs=text_b; expected text"),
    ({"signature": "tokens"}, "no signature 'tokens'; expected one of"),
    (
        {"output_file": "{folder}/out.txt"},
        "expected a name in .jsonl or .parquet",
    ),
    (
        {"output_file": "{folder}/out.jsonl.gz"},
        "expected a name in .jsonl or .parquet",
    ),
)
CORPUS = (
    (
        {"output_file": "{folder}/corpus.txt"},
        "corpus.txt: is both input and output",
    ),
    (
        {"output_file": "{folder}/model/vocab.txt"},
        "vocab.txt: is both input and output",
    ),
    (
        {"output_file": "{folder}/a.tfrecord,{folder}/./a.tfrecord"},
        "expected different files in one",
    ),
    (
        {"input_file": "a={folder}/corpus.txt,b={folder}/masks.txt"},
        "masks.txt: 1 document",
    ),
    (
        {"input_file": "en={folder}/corpus.txt,{folder}/masks.txt"},
        "masks.txt' has no name, but others do; expected name=path for each",
    ),
)
RAW = (  # of prepare_corpus
    (
        {"input_file": "{folder}/corpus.jsonl,"},
        "--input_file='' matches no",
    ),
    ({"input_file": "{folder}/hidden"}, "hidden: no text file in this folder"),
    ({"language": "xx"}, "--language='xx' is unknown; expected one of am,"),
    (
        {"language": "th"},
        "; Thai has no marks between sentences: instead of this script, "
        "write one sentence per line with a Thai tool, such as PyThaiNLP",
    ),
    ({"output_file": "{folder}"}, "expected the name of a file"),
    ({"output_file": "/none/corpus.txt"}, "create the folder first"),
    (
        {"output_file": "{folder}/corpus.jsonl"},
        "corpus.jsonl: is both input and output",
    ),
    (
        {"input_file": "{folder}", "output_file": "{folder}/corpus.txt"},
        "corpus.txt: is both input and output",
    ),
)
EXTENSION = (
    ({"vocab_size": 30522}, "--vocab_size contradicts --base_vocab"),
    ({"num_unused": 99}, "--num_unused contradicts --base_vocab"),
    ({"limit_alphabet": 99}, "--limit_alphabet contradicts --base_vocab"),
    ({}, "vocab.txt: 0 [unusedN] slots for 5 words; "),
)
FLAGS = (
    *(("run_pretraining", LENGTHS | x, y) for x, y in RECORDS_APART),
    *(("export_hub", *x) for x in HUB),
    *(("extract_features", *x) for x in FEATURES),
    *(("convert_google", *x) for x in CONVERSION),
    *(("predict", *x) for x in PREDICTION),
    *(("create_pretraining_data", *x) for x in CORPUS),
    *(("prepare_corpus", *x) for x in RAW),
    *(("create_vocab", BASE | x, y) for x, y in EXTENSION),
    *(
        ("doctor_checkpoint", {name: "/none"}, "/none: No such file or ")
        for name in ("vocab_file", "bert_config_file")
    ),
    (
        "run_classifier",
        {
            "init_checkpoint": None,
            "export_dir": "{folder}/export",
            "vocab_file": "{folder}/wide.txt",
        },
        "wide.txt:12: token 'ttttttttt",
    ),
    ("demo", {}, "records: no model; expected the folder of an export"),
    ("create_vocab", {"input_file": "/none/*.txt"}, "matches no file"),
    (
        "create_vocab",
        {"input_file": "{folder}/mode*"},
        "/model: --input_file is a folder; expected files; pass --input_file='",
    ),
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
    *(
        (
            "run_swag",
            {"init_checkpoint": None, name: None},
            f"no --{name}; pass it, or a model as --init_checkpoint",
        )
        for name in ("bert_config_file", "vocab_file")
    ),
)
