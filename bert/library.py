"""All public names of `import bert`, in one module."""

# ruff: noqa: F401

from bert.data.text.tokenizer import Tokenizer
from bert.datasets import pretraining_dataset
from bert.modeling.config import BertConfig
from bert.modeling.tf_hub import HubEncoder  # for Keras to load
from bert.models.builders import (
    classifier,
    masked_lm,
    next_sentence,
    span_model,
    token_classifier,
)
from bert.models.embeddings import embed
from bert.models.loading import Encoder, load_encoder, new_encoder, save
from bert.models.masked_words import fill_mask
from bert.models.question_answerer import QuestionAnswerer
from bert.models.text_classifier import TextClassifier
from bert.models.token_classifier import TokenClassifier
from bert.training.optimization import AdamWeightDecay, WarmupLinearDecay
