#!/usr/bin/env bash
# Trains a BERT on the docstrings of installed packages, fills in masked words,
# and classifies sentences by package.
#
#     examples/quickstart.sh PYTHON FOLDER
#
# Every command can be copied. A second run resumes from the newest checkpoint.
set -euo pipefail
usage="usage: $0 PYTHON FOLDER"
python=${1:?$usage} out=${2:?$usage}
from=$PWD
cd "$(dirname "$0")/.."
# Paths are relative to the folder of the call; a bare name is in PATH.
case $python in /*) ;; */*) python=$from/$python ;; esac
case $from:$out in "$PWD":* | *:/*) ;; *) out=$from/$out ;; esac
mkdir -p "$out"

show() { printf '\n$ %s\n' "$*"; "$@"; }

show "$python" examples/docstring_corpus.py "$out"

show "$python" create_vocab.py \
    --input_file="$out/train.txt" \
    --output_file="$out/vocab.txt" \
    --vocab_size=8000

for part in train held_out; do
    show "$python" create_pretraining_data.py \
        --input_file="$out/$part.txt" \
        --output_file="$out/$part.tfrecord" \
        --vocab_file="$out/vocab.txt" \
        --max_seq_length=64 \
        --max_predictions_per_seq=10 \
        --dupe_factor=2
done

show "$python" run_pretraining.py --do_train --do_eval \
    --input_file="$out/train.tfrecord" \
    --eval_input_file="$out/held_out.tfrecord" \
    --output_dir="$out/run" \
    --bert_config_file=bert/configs/bert_quickstart.json \
    --num_train_steps=1500 \
    --num_warmup_steps=150 \
    --learning_rate=1e-3 \
    --eval_batch_size=64 \
    --max_eval_steps=20 \
    --eval_steps=500

show "$python" fill_mask.py --init_checkpoint="$out/run" <<'SENTENCES'
Returns the [MASK] of the array.
The shape of the input [MASK] must be known.
A list of [MASK], one for each layer.
If the file does not exist, an error is [MASK].
Return True if the two objects are [MASK].
SENTENCES

[ -d "$out/packages_export" ] ||
    show "$python" run_classifier.py --do_train --do_eval \
        --task_name=tsv \
        --train_file="$out/packages_train.tsv" \
        --eval_file="$out/packages_held_out.tsv" \
        --text_column=sentence \
        --label_column=package \
        --init_checkpoint="$out/run" \
        --output_dir="$out/packages" \
        --export_dir="$out/packages_export" \
        --max_seq_length=64 \
        --eval_batch_size=64

show "$python" predict.py --model="$out/packages_export" <<'SENTENCES'
The shape of the input tensor must be known.
Return True if the two paths are the same file.
Returns the sorted unique elements of an array.
The layer is called with a batch of inputs.
SENTENCES

show "$python" report.py --run="$out/packages"
