"""The names that `import bert` offers, in one module."""

# ruff: noqa: F401

from bert.answers import fill_mask
from bert.data.text.tokenizer import Tokenizer
from bert.datasets import pretraining_dataset
from bert.embeddings import embed
from bert.encoders import Encoder, load_encoder, new_encoder, save
from bert.heads import (
    classifier,
    masked_lm,
    next_sentence,
    span_model,
    token_classifier,
)
from bert.modeling.config import BertConfig
from bert.modeling.hub import HubEncoder  # for Keras to load
from bert.question_answerer import QuestionAnswerer
from bert.text_classifier import TextClassifier
from bert.training.optimization import AdamWeightDecay, WarmupLinearDecay
from bert.word_classifier import TokenClassifier
